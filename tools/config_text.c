#include "config_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

enum { WORDS = 4 };

/* A knob; words for the values of an enumeration, from 1 on. */
struct knob {
    const char *name;
    size_t offset;
    const char *words[WORDS];
};

static const struct knob knobs[] = {
    {"vec", offsetof(clnorm_config, vec), {NULL}},
    {"lanes", offsetof(clnorm_config, lanes), {NULL}},
    {"segments", offsetof(clnorm_config, segments), {NULL}},
    {"rounds", offsetof(clnorm_config, rounds), {NULL}},
    {"keep", offsetof(clnorm_config, keep), {"registers", "reread"}},
    {"unroll", offsetof(clnorm_config, unroll), {NULL}},
    {"reduce", offsetof(clnorm_config, reduce), {"tree", "shuffle", "subgroup"}},
    {"stores", offsetof(clnorm_config, stores), {"cached", "streaming"}},
    {"weights", offsetof(clnorm_config, weights), {"late", "early", "kept"}},
    {"isa", offsetof(clnorm_config, isa), {"portable", "ptx"}},
    {"tile", offsetof(clnorm_config, tile), {NULL}},
    {"gather", offsetof(clnorm_config, gather), {"registers", "local", "memory", "split"}},
    {"fetch", offsetof(clnorm_config, fetch), {"in_turn", "ahead"}},
    {"chunks", offsetof(clnorm_config, chunks), {NULL}},
};
enum { KNOBS = sizeof knobs / sizeof *knobs };
_Static_assert(sizeof(clnorm_config) == KNOBS * sizeof(uint32_t), "every knob of a config has a row");

static uint32_t *value_of(const struct knob *knob, const clnorm_config *config) {
    return (uint32_t *)((char *)config + knob->offset);
}

/* The word for a knob's value, NULL where it is a number. */
static const char *word_of(const struct knob *knob, uint32_t value) {
    return value >= 1 && value <= WORDS ? knob->words[value - 1] : NULL;
}

static bool parse_value(const struct knob *knob, const char *text, uint32_t *value, struct fault *fault) {
    for (uint32_t i = 0; i < WORDS && knob->words[i]; i++)
        if (!strcmp(knob->words[i], text)) {
            *value = i + 1;
            return true;
        }
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    if (knob->words[0] || !*text || strspn(text, "0123456789") != strlen(text) || *end || number > UINT32_MAX)
        return fault_set(fault, EXIT_REQUEST, "--config %s: '%s' is no value of it", knob->name, text);
    *value = (uint32_t)number;
    return true;
}

static bool parse_knob(const char *word, void *user, struct fault *fault) {
    const char *const equals = strchr(word, '=');
    const size_t length = equals ? (size_t)(equals - word) : 0;
    for (int i = 0; equals && i < KNOBS; i++)
        if (length == strlen(knobs[i].name) && !strncmp(word, knobs[i].name, length))
            return parse_value(&knobs[i], equals + 1, value_of(&knobs[i], user), fault);
    char known[160] = "";
    for (int i = 0; i < KNOBS; i++) {
        strncat(known, i ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, knobs[i].name, sizeof known - strlen(known) - 1);
    }
    return fault_set(fault, EXIT_REQUEST, "--config '%s': expected KNOB=VALUE, KNOB one of %s", word, known);
}

bool config_parse(const char *text, clnorm_config *config, struct fault *fault) {
    *config = (clnorm_config){0};
    return each_word(text, "--config", parse_knob, config, fault);
}

char *config_text(const clnorm_config *config, char text[CONFIG_TEXT]) {
    int at = 0;
    for (int i = 0; i < KNOBS; i++) {
        const uint32_t value = *value_of(&knobs[i], config);
        const char *const word = word_of(&knobs[i], value);
        const char *const comma = i ? "," : "";
        if (word)
            at += snprintf(text + at, CONFIG_TEXT - (size_t)at, "%s%s=%s", comma, knobs[i].name, word);
        else
            at += snprintf(text + at, CONFIG_TEXT - (size_t)at, "%s%s=%u", comma, knobs[i].name, value);
    }
    return text;
}

json_t *config_json(const clnorm_config *config) {
    json_t *const object = json_object();
    for (int i = 0; i < KNOBS; i++) {
        const uint32_t value = *value_of(&knobs[i], config);
        const char *const word = word_of(&knobs[i], value);
        json_object_set_new(object, knobs[i].name, word ? json_string(word) : json_integer(value));
    }
    return object;
}
