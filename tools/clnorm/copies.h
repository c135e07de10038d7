/* Copies of as many bytes as an operation has to move, half of them in and half of them out: the limit to measure against.
 */
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

/* On failure what there is of it is to be freed. */
bool copies_make(struct copies *copies, const struct stopwatch *stopwatch, uint64_t least_bytes, struct fault *fault);

/* Takes half-made ones. */
void copies_free(struct copies *copies);

/* Each kind of copy once, with flushed caches. warm: times are kept. */
bool copies_time(struct copies *copies, const struct stopwatch *stopwatch, bool warm, struct fault *fault);

/* In us; 0: not on this kind of device. */
struct copy_times {
    double limit_us; /* the least of those that count: on CPUs memcpy on one thread, elsewhere the others */
    double kernel_us, buffer_us, host_us;
};

/* Of at least one warm time. */
struct copy_times copies_times(struct copies *copies, const struct stopwatch *stopwatch);

#endif
