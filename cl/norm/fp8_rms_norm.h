/* One vector of RMS norm on 8-bit x with a scale for each GROUP_SIZE columns: see clnorm_norm_desc for the
 * formulas. VEC divides GROUP_SIZE, so that a vector has one scale. The including file defines a struct call with
 * FP8_RMS_NORM_INPUTS and aligned. */
#ifndef FP8_RMS_NORM_H
#define FP8_RMS_NORM_H

#include "quantize/quantize.h"

static inline BYTES load_codes(const struct call *call, const ulong row, const ulong column, const enum load_hint hint) {
    return LOAD(X_DTYPE)(call->x + row * call->x_stride + column, call->aligned, hint);
}

static inline float scale_of_x(const struct call *call, const ulong row, const ulong column) {
    return LOAD1(X_SCALE_DTYPE)(call->x_scale + row * (call->cols / GROUP_SIZE) + column / GROUP_SIZE);
}

/* The weights of a vector's columns; 0 without a weight. */
static inline floatv weight_at(const struct call *call, const ulong column) {
#if PRESENT(WEIGHT_DTYPE)
    return WIDEN(WEIGHT_DTYPE)(LOAD(WEIGHT_DTYPE)(call->weight + column, call->aligned, LOAD_PLAIN));
#else
    (void)call, (void)column;
    return 0;
#endif
}

static inline floatv weighted(const floatv v, const floatv weight) {
    return PRESENT(WEIGHT_DTYPE) ? v * weight : v;
}

/* y with the roundings of the published method, up to that to bfloat16. */
static inline floatv y_step_by_step(const floatv x, const float x_scale, const float rstd, const floatv weight) {
    return weighted(x * x_scale * rstd, weight);
}

#endif
