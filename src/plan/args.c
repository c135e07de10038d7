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
    [CLN_MOMENTS] = {"moments", offsetof(clnorm_args, moments)},
    [CLN_SUMS] = {"sums", offsetof(clnorm_args, sums)},
    [CLN_ROPE_COS] = {"rope_cos", offsetof(clnorm_args, rope_cos)},
    [CLN_ROPE_SIN] = {"rope_sin", offsetof(clnorm_args, rope_sin)},
    [CLN_POSITION] = {"position", offsetof(clnorm_args, position)},
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

const char *cln_role_name(enum cln_role role) {
    return roles[role].name;
}

/* The properties of a buffer that OpenCL reports. */
struct memory {
    size_t size;
    cl_context context;
    cl_mem_flags flags;
    uintptr_t host; /* the address of the caller's memory that the buffer uses; 0: the driver allocated it */
    cl_mem parent;  /* the buffer of which this is a sub-buffer; NULL: none */
    size_t origin;  /* bytes from the parent's start to the sub-buffer's */
};

static clnorm_status read_memory(const char *name, cl_mem mem, struct memory *memory) {
    cl_mem_object_type type = 0;
    void *host = NULL;
    cl_int code = clGetMemObjectInfo(mem, CL_MEM_TYPE, sizeof type, &type, NULL);
    if (code && code != CL_INVALID_MEM_OBJECT)
        return cln_fail_opencl(code, "clGetMemObjectInfo(CL_MEM_TYPE)");
    if (code || type != CL_MEM_OBJECT_BUFFER)
        return cln_fail_code(CLNORM_INVALID_BUFFER, code, "args.%s.mem is not an OpenCL buffer", name);
    if ((code = clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof memory->size, &memory->size, NULL)) ||
        (code = clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof memory->context, &memory->context, NULL)) ||
        (code = clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof memory->flags, &memory->flags, NULL)) ||
        (code = clGetMemObjectInfo(mem, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof memory->parent, &memory->parent, NULL)) ||
        (code = clGetMemObjectInfo(mem, CL_MEM_OFFSET, sizeof memory->origin, &memory->origin, NULL)))
        return cln_fail_opencl(code, "clGetMemObjectInfo");
    if (memory->flags & CL_MEM_USE_HOST_PTR && (code = clGetMemObjectInfo(mem, CL_MEM_HOST_PTR, sizeof host, &host, NULL)))
        return cln_fail_opencl(code, "clGetMemObjectInfo(CL_MEM_HOST_PTR)");
    memory->host = (uintptr_t)host;
    return CLNORM_SUCCESS;
}

/* A kernel that reads a write-only buffer, or writes a read-only one, is undefined behaviour. */
static clnorm_status check_flags(const char *name, const struct cln_tensor *tensor, cl_mem_flags flags) {
    if (tensor->read && flags & CL_MEM_WRITE_ONLY)
        return cln_fail(CLNORM_INVALID_BUFFER, "args.%s.mem has CL_MEM_WRITE_ONLY: expected a buffer that kernels may read",
                        name);
    if (tensor->written && flags & CL_MEM_READ_ONLY)
        return cln_fail(CLNORM_INVALID_BUFFER, "args.%s.mem has CL_MEM_READ_ONLY: expected a buffer that kernels may write",
                        name);
    return CLNORM_SUCCESS;
}

/* Reads the buffer of a tensor that the descriptor has. */
static clnorm_status check_buffer(const clnorm_plan *plan, enum cln_role role, const clnorm_buffer *buffer,
                                  struct memory *memory) {
    const char *const name = roles[role].name;
    const struct cln_tensor *const tensor = &plan->tensor[role];
    if (!buffer->mem && role == CLN_WORKSPACE)
        return cln_fail(CLNORM_INVALID_BUFFER,
                        "args.workspace.mem is NULL: expected a buffer of %" PRIu64 " bytes, clnorm_plan_workspace_size",
                        tensor->span);
    if (!buffer->mem)
        return cln_fail(CLNORM_INVALID_BUFFER, "args.%s.mem is NULL: the descriptor has this tensor", name);
    const clnorm_status status = read_memory(name, buffer->mem, memory);
    if (status)
        return status;
    if (memory->context != plan->context->cl)
        return cln_fail(CLNORM_INVALID_BUFFER, "args.%s.mem is a buffer of another cl_context than the plan's", name);
    if (buffer->offset % tensor->element)
        return cln_fail(CLNORM_INVALID_BUFFER, "args.%s.offset is %" PRIu64 " bytes: expected a multiple of %s%" PRIu64,
                        name, buffer->offset, role == CLN_WORKSPACE ? "" : "its element's ", tensor->element);
    if (buffer->offset > memory->size || tensor->span > memory->size - buffer->offset)
        return cln_fail(CLNORM_INVALID_BUFFER,
                        "args.%s.mem has %zu bytes: expected at least %" PRIu64 " from byte %" PRIu64 " on", name,
                        memory->size, tensor->span, buffer->offset);
    return check_flags(name, tensor, memory->flags);
}

/* *aligned: set to false where the tensor's offset is not a multiple of its wide accesses. *place: the tensor's place; not
 * set where the tensor is absent, or has no elements. */
static clnorm_status check_tensor(const clnorm_plan *plan, enum cln_role role, const clnorm_buffer *buffer, bool *aligned,
                                  struct cln_place *place) {
    const char *const name = roles[role].name;
    const struct cln_tensor *const tensor = &plan->tensor[role];
    if (!tensor->element && buffer->mem)
        return cln_fail(CLNORM_INVALID_BUFFER, "args.%s is given: the descriptor has no %s", name, name);
    if (!tensor->element || (!tensor->span && !buffer->mem)) /* absent, or without elements, which may have no buffer */
        return CLNORM_SUCCESS;
    struct memory memory = {.size = 0};
    const clnorm_status status = check_buffer(plan, role, buffer, &memory);
    if (status || !tensor->span)
        return status;
    const uint64_t address = memory.host + buffer->offset;
    const bool on_vector = !tensor->vector || address % tensor->vector == 0;
    if (role == CLN_WORKSPACE && !on_vector) /* no kernel has a form for it */
        return cln_fail(CLNORM_INVALID_BUFFER,
                        "args.workspace begins at the address %#" PRIx64 " of host memory: expected a multiple of %" PRIu64,
                        address, tensor->vector);
    *place = (struct cln_place){memory.parent ? memory.parent : buffer->mem, memory.origin + buffer->offset};
    *aligned = *aligned && on_vector;
    return CLNORM_SUCCESS;
}

clnorm_status cln_args_check(const clnorm_plan *plan, const clnorm_args *args, bool *aligned,
                             struct cln_place places[CLN_ROLES]) {
    if (plan->seeding == CLN_SEED_ARGS && !args->seed)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "args.seed is NULL: the descriptor has dropout, which needs one");
    if (plan->seeding == CLN_SEED_NONE && args->seed)
        return cln_fail(CLNORM_INVALID_ARGUMENT,
                        "args.seed is given: the descriptor has neither dropout nor stochastic rounding");
    *aligned = true;
    for (enum cln_role role = 0; role < CLN_ROLES; role++) {
        const clnorm_status status = check_tensor(plan, role, cln_args_buffer(args, role), aligned, &places[role]);
        if (status)
            return status;
    }
    return CLNORM_SUCCESS;
}
