/* One vector of RMS norm on 8-bit x with a scale for each GROUP_SIZE columns: see clnorm_fp8_rms_norm_desc for the
 * formulas. VEC divides GROUP_SIZE, so that a vector has one scale. */
#ifndef FP8_RMS_NORM_H
#define FP8_RMS_NORM_H

#include "quantize.h"

/* The arguments of a launch, offsets already added. */
struct call {
    const global uchar *x;
    const global STORAGE(X_SCALE_DTYPE) * x_scale; /* [rows, cols / GROUP_SIZE] */
    const global STORAGE(WEIGHT_DTYPE) * weight;
    const global float *rstd; /* [rows] */
    global uchar *q, *q_t;    /* y and its transpose */
    ulong rows, cols;
    ulong x_stride, q_stride, q_t_stride; /* elements */
    float y_scale, inverse;               /* 1 / y_scale */
    bool aligned;                         /* wide accesses at their own size's alignment */
};

static inline floatv code_values(const struct call *call, const ulong row, const ulong column, const enum load_hint hint) {
    return WIDEN(X_DTYPE)(LOAD(X_DTYPE)(call->x + row * call->x_stride + column, call->aligned, hint));
}

static inline float scale_of_x(const struct call *call, const ulong row, const ulong column) {
    return LOAD_SCALE(X_SCALE_DTYPE)(call->x_scale + row * (call->cols / GROUP_SIZE) + column / GROUP_SIZE);
}

static inline floatv weighted(const struct call *call, const floatv v, const ulong column) {
#if PRESENT(WEIGHT_DTYPE)
    return v * WIDEN(WEIGHT_DTYPE)(LOAD(WEIGHT_DTYPE)(call->weight + column, call->aligned, LOAD_FIRST));
#else
    (void)call, (void)column;
    return v;
#endif
}

/* With the roundings of the published method, up to the one to bfloat16. */
static inline floatv y_step_by_step(const struct call *call, const ulong row, const ulong column, const float rstd,
                                    const enum load_hint hint) {
    const floatv x = code_values(call, row, column, hint) * scale_of_x(call, row, column);
    return weighted(call, x * rstd, column);
}

#endif
