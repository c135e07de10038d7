/* A fused operation as separate calls: one after the other, each of the library or of a plain kernel. */
#ifndef CHAIN_H
#define CHAIN_H

#include "bench_job.h"
#include "plain_kernels.h"
#include "stopwatch.h"

enum { CHAIN_MOST = UNFUSED_MOST - 1 };

/* One call: of the library where `operation` is set, else of a plain kernel. */
struct chain_step {
    const char *name;
    const struct bench_operation *operation;
    struct job job;
    struct launch launch;
    struct plain_call plain;
    cl_mem own;    /* the output of a plain kernel */
    cl_mem beside; /* the second input of a plain kernel */
    cl_mem out;    /* borrowed: the output of the call, and the input of the next one */
};

struct chain {
    struct plain_kernels plain;
    struct chain_step step[CHAIN_MOST];
    int steps;
    uint64_t bytes; /* the least traffic of all steps together */
};

/* Makes the calls that operation->unfused names, and their buffers, filled with random numbers. The caller frees the chain,
 * also after a failure. */
bool chain_make(struct chain *chain, const struct stopwatch *stopwatch, const struct bench_operation *operation,
                struct bench_shape shape, clnorm_dtype dtype, struct fault *fault);

/* Also frees a chain that chain_make could not finish. */
void chain_free(struct chain *chain);

/* Times all calls once. The caches are flushed before the first. */
bool chain_time(const struct chain *chain, const struct stopwatch *stopwatch, struct lap *lap, struct fault *fault);

#endif
