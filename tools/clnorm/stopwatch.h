/* A device made ready for measuring kernels on. */
#ifndef STOPWATCH_H
#define STOPWATCH_H

#include "device_kernels.h"
#include "samples.h"

struct stopwatch {
    struct session session;
    struct device_kernels kernels;
    cl_mem flush; /* NULL on CPUs, where a kernel finds in the caches what its last run left, as in a program of its own */
    bool cpu;
    bool median; /* what counts of many times; else the least one, which is usual on CPUs */
};

/* selector and options: as for session_open. On failure it is to be closed too. */
bool stopwatch_open(struct stopwatch *stopwatch, const char *selector, const clnorm_context_options *options,
                    struct fault *fault);

void stopwatch_close(struct stopwatch *stopwatch);

/* Random numbers into every input of the job that has a buffer. */
bool stopwatch_fill(const struct stopwatch *stopwatch, const struct launch *launch, const struct job *job,
                    struct fault *fault);

/* On a GPU, writes over what its caches hold. */
bool stopwatch_flush(const struct stopwatch *stopwatch, struct fault *fault);

/* One run, in us: by the device's clock, and from the enqueue to the end of waiting by the host's. */
struct lap {
    double device_us, host_us;
};

/* Runs once, with flushed caches. */
bool stopwatch_time(const struct stopwatch *stopwatch, const struct launch *launch, struct lap *lap, struct fault *fault);

/* What counts of a lap: on CPUs the host's time, since other programs' runs are compared that way, elsewhere the device's.
 */
double stopwatch_us(const struct stopwatch *stopwatch, const struct lap *lap);

/* What counts of one sample or more, which it sorts. */
double stopwatch_of_many(const struct stopwatch *stopwatch, struct samples *samples);

#endif
