/* An operation as separate calls: what is fused in it, one call of the library or one plain kernel after the other. */
#ifndef CHAIN_H
#define CHAIN_H

#include "bench_job.h"
#include "plain_kernels.h"
#include "stopwatch.h"

enum { CHAIN_MOST = UNFUSED_MOST - 1 };

/* One call. Of the library where there is an operation. */
struct chain_step {
    const char *name;
    const struct bench_operation *operation;
    struct job job;
    struct launch launch;
    struct plain_call plain;
    cl_mem own; /* what a plain kernel writes, and reads beside what comes to it: both made here */
    cl_mem beside;
    cl_mem out; /* borrowed: the next one's input */
};

struct chain {
    struct plain_kernels plain;
    struct chain_step step[CHAIN_MOST];
    int steps;
    uint64_t bytes; /* that all of them have to move */
};

/* The calls that an operation names as its own unfused, with buffers for all of them and random numbers in these. On
 * failure what there is of it is to be freed. */
bool chain_make(struct chain *chain, const struct stopwatch *stopwatch, const struct bench_operation *operation,
                struct bench_shape shape, clnorm_dtype dtype, struct fault *fault);

/* Takes half-made ones. */
void chain_free(struct chain *chain);

/* All of it once, with flushed caches before the first call. */
bool chain_time(const struct chain *chain, const struct stopwatch *stopwatch, struct lap *lap, struct fault *fault);

#endif
