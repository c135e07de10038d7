/* Knobs of a config by name. A clnorm_config holds them as words. */
#ifndef KNOB_H
#define KNOB_H

#include "config/knobs.h"

/* The word of a clnorm_config that holds a member of struct cln_config, to read or to set. */
#define KNOB(config, name) ((config).words[offsetof(struct cln_config, name) / sizeof(uint32_t)])

static inline clnorm_config forced(struct cln_config knobs) {
    return cln_config_close(&knobs);
}

static inline struct cln_config knobs_of(const clnorm_config *config) {
    struct cln_config knobs = {0};
    cln_config_open(config, &knobs);
    return knobs;
}

static inline struct cln_config chosen_knobs(const clnorm_plan *plan) {
    clnorm_config config = {{0}};
    clnorm_plan_config(plan, &config);
    return knobs_of(&config);
}

#endif
