/* Measures configs of one operation, dtype and shape on a device. */
#ifndef TRIAL_H
#define TRIAL_H

#include "bench_job.h"
#include "stopwatch.h"

struct trial {
    const struct stopwatch *stopwatch;
    const struct bench_operation *operation;
    struct bench_shape shape;
    clnorm_dtype dtype;
    struct job job;
    struct launch launch;
};

/* Makes random inputs, and the plan of the library's choice. The caller frees the trial, also after a failure. */
bool trial_start(struct trial *trial, struct fault *fault);

void trial_free(struct trial *trial);

/* Replaces the plan by that of a config. false: the config does not suit the device or the shape, or cannot be built. */
bool trial_use(struct trial *trial, const clnorm_config *config);

/* Repeats the plan for at least duration_us. *us: the least time on CPUs, the median elsewhere, as in clnorm bench. */
bool trial_time(const struct trial *trial, double duration_us, double *us, struct fault *fault);

/* Whether some rows agree with a double reference. config: the one that the plan was requested with. */
bool trial_is_right(const struct trial *trial, const clnorm_config *config);

#endif
