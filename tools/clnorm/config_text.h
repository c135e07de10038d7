/* Configs on the command line and in JSON. */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include <jansson.h>

#include "fault.h"

/* What --config says: the knobs that the text names; the others are 0, "you choose". */
bool config_parse(const char *text, clnorm_config *config, struct fault *fault);

enum { CONFIG_TEXT = 320 }; /* bytes that the words of any config fit in */

/* NULL when out of memory. */
/* A knob's number; 0 where the config has none. */
uint64_t config_number(const clnorm_config *config, const char *knob);

/* Whether a knob has this value. */
bool config_has(const clnorm_config *config, const char *knob, const char *value);

/* Puts a number in place of the knob's. */
void config_set(clnorm_config *config, const char *knob, uint64_t number);

json_t *config_json(const clnorm_config *config);

#endif
