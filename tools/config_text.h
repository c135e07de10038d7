/* Configs as words: "vec=8,lanes=128,keep=registers". */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include <jansson.h>

#include "fault.h"

/* The knobs that the text names; the others are 0, "you choose". */
bool config_parse(const char *text, clnorm_config *config, struct fault *fault);

enum { CONFIG_TEXT = 320 };

/* Every knob, separated by commas, so that config_parse reads it back. Returns text. */
char *config_text(const clnorm_config *config, char text[CONFIG_TEXT]);

/* NULL when out of memory. */
json_t *config_json(const clnorm_config *config);

#endif
