/* JSON text, read from front to back without keeping it: the memory that a text takes does not grow with it. */
#ifndef JSON_READER_H
#define JSON_READER_H

#include <stdbool.h>
#include <stdint.h>

struct json_reader {
    const char *at, *end;
    const char *error; /* of the place at; NULL: none. After an error every function fails */
};

/* The next character that is no white space; '\0' at the end. */
char json_peek(struct json_reader *reader);

/* Goes past a bracket, a comma or a colon; fails where another character is next. */
bool json_take(struct json_reader *reader, char expected);

/* Whether an object or array, whose opening bracket was taken, has another member; the comma before it, or the closing
 * bracket, is taken. first: no member was read yet. */
bool json_next(struct json_reader *reader, char close, bool first);

/* Reads a string of valid UTF-8, newly allocated and ended by '\0', which it does not contain. text NULL: only goes past.
 */
bool json_read_string(struct json_reader *reader, char **text);

/* Reads a whole number from 0 to 2^63 - 1. false without an error: the value is another one, and is next. */
bool json_read_whole(struct json_reader *reader, uint64_t *number);

/* Goes past a value of any kind, nested a little at most. */
bool json_skip(struct json_reader *reader);

#endif
