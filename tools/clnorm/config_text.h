/* Configs on the command line and in JSON. */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include <jansson.h>

#include "fault.h"

/* Reads the text of --config. Knobs that it does not name are left to the library. */
bool config_parse(const char *text, clnorm_config *config, struct fault *fault);

enum { CONFIG_TEXT = 320 }; /* bytes that hold the text of any config */

/* A knob's number; 0 where the config does not have it. */
uint64_t config_number(const clnorm_config *config, const char *knob);

/* Whether a knob has this value. */
bool config_has(const clnorm_config *config, const char *knob, const char *value);

void config_set(clnorm_config *config, const char *knob, uint64_t number);

/* An object of the knobs; NULL: out of memory. */
json_t *config_json(const clnorm_config *config);

#endif
