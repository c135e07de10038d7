/* Configs on the command line and in JSON. */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include <jansson.h>

#include "fault.h"

/* What --config says: the knobs that the text names; the others are 0, "you choose". */
bool config_parse(const char *text, clnorm_config *config, struct fault *fault);

enum { CONFIG_TEXT = 320 }; /* bytes that the words of any config fit in */

/* NULL when out of memory. */
json_t *config_json(const clnorm_config *config);

#endif
