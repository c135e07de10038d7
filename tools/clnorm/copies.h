/* Copies that move the least traffic of an operation, half of it read and half of it written: the limit to compare with. */
#ifndef COPIES_H
#define COPIES_H

#include "samples.h"
#include "stopwatch.h"

struct copies {
    size_t size; /* bytes that are copied, a multiple of 16 */
    cl_mem from, to;
    void *host_from, *host_to; /* on CPUs */
    struct samples kernel, buffer, host;
};

/* *copies is 0 before. The caller frees it, also after a failure. */
bool copies_make(struct copies *copies, const struct stopwatch *stopwatch, uint64_t least_bytes, struct fault *fault);

/* Also frees what copies_make could not finish. */
void copies_free(struct copies *copies);

/* Times each kind of copy once, with flushed caches. warm: the times are recorded. */
bool copies_time(struct copies *copies, const struct stopwatch *stopwatch, bool warm, struct fault *fault);

/* In us; 0: not measured on this kind of device. */
struct copy_times {
    double limit_us;                      /* on CPUs host_us, elsewhere the less of kernel_us and buffer_us */
    double kernel_us, buffer_us, host_us; /* a copy kernel, clEnqueueCopyBuffer, memcpy on one thread */
};

/* Needs at least one recorded time. */
struct copy_times copies_times(struct copies *copies, const struct stopwatch *stopwatch);

#endif
