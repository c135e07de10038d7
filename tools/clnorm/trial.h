/* One operation, dtype and shape on a device, tried with one config after the other. */
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

/* Random inputs, and the plan of the library's choice. On failure too it is to be freed. */
bool trial_start(struct trial *trial, struct fault *fault);

void trial_free(struct trial *trial);

/* The plan of a config; false where the device or the shape refuses it, or the driver cannot build it. */
bool trial_use(struct trial *trial, const clnorm_config *config);

/* Runs for so long: the least time on CPUs, the median elsewhere, as clnorm bench has them. */
bool trial_time(const struct trial *trial, double long_us, double *us, struct fault *fault);

/* Whether some rows come out as a double reference has them. config: as it was wished for, of the plan. */
bool trial_is_right(const struct trial *trial, const clnorm_config *config);

#endif
