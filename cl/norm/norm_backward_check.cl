/* Counts the columns in which x̂ cannot be recovered from y, by one work-group, before a backward that reads y in x's place:
 * see clnorm_norm_backward_desc.
 *
 * Macros (src/program/spec.h): X_DTYPE (of y), WEIGHT_DTYPE, BIAS_DTYPE, VEC (1), LANES, STORES, ISA,
 * ELEMENT_ALIGNED. */

#include "common/arguments.h"
#include "common/dtype.h"
#include "norm/norm_backward_args.h"

struct call {
    MEMBERS(NORM_BACKWARD_CHECK_ARGS)
};

/* Whether x̂ can be recovered in a column. With a NaN every comparison is false. */
static inline bool exact(const struct call *call, const real w, const real bias) {
    const real weight = fabs(w);
    return weight >= call->weight_bound && fabs(bias) <= call->bias_bound * weight &&
           weight * call->x_hat_bound + fabs(bias) <= call->y_bound;
}

kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void norm_backward_check(PARAMETERS(NORM_BACKWARD_CHECK_ARGS)) {
    local uint columns;
    if (work == 0)
        return;
    if (get_local_id(0) == 0)
        columns = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const struct call call = {ARGUMENTS(NORM_BACKWARD_CHECK_ARGS)};
    uint own = 0;
    for (ulong i = get_local_id(0); i < work; i += LANES) {
        real w = 1, b = 0;
#if PRESENT(WEIGHT_DTYPE)
        w = call.weight_offset + WIDEN(WEIGHT_DTYPE)(LOAD(WEIGHT_DTYPE)(call.weight + i, true, LOAD_PLAIN));
#endif
#if PRESENT(BIAS_DTYPE)
        b = WIDEN(BIAS_DTYPE)(LOAD(BIAS_DTYPE)(call.bias + i, true, LOAD_PLAIN));
#endif
        own += !exact(&call, w, b);
    }
    if (own)
        atomic_add(&columns, own);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0)
        *call.fault = columns;
    last_barrier();
}
