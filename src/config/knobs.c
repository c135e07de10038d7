#include "config/knobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/status.h"

enum {
    FORWARD = CLN_KNOBS_FORWARD,
    BACKWARD = CLN_KNOBS_BACKWARD,
    NORMS = FORWARD | BACKWARD,
    SLICES = CLN_KNOBS_SLICES,
    SEGMENTED = NORMS | CLN_KNOBS_SOFTMAX | CLN_KNOBS_QUANTIZE | SLICES,
    SPLIT = FORWARD | BACKWARD | CLN_KNOBS_SOFTMAX | SLICES,
    GROUP = CLN_KNOBS_GROUP,
    ALL = SEGMENTED | CLN_KNOBS_ELEMENTS | GROUP
};

const struct cln_knob cln_knobs[CLN_KNOBS] = {
    {"vec", {NULL}, 1, 16, true, ALL, "registers; alignment of rows on GPUs"},
    {"lanes", {NULL}, 1, 1024, true, ALL, "barriers and idle lanes"},
    {"segments", {NULL}, 1, 1024, true, SEGMENTED | GROUP, "local memory"},
    {"iterations", {NULL}, 1, UINT32_MAX, false, ALL & ~BACKWARD, "work-groups to share the work"},
    {"keep", {"registers", "reread", "local"}, 0, 0, false, SEGMENTED, "registers, a second read, local memory"},
    {"unroll", {NULL}, 1, 16, false, ALL & ~GROUP, "registers"},
    {"reduce", {"tree", "shuffle", "subgroup"}, 0, 0, false, SEGMENTED | GROUP, "barriers; portability"},
    {"stores", {"cached", "streaming"}, 0, 0, false, ALL, "cache hits of later reads of the output"},
    {"weights", {"late", "early", "kept"}, 0, 0, false, NORMS | SLICES, "latency, registers, cache"},
    {"isa", {"portable", "ptx"}, 0, 0, false, ALL, "portability"},
    {"tile", {NULL}, 1, UINT32_MAX, false, BACKWARD, "a split of rows"},
    {"accumulator", {"registers", "local", "memory", "split", "columns"}, 0, 0, false, BACKWARD, "registers, local memory"},
    {"pipeline", {NULL}, 1, 3, false, BACKWARD, "registers for each row under way"},
    {"chunks", {NULL}, 1, UINT32_MAX, false, SPLIT | GROUP, "a second kernel"},
    {"row_split",
     {"two_passes", "exchange", "no_wait"},
     0,
     0,
     false,
     BACKWARD | CLN_KNOBS_SOFTMAX | GROUP,
     "a second read, or a wait for others"},
    {"groups_per_cu", {NULL}, 1, UINT32_MAX, false, BACKWARD, "slots of partial sums"},
    {"run_length", {NULL}, 1, UINT32_MAX, false, BACKWARD, "work-groups that share the rows"},
    {"prefetch", {"none", "next"}, 0, 0, false, BACKWARD, "L2 cache"},
    {"local_vectors", {NULL}, 1, UINT32_MAX, false, FORWARD, "local memory"},
};
_Static_assert(sizeof(struct cln_config) <= sizeof(clnorm_config), "clnorm_config is too small for the knobs");

uint32_t cln_knob_value(const struct cln_config *config, int i) {
    uint32_t value;
    memcpy(&value, (const char *)config + (size_t)i * sizeof value, sizeof value);
    return value;
}

void cln_knob_set(struct cln_config *config, int i, uint32_t value) {
    memcpy((char *)config + (size_t)i * sizeof value, &value, sizeof value);
}

clnorm_status cln_config_open(const clnorm_config *config, struct cln_config *knobs) {
    static const clnorm_config nothing = {{0}};
    if (memcmp(config->words + CLN_KNOBS, nothing.words, sizeof nothing - sizeof *knobs) != 0)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.config: expected zeros, or a config written by clnorm_config_parse");
    memcpy(knobs, config->words, sizeof *knobs);
    return CLNORM_SUCCESS;
}

clnorm_config cln_config_close(const struct cln_config *knobs) {
    clnorm_config config = {{0}};
    memcpy(config.words, knobs, sizeof *knobs);
    return config;
}

/* The number of an enumeration's values; 0: the knob is a number. */
static uint32_t count_values(const struct cln_knob *knob) {
    uint32_t count = 0;
    while (count < sizeof knob->values / sizeof *knob->values && knob->values[count])
        count++;
    return count;
}

clnorm_status cln_config_refuse(const char *name, uint32_t value, const char *expected) {
    const struct cln_knob *knob = cln_knobs;
    while (strcmp(knob->name, name) != 0)
        knob++;
    if (value && value <= count_values(knob))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.config.%s is %s: expected %s", name, knob->values[value - 1], expected);
    return cln_fail(CLNORM_INVALID_VALUE, "desc.config.%s is %" PRIu32 ": expected %s", name, value, expected);
}

bool cln_knob_allows(const struct cln_knob *knob, uint32_t value, char expected[CLN_KNOB_EXPECTED]) {
    const uint32_t values = count_values(knob);
    if (values && value > values)
        (void)snprintf(expected, CLN_KNOB_EXPECTED, "at most %" PRIu32, values);
    else if (!values && (value < knob->least || value > knob->most || (knob->power_of_two && !cln_power_of_two(value))))
        (void)snprintf(expected, CLN_KNOB_EXPECTED, "%s%" PRIu32 " to %" PRIu32,
                       knob->power_of_two ? "a power of two from " : "", knob->least, knob->most);
    else
        return true;
    return false;
}

static clnorm_status check_range(const struct cln_knob *knob, uint32_t value) {
    char expected[CLN_KNOB_EXPECTED];
    return cln_knob_allows(knob, value, expected) ? CLNORM_SUCCESS : cln_config_refuse(knob->name, value, expected);
}

clnorm_status cln_knobs_check(const struct cln_config *config, enum cln_knob_users users) {
    for (int i = 0; i < CLN_KNOBS; i++) {
        const struct cln_knob *const knob = &cln_knobs[i];
        const uint32_t value = cln_knob_value(config, i);
        if (!value)
            continue;
        if (!(knob->users & users))
            return cln_config_refuse(knob->name, value, "0, this operation has no such knob");
        const clnorm_status status = check_range(knob, value);
        if (status)
            return status;
    }
    return CLNORM_SUCCESS;
}
