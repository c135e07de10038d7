/* The check that no output of an enqueue overlaps another tensor, unless it may share the place of an input. */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "plan/plan.h"

/* Outputs that may have the place of an input. Each of their elements then lies where the input's does. */
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

/* Not where the plan writes both, nor where a backward computes y again. */
static bool may_be(const clnorm_plan *plan, enum cln_role output, enum cln_role input) {
    if (plan->tensor[input].written || (output == CLN_Y && plan->tensor[CLN_DY].element))
        return false;
    if (output == CLN_DX && plan->late_dy && input == CLN_DY)
        return false;
    for (size_t i = 0; i < ALIASES; i++)
        if (aliases[i].output == output && aliases[i].input == input)
            return true;
    return false;
}

/* The bytes of a tensor: blocks of contiguous bytes. A block begins at `at` plus a multiple of each step. */
struct extent {
    uint64_t at, bytes; /* bytes: of a block */
    struct step {
        uint64_t size, count; /* the multiples are 0 to count − 1 times size */
    } step[2 * CLNORM_OUTER_DIMS];
    int steps;
};

/* Keeps the steps sorted, the largest first, and merges steps of one size. */
static void add_step(struct extent *extent, uint64_t size, uint64_t count) {
    int i = 0;
    while (i < extent->steps && extent->step[i].size > size)
        i++;
    if (i < extent->steps && extent->step[i].size == size) {
        extent->step[i].count += count - 1;
        return;
    }
    memmove(&extent->step[i + 1], &extent->step[i], (size_t)(extent->steps - i) * sizeof *extent->step);
    extent->step[i] = (struct step){size, count};
    extent->steps++;
}

/* Contiguous rows count as one row. */
static struct extent extent_of(const struct cln_tensor *tensor, const struct cln_place *place) {
    struct extent extent = {.at = place->at, .bytes = tensor->row ? tensor->row : tensor->span};
    for (int i = 0; i < CLNORM_OUTER_DIMS && tensor->dims[i].size; i++)
        if (tensor->dims[i].size > 1 && tensor->dims[i].stride)
            add_step(&extent, tensor->dims[i].stride, tensor->dims[i].size);
    while (extent.steps && extent.step[extent.steps - 1].size <= extent.bytes) {
        const struct step *const last = &extent.step[--extent.steps];
        extent.bytes += (last->count - 1) * last->size;
    }
    return extent;
}

/* The search gives up after so many distances. */
enum { MOST_TRIES = 4096 };

/* Whether a distance plus some multiples of the steps, from step first on, lies between from and to, both excluded. */
static bool reaches(const struct extent *both, int first, int64_t distance, int64_t from, int64_t to, int *tries) {
    if (first == both->steps)
        return distance > from && distance < to;
    const struct step *const step = &both->step[first];
    const int64_t size = (int64_t)step->size;
    int64_t rest = 0; /* the largest sum of multiples of the smaller steps */
    for (int i = first + 1; i < both->steps; i++)
        rest += (int64_t)((both->step[i].count - 1) * both->step[i].size);
    const int64_t short_of = from - distance - rest; /* a multiple lies between that and to - distance, both excluded */
    int64_t multiple = short_of < 0 ? 0 : short_of / size + 1;
    for (; multiple < (int64_t)step->count && multiple * size < to - distance; multiple++)
        if (--*tries < 0 || reaches(both, first + 1, distance + multiple * size, from, to, tries))
            return *tries >= 0;
    return false;
}

/* Whether two tensors of one buffer have a byte in common: whether a block of b begins less than b's bytes before a block
 * of a, or less than a's bytes after it. */
static bool collide(const struct extent *a, const struct extent *b) {
    struct extent both = *b;
    int64_t distance = (int64_t)(b->at - a->at);
    for (int i = 0; i < a->steps; i++) {
        distance -= (int64_t)((a->step[i].count - 1) * a->step[i].size);
        add_step(&both, a->step[i].size, a->step[i].count);
    }
    int tries = MOST_TRIES;
    return reaches(&both, 0, distance, -(int64_t)b->bytes, (int64_t)a->bytes, &tries);
}

static clnorm_status check_alike(const clnorm_plan *plan, enum cln_role output, enum cln_role input) {
    const struct cln_tensor *const to = &plan->tensor[output], *const from = &plan->tensor[input];
    const char *const name = cln_role_name(output), *const other = cln_role_name(input);
    const bool as_wide = from->element == to->element;
    if (as_wide && memcmp(from->dims, to->dims, sizeof to->dims) == 0)
        return CLNORM_SUCCESS;
    if (as_wide && from->stride == to->stride)
        return cln_fail(CLNORM_INVALID_BUFFER,
                        "args.%s is args.%s: expected the same outer dimensions of desc.%s and desc.%s", name, other, name,
                        other);
    return cln_fail(CLNORM_INVALID_BUFFER,
                    "args.%s is args.%s: expected the same element size and row stride, but %s has %" PRIu64 " and %" PRIu64
                    " bytes, %s %" PRIu64 " and %" PRIu64,
                    name, other, name, to->element, to->stride, other, from->element, from->stride);
}

static clnorm_status check_pair(const clnorm_plan *plan, const struct cln_place places[CLN_ROLES], enum cln_role output,
                                enum cln_role other) {
    if (places[output].buffer != places[other].buffer)
        return CLNORM_SUCCESS;
    const bool allowed = may_be(plan, output, other);
    if (allowed && places[output].at == places[other].at)
        return check_alike(plan, output, other);
    const struct extent a = extent_of(&plan->tensor[output], &places[output]);
    const struct extent b = extent_of(&plan->tensor[other], &places[other]);
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

bool cln_in_place(const struct cln_place places[CLN_ROLES]) {
    for (size_t i = 0; i < ALIASES; i++) {
        const struct cln_place *const to = &places[aliases[i].output], *const from = &places[aliases[i].input];
        if (aliases[i].input != CLN_DRESIDUAL_OUT && to->buffer && to->buffer == from->buffer && to->at == from->at)
            return true;
    }
    return false;
}
