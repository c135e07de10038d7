#include "json_reader.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NESTED = 32 };

static bool fail(struct json_reader *reader, const char *error) {
    if (!reader->error)
        reader->error = error;
    return false;
}

char json_peek(struct json_reader *reader) {
    while (reader->at < reader->end && strchr(" \t\n\r", *reader->at) && *reader->at)
        reader->at++;
    if (reader->at == reader->end || reader->error)
        return '\0';
    return *reader->at;
}

bool json_take(struct json_reader *reader, char expected) {
    if (json_peek(reader) != expected)
        return fail(reader, expected == ':' ? "expected ':'" : "expected ',' or the end");
    reader->at++;
    return true;
}

bool json_next(struct json_reader *reader, char close, bool first) {
    if (json_peek(reader) == close) {
        reader->at++;
        return false;
    }
    return !reader->error && (first || json_take(reader, ','));
}

/* ----------------------------------------------------------------------------------------------------------- strings */

/* The code point of 4 hexadecimal digits; -1: they are not such digits. */
static long read_hex(struct json_reader *reader) {
    long value = 0;
    if (reader->end - reader->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const unsigned char c = (unsigned char)*reader->at++;
        if (!isxdigit(c))
            return -1;
        value = value * 16 + (isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
    }
    return value;
}

/* Reads the digits after "\u". A character beyond 0xffff has two such escapes. */
static long read_unicode(struct json_reader *reader) {
    const long high = read_hex(reader);
    if (high < 0xd800 || high > 0xdfff)
        return high;
    if (high > 0xdbff || reader->end - reader->at < 2 || memcmp(reader->at, "\\u", 2) != 0)
        return -1;
    reader->at += 2;
    const long low = read_hex(reader);
    return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00) : -1;
}

/* Reads the rest of an escape, after its backslash. */
static long read_escape(struct json_reader *reader) {
    static const char names[] = "\"\\/bfnrt";
    static const char characters[] = "\"\\/\b\f\n\r\t";
    if (reader->at == reader->end)
        return -1;
    const char name = *reader->at++;
    const char *const found = name ? strchr(names, name) : NULL;
    return found ? characters[found - names] : name == 'u' ? read_unicode(reader) : -1;
}

/* Reads a character beyond ASCII. -1: it is not valid UTF-8, where the shortest form alone is valid. */
static long read_utf8(struct json_reader *reader) {
    static const long least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char lead = (unsigned char)*reader->at++;
    const int more = lead >= 0xf0 && lead < 0xf8 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc0 || lead >= 0xf8 || reader->end - reader->at < more)
        return -1;
    long value = lead & (0x3f >> more);
    for (int i = 0; i < more; i++) {
        const unsigned char c = (unsigned char)*reader->at++;
        if ((c & 0xc0) != 0x80)
            return -1;
        value = value << 6 | (c & 0x3f);
    }
    return value < least[more] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff) ? -1 : value;
}

/* Writes a character as UTF-8 where text is not NULL; returns its bytes. */
static size_t put_utf8(char *text, long value) {
    const int more = value < 0x80 ? 0 : value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;
    static const int leads[] = {0, 0xc0, 0xe0, 0xf0};
    for (int i = 0; text && i <= more; i++) {
        const int bits = (int)(value >> 6 * (more - i));
        text[i] = (char)(i ? 0x80 | (bits & 0x3f) : leads[more] | bits);
    }
    return (size_t)more + 1;
}

/* Reads to the closing quote; writes to text where it is not NULL. Returns the number of bytes plus one; 0 on failure. */
static size_t read_characters(struct json_reader *reader, char *text) {
    size_t length = 0;
    while (reader->at < reader->end && *reader->at != '"') {
        const unsigned char c = (unsigned char)*reader->at;
        long value = c;
        if (c == '\\') {
            reader->at++;
            value = read_escape(reader);
        } else if (c >= 0x80)
            value = read_utf8(reader);
        else
            reader->at++;
        if (c < ' ' || value <= 0) {
            fail(reader, c < ' ' ? "a control character in a string" : "invalid UTF-8 or a bad escape in a string");
            return 0;
        }
        length += put_utf8(text ? text + length : NULL, value);
    }
    if (reader->at == reader->end) {
        fail(reader, "the text ends within a string");
        return 0;
    }
    reader->at++;
    return length + 1;
}

bool json_read_string(struct json_reader *reader, char **text) {
    if (json_peek(reader) != '"')
        return fail(reader, "expected a string");
    const char *const start = ++reader->at;
    const size_t size = read_characters(reader, NULL);
    if (!size || !text)
        return size;
    *text = malloc(size);
    if (!*text)
        return fail(reader, "out of memory");
    reader->at = start;
    (void)read_characters(reader, *text);
    (*text)[size - 1] = '\0';
    return true;
}

/* ----------------------------------------------------------------------------------------------------- other values */

static size_t take_digits(struct json_reader *reader) {
    const char *const start = reader->at;
    while (reader->at < reader->end && isdigit((unsigned char)*reader->at))
        reader->at++;
    return (size_t)(reader->at - start);
}

static bool take_optional(struct json_reader *reader, const char *characters) {
    const bool there = reader->at < reader->end && *reader->at && strchr(characters, *reader->at);
    reader->at += there;
    return there;
}

static bool skip_number(struct json_reader *reader) {
    (void)take_optional(reader, "-");
    const bool zero = take_optional(reader, "0");
    if (!zero && !take_digits(reader))
        return fail(reader, "expected a value");
    if (take_optional(reader, ".") && !take_digits(reader))
        return fail(reader, "expected digits");
    if (take_optional(reader, "eE")) {
        (void)take_optional(reader, "+-");
        if (!take_digits(reader))
            return fail(reader, "expected digits");
    }
    return true;
}

bool json_read_whole(struct json_reader *reader, uint64_t *number) {
    const char first = json_peek(reader);
    const char *const start = reader->at;
    if (!isdigit((unsigned char)first) || !skip_number(reader))
        return false;
    *number = 0;
    for (const char *at = start; at < reader->at; at++) {
        if (!isdigit((unsigned char)*at)) {
            reader->at = start;
            return false;
        }
        if (__builtin_mul_overflow(*number, UINT64_C(10), number) ||
            __builtin_add_overflow(*number, (uint64_t)(*at - '0'), number) || *number > INT64_MAX) {
            reader->at = start;
            return fail(reader, "an integer is too large");
        }
    }
    return true;
}

static bool skip_word(struct json_reader *reader) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i]);
        if ((size_t)(reader->end - reader->at) >= length && !memcmp(reader->at, words[i], length)) {
            reader->at += length;
            return true;
        }
    }
    return fail(reader, "expected a value");
}

static bool skip_nested(struct json_reader *reader, int depth) {
    const char open = json_peek(reader);
    const char close = open == '{' ? '}' : ']';
    if (open == '"')
        return json_read_string(reader, NULL);
    if (open != '{' && open != '[')
        return isalpha((unsigned char)open) ? skip_word(reader) : !reader->error && skip_number(reader);
    if (depth == MOST_NESTED)
        return fail(reader, "values are nested too deeply");
    reader->at++;
    for (bool first = true; json_next(reader, close, first); first = false)
        if ((open == '{' && (!json_read_string(reader, NULL) || !json_take(reader, ':'))) ||
            !skip_nested(reader, depth + 1))
            return false;
    return !reader->error;
}

bool json_skip(struct json_reader *reader) {
    return skip_nested(reader, 0);
}
