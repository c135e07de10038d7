/* A device on which kernels are measured. */
#ifndef STOPWATCH_H
#define STOPWATCH_H

#include "device_kernels.h"
#include "samples.h"

struct stopwatch {
    struct session session;
    struct device_kernels kernels;
    cl_mem
        flush; /* NULL on CPUs, where tensors stay in the caches from run to run, as in a program that runs nothing else */
    bool cpu;
    bool median; /* take the median of many times; else the least, which is the default on CPUs */
};

/* selector and options: as for session_open. The caller closes the stopwatch, also after a failure. */
bool stopwatch_open(struct stopwatch *stopwatch, const char *selector, const clnorm_context_options *options,
                    struct fault *fault);

void stopwatch_close(struct stopwatch *stopwatch);

/* Fills every input of the job that has a buffer with random numbers. */
bool stopwatch_fill(const struct stopwatch *stopwatch, const struct launch *launch, const struct job *job,
                    struct fault *fault);

/* Flushes the caches of a GPU: writes a buffer that is larger than they are. */
bool stopwatch_flush(const struct stopwatch *stopwatch, struct fault *fault);

/* The time of one run in us: by the device's clock, and by the host's until the queue has finished. */
struct lap {
    double device_us, host_us;
};

/* Runs once, with flushed caches. */
bool stopwatch_time(const struct stopwatch *stopwatch, const struct launch *launch, struct lap *lap, struct fault *fault);

/* The time of a lap that counts: on CPUs the host's, which other programs are compared by; elsewhere the device's. */
double stopwatch_us(const struct stopwatch *stopwatch, const struct lap *lap);

/* The median or the least of the samples, of which there is at least one. Sorts them. */
double stopwatch_of_many(const struct stopwatch *stopwatch, struct samples *samples);

#endif
