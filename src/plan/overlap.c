/* Which tensors of an enqueue may lie over each other. */
#include <inttypes.h>

#include "base/status.h"
#include "plan/plan.h"

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

enum { ALIASES = sizeof aliases / sizeof aliases[0] };

static bool may_be(enum cln_role output, enum cln_role input) {
    for (size_t i = 0; i < ALIASES; i++)
        if (aliases[i].output == output && aliases[i].input == input)
            return true;
    return false;
}

/* A tensor's bytes: count rows of so many bytes, from one to the next a stride. */
struct rows {
    uint64_t at, bytes, stride, count;
};

static struct rows rows_of(const struct cln_tensor *tensor, const struct cln_place *place) {
    const uint64_t stride = tensor->stride ? tensor->stride : tensor->span;
    const uint64_t before_last = (tensor->span - 1) / stride;
    return (struct rows){place->at, tensor->span - before_last * stride, stride, before_last + 1};
}

static bool is_dense(const struct rows *rows) {
    return rows->bytes == rows->stride || rows->count == 1;
}

/* b begins at a or after it, and has a's stride: its first row decides, since the others lie as that one does. */
static bool collide_in_step(const struct rows *a, const struct rows *b) {
    const uint64_t row = (b->at - a->at) / a->stride, from = (b->at - a->at) % a->stride;
    return (from < a->bytes && row < a->count) || (from + b->bytes > a->stride && row + 1 < a->count);
}

/* Whether a row of b has a byte of a, which is dense: the first row that ends within a or after it decides. */
static bool collide_with_dense(const struct rows *a, const struct rows *b) {
    const uint64_t end = a->at + (a->count - 1) * a->stride + a->bytes;
    const uint64_t row = b->at + b->bytes > a->at ? 0 : (a->at - b->at - b->bytes) / b->stride + 1;
    return row < b->count && b->at + row * b->stride < end;
}

/* Whether two tensors of one buffer have a byte in common, as far as that is known without a look at every row:
 * of two with gaps between rows, and different strides, it cannot. */
static bool collide(const struct rows *a, const struct rows *b) {
    if (a->stride == b->stride)
        return a->at <= b->at ? collide_in_step(a, b) : collide_in_step(b, a);
    if (is_dense(a))
        return collide_with_dense(a, b);
    return is_dense(b) && collide_with_dense(b, a);
}

static clnorm_status check_alike(const clnorm_plan *plan, enum cln_role output, enum cln_role input) {
    const struct cln_tensor *const to = &plan->tensor[output], *const from = &plan->tensor[input];
    const char *const name = cln_role_name(output), *const other = cln_role_name(input);
    if (from->element == to->element && from->stride == to->stride)
        return CLNORM_SUCCESS;
    return cln_fail(CLNORM_INVALID_BUFFER,
                    "args.%s is args.%s: expected the same element size and row stride, but %s has %" PRIu64 " and %" PRIu64
                    " bytes, %s %" PRIu64 " and %" PRIu64,
                    name, other, name, to->element, to->stride, other, from->element, from->stride);
}

static clnorm_status check_pair(const clnorm_plan *plan, const struct cln_place places[CLN_ROLES], enum cln_role output,
                                enum cln_role other) {
    if (places[output].buffer != places[other].buffer)
        return CLNORM_SUCCESS;
    const bool allowed = may_be(output, other);
    if ((allowed || may_be(other, output)) && places[output].at == places[other].at)
        return allowed ? check_alike(plan, output, other) : CLNORM_SUCCESS;
    const struct rows a = rows_of(&plan->tensor[output], &places[output]);
    const struct rows b = rows_of(&plan->tensor[other], &places[other]);
    if (!collide(&a, &b))
        return CLNORM_SUCCESS;
    return cln_fail(CLNORM_INVALID_BUFFER,
                    "args.%s, from byte %" PRIu64 " of a buffer, overlaps args.%s, from byte %" PRIu64
                    ": expected memory of its own%s",
                    cln_role_name(output), a.at, cln_role_name(other), b.at, allowed ? ", or the same place" : "");
}

clnorm_status cln_overlap_check(const clnorm_plan *plan, const struct cln_place places[CLN_ROLES]) {
    for (enum cln_role output = 0; output < CLN_ROLES; output++) {
        if (!places[output].buffer || !plan->tensor[output].written)
            continue;
        for (enum cln_role other = 0; other < CLN_ROLES; other++) {
            if (other == output || !places[other].buffer)
                continue;
            const clnorm_status status = check_pair(plan, places, output, other);
            if (status)
                return status;
        }
    }
    return CLNORM_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- in place */

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
    for (size_t i = 0; i < ALIASES; i++)
        if (plan->tensor[aliases[i].output].span && plan->tensor[aliases[i].input].span &&
            aliases[i].input != CLN_DRESIDUAL_OUT &&
            may_overlap(cln_args_buffer(args, aliases[i].output), cln_args_buffer(args, aliases[i].input)))
            return true;
    return false;
}
