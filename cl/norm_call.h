/* What every kernel of the forward is given. */
#ifndef NORM_CALL_H
#define NORM_CALL_H

#include "norm.h"

#define TENSORS                                                                                                          \
    const global STORAGE(X_DTYPE) * x, const ulong x_offset, const global STORAGE(WEIGHT_DTYPE) *restrict weight,        \
        const ulong weight_at, const global STORAGE(BIAS_DTYPE) *restrict bias, const ulong bias_at,                     \
        const global STORAGE(Z_DTYPE) * z, const ulong z_offset, global STORAGE(Y_DTYPE) * y, const ulong y_offset,      \
        global real *restrict mean, const ulong mean_at, global real *restrict rstd, const ulong rstd_at,                \
        const global STORAGE(RESIDUAL_DTYPE) * residual, const ulong residual_at, const global real *restrict row_scale, \
        const ulong row_scale_at, global STORAGE(RESIDUAL_OUT_DTYPE) * residual_out, const ulong residual_out_at,        \
        global uchar *restrict mask, const ulong mask_at, global float *restrict y_scale, const ulong y_scale_at

#define SCALARS                                                                                             \
    const ulong work, const ulong rows, const ulong rounds, const ulong x_stride, const ulong y_stride,     \
        const ulong z_stride, const ulong residual_stride, const ulong residual_out_stride, const real eps, \
        const real weight_offset, const real kept_scale, const uint threshold, const float y_given SEED_PARAMETERS

#define CALL(aligned)                                                                                                     \
    {                                                                                                                     \
        x + x_offset, weight + weight_at, bias + bias_at, z + z_offset, y + y_offset, mean + mean_at, rstd + rstd_at,     \
            residual + residual_at, row_scale + row_scale_at, residual_out + residual_out_at, mask + mask_at, work, rows, \
            x_stride, y_stride, z_stride, residual_stride, residual_out_stride, eps, weight_offset, kept_scale, DICE,     \
            y_scale + y_scale_at, y_given, aligned                                                                        \
    }

#endif
