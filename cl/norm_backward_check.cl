/* Columns at which x̂ cannot be had from y, counted by one work-group before a backward that reads y in x's place: see
 * clnorm_norm_backward_desc.
 *
 * Macros (src/spec.h): X_DTYPE (of y), WEIGHT_DTYPE, BIAS_DTYPE, VEC (1), LANES, UNROLL, STORES, ISA, ELEMENT_ALIGNED. */

#include "dtype.h"

struct bounds {
    real weight;  /* the least |w| */
    real bias;    /* the most |bias / w| */
    real x_hat;   /* the most |x̂| that there can be */
    real largest; /* |y| */
};

/* No comparison with a NaN holds. */
static inline bool exact(const struct bounds *bounds, const real w, const real bias) {
    const real weight = fabs(w);
    return weight >= bounds->weight && fabs(bias) <= bounds->bias * weight &&
           weight * bounds->x_hat + fabs(bias) <= bounds->largest;
}

/* work: columns. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void
norm_backward_check(const global STORAGE(WEIGHT_DTYPE) * weight, const ulong weight_at,
                    const global STORAGE(BIAS_DTYPE) * bias, const ulong bias_at, global uint *fault, const ulong fault_at,
                    const ulong work, const real weight_offset, const real weight_bound, const real bias_bound,
                    const real most_x_hat, const real largest) {
    local uint columns;
    if (work == 0)
        return;
    if (get_local_id(0) == 0)
        columns = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const struct bounds bounds = {weight_bound, bias_bound, most_x_hat, largest};
    uint own = 0;
    for (ulong i = get_local_id(0); i < work; i += LANES) {
        real w = 1, b = 0;
#if PRESENT(WEIGHT_DTYPE)
        w = weight_offset + WIDEN(WEIGHT_DTYPE)(LOAD(WEIGHT_DTYPE)(weight + weight_at + i, true, LOAD_PLAIN));
#endif
#if PRESENT(BIAS_DTYPE)
        b = WIDEN(BIAS_DTYPE)(LOAD(BIAS_DTYPE)(bias + bias_at + i, true, LOAD_PLAIN));
#endif
        own += !exact(&bounds, w, b);
    }
    if (own)
        atomic_add(&columns, own);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0)
        fault[fault_at] = columns;
}
