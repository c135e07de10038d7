/* The text form of configs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "config/knobs.h"

enum { KNOWN_TEXT = 240 };

static clnorm_status parse_number(const struct cln_knob *knob, const char *value, size_t length, uint32_t *number) {
    char digits[16] = "";
    if (length < sizeof digits)
        memcpy(digits, value, length);
    const unsigned long long read = strtoull(digits, NULL, 10);
    if (!*digits || strspn(digits, "0123456789") != length || read > UINT32_MAX)
        return cln_fail(CLNORM_INVALID_VALUE, "%s=%.*s: expected a number below 2^32", knob->name, (int)length, value);
    *number = (uint32_t)read;
    char expected[CLN_KNOB_EXPECTED];
    return !*number || cln_knob_allows(knob, *number, expected)
               ? CLNORM_SUCCESS
               : cln_fail(CLNORM_INVALID_VALUE, "%s=%.*s: expected %s", knob->name, (int)length, value, expected);
}

static bool same_word(const char *word, const char *text, size_t length) {
    return strlen(word) == length && strncmp(word, text, length) == 0;
}

static clnorm_status parse_value(const struct cln_knob *knob, const char *value, size_t length, uint32_t *number) {
    if (!knob->values[0])
        return parse_number(knob, value, length, number);
    char known[KNOWN_TEXT] = "";
    for (uint32_t i = 0; i < sizeof knob->values / sizeof *knob->values && knob->values[i]; i++) {
        if (same_word(knob->values[i], value, length)) {
            *number = i + 1;
            return CLNORM_SUCCESS;
        }
        strncat(known, i ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, knob->values[i], sizeof known - strlen(known) - 1);
    }
    return cln_fail(CLNORM_INVALID_VALUE, "%s=%.*s: expected one of %s", knob->name, (int)length, value, known);
}

/* word: KNOB=VALUE, length characters. */
static clnorm_status parse_knob(const char *word, size_t length, struct cln_config *config) {
    const char *const equals = memchr(word, '=', length);
    char known[KNOWN_TEXT] = "";
    for (int i = 0; i < CLN_KNOBS; i++) {
        if (equals && same_word(cln_knobs[i].name, word, (size_t)(equals - word))) {
            uint32_t value = 0;
            const clnorm_status status =
                parse_value(&cln_knobs[i], equals + 1, length - (size_t)(equals + 1 - word), &value);
            cln_knob_set(config, i, value);
            return status;
        }
        strncat(known, i ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, cln_knobs[i].name, sizeof known - strlen(known) - 1);
    }
    return cln_fail(CLNORM_INVALID_VALUE, "'%.*s': expected KNOB=VALUE, KNOB one of %s", (int)length, word, known);
}

clnorm_status cln_config_parse(const char *text, struct cln_config *config) {
    struct cln_config parsed = {0};
    for (const char *word = text; *word;) {
        const size_t length = strcspn(word, ",");
        const clnorm_status status = parse_knob(word, length, &parsed);
        if (status)
            return status;
        word += length;
        if (*word == ',' && !*++word)
            return cln_fail(CLNORM_INVALID_VALUE, "'%s': expected KNOB=VALUE after the last comma", text);
    }
    *config = parsed;
    return CLNORM_SUCCESS;
}

clnorm_status clnorm_config_parse(const char *text, clnorm_config *config) {
    if (!text || !config)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", text ? "config" : "text");
    struct cln_config parsed;
    const clnorm_status status = cln_config_parse(text, &parsed);
    if (!status)
        *config = cln_config_close(&parsed);
    return status;
}

enum { WORD = 64 };

/* Writes "knob=value" with a comma before all but the first. Returns its length. */
static size_t write_knob(char word[WORD], bool first, const struct cln_knob *knob, uint32_t value) {
    char number[16];
    (void)snprintf(number, sizeof number, "%" PRIu32, value);
    const bool named = knob->values[0] && value <= sizeof knob->values / sizeof *knob->values && knob->values[value - 1];
    return (size_t)snprintf(word, WORD, "%s%s=%s", first ? "" : ",", knob->name, named ? knob->values[value - 1] : number);
}

size_t clnorm_config_text(const clnorm_config *config, char *text, size_t capacity) {
    size_t length = 0;
    if (capacity)
        *text = '\0';
    for (int i = 0; config && i < CLN_KNOBS; i++) {
        if (!config->words[i])
            continue;
        char word[WORD];
        const size_t added = write_knob(word, !length, &cln_knobs[i], config->words[i]);
        if (length < capacity)
            (void)snprintf(text + length, capacity - length, "%s", word);
        length += added;
    }
    return length;
}
