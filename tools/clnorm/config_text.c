#include "config_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool config_parse(const char *text, clnorm_config *config, struct fault *fault) {
    return clnorm_config_parse(text, config) == CLNORM_SUCCESS ||
           fault_set(fault, EXIT_REQUEST, "--config %s", clnorm_error_detail());
}

/* The beginning of a knob's value in a config's text; NULL: the knob is not there. */
static const char *find_value(const char *text, const char *knob) {
    const size_t length = strlen(knob);
    const char *word = text;
    while (strncmp(word, knob, length) != 0 || word[length] != '=') {
        word = strchr(word, ',');
        if (!word)
            return NULL;
        word++;
    }
    return word + length + 1;
}

uint64_t config_number(const clnorm_config *config, const char *knob) {
    char text[CONFIG_TEXT];
    clnorm_config_text(config, text, sizeof text);
    const char *const value = find_value(text, knob);
    return value ? strtoull(value, NULL, 10) : 0;
}

bool config_has(const clnorm_config *config, const char *knob, const char *value) {
    char text[CONFIG_TEXT];
    clnorm_config_text(config, text, sizeof text);
    const char *const found = find_value(text, knob);
    return found && strcspn(found, ",") == strlen(value) && !strncmp(found, value, strlen(value));
}

void config_set(clnorm_config *config, const char *knob, uint64_t number) {
    char text[2 * CONFIG_TEXT];
    const size_t length = clnorm_config_text(config, text, sizeof text);
    (void)snprintf(text + length, sizeof text - length, "%s%s=%" PRIu64, length ? "," : "", knob, number);
    clnorm_config_parse(text, config);
}

/* A number where the value is one, else a word. */
static json_t *value_json(const char *value) {
    char *end;
    const long number = strtol(value, &end, 10);
    return *end ? json_string(value) : json_integer(number);
}

json_t *config_json(const clnorm_config *config) {
    char text[CONFIG_TEXT];
    clnorm_config_text(config, text, sizeof text);
    json_t *const object = json_object();
    char *rest;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char *const equals = strchr(word, '=');
        *equals = '\0';
        json_object_set_new(object, word, value_json(equals + 1));
    }
    return object;
}
