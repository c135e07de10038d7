/* What every kernel of the forward is given. */
#ifndef NORM_CALL_H
#define NORM_CALL_H

#include "norm.h"
#include "parameter.h"

#if MEASURED
#define SAVE_SCALES 1
#else
#define SAVE_SCALES 0
#endif

/* A line for each tensor, which would be taken for calls within calls. */
/* clang-format off */
#define TENSORS                                                                               \
    const global STORAGE(X_DTYPE) * x, const ulong x_at,                                      \
    OPTIONAL(PRESENT(WEIGHT_DTYPE), const global STORAGE(WEIGHT_DTYPE) *restrict, weight)     \
    OPTIONAL(PRESENT(BIAS_DTYPE), const global STORAGE(BIAS_DTYPE) *restrict, bias)           \
    OPTIONAL(PRESENT(Z_DTYPE), const global STORAGE(Z_DTYPE) *, z)                            \
    OPTIONAL(PRESENT(Y_DTYPE), global STORAGE(Y_DTYPE) *, y)                                  \
    OPTIONAL(SAVE_MEAN, global real *restrict, mean)                                          \
    OPTIONAL(SAVE_RSTD, global real *restrict, rstd)                                          \
    OPTIONAL(PRESENT(RESIDUAL_DTYPE), const global STORAGE(RESIDUAL_DTYPE) *, residual)       \
    OPTIONAL(ROW_SCALE, const global real *restrict, row_scale)                               \
    OPTIONAL(PRESENT(RESIDUAL_OUT_DTYPE), global STORAGE(RESIDUAL_OUT_DTYPE) *, residual_out) \
    OPTIONAL(SAVE_MASK, global uchar *restrict, mask)                                         \
    OPTIONAL(SAVE_SCALES, global float *restrict, y_scale)
/* clang-format on */

/* What every kernel reads comes first: a launch waits for each of the lines of memory that what it reads lies in. */
#define SCALARS                                                                                             \
    const ulong work, const ulong x_stride, const ulong y_stride, const real eps, const real weight_offset, \
        const ulong rows, const ulong rounds, const ulong z_stride, const ulong residual_stride,            \
        const ulong residual_out_stride, const real kept_scale, const uint threshold, const float y_given SEED_PARAMETERS

#define CALL(aligned)                                                                                                     \
    {                                                                                                                     \
        x + x_at, OPTIONAL_AT(PRESENT(WEIGHT_DTYPE), weight), OPTIONAL_AT(PRESENT(BIAS_DTYPE), bias),                     \
            OPTIONAL_AT(PRESENT(Z_DTYPE), z), OPTIONAL_AT(PRESENT(Y_DTYPE), y), OPTIONAL_AT(SAVE_MEAN, mean),             \
            OPTIONAL_AT(SAVE_RSTD, rstd), OPTIONAL_AT(PRESENT(RESIDUAL_DTYPE), residual),                                 \
            OPTIONAL_AT(ROW_SCALE, row_scale), OPTIONAL_AT(PRESENT(RESIDUAL_OUT_DTYPE), residual_out),                    \
            OPTIONAL_AT(SAVE_MASK, mask), work, rows, x_stride, y_stride, z_stride, residual_stride, residual_out_stride, \
            eps, weight_offset, kept_scale, DICE, OPTIONAL_AT(SAVE_SCALES, y_scale), y_given, aligned                     \
    }

#endif
