#include "stopwatch.h"

#include <stdlib.h>

#include "outer.h"
#include "rope.h"

static const size_t flush_size = (size_t)256 << 20; /* bytes, more than any device's caches hold */

bool stopwatch_open(struct stopwatch *stopwatch, const char *selector, const clnorm_context_options *options,
                    struct fault *fault) {
    *stopwatch = (struct stopwatch){0};
    if (!session_open(&stopwatch->session, selector, CL_QUEUE_PROFILING_ENABLE, options, fault) ||
        !device_kernels_make(&stopwatch->kernels, &stopwatch->session, fault))
        return false;
    stopwatch->cpu = stopwatch->session.device.kind == CLNORM_DEVICE_CPU;
    stopwatch->median = !stopwatch->cpu;
    if (stopwatch->cpu)
        return true;
    cl_int code;
    stopwatch->flush = clCreateBuffer(stopwatch->session.cl, CL_MEM_READ_WRITE, flush_size, NULL, &code);
    return !code || fault_opencl(fault, code, "clCreateBuffer", "the buffer that flushes caches");
}

void stopwatch_close(struct stopwatch *stopwatch) {
    if (stopwatch->flush)
        clReleaseMemObject(stopwatch->flush);
    device_kernels_free(&stopwatch->kernels);
    session_close(&stopwatch->session);
    *stopwatch = (struct stopwatch){0};
}

/* Fills moments with ones, since random moments may have negative variances. */
static bool fill_moments(const struct stopwatch *stopwatch, const struct tensor *tensor, cl_mem mem, struct fault *fault) {
    static const cl_float one = 1;
    static const cl_double wide_one = 1;
    const bool wide = tensor->element->dtype == CLNORM_F64;
    const cl_int code =
        tensor->size ? clEnqueueFillBuffer(stopwatch->session.queue, mem, wide ? (const void *)&wide_one : &one,
                                           wide ? sizeof wide_one : sizeof one, 0, (size_t)tensor->size, 0, NULL, NULL)
                     : CL_SUCCESS;
    return !code || fault_opencl(fault, code, "clEnqueueFillBuffer", "moments");
}

/* Fills positions with rows of the tables. */
static bool fill_positions(const struct stopwatch *stopwatch, const struct job *job, const struct tensor *tensor,
                           cl_mem mem, struct fault *fault) {
    unsigned char *const positions = malloc(tensor->size ? (size_t)tensor->size : 1);
    if (!positions)
        return fault_set(fault, EXIT_FAILED, "out of memory for %zu positions", (size_t)tensor->count);
    rope_fill_positions(job, positions, tensor->count);
    const cl_int code = tensor->size ? clEnqueueWriteBuffer(stopwatch->session.queue, mem, CL_TRUE, 0, (size_t)tensor->size,
                                                            positions, 0, NULL, NULL)
                                     : CL_SUCCESS;
    free(positions);
    return !code || fault_opencl(fault, code, "clEnqueueWriteBuffer", "position");
}

static bool fill(const struct stopwatch *stopwatch, const struct launch *launch, const struct job *job, int i,
                 struct fault *fault) {
    const struct tensor *const tensor = &job->tensor[i];
    switch (job->operation->roles[i].shape) {
    case SHAPE_MOMENTS:
        return fill_moments(stopwatch, tensor, launch->mem[i], fault);
    case SHAPE_POSITIONS:
        return fill_positions(stopwatch, job, tensor, launch->mem[i], fault);
    default:
        return device_fill(&stopwatch->kernels, &stopwatch->session, launch->mem[i], tensor->element->dtype,
                           outer_bytes(job, i) / (tensor->element->bits / 8), (cl_uint)i, fault);
    }
}

bool stopwatch_fill(const struct stopwatch *stopwatch, const struct launch *launch, const struct job *job,
                    struct fault *fault) {
    const struct role *const roles = job->operation->roles;
    for (int i = 0; roles[i].name; i++) {
        if (launch->mem[i] && !roles[i].output && !fill(stopwatch, launch, job, i, fault))
            return false;
    }
    return true;
}

bool stopwatch_flush(const struct stopwatch *stopwatch, struct fault *fault) {
    static const cl_uint zero = 0;
    if (!stopwatch->flush)
        return true;
    const cl_int code =
        clEnqueueFillBuffer(stopwatch->session.queue, stopwatch->flush, &zero, sizeof zero, 0, flush_size, 0, NULL, NULL);
    return !code || fault_opencl(fault, code, "clEnqueueFillBuffer", "the buffer that flushes caches");
}

bool stopwatch_time(const struct stopwatch *stopwatch, const struct launch *launch, struct lap *lap, struct fault *fault) {
    const double start = clock_us();
    if (!stopwatch_flush(stopwatch, fault) || !launch_run(launch, &stopwatch->session, &lap->device_us, fault))
        return false;
    lap->host_us = clock_us() - start;
    return true;
}

double stopwatch_us(const struct stopwatch *stopwatch, const struct lap *lap) {
    return stopwatch->cpu ? lap->host_us : lap->device_us;
}

double stopwatch_of_many(const struct stopwatch *stopwatch, struct samples *samples) {
    return stopwatch->median ? samples_median(samples) : samples_least(samples);
}
