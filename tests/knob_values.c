#include "knob_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

uint32_t *knob_setting(clnorm_config *config, const struct knob *knob) {
    return &config->words[knob->offset / sizeof(uint32_t)];
}

unsigned knob_values(const struct fixture *fixture, const struct knob *knob, knob_device_has_fn has,
                     uint32_t values[MOST_VALUES]) {
    unsigned count = 0;
    for (unsigned i = 0; knob->values[i] != 0; i++)
        if (has(fixture, knob, knob->values[i]))
            values[count++] = knob->values[i];
    if (count == 0)
        values[count++] = 0;
    return count;
}

void knob_count_values(const struct knob *knobs, size_t count, unsigned runs[][MOST_VALUES], clnorm_config config) {
    for (size_t i = 0; i < count; i++)
        for (unsigned j = 0; knobs[i].values[j] != 0; j++)
            runs[i][j] += knobs[i].values[j] == *knob_setting(&config, &knobs[i]);
}

unsigned knob_values_left(const struct fixture *fixture, const struct knob *knobs, size_t count, knob_device_has_fn has,
                          const unsigned runs[][MOST_VALUES], bool says) {
    unsigned left = 0;
    for (size_t i = 0; i < count; i++)
        for (unsigned j = 0; knobs[i].values[j] != 0; j++)
            if (runs[i][j] == 0 && has(fixture, &knobs[i], knobs[i].values[j])) {
                left++;
                if (says)
                    print_error("%s %u never ran\n", knobs[i].name, knobs[i].values[j]);
            }
    return left;
}
