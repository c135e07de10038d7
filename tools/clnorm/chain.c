#include "chain.h"

#include <string.h>

/* The steps that are plain kernels. moved: the tensors of x's size that one reads and writes. */
static const struct {
    const char *name;
    unsigned moved;
} plain_steps[] = {{"add", 3}, {"dropout", 2}, {"gate", 3}};

static bool make_buffer(const struct stopwatch *stopwatch, uint64_t size, cl_mem *mem, struct fault *fault) {
    cl_int code;
    *mem = clCreateBuffer(stopwatch->session.cl, CL_MEM_READ_WRITE, (size_t)size, NULL, &code);
    return !code || fault_opencl(fault, code, "clCreateBuffer", "an unfused step");
}

static bool fill(const struct stopwatch *stopwatch, cl_mem mem, clnorm_dtype dtype, uint64_t count, struct fault *fault) {
    return device_fill(&stopwatch->kernels, &stopwatch->session, mem, dtype, count, ROLES, fault);
}

static cl_kernel plain_kernel(const struct chain *chain, size_t i) {
    const cl_kernel kernels[] = {chain->plain.add, chain->plain.dropout, chain->plain.gate};
    return kernels[i];
}

/* A plain kernel. It reads the output of the step before; the first step reads `beside` twice. */
static bool make_plain(const struct chain *chain, struct chain_step *step, size_t kernel, cl_mem before,
                       const struct stopwatch *stopwatch, struct bench_shape shape, clnorm_dtype dtype,
                       struct fault *fault) {
    const uint64_t count = shape.rows * shape.cols;
    const uint64_t size = count * clnorm_dtype_size(dtype);
    if (!make_buffer(stopwatch, size, &step->own, fault) || !make_buffer(stopwatch, size, &step->beside, fault) ||
        !fill(stopwatch, step->beside, dtype, count, fault))
        return false;
    step->plain =
        (struct plain_call){plain_kernel(chain, kernel), before ? before : step->beside, step->beside, step->own, count};
    step->out = step->own;
    return true;
}

/* A call of the library. Its x is the output of the step before. */
static bool make_call(struct chain_step *step, cl_mem before, const struct stopwatch *stopwatch, struct bench_shape shape,
                      clnorm_dtype dtype, struct fault *fault) {
    if (!bench_find_operation(step->name, &step->operation, fault) ||
        !bench_job(&step->job, step->operation, shape, dtype, NULL, fault) ||
        !launch_prepare(&step->launch, &stopwatch->session, &step->job, fault) ||
        !stopwatch_fill(stopwatch, &step->launch, &step->job, fault))
        return false;
    if (before)
        launch_take(&step->launch, &step->job, 0, before);
    int output = 0;
    while (!step->job.operation->roles[output].output)
        output++;
    step->out = step->launch.mem[output];
    return true;
}

static bool make_step(struct chain *chain, struct chain_step *step, const struct stopwatch *stopwatch,
                      struct bench_shape shape, clnorm_dtype dtype, struct fault *fault) {
    const cl_mem before = chain->steps ? step[-1].out : NULL;
    chain->steps++;
    for (size_t i = 0; i < sizeof plain_steps / sizeof *plain_steps; i++)
        if (!strcmp(step->name, plain_steps[i].name)) {
            chain->bytes += plain_steps[i].moved * shape.rows * shape.cols * clnorm_dtype_size(dtype);
            return make_plain(chain, step, i, before, stopwatch, shape, dtype, fault);
        }
    if (!make_call(step, before, stopwatch, shape, dtype, fault))
        return false;
    chain->bytes += bench_bytes(step->operation, &step->job);
    return true;
}

bool chain_make(struct chain *chain, const struct stopwatch *stopwatch, const struct bench_operation *operation,
                struct bench_shape shape, clnorm_dtype dtype, struct fault *fault) {
    *chain = (struct chain){0};
    if (!plain_kernels_make(&chain->plain, &stopwatch->session, dtype, fault))
        return false;
    for (int i = 0; operation->unfused[i]; i++) {
        chain->step[i].name = operation->unfused[i];
        if (!make_step(chain, &chain->step[i], stopwatch, shape, dtype, fault))
            return false;
    }
    return true;
}

void chain_free(struct chain *chain) {
    for (int i = 0; i < chain->steps; i++) {
        struct chain_step *const step = &chain->step[i];
        launch_free(&step->launch);
        job_free(&step->job);
        if (step->own)
            clReleaseMemObject(step->own);
        if (step->beside)
            clReleaseMemObject(step->beside);
    }
    plain_kernels_free(&chain->plain);
    *chain = (struct chain){0};
}

static bool enqueue(const struct chain *chain, const struct stopwatch *stopwatch, cl_event *done, struct fault *fault) {
    const struct session *const session = &stopwatch->session;
    for (int i = 0; i < chain->steps; i++) {
        const struct chain_step *const step = &chain->step[i];
        cl_event *const event = i + 1 == chain->steps ? done : NULL;
        if (!step->operation && !plain_kernels_enqueue(&chain->plain, session, &step->plain, event, fault))
            return false;
        const clnorm_status status =
            step->operation ? clnorm_plan_enqueue(step->launch.plan, session->queue, &step->launch.args, 0, NULL, event)
                            : CLNORM_SUCCESS;
        if (status)
            return fault_library(fault, status, step->name);
    }
    return true;
}

bool chain_time(const struct chain *chain, const struct stopwatch *stopwatch, struct lap *lap, struct fault *fault) {
    cl_event before = NULL;
    cl_event done = NULL;
    const cl_command_queue queue = stopwatch->session.queue;
    const double start = clock_us();
    if (!stopwatch_flush(stopwatch, fault))
        return false;
    const cl_int code = clEnqueueMarkerWithWaitList(queue, 0, NULL, &before);
    if (code)
        return fault_opencl(fault, code, "clEnqueueMarkerWithWaitList", "the unfused calls");
    const bool timed =
        enqueue(chain, stopwatch, &done, fault) && finish_and_time(queue, start, before, done, &lap->device_us, fault);
    lap->host_us = clock_us() - start;
    clReleaseEvent(before);
    if (done)
        clReleaseEvent(done);
    return timed;
}
