#include <inttypes.h>
#include <string.h>

#include "base/context.h"
#include "base/status.h"
#include "base/struct_size.h"
#include "plan/plan.h"

static const struct {
    const char *name;
    size_t place;
} roles[CLN_ROLES] = {
    [CLN_X] = {"x", offsetof(clnorm_args, x)},
    [CLN_WEIGHT] = {"weight", offsetof(clnorm_args, weight)},
    [CLN_BIAS] = {"bias", offsetof(clnorm_args, bias)},
    [CLN_Z] = {"z", offsetof(clnorm_args, z)},
    [CLN_DY] = {"dy", offsetof(clnorm_args, dy)},
    [CLN_Y] = {"y", offsetof(clnorm_args, y)},
    [CLN_MEAN] = {"mean", offsetof(clnorm_args, mean)},
    [CLN_RSTD] = {"rstd", offsetof(clnorm_args, rstd)},
    [CLN_DX] = {"dx", offsetof(clnorm_args, dx)},
    [CLN_DZ] = {"dz", offsetof(clnorm_args, dz)},
    [CLN_DWEIGHT] = {"dweight", offsetof(clnorm_args, dweight)},
    [CLN_DBIAS] = {"dbias", offsetof(clnorm_args, dbias)},
    [CLN_RESIDUAL] = {"residual", offsetof(clnorm_args, residual)},
    [CLN_ROW_SCALE] = {"row_scale", offsetof(clnorm_args, row_scale)},
    [CLN_RESIDUAL_OUT] = {"residual_out", offsetof(clnorm_args, residual_out)},
    [CLN_DROPOUT_MASK] = {"dropout_mask", offsetof(clnorm_args, dropout_mask)},
    [CLN_DRESIDUAL_OUT] = {"dresidual_out", offsetof(clnorm_args, dresidual_out)},
    [CLN_DRESIDUAL] = {"dresidual", offsetof(clnorm_args, dresidual)},
    [CLN_Q] = {"q", offsetof(clnorm_args, q)},
    [CLN_Q_T] = {"q_t", offsetof(clnorm_args, q_t)},
    [CLN_SCALE] = {"scale", offsetof(clnorm_args, scale)},
    [CLN_AMAX] = {"amax", offsetof(clnorm_args, amax)},
    [CLN_X_SCALE] = {"x_scale", offsetof(clnorm_args, x_scale)},
    [CLN_Y_T] = {"y_t", offsetof(clnorm_args, y_t)},
    [CLN_Y_SCALE] = {"y_scale", offsetof(clnorm_args, y_scale)},
    [CLN_Y_ROW_SCALE] = {"y_row_scale", offsetof(clnorm_args, y_row_scale)},
    [CLN_FAULT] = {"fault", offsetof(clnorm_args, fault)},
    [CLN_NORM] = {"norm", offsetof(clnorm_args, norm)},
    [CLN_WORKSPACE] = {"workspace", offsetof(clnorm_args, workspace)},
};

void clnorm_args_init(clnorm_args *args) {
    static const clnorm_args initial = CLNORM_ARGS_INIT;
    if (args)
        *args = initial;
}

clnorm_status cln_args_take(const clnorm_args *given, clnorm_args *args) {
    static const struct cln_struct kind = {"args", "CLNORM_ARGS_INIT", sizeof *args};
    clnorm_args_init(args);
    return cln_struct_take(&kind, given, args);
}

enum cln_role cln_role_named(const char *name) {
    enum cln_role role = 0;
    while (role < CLN_ROLES && strcmp(roles[role].name, name) != 0)
        role++;
    return role;
}

const clnorm_buffer *cln_args_buffer(const clnorm_args *args, enum cln_role role) {
    return (const clnorm_buffer *)((const char *)args + roles[role].place);
}

/* What OpenCL knows of a buffer. */
struct memory {
    size_t size;
    cl_context context;
    uintptr_t host; /* where the caller's own memory lies that the buffer uses; 0 for memory of the driver's */
};

static clnorm_status read_memory(const char *name, cl_mem mem, struct memory *memory) {
    cl_mem_object_type type = 0;
    cl_mem_flags flags = 0;
    void *host = NULL;
    cl_int code = clGetMemObjectInfo(mem, CL_MEM_TYPE, sizeof type, &type, NULL);
    if (code && code != CL_INVALID_MEM_OBJECT)
        return cln_fail_opencl(code, "clGetMemObjectInfo(CL_MEM_TYPE)");
    if (code || type != CL_MEM_OBJECT_BUFFER)
        return cln_fail_code(CLNORM_INVALID_BUFFER, code, "args.%s.mem is not an OpenCL buffer", name);
    if ((code = clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof memory->size, &memory->size, NULL)) ||
        (code = clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof memory->context, &memory->context, NULL)) ||
        (code = clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof flags, &flags, NULL)))
        return cln_fail_opencl(code, "clGetMemObjectInfo");
    if (flags & CL_MEM_USE_HOST_PTR && (code = clGetMemObjectInfo(mem, CL_MEM_HOST_PTR, sizeof host, &host, NULL)))
        return cln_fail_opencl(code, "clGetMemObjectInfo(CL_MEM_HOST_PTR)");
    memory->host = (uintptr_t)host;
    return CLNORM_SUCCESS;
}

static clnorm_status check_tensor(const clnorm_plan *plan, const char *name, const struct cln_tensor *tensor,
                                  const clnorm_buffer *buffer, bool *aligned) {
    if (!tensor->element) {
        if (buffer->mem)
            return cln_fail(CLNORM_INVALID_BUFFER, "args.%s is given: the descriptor has no %s", name, name);
        return CLNORM_SUCCESS;
    }
    if (!tensor->span)
        return CLNORM_SUCCESS;
    if (!buffer->mem)
        return cln_fail(CLNORM_INVALID_BUFFER, "args.%s.mem is NULL: the descriptor asks for it", name);
    struct memory memory = {0, NULL, 0};
    const clnorm_status status = read_memory(name, buffer->mem, &memory);
    if (status)
        return status;
    if (memory.context != plan->context->cl)
        return cln_fail(CLNORM_INVALID_BUFFER, "args.%s.mem is a buffer of another cl_context than the plan's", name);
    if (buffer->offset % tensor->element)
        return cln_fail(CLNORM_INVALID_BUFFER,
                        "args.%s.offset is %" PRIu64 " bytes: expected a multiple of its element's %" PRIu64, name,
                        buffer->offset, tensor->element);
    if (buffer->offset > memory.size || tensor->span > memory.size - buffer->offset)
        return cln_fail(CLNORM_INVALID_BUFFER,
                        "args.%s.mem has %zu bytes: expected at least %" PRIu64 " from byte %" PRIu64 " on", name,
                        memory.size, tensor->span, buffer->offset);
    if (tensor->vector && (memory.host + buffer->offset) % tensor->vector)
        *aligned = false;
    return CLNORM_SUCCESS;
}

/* Outputs that may lie where an input lies, when each element of them then lies where that element of the input does. */
static const struct alias {
    enum cln_role output, input;
} aliases[] = {{CLN_Y, CLN_X},
               {CLN_DX, CLN_X},
               {CLN_DX, CLN_DY},
               {CLN_DX, CLN_Y},
               {CLN_DZ, CLN_Z},
               {CLN_RESIDUAL_OUT, CLN_RESIDUAL},
               {CLN_DRESIDUAL, CLN_DRESIDUAL_OUT}};

static clnorm_status check_alias(const clnorm_plan *plan, const clnorm_args *args, const struct alias *alias) {
    const struct cln_tensor *output = &plan->tensor[alias->output], *input = &plan->tensor[alias->input];
    const clnorm_buffer *to = cln_args_buffer(args, alias->output), *from = cln_args_buffer(args, alias->input);
    if (!to->mem || to->mem != from->mem || to->offset != from->offset || !output->span)
        return CLNORM_SUCCESS;
    if (input->element != output->element || input->stride != output->stride)
        return cln_fail(CLNORM_INVALID_BUFFER,
                        "args.%s is args.%s: expected the same element size and row stride, but %s has %" PRIu64
                        " and %" PRIu64 " bytes, %s %" PRIu64 " and %" PRIu64,
                        roles[alias->output].name, roles[alias->input].name, roles[alias->output].name, output->element,
                        output->stride, roles[alias->input].name, input->element, input->stride);
    return CLNORM_SUCCESS;
}

/* The buffer that mem is a part of, or mem itself. */
static cl_mem whole_buffer(cl_mem mem) {
    cl_mem parent = NULL;
    const cl_int code = clGetMemObjectInfo(mem, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
    return code || !parent ? mem : parent;
}

/* Parts of one buffer have different names for the same place: they may lie over each other. */
static bool may_overlap(const clnorm_buffer *a, const clnorm_buffer *b) {
    if (!a->mem || !b->mem)
        return false;
    return a->mem == b->mem ? a->offset == b->offset : whole_buffer(a->mem) == whole_buffer(b->mem);
}

bool cln_args_in_place(const clnorm_plan *plan, const clnorm_args *args) {
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (plan->tensor[aliases[i].output].span && plan->tensor[aliases[i].input].span &&
            aliases[i].input != CLN_DRESIDUAL_OUT &&
            may_overlap(cln_args_buffer(args, aliases[i].output), cln_args_buffer(args, aliases[i].input)))
            return true;
    return false;
}

clnorm_status cln_args_check(const clnorm_plan *plan, const clnorm_args *args, bool *aligned) {
    if (plan->seeded && !args->seed)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "args.seed is NULL: the descriptor has dropout, which needs one");
    if (!plan->seeded && args->seed)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "args.seed is given: the descriptor has no dropout");
    *aligned = true;
    for (enum cln_role role = 0; role < CLN_ROLES; role++) {
        const clnorm_status status =
            check_tensor(plan, roles[role].name, &plan->tensor[role], cln_args_buffer(args, role), aligned);
        if (status)
            return status;
    }
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        const clnorm_status status = check_alias(plan, args, &aliases[i]);
        if (status)
            return status;
    }
    return CLNORM_SUCCESS;
}
