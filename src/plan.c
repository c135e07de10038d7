#include "plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "program.h"
#include "status.h"

clnorm_status cln_plan_create(clnorm_context *context, clnorm_plan **plan) {
    clnorm_plan *made = calloc(1, sizeof *made);
    if (!made)
        return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "no memory for a plan of %zu bytes", sizeof *made);
    made->context = context;
    made->lock_made = pthread_mutex_init(&made->lock, NULL) == 0;
    if (!made->lock_made) {
        free(made);
        return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "no mutex for a plan");
    }
    *plan = made;
    return CLNORM_SUCCESS;
}

void clnorm_plan_destroy(clnorm_plan *plan) {
    if (!plan)
        return;
    for (unsigned i = 0; i < CLN_STAGES; i++) {
        if (plan->stage[i].aligned)
            clReleaseKernel(plan->stage[i].aligned);
        if (plan->stage[i].any)
            clReleaseKernel(plan->stage[i].any);
    }
    if (plan->lock_made)
        pthread_mutex_destroy(&plan->lock);
    free(plan);
}

struct cln_binding cln_binding_if(bool there, struct cln_binding binding) {
    const struct cln_binding no_parameter = {.role = CLN_ROLES};
    return there ? binding : no_parameter;
}

struct cln_binding cln_role_if(bool there, enum cln_role role) {
    return cln_binding_if(there, (struct cln_binding){.role = role});
}

/* A kernel whose tensors are absent so far and whose other arguments are set, but for a seed. */
static clnorm_status make_kernel(cl_program program, const char *name, const struct cln_stage_recipe *recipe,
                                 cl_uint tensors, cl_kernel *kernel) {
    cl_int code;
    *kernel = clCreateKernel(program, name, &code);
    if (code)
        return cln_fail_opencl(code, "clCreateKernel");
    const cl_mem absent = NULL;
    const cl_ulong no_offset = 0;
    cl_uint index = 0;
    while (!code && index < 2 * tensors) {
        code = clSetKernelArg(*kernel, index++, sizeof absent, &absent);
        if (!code)
            code = clSetKernelArg(*kernel, index++, sizeof no_offset, &no_offset);
    }
    if (!code)
        code = clSetKernelArg(*kernel, index++, sizeof recipe->work, &recipe->work);
    for (const struct cln_constant *constant = recipe->constant; !code && constant->value; constant++)
        if (constant->size)
            code = clSetKernelArg(*kernel, index++, constant->size, constant->value);
    for (int i = 0; !code && recipe->seeded && i < 2; i++)
        code = clSetKernelArg(*kernel, index++, sizeof no_offset, &no_offset);
    return code ? cln_fail_opencl(code, "clSetKernelArg") : CLNORM_SUCCESS;
}

/* The argument behind the tensors, the work and the constants. */
static cl_uint seed_index(const struct cln_stage_recipe *recipe, cl_uint tensors) {
    cl_uint index = 2 * tensors + 1;
    for (const struct cln_constant *constant = recipe->constant; constant->value; constant++)
        index += constant->size ? 1 : 0;
    return index;
}

clnorm_status cln_plan_add_stage(clnorm_plan *plan, const struct cln_stage_recipe *recipe) {
    struct cln_stage *stage = &plan->stage[plan->stages];
    stage->tensors = 0;
    for (cl_uint i = 0; i < recipe->tensors; i++)
        if (recipe->binding[i].role != CLN_ROLES)
            stage->binding[stage->tensors++] = recipe->binding[i];
    stage->seed = recipe->seeded ? seed_index(recipe, stage->tensors) : 0;
    stage->work = recipe->work;
    stage->groups = recipe->groups;
    stage->items = recipe->items;
    stage->readers = recipe->readers;
    snprintf(stage->name, sizeof stage->name, "%s", recipe->kernel);
    cln_spec_options(recipe->spec, stage->options);

    cl_program program;
    clnorm_status status = cln_program_get(plan->context, recipe->source, stage->options, &program);
    if (status)
        return status;
    status = make_kernel(program, stage->name, recipe, stage->tensors, &stage->aligned);
    if (!status && recipe->any) {
        char any[sizeof stage->name + 4];
        snprintf(any, sizeof any, "%s_any", stage->name);
        status = make_kernel(program, any, recipe, stage->tensors, &stage->any);
    }
    clReleaseProgram(program); /* kernels keep their program */
    if (!status)
        plan->stages++;
    return status;
}

void cln_plan_set_workspace(clnorm_plan *plan, uint64_t size) {
    plan->workspace_size = size;
    plan->tensor[CLN_WORKSPACE] = (struct cln_tensor){CLN_WORKSPACE_ALIGNMENT, size, CLN_WORKSPACE_ALIGNMENT, 0};
}

clnorm_status cln_plan_set_chunks(clnorm_plan *plan, uint64_t rows, uint64_t groups, uint64_t numbers, uint64_t element,
                                  struct cln_binding *part) {
    const uint64_t chunks = rows * groups * plan->config.chunks; /* no more than a tensor has elements */
    uint64_t bytes;
    if (__builtin_mul_overflow(chunks, numbers * element, &bytes) || bytes > INT64_MAX)
        return cln_fail(CLNORM_OVERFLOW, "desc.rows is %" PRIu64 ": expected less than 2^63 bytes of workspace", rows);
    cln_plan_set_workspace(plan, bytes);
    *part = (struct cln_binding){CLN_WORKSPACE, element, 0, bytes};
    return CLNORM_SUCCESS;
}

uint64_t clnorm_plan_workspace_size(const clnorm_plan *plan) {
    return plan ? plan->workspace_size : 0;
}

void clnorm_plan_config(const clnorm_plan *plan, clnorm_config *config) {
    if (plan && config)
        *config = plan->config;
}

/* Appends to a text that may be too small, counting on as snprintf does. */
__attribute__((format(printf, 4, 5))) static void append(char *text, size_t capacity, size_t *length, const char *format,
                                                         ...) {
    va_list arguments;
    va_start(arguments, format);
    const size_t room = *length < capacity ? capacity - *length : 0;
    const int written = vsnprintf(room ? text + *length : NULL, room, format, arguments);
    va_end(arguments);
    if (written > 0)
        *length += (size_t)written;
}

size_t clnorm_plan_describe(const clnorm_plan *plan, char *text, size_t capacity) {
    size_t length = 0;
    if (capacity)
        text[0] = '\0';
    if (!plan)
        return 0;
    for (unsigned i = 0; i < plan->stages; i++) {
        const struct cln_stage *stage = &plan->stage[i];
        append(text, capacity, &length, "%s: %zu work-groups x %zu, work %" PRIu64 ", %s\n", stage->name, stage->groups,
               stage->items, (uint64_t)stage->work, stage->options);
    }
    if (*plan->note)
        append(text, capacity, &length, "config: %s\n", plan->note);
    append(text, capacity, &length, "workspace: %" PRIu64 " bytes\n", plan->workspace_size);
    return length;
}
