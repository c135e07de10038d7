#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue, which every version has */
#include "session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "outer.h"
#include "samples.h"

bool session_open(struct session *session, const char *selector, cl_command_queue_properties properties,
                  const clnorm_context_options *options, struct fault *fault) {
    *session = (struct session){0};
    clnorm_device_info_init(&session->device);
    clnorm_status status = clnorm_device_select(selector, &session->device);
    if (status)
        return fault_library(fault, status, "device");
    const char *const name = session->device.name;
    const cl_context_properties platform[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)session->device.platform, 0};
    cl_int code;
    session->cl = clCreateContext(platform, 1, &session->device.device, NULL, NULL, &code);
    if (!session->cl)
        return fault_opencl(fault, code, "clCreateContext", name);
    session->queue = clCreateCommandQueue(session->cl, session->device.device, properties, &code);
    if (!session->queue) {
        fault_opencl(fault, code, "clCreateCommandQueue", name);
        session_close(session);
        return false;
    }
    status = clnorm_context_create(session->cl, session->device.device, options, &session->context);
    if (status) {
        fault_library(fault, status, name);
        session_close(session);
        return false;
    }
    return true;
}

void session_close(struct session *session) {
    clnorm_context_destroy(session->context);
    if (session->queue)
        clReleaseCommandQueue(session->queue);
    if (session->cl)
        clReleaseContext(session->cl);
    *session = (struct session){0};
}

/* An empty tensor gets one byte: OpenCL has no empty buffers. */
static bool make_buffer(const struct session *session, const char *name, uint64_t size, cl_mem *mem, struct fault *fault) {
    cl_int code = CL_INVALID_BUFFER_SIZE;
    if (size <= SIZE_MAX)
        *mem = clCreateBuffer(session->cl, CL_MEM_READ_WRITE, size ? (size_t)size : 1, NULL, &code);
    return !code || fault_set(fault, EXIT_FAILED, "%s: clCreateBuffer of %" PRIu64 " bytes failed with %s (%d)", name, size,
                              cln_opencl_code_name(code), (int)code);
}

static clnorm_buffer *argument_of(struct launch *launch, const struct role *role) {
    return (clnorm_buffer *)((char *)&launch->args + role->argument);
}

static bool make_buffers(struct launch *launch, const struct session *session, const struct job *job, struct fault *fault) {
    const struct role *const roles = job->operation->roles;
    for (int i = 0; roles[i].name; i++) {
        const struct tensor *const tensor = &job->tensor[i];
        if (!tensor->element)
            continue;
        if (!make_buffer(session, tensor->name, outer_bytes(job, i), &launch->mem[i], fault))
            return false;
        argument_of(launch, &roles[i])->mem = launch->mem[i];
    }
    if (job->operation->kind != OPERATION_NORM_BACKWARD_FROM_Y)
        return true;
    const bool made = make_buffer(session, "fault", sizeof(cl_uint), &launch->fault, fault);
    launch->args.fault.mem = launch->fault;
    return made;
}

static bool make_plan(struct launch *launch, const struct session *session, const struct job *job, struct fault *fault) {
    const double start = clock_us();
    clnorm_status status = outer_plan(session->context, job, &launch->plan);
    const double planned = clock_us();
    if (!status)
        status = clnorm_plan_warm_up(launch->plan, session->queue);
    launch->plan_us = planned - start;
    launch->warm_up_us = clock_us() - planned;
    if (status)
        return fault_library(fault, status, job->operation->name);
    launch->kernels = clnorm_plan_kernel_count(launch->plan);
    const uint64_t size = clnorm_plan_workspace_size(launch->plan);
    if (size && !make_buffer(session, "workspace", size, &launch->workspace, fault))
        return false;
    launch->args.workspace.mem = launch->workspace;
    launch->args.seed = job->seeded ? &job->seed : NULL;
    return true;
}

bool launch_prepare(struct launch *launch, const struct session *session, const struct job *job, struct fault *fault) {
    *launch = (struct launch){.args = CLNORM_ARGS_INIT};
    const bool done = make_plan(launch, session, job, fault) && make_buffers(launch, session, job, fault);
    if (!done)
        launch_free(launch);
    return done;
}

static void drop_plan(struct launch *launch) {
    clnorm_plan_destroy(launch->plan);
    if (launch->workspace)
        clReleaseMemObject(launch->workspace);
    launch->plan = NULL;
    launch->workspace = NULL;
    launch->kernels = 0;
}

bool launch_replan(struct launch *launch, const struct session *session, const struct job *job, struct fault *fault) {
    drop_plan(launch);
    const bool done = make_plan(launch, session, job, fault);
    if (!done)
        drop_plan(launch);
    return done;
}

void launch_take(struct launch *launch, const struct job *job, int role, cl_mem mem) {
    clRetainMemObject(mem);
    clReleaseMemObject(launch->mem[role]);
    launch->mem[role] = mem;
    argument_of(launch, &job->operation->roles[role])->mem = mem;
}

/* The dx of L2 norm with a dweight lies over no input. */
static bool may_lie_over(const struct job *job, const char *output) {
    return strcmp(output, "dx") != 0 || job->operation->kind != OPERATION_ROWS || !job_tensor(job, "dweight");
}

void launch_in_place(struct launch *launch, const struct job *job) {
    static const struct {
        const char *output, *input;
    } pairs[] = {{"y", "x"}, {"dx", "x"}, {"dx", "dy"}, {"residual_out", "residual"}, {"dresidual", "dresidual_out"},
                 {"dz", "z"}};
    bool taken[ROLES] = {false};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const struct tensor *const to = job_tensor(job, pairs[i].output), *const from = job_tensor(job, pairs[i].input);
        const int output = operation_role(job->operation, pairs[i].output);
        if (!to || !from || taken[output] || !job->operation->roles[output].output || to->element != from->element ||
            !may_lie_over(job, pairs[i].output))
            continue;
        launch_take(launch, job, output, launch->mem[operation_role(job->operation, pairs[i].input)]);
        taken[output] = true;
        launch->in_place = true;
    }
}

void launch_free(struct launch *launch) {
    drop_plan(launch);
    for (int i = 0; i < ROLES; i++)
        if (launch->mem[i])
            clReleaseMemObject(launch->mem[i]);
    if (launch->fault)
        clReleaseMemObject(launch->fault);
    *launch = (struct launch){0};
}

/* Writes a role's tensor in its layout on the device. */
static bool write_tensor(const struct launch *launch, const struct session *session, const struct job *job, int role,
                         struct fault *fault) {
    const struct tensor *const tensor = &job->tensor[role];
    unsigned char *const image = outer_has(job, role) ? outer_image(job, role, fault) : NULL;
    if (outer_has(job, role) && !image)
        return false;
    const cl_int code = clEnqueueWriteBuffer(session->queue, launch->mem[role], CL_TRUE, 0, (size_t)outer_bytes(job, role),
                                             image ? image : tensor->data, 0, NULL, NULL);
    free(image);
    return !code || fault_opencl(fault, code, "clEnqueueWriteBuffer", tensor->name);
}

static bool read_tensor(const struct launch *launch, const struct session *session, const struct job *job, int role,
                        struct fault *fault) {
    const struct tensor *const tensor = &job->tensor[role];
    unsigned char *const image = outer_has(job, role) ? outer_image(job, role, fault) : NULL;
    if (outer_has(job, role) && !image)
        return false;
    const cl_int code = clEnqueueReadBuffer(session->queue, launch->mem[role], CL_TRUE, 0, (size_t)outer_bytes(job, role),
                                            image ? (void *)image : job->output[role], 0, NULL, NULL);
    const bool read = !code || fault_opencl(fault, code, "clEnqueueReadBuffer", tensor->name);
    const bool done = read && (!image || outer_gather(job, role, image, job->output[role], fault));
    free(image);
    return done;
}

bool launch_upload(const struct launch *launch, const struct session *session, const struct job *job, struct fault *fault) {
    for (int i = 0; i < ROLES; i++) {
        const struct tensor *const tensor = &job->tensor[i];
        if (!launch->mem[i] || tensor->size == 0)
            continue;
        if (!write_tensor(launch, session, job, i, fault))
            return false;
    }
    return true;
}

bool launch_download(const struct launch *launch, const struct session *session, struct job *job, struct fault *fault) {
    for (int i = 0; i < ROLES; i++) {
        const struct tensor *const tensor = &job->tensor[i];
        if (!job->output[i] || tensor->size == 0)
            continue;
        if (!read_tensor(launch, session, job, i, fault))
            return false;
    }
    return true;
}

bool finish_and_time(cl_command_queue queue, double start, cl_event from, cl_event event, double *us, struct fault *fault) {
    const double shortest = 0.1; /* us; every kernel takes longer */
    cl_ulong begin = 0;
    cl_ulong end = 0;
    cl_int code = clFinish(queue);
    const double host_us = clock_us() - start;
    if (code)
        return fault_opencl(fault, code, "clFinish", "time");
    code = clGetEventProfilingInfo(from ? from : event, from ? CL_PROFILING_COMMAND_END : CL_PROFILING_COMMAND_START,
                                   sizeof begin, &begin, NULL);
    if (!code)
        code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    if (code)
        return fault_opencl(fault, code, "clGetEventProfilingInfo", "time");
    const double device_us = end > begin ? (double)(end - begin) * 1e-3 : 0;
    *us = device_us < shortest ? host_us : device_us;
    return true;
}

bool launch_run(const struct launch *launch, const struct session *session, double *us, struct fault *fault) {
    cl_event before = NULL;
    cl_event done = NULL;
    cl_int code = CL_SUCCESS;
    const double start = clock_us();
    const bool in_parts = launch->in_place && launch->args.dweight.mem; /* its kernel may be launched in two parts */
    if (launch->kernels != 1 || in_parts) /* the plan's event is that of its last launch; a marker before marks the start */
        code = clEnqueueMarkerWithWaitList(session->queue, 0, NULL, &before);
    if (code)
        return fault_opencl(fault, code, "clEnqueueMarkerWithWaitList", session->device.name);
    const clnorm_status status = clnorm_plan_enqueue(launch->plan, session->queue, &launch->args, 0, NULL, &done);
    bool good =
        status ? fault_library(fault, status, "enqueue") : finish_and_time(session->queue, start, before, done, us, fault);
    if (before)
        clReleaseEvent(before);
    if (done)
        clReleaseEvent(done);
    if (good && launch->fault) {
        const clnorm_status exact = clnorm_norm_backward_check(session->queue, &launch->args, 0, NULL);
        good = !exact || fault_library(fault, exact, "run");
    }
    return good;
}
