/* The values of knobs that a test forces, and how often each has run. */
#ifndef KNOB_VALUES_H
#define KNOB_VALUES_H

#include "fixture.h"
#include "knob.h"

enum { MOST_VALUES = 5 };

/* A knob and its values, which 0 ends. */
struct knob {
    const char *name;
    size_t offset;
    uint32_t values[MOST_VALUES + 1];
};

/* Whether the device supports a value, whatever the shape. */
typedef bool (*knob_device_has_fn)(const struct fixture *fixture, const struct knob *knob, uint32_t value);

/* The knob's word of a config. */
uint32_t *knob_setting(clnorm_config *config, const struct knob *knob);

/* Writes the values of a knob that the device has, or 0 if it has none. Returns their number. */
unsigned knob_values(const struct fixture *fixture, const struct knob *knob, knob_device_has_fn has,
                     uint32_t values[MOST_VALUES]);

/* Counts the values of a config. runs: how often each value of each of count knobs has run. */
void knob_count_values(const struct knob *knobs, size_t count, unsigned runs[][MOST_VALUES], clnorm_config config);

/* The number of values that the device has and that have not run. says: their names are printed. */
unsigned knob_values_left(const struct fixture *fixture, const struct knob *knobs, size_t count, knob_device_has_fn has,
                          const unsigned runs[][MOST_VALUES], bool says);

#endif
