/* The arguments of the forward norms' kernels: see cl/common/arguments.h. work: segments, or chunks of all segments.
 *
 *     weight, bias  [cols], or with WEIGHT_MAP [weight_rows, cols]
 *     x_scale       of an 8-bit x: by X_SCALING [1], [rows], or [rows, groups of X_GROUP columns]
 *     mean, rstd    [groups, rows]
 *     row_scale     [rows]
 *     dropout_mask  [rows, GROUPS · GROUP_SIZE]
 *     y_scale       of an 8-bit y: by SCALING [1], which is read, [rows], or [rows, groups of Y_GROUP columns]
 *     y_row_scale   [rows]
 *     magnitudes    the largest |y| of each work-group
 *     y_given       the scale of an 8-bit y without y_scale
 *     kept_scale    the factor of elements that dropout keeps
 *     moments       [segments, CHUNKS] of mean and Σ(s − mean)²; of norm_slices.cl see norm_slices_args.h
 *
 * The parameters that every kernel reads come first: a launch waits for each line of memory of parameters that it reads. */
#ifndef NORM_FORWARD_ARGS_H
#define NORM_FORWARD_ARGS_H

#include "norm/norm_rope_args.h"
#include "norm/weight_map_args.h"

/* clang-format off */
#define NORM_FORWARD_ARGS(USE)                                                               \
    USE(ROWS, 1, const global STORAGE(X_DTYPE) *, x)                                         \
    USE(VECTOR, X_SCALE_DTYPE, const global STORAGE(X_SCALE_DTYPE) *restrict, x_scale)       \
    USE(ROWS, WRITES_Y, global STORAGE(Y_DTYPE) *, y)                                        \
    USE(VECTOR, WEIGHT_DTYPE, const global STORAGE(WEIGHT_DTYPE) *restrict, weight)          \
    USE(VECTOR, BIAS_DTYPE, const global STORAGE(BIAS_DTYPE) *restrict, bias)                \
    USE(VECTOR, SAVE_MEAN, global real *restrict, mean)                                      \
    USE(VECTOR, SAVE_RSTD, global real *restrict, rstd)                                      \
    USE(NUMBER, 1, real, eps)                                                                \
    USE(NUMBER, 1, ulong, rows)                                                              \
    USE(NUMBER, 1, ulong, iterations)                                                        \
    USE(NUMBER, WEIGHT_OFFSET, real, weight_offset)                                          \
    WEIGHT_MAP_ARGS(USE)                                                                     \
    USE(ROWS, Z_DTYPE, const global STORAGE(Z_DTYPE) *, z)                                   \
    USE(ROWS, RESIDUAL_DTYPE, const global STORAGE(RESIDUAL_DTYPE) *, residual)              \
    USE(ROWS, RESIDUAL_OUT_DTYPE, global STORAGE(RESIDUAL_OUT_DTYPE) *, residual_out)        \
    USE(VECTOR, ROW_SCALE, const global real *restrict, row_scale)                           \
    USE(VECTOR, SAVE_MASK, global uchar *restrict, dropout_mask)                             \
    USE(VECTOR, Y_SCALES, global STORAGE(SCALE_DTYPE) *restrict, y_scale)                    \
    USE(VECTOR, SAVE_Y_ROW_SCALE, global STORAGE(SCALE_DTYPE) *restrict, y_row_scale)        \
    USE(VECTOR, MEASURES, global float *restrict, magnitudes)                                \
    USE(NUMBER, SCALING, real, y_given)                                                      \
    USE(NUMBER, DROPOUT, real, kept_scale)                                                   \
    USE(NUMBER, DROPOUT, ulong, threshold)                                                   \
    USE(SEED, DROPOUT, ulong, seed)                                                          \
    NORM_ROPE_ARGS(USE)

#define NORM_FORWARD_MOMENTS_ARGS(USE)                                                       \
    NORM_FORWARD_ARGS(USE)                                                                   \
    USE(VECTOR, 1, global real *, moments)

#define NORM_FORWARD_APPLY_ARGS(USE)                                                         \
    NORM_FORWARD_ARGS(USE)                                                                   \
    USE(VECTOR, 1, const global real *, moments)
/* clang-format on */

#endif
