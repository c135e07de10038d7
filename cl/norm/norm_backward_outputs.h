/* The sums over a segment of the gradients at its vectors, and the outputs computed with them. */
#ifndef NORM_BACKWARD_OUTPUTS_H
#define NORM_BACKWARD_OUTPUTS_H

#include "norm/norm_backward.h"

/* c1 and c2 of the header's formulas. */
struct means {
    real of_product;  /* Σ(x̂ · wdn) / DIVISOR */
    real of_gradient; /* Σwdn / DIVISOR; 0 but for layer norm */
};

static inline struct means means_of_sums(const struct call *call, const struct row *row, const real *sums) {
    const bool on_floor = is_floor(row->rstd, call->eps);
    const struct means means = {on_floor ? (real)0 : sums[0] / DIVISOR, NORM == LAYER_NORM ? sums[1] / DIVISOR : (real)0};
    return means;
}

/* The sums of a lane. */
struct lane_sums {
    realv product, gradient;
};

/* Adds a point at vector v. With LEADS the weights outside the segment have any value, as the point has. */
static inline void add_point(struct lane_sums *sums, const struct point point, const struct scale scale,
                             const real weight_offset, const index_t v, const uint lead) {
    const realv wdn = scaled(point.dn, scale, weight_offset), product = point.x_hat * wdn;
    sums->product += LEADS ? only_elements(product, v, lead) : product;
    if (NORM == LAYER_NORM)
        sums->gradient += LEADS ? only_elements(wdn, v, lead) : wdn;
}

INLINED void sums_over_lanes(struct lanes *lanes, const struct lane_sums *lane_sums, real *sums) {
    sums[0] = sum_elements(lane_sums->product);
    sums[1] = sum_elements(lane_sums->gradient);
    sum_lanes(lanes, sums, NORM == LAYER_NORM ? 2 : 1);
}

/* Adds up the sums of a segment's chunks, which another kernel has computed (HAS_SUMS). */
static inline void sum_chunks(const struct call *call, const struct row *row, real *sums) {
    const ulong segments = GROUPS * call->rows;
    sums[0] = sums[1] = 0;
    for (uint i = 0; row->active && i < CHUNKS; i++) {
        sums[0] += call->sums[i * segments + statistic_of(call, row)];
        if (NORM == LAYER_NORM)
            sums[1] += call->sums[(CHUNKS + i) * segments + statistic_of(call, row)];
    }
}

/* Inputs that are read for the outputs alone, as loaded. */
struct beside {
#if PRESENT(DRESIDUAL_OUT_DTYPE) && !HOLDS_DRESIDUAL_OUT
    PACKED(DRESIDUAL_OUT_DTYPE) dresidual_out;
#endif
#if NEEDS_BIAS
    PACKED(BIAS_DTYPE) bias;
#endif
    char unused; /* a struct has a member */
};

/* bias: of the segment's first element. */
static inline void load_beside(const struct call *call, const struct row *row, const global STORAGE(BIAS_DTYPE) * bias,
                               const index_t v, struct beside *beside) {
#if PRESENT(DRESIDUAL_OUT_DTYPE) && !HOLDS_DRESIDUAL_OUT
    beside->dresidual_out =
        LOAD_VECTOR(DRESIDUAL_OUT_DTYPE)(SEGMENT_OF(dresidual_out, row), v, row->lead, call->aligned, LOAD_PLAIN);
#endif
#if NEEDS_BIAS
    beside->bias = LOAD_COLUMNS(BIAS_DTYPE)(bias, v, row->lead, call->aligned, LOAD_PLAIN);
#endif
    (void)call, (void)row, (void)bias, (void)v, (void)beside;
}

static inline void put_outputs(const struct call *call, const struct row *row, const index_t v, const struct inputs *in,
                               const struct point point, const struct scale scale, const struct beside *beside,
                               const struct means means) {
#if NEEDS_MEANS
    const realv ignored = point.x_hat * means.of_product + means.of_gradient; /* c1 · x̂ + c2 */
    realv ds = row->rstd * scaled_plus(point.dn, scale, call->weight_offset, -ignored);
#if HOLDS_DRESIDUAL_OUT
    ds += WIDEN(DRESIDUAL_OUT_DTYPE)(in->dresidual_out);
#elif PRESENT(DRESIDUAL_OUT_DTYPE)
    ds += WIDEN(DRESIDUAL_OUT_DTYPE)(beside->dresidual_out);
#endif
#endif
#if NEEDS_N
    realv n = scaled(point.x_hat, scale, call->weight_offset);
#if HOLDS_BIAS
    n += WIDEN(BIAS_DTYPE)(scale.bias);
#elif NEEDS_BIAS
    n += WIDEN(BIAS_DTYPE)(beside->bias);
#endif
    n = activated(n);
#endif
#if GATE
    const realv z = WIDEN(Z_DTYPE)(in->z);
#endif
#if PRESENT(DX_DTYPE) && GATE_FIRST
    STORE_VECTOR(DX_DTYPE)(SEGMENT_OF(dx, row), v, row->lead, ds * gate_factor(z), call->aligned);
#elif PRESENT(DX_DTYPE)
    STORE_VECTOR(DX_DTYPE)(SEGMENT_OF(dx, row), v, row->lead, branch(call, row, in, ds), call->aligned);
#endif
#if PRESENT(DRESIDUAL_DTYPE)
    STORE_VECTOR(DRESIDUAL_DTYPE)(SEGMENT_OF(dresidual, row), v, row->lead, ds, call->aligned);
#endif
#if PRESENT(DZ_DTYPE) && GATE_FIRST
    STORE_VECTOR(DZ_DTYPE)(SEGMENT_OF(dz, row), v, row->lead, ds * widen_x(&in->x) * gate_slope(z), call->aligned);
#elif PRESENT(DZ_DTYPE)
    STORE_VECTOR(DZ_DTYPE)(SEGMENT_OF(dz, row), v, row->lead, WIDE_DY(in->dy) * n * gate_slope(z), call->aligned);
#endif
#if PRESENT(Y_DTYPE) && GATE && !GATE_FIRST
    STORE_VECTOR(Y_DTYPE)(SEGMENT_OF(y, row), v, row->lead, n * gate_factor(z), call->aligned);
#elif PRESENT(Y_DTYPE)
    STORE_VECTOR(Y_DTYPE)(SEGMENT_OF(y, row), v, row->lead, n, call->aligned);
#endif
    (void)means, (void)beside, (void)in, (void)scale;
}

#endif
