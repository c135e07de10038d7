#include "copies.h"

#include <stdlib.h>
#include <string.h>

bool copies_make(struct copies *copies, const struct stopwatch *stopwatch, uint64_t least_bytes, struct fault *fault) {
    enum { SEED = ROLES }; /* tensors have the seeds below */
    cl_int code;
    copies->size = (size_t)((least_bytes / 2 + 15) / 16 * 16);
    copies->from = clCreateBuffer(stopwatch->session.cl, CL_MEM_READ_WRITE, copies->size, NULL, &code);
    if (!code)
        copies->to = clCreateBuffer(stopwatch->session.cl, CL_MEM_READ_WRITE, copies->size, NULL, &code);
    if (code)
        return fault_opencl(fault, code, "clCreateBuffer", "copy");
    if (stopwatch->cpu) {
        copies->host_from = malloc(copies->size);
        copies->host_to = malloc(copies->size);
        if (!copies->host_from || !copies->host_to)
            return fault_set(fault, EXIT_FAILED, "copy: out of memory for twice %zu bytes", copies->size);
        memset(copies->host_from, 1, copies->size);
    }
    return device_fill(&stopwatch->kernels, &stopwatch->session, copies->from, CLNORM_F32, copies->size / 4, SEED, fault);
}

void copies_free(struct copies *copies) {
    if (copies->from)
        clReleaseMemObject(copies->from);
    if (copies->to)
        clReleaseMemObject(copies->to);
    free(copies->host_from);
    free(copies->host_to);
    samples_free(&copies->kernel);
    samples_free(&copies->buffer);
    samples_free(&copies->host);
}

/* Waits for an event's command, records its time where warm, and releases the event. */
static bool keep_event(const struct stopwatch *stopwatch, struct samples *samples, bool warm, double start, cl_event event,
                       struct fault *fault) {
    double us;
    const bool done = finish_and_time(stopwatch->session.queue, start, NULL, event, &us, fault) &&
                      (!warm || samples_add(samples, us, fault));
    clReleaseEvent(event);
    return done;
}

static bool time_kernel(struct copies *copies, const struct stopwatch *stopwatch, bool warm, struct fault *fault) {
    cl_event event;
    const double start = clock_us();
    return stopwatch_flush(stopwatch, fault) &&
           device_copy(&stopwatch->kernels, &stopwatch->session, copies->from, copies->to, copies->size, &event, fault) &&
           keep_event(stopwatch, &copies->kernel, warm, start, event, fault);
}

static bool time_buffer(struct copies *copies, const struct stopwatch *stopwatch, bool warm, struct fault *fault) {
    cl_event event;
    const double start = clock_us();
    if (!stopwatch_flush(stopwatch, fault))
        return false;
    const cl_int code =
        clEnqueueCopyBuffer(stopwatch->session.queue, copies->from, copies->to, 0, 0, copies->size, 0, NULL, &event);
    return (!code || fault_opencl(fault, code, "clEnqueueCopyBuffer", "copy")) &&
           keep_event(stopwatch, &copies->buffer, warm, start, event, fault);
}

static bool time_host(struct copies *copies, bool warm, struct fault *fault) {
    const double start = clock_us();
    memcpy(copies->host_to, copies->host_from, copies->size);
    return !warm || samples_add(&copies->host, clock_us() - start, fault);
}

bool copies_time(struct copies *copies, const struct stopwatch *stopwatch, bool warm, struct fault *fault) {
    return time_kernel(copies, stopwatch, warm, fault) &&
           (stopwatch->cpu ? time_host(copies, warm, fault) : time_buffer(copies, stopwatch, warm, fault));
}

struct copy_times copies_times(struct copies *copies, const struct stopwatch *stopwatch) {
    struct copy_times times = {.kernel_us = stopwatch_of_many(stopwatch, &copies->kernel)};
    if (stopwatch->cpu) {
        times.limit_us = times.host_us = stopwatch_of_many(stopwatch, &copies->host);
    } else {
        times.buffer_us = stopwatch_of_many(stopwatch, &copies->buffer);
        times.limit_us = times.kernel_us < times.buffer_us ? times.kernel_us : times.buffer_us;
    }
    return times;
}
