#include "plan/plan.h"

#include "base/context.h"
#include "base/status.h"
#include "base/struct_size.h"
#include "plan/launch_number.h"

/* The queue must belong to the plan's context and device. */
static clnorm_status check_queue(const clnorm_plan *plan, cl_command_queue queue, bool *in_order) {
    cl_context context;
    cl_device_id device;
    cl_command_queue_properties properties;
    cl_int code =
        queue ? clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL) : CL_INVALID_COMMAND_QUEUE;
    if (!code)
        code = clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    if (!code)
        code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (code == CL_INVALID_COMMAND_QUEUE)
        return cln_fail_code(CLNORM_INVALID_QUEUE, code, "queue is not an OpenCL command queue");
    if (code)
        return cln_fail_opencl(code, "clGetCommandQueueInfo");
    if (context != plan->context->cl)
        return cln_fail(CLNORM_INVALID_QUEUE, "queue is of another cl_context than the plan");
    if (device != plan->context->device.device)
        return cln_fail(CLNORM_INVALID_QUEUE, "queue is of another device than the plan's, %s", plan->context->device.name);
    *in_order = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    return CLNORM_SUCCESS;
}

/* Launches work-groups first to end - 1 of a stage. */
static clnorm_status launch_part(const struct cln_stage *stage, cl_kernel kernel, size_t first, size_t end,
                                 cl_command_queue queue, cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    const size_t offset = first * stage->items, global = (end - first) * stage->items;
    const cl_int code = clEnqueueNDRangeKernel(queue, kernel, 1, first ? &offset : NULL, &global, &stage->items, num_wait,
                                               num_wait ? wait_list : NULL, event);
    return code ? cln_fail_opencl(code, "clEnqueueNDRangeKernel") : CLNORM_SUCCESS;
}

static clnorm_status launch_whole(const struct cln_stage *stage, cl_kernel kernel, cl_command_queue queue, cl_uint num_wait,
                                  const cl_event *wait_list, cl_event *event) {
    return launch_part(stage, kernel, 0, stage->groups, queue, num_wait, wait_list, event);
}

/* Launches the readers, then the work-groups that overwrite inputs: see struct cln_stage. */
static clnorm_status launch_in_place(const struct cln_stage *stage, cl_kernel kernel, cl_command_queue queue,
                                     cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    cl_event read = NULL;
    clnorm_status status = launch_part(stage, kernel, 0, stage->readers, queue, num_wait, wait_list, &read);
    if (status)
        return status;
    status = launch_part(stage, kernel, stage->readers, stage->groups, queue, 1, &read, event);
    clReleaseEvent(read);
    return status;
}

static clnorm_status set_seed(const struct cln_stage *stage, cl_kernel kernel, const clnorm_seed *seed) {
    const cl_ulong numbers[] = {seed->seed, seed->offset};
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; !code && i < 2; i++)
        code = clSetKernelArg(kernel, stage->seed + i, sizeof numbers[i], &numbers[i]);
    return code ? cln_fail_opencl(code, "clSetKernelArg") : CLNORM_SUCCESS;
}

/* Whether a stage has the launch's number, which costs a lock that all plans share. */
static bool has_launch_number(const clnorm_plan *plan) {
    unsigned i = 0;
    while (i < plan->stages && !plan->stage[i].launch)
        i++;
    return i < plan->stages;
}

static clnorm_status set_launch(const struct cln_stage *stage, cl_kernel kernel, cl_ulong number) {
    const cl_int code = clSetKernelArg(kernel, stage->launch, sizeof number, &number);
    return code ? cln_fail_opencl(code, "clSetKernelArg") : CLNORM_SUCCESS;
}

/* Whether a kernel's argument is a tensor of the plan, or a part of its workspace. */
static bool is_bound(const clnorm_plan *plan, const struct cln_binding *binding) {
    return plan->tensor[binding->role].element && (binding->role != CLN_WORKSPACE || binding->element);
}

enum { WORK = 0 }; /* index of the argument work of every kernel */

/* A caller's arguments, copied and checked. */
struct given {
    clnorm_args args;
    struct cln_place places[CLN_ROLES];
    bool aligned;    /* all wide accesses are */
    cl_ulong launch; /* the number of this enqueue's launches */
};

/* Sets the tensors of a stage and launches it. */
static clnorm_status run_stage(const clnorm_plan *plan, const struct cln_stage *stage, cl_command_queue queue,
                               const struct given *given, cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    cl_kernel kernel = given->aligned || !stage->unaligned ? stage->aligned : stage->unaligned;
    for (cl_uint i = 0; i < stage->tensors; i++) {
        const struct cln_binding *binding = &stage->tensor[i].binding;
        if (!is_bound(plan, binding))
            continue;
        const clnorm_buffer *buffer = cln_args_buffer(&given->args, binding->role);
        const uint64_t element = binding->element ? binding->element : plan->tensor[binding->role].element;
        const cl_ulong offset = (buffer->offset + binding->offset) / element;
        const cl_uint index = stage->tensor[i].index;
        cl_int code = clSetKernelArg(kernel, index, sizeof buffer->mem, &buffer->mem);
        if (!code)
            code = clSetKernelArg(kernel, index + 1, sizeof offset, &offset);
        if (code)
            return cln_fail_opencl(code, "clSetKernelArg");
    }
    const cl_int code = clSetKernelArg(kernel, WORK, sizeof stage->work, &stage->work); /* a warm-up has set it to 0 */
    if (code)
        return cln_fail_opencl(code, "clSetKernelArg");
    const clnorm_seed *const seed = given->args.seed ? given->args.seed : &plan->seed;
    clnorm_status status = stage->seed ? set_seed(stage, kernel, seed) : CLNORM_SUCCESS;
    if (!status && stage->launch)
        status = set_launch(stage, kernel, given->launch);
    if (status)
        return status;
    const bool apart = stage->readers && cln_in_place(given->places);
    return (apart ? launch_in_place : launch_whole)(stage, kernel, queue, num_wait, wait_list, event);
}

/* The events that an enqueue waits for, and those that it returns: of its last stage, or of each. */
struct order {
    cl_uint num_wait;
    const cl_event *wait_list;
    cl_event *event;  /* of the last stage; NULL: not requested */
    cl_event *events; /* [stages], one for each; NULL: not requested */
};

/* Runs one stage after the other. Where stages have events, each waits for the event of the one before. In an in-order
 * queue without events every stage has the wait list, so that an event that fails makes all stages fail, not the first one
 * alone. */
static clnorm_status run_stages(const clnorm_plan *plan, cl_command_queue queue, bool in_order, const struct given *given,
                                const struct order *order) {
    cl_event before = NULL;
    clnorm_status status = CLNORM_SUCCESS;
    for (unsigned i = 0; i < plan->stages && !status; i++) {
        const bool last = i + 1 == plan->stages;
        const cl_uint waits = before ? 1 : order->num_wait;
        cl_event done = NULL;
        const bool wanted = order->events || (last ? order->event != NULL : !in_order);
        status = run_stage(plan, &plan->stage[i], queue, given, waits, before ? &before : order->wait_list,
                           wanted ? &done : NULL);
        if (before && !order->events)
            clReleaseEvent(before);
        before = done;
        if (order->events && !status)
            order->events[i] = done;
        else if (last && order->event && !status)
            *order->event = done;
    }
    return status;
}

static clnorm_status check_awaited(cl_context context, cl_uint i, cl_event event) {
    cl_context own = NULL;
    cl_int state = CL_COMPLETE;
    cl_int code = event ? clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof own, &own, NULL) : CL_INVALID_EVENT_WAIT_LIST;
    if (!code && own == context)
        code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (!event || code == CL_INVALID_EVENT)
        return cln_fail_code(CLNORM_INVALID_ARGUMENT, code, "wait_list[%u] is %s: expected an event", i,
                             event ? "no OpenCL event" : "NULL");
    if (code)
        return cln_fail_opencl(code, "clGetEventInfo");
    if (own != context)
        return cln_fail(CLNORM_INVALID_ARGUMENT,
                        "wait_list[%u] is an event of another cl_context: expected one of the queue's", i);
    if (state < 0)
        return cln_fail_code(CLNORM_INVALID_ARGUMENT, state,
                             "wait_list[%u] has failed with OpenCL code %d: expected an event that completes", i, state);
    return CLNORM_SUCCESS;
}

clnorm_status cln_wait_list_check(cl_context context, cl_uint num_wait, const cl_event *wait_list) {
    if (num_wait && !wait_list)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "wait_list is NULL: expected %u events", num_wait);
    clnorm_status status = CLNORM_SUCCESS;
    for (cl_uint i = 0; i < num_wait && !status; i++)
        status = check_awaited(context, i, wait_list[i]);
    return status;
}

static clnorm_status enqueue(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args,
                             const struct order *order) {
    if (!plan)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "plan is NULL");
    bool in_order = false;
    struct given given = {.aligned = false};
    clnorm_status status = check_queue(plan, queue, &in_order);
    if (!status)
        status = cln_wait_list_check(plan->context->cl, order->num_wait, order->wait_list);
    if (!status)
        status = cln_args_take(args, &given.args);
    if (!status)
        status = cln_args_check(plan, &given.args, &given.aligned, given.places);
    if (!status)
        status = cln_overlap_check(plan, given.places);
    if (status)
        return status;
    if (!plan->stages) {
        const cl_int code =
            clEnqueueMarkerWithWaitList(queue, order->num_wait, order->num_wait ? order->wait_list : NULL, order->event);
        return code ? cln_fail_opencl(code, "clEnqueueMarkerWithWaitList") : CLNORM_SUCCESS;
    }
    pthread_mutex_lock(&plan->lock);
    given.launch = has_launch_number(plan) ? cln_next_launch_number() : 0;
    status = run_stages(plan, queue, in_order, &given, order);
    pthread_mutex_unlock(&plan->lock);
    return status;
}

clnorm_status clnorm_plan_enqueue(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args, cl_uint num_wait,
                                  const cl_event *wait_list, cl_event *event) {
    return enqueue(plan, queue, args, &(struct order){num_wait, wait_list, event, NULL});
}

cl_uint clnorm_plan_kernel_count(const clnorm_plan *plan) {
    return plan ? plan->stages : 0;
}

/* Counts each tensor once, however many arguments it has. A part of the workspace has one argument of a kernel. */
static uint64_t stage_bytes(const clnorm_plan *plan, const struct cln_stage *stage) {
    bool counted[CLN_ROLES] = {false};
    uint64_t bytes = 0;
    for (cl_uint i = 0; i < stage->tensors; i++) {
        const struct cln_binding *binding = &stage->tensor[i].binding;
        if (!is_bound(plan, binding))
            continue;
        if (binding->role == CLN_WORKSPACE)
            bytes += binding->size;
        else if (!counted[binding->role])
            bytes += plan->tensor[binding->role].span;
        counted[binding->role] = true;
    }
    return bytes;
}

/* The number of arguments that run_stage sets. */
static cl_uint stage_arguments(const clnorm_plan *plan, const struct cln_stage *stage) {
    cl_uint arguments = 1U + (stage->seed ? 2 : 0) + (stage->launch ? 1 : 0);
    for (cl_uint i = 0; i < stage->tensors; i++)
        arguments += is_bound(plan, &stage->tensor[i].binding) ? 2 : 0;
    return arguments;
}

void clnorm_kernel_info_init(clnorm_kernel_info *info) {
    static const clnorm_kernel_info initial = CLNORM_KERNEL_INFO_INIT;
    if (info)
        *info = initial;
}

clnorm_status clnorm_plan_kernel(const clnorm_plan *plan, cl_uint index, clnorm_kernel_info *info) {
    if (!plan)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "plan is NULL");
    if (!info)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "info is NULL");
    static const struct cln_struct kind = {"info", "CLNORM_KERNEL_INFO_INIT", sizeof *info};
    const clnorm_status status = cln_struct_check(&kind, info);
    if (status)
        return status;
    if (index >= plan->stages)
        return cln_fail(CLNORM_INVALID_VALUE, "index is %u: expected less than the plan's %u kernels", index, plan->stages);
    const struct cln_stage *stage = &plan->stage[index];
    const clnorm_kernel_info own = {.size = sizeof own,
                                    .name = stage->name,
                                    .kernel = stage->aligned,
                                    .groups = stage->groups,
                                    .items = stage->items,
                                    .bytes = stage_bytes(plan, stage),
                                    .arguments = stage_arguments(plan, stage)};
    cln_struct_give(&kind, &own, info);
    return CLNORM_SUCCESS;
}

clnorm_status clnorm_plan_enqueue_kernels(clnorm_plan *plan, cl_command_queue queue, const clnorm_args *args,
                                          cl_uint num_wait, const cl_event *wait_list, cl_event *events) {
    if (!events && clnorm_plan_kernel_count(plan))
        return cln_fail(CLNORM_INVALID_ARGUMENT, "events is NULL: expected room for %u", clnorm_plan_kernel_count(plan));
    cl_event made[CLN_STAGES] = {NULL};
    const clnorm_status status = enqueue(plan, queue, args, &(struct order){num_wait, wait_list, NULL, made});
    for (unsigned i = 0; i < clnorm_plan_kernel_count(plan); i++)
        if (!status)
            events[i] = made[i];
        else if (made[i])
            clReleaseEvent(made[i]);
    return status;
}

/* Launches a kernel's grid over no segments, so that it accesses no tensor. Arguments of an earlier enqueue are
 * replaced, as their owner may have released them. nothing: a buffer in place of each tensor, as Intel's runtime for CPUs
 * (2026.2) may read a scale before it checks the number of rows. */
static clnorm_status run_empty(const clnorm_plan *plan, const struct cln_stage *stage, cl_kernel kernel, cl_mem nothing,
                               cl_command_queue queue) {
    const cl_ulong none = 0;
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < stage->tensors && !code; i++) {
        if (!is_bound(plan, &stage->tensor[i].binding)) /* its argument has been NULL since the plan was made */
            continue;
        code = clSetKernelArg(kernel, stage->tensor[i].index, sizeof nothing, &nothing);
        if (!code)
            code = clSetKernelArg(kernel, stage->tensor[i].index + 1, sizeof none, &none);
    }
    if (!code)
        code = clSetKernelArg(kernel, WORK, sizeof none, &none);
    if (code)
        return cln_fail_opencl(code, "clSetKernelArg");
    return launch_whole(stage, kernel, queue, 0, NULL, NULL);
}

/* Runs each kernel of the plan over no segments. */
static clnorm_status run_all_empty(const clnorm_plan *plan, cl_mem nothing, cl_command_queue queue) {
    clnorm_status status = CLNORM_SUCCESS;
    for (unsigned i = 0; i < plan->stages && !status; i++) {
        status = run_empty(plan, &plan->stage[i], plan->stage[i].aligned, nothing, queue);
        if (!status && plan->stage[i].unaligned)
            status = run_empty(plan, &plan->stage[i], plan->stage[i].unaligned, nothing, queue);
    }
    return status;
}

clnorm_status clnorm_plan_warm_up(clnorm_plan *plan, cl_command_queue queue) {
    if (!plan)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "plan is NULL");
    bool in_order = false;
    clnorm_status status = check_queue(plan, queue, &in_order);
    if (status)
        return status;
    enum { BYTES = 16 };
    cl_int code;
    const cl_mem nothing = clCreateBuffer(plan->context->cl, CL_MEM_READ_WRITE, BYTES, NULL, &code);
    if (code)
        return cln_fail_opencl(code, "clCreateBuffer");
    pthread_mutex_lock(&plan->lock);
    status = run_all_empty(plan, nothing, queue);
    pthread_mutex_unlock(&plan->lock);
    code = clFinish(queue);
    clReleaseMemObject(nothing);
    if (status)
        return status;
    return code ? cln_fail_opencl(code, "clFinish") : CLNORM_SUCCESS;
}
