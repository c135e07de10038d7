#include "config_text.h"

#include <stdlib.h>
#include <string.h>

bool config_parse(const char *text, clnorm_config *config, struct fault *fault) {
    return clnorm_config_parse(text, config) == CLNORM_SUCCESS ||
           fault_set(fault, EXIT_REQUEST, "--config %s", clnorm_error_detail());
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
