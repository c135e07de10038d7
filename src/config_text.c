/* Configs as words. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"

enum { WORDS = 5 };

/* A knob; words for the values of an enumeration, from 1 on. */
static const struct knob {
    const char *name;
    size_t offset;
    const char *words[WORDS];
} knobs[] = {
    {"vec", offsetof(clnorm_config, vec), {NULL}},
    {"lanes", offsetof(clnorm_config, lanes), {NULL}},
    {"segments", offsetof(clnorm_config, segments), {NULL}},
    {"rounds", offsetof(clnorm_config, rounds), {NULL}},
    {"keep", offsetof(clnorm_config, keep), {"registers", "reread", "local"}},
    {"unroll", offsetof(clnorm_config, unroll), {NULL}},
    {"reduce", offsetof(clnorm_config, reduce), {"tree", "shuffle", "subgroup"}},
    {"stores", offsetof(clnorm_config, stores), {"cached", "streaming"}},
    {"weights", offsetof(clnorm_config, weights), {"late", "early", "kept"}},
    {"isa", offsetof(clnorm_config, isa), {"portable", "ptx"}},
    {"tile", offsetof(clnorm_config, tile), {NULL}},
    {"gather", offsetof(clnorm_config, gather), {"registers", "local", "memory", "split", "columns"}},
    {"fetch", offsetof(clnorm_config, fetch), {"in_turn", "ahead", "far"}},
    {"chunks", offsetof(clnorm_config, chunks), {NULL}},
    {"sums", offsetof(clnorm_config, sums), {"before", "exchanged"}},
    {"walkers", offsetof(clnorm_config, walkers), {NULL}},
    {"prefetch", offsetof(clnorm_config, prefetch), {"none", "next"}},
    {"registers", offsetof(clnorm_config, registers), {NULL}},
    {"shelved", offsetof(clnorm_config, shelved), {NULL}},
    {"asked", offsetof(clnorm_config, asked), {NULL}},
};
enum { KNOBS = sizeof knobs / sizeof *knobs, KNOWN_TEXT = 200 };
_Static_assert(sizeof(clnorm_config) == KNOBS * sizeof(uint32_t), "every knob of a config has a row");

static clnorm_status parse_number(const struct knob *knob, const char *value, size_t length, uint32_t *number) {
    char digits[16] = "";
    if (length < sizeof digits)
        memcpy(digits, value, length);
    const unsigned long long read = strtoull(digits, NULL, 10);
    if (!*digits || strspn(digits, "0123456789") != length || read > UINT32_MAX)
        return cln_fail(CLNORM_INVALID_VALUE, "%s=%.*s: expected a number below 2^32", knob->name, (int)length, value);
    *number = (uint32_t)read;
    return CLNORM_SUCCESS;
}

static bool same_word(const char *word, const char *text, size_t length) {
    return strlen(word) == length && strncmp(word, text, length) == 0;
}

static clnorm_status parse_value(const struct knob *knob, const char *value, size_t length, uint32_t *number) {
    if (!knob->words[0])
        return parse_number(knob, value, length, number);
    char known[KNOWN_TEXT] = "";
    for (uint32_t i = 0; i < WORDS && knob->words[i]; i++) {
        if (same_word(knob->words[i], value, length)) {
            *number = i + 1;
            return CLNORM_SUCCESS;
        }
        strncat(known, i ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, knob->words[i], sizeof known - strlen(known) - 1);
    }
    return cln_fail(CLNORM_INVALID_VALUE, "%s=%.*s: expected one of %s", knob->name, (int)length, value, known);
}

/* word: KNOB=VALUE, length characters. */
static clnorm_status parse_knob(const char *word, size_t length, clnorm_config *config) {
    const char *const equals = memchr(word, '=', length);
    char known[KNOWN_TEXT] = "";
    for (int i = 0; i < KNOBS; i++) {
        if (equals && same_word(knobs[i].name, word, (size_t)(equals - word)))
            return parse_value(&knobs[i], equals + 1, length - (size_t)(equals + 1 - word),
                               (uint32_t *)((char *)config + knobs[i].offset));
        strncat(known, i ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, knobs[i].name, sizeof known - strlen(known) - 1);
    }
    return cln_fail(CLNORM_INVALID_VALUE, "'%.*s': expected KNOB=VALUE, KNOB one of %s", (int)length, word, known);
}

clnorm_status clnorm_config_parse(const char *text, clnorm_config *config) {
    if (!text || !config)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", text ? "config" : "text");
    clnorm_config parsed = {0};
    for (const char *word = text; *word;) {
        const size_t length = strcspn(word, ",");
        const clnorm_status status = parse_knob(word, length, &parsed);
        if (status)
            return status;
        word += length;
        if (*word == ',' && !*++word)
            return cln_fail(CLNORM_INVALID_VALUE, "'%s': expected KNOB=VALUE behind the last comma", text);
    }
    *config = parsed;
    return CLNORM_SUCCESS;
}

size_t clnorm_config_text(const clnorm_config *config, char *text, size_t capacity) {
    size_t length = 0;
    if (capacity)
        *text = '\0';
    for (int i = 0; i < KNOBS; i++) {
        const uint32_t value = *(const uint32_t *)((const char *)config + knobs[i].offset);
        if (!value)
            continue;
        char number[16];
        (void)snprintf(number, sizeof number, "%" PRIu32, value);
        const char *const word = knobs[i].words[0] && value <= WORDS ? knobs[i].words[value - 1] : NULL;
        const size_t room = length < capacity ? capacity - length : 0;
        const int written =
            snprintf(room ? text + length : NULL, room, "%s%s=%s", length ? "," : "", knobs[i].name, word ? word : number);
        length += written > 0 ? (size_t)written : 0;
    }
    return length;
}
