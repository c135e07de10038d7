#include "plan/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/status.h"

clnorm_status cln_plan_create(clnorm_context *context, const struct cln_operation *operation, clnorm_plan **plan) {
    clnorm_plan *const made = calloc(1, sizeof *made);
    if (!made || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "out of host memory, making a plan of %zu bytes", sizeof *made);
    }
    made->context = context;
    made->operation = operation;
    *plan = made;
    return CLNORM_SUCCESS;
}

void clnorm_plan_destroy(clnorm_plan *plan) {
    if (!plan)
        return;
    for (unsigned i = 0; i < CLN_STAGES; i++) {
        if (plan->stage[i].aligned)
            clReleaseKernel(plan->stage[i].aligned);
        if (plan->stage[i].unaligned)
            clReleaseKernel(plan->stage[i].unaligned);
    }
    pthread_mutex_destroy(&plan->lock);
    free(plan);
}

bool cln_workspace_place(uint64_t *size, uint64_t elements, uint64_t element, struct cln_binding *part) {
    const uint64_t align = CLN_WORKSPACE_ALIGNMENT, offset = cln_divide_up(*size, align) * align;
    uint64_t bytes, end;
    if (__builtin_mul_overflow(elements, element, &bytes) || __builtin_add_overflow(offset, bytes, &end) || end > INT64_MAX)
        return false;
    *part = (struct cln_binding){CLN_WORKSPACE, element, offset, bytes};
    *size = end;
    return true;
}

clnorm_status cln_workspace_refuse(uint64_t elements, uint64_t element) {
    return cln_fail(CLNORM_OVERFLOW,
                    "the workspace has a part of %" PRIu64 " elements of %" PRIu64
                    " bytes: expected less than 2^63 bytes in all",
                    elements, element);
}

void cln_plan_set_workspace(clnorm_plan *plan, uint64_t size) {
    plan->workspace_size = size;
    plan->tensor[CLN_WORKSPACE] = (struct cln_tensor){
        .element = CLN_WORKSPACE_ALIGNMENT, .span = size, .vector = CLN_WORKSPACE_ALIGNMENT, .read = true, .written = true};
}

clnorm_status cln_plan_add_part(clnorm_plan *plan, uint64_t elements, uint64_t element, struct cln_binding *part) {
    uint64_t size = plan->workspace_size;
    if (!cln_workspace_place(&size, elements, element, part))
        return cln_workspace_refuse(elements, element);
    if (size)
        cln_plan_set_workspace(plan, size);
    return CLNORM_SUCCESS;
}

clnorm_status cln_plan_add_chunks(clnorm_plan *plan, uint64_t numbers, struct cln_binding *part) {
    const uint64_t chunks = cln_product(cln_product(plan->work.rows, plan->work.groups), plan->config.chunks);
    return cln_plan_add_part(plan, cln_product(chunks, numbers), plan->work.real_size, part);
}

uint64_t clnorm_plan_workspace_size(const clnorm_plan *plan) {
    return plan ? plan->workspace_size : 0;
}

void clnorm_plan_config(const clnorm_plan *plan, clnorm_config *config) {
    if (plan && config)
        *config = cln_config_close(&plan->config);
}

/* Appends to a text that may be too small, and counts the full length as snprintf does. */
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
