/* Reads JSON text in one pass. It keeps no values, so that its memory does not grow with the text. */
#ifndef JSON_READER_H
#define JSON_READER_H

#include <stdbool.h>
#include <stdint.h>

struct json_reader {
    const char *at, *end;
    const char *error; /* what is wrong at `at`; NULL: nothing. After an error every function fails */
};

/* The next character that is not white space; '\0' at the end. */
char json_peek(struct json_reader *reader);

/* Takes a comma or a colon; fails where another character is next. */
bool json_take(struct json_reader *reader, char expected);

/* Whether an object or array has another member, after its opening bracket was taken. Takes the comma before the member, or
 * the closing bracket. first: no member was read yet. */
bool json_next(struct json_reader *reader, char close, bool first);

/* Reads a string of valid UTF-8 that does not contain '\0'. The caller frees *text. text NULL: skips the string. */
bool json_read_string(struct json_reader *reader, char **text);

/* Reads a whole number from 0 to 2^63 - 1. false without an error: the next value is no whole number, and was not taken. */
bool json_read_whole(struct json_reader *reader, uint64_t *number);

/* Skips a value of any kind, nested at most 32 deep. */
bool json_skip(struct json_reader *reader);

#endif
