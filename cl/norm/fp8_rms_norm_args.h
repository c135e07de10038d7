/* The arguments of the kernels of RMS norm on an 8-bit x: see cl/common/arguments.h.
 *
 *     x_scale    [rows, cols / GROUP_SIZE]
 *     rstd       [rows]
 *     row_scale  [rows]
 *     largest    [work-groups] */
#ifndef FP8_RMS_NORM_ARGS_H
#define FP8_RMS_NORM_ARGS_H

#include "quantize/quantize_args.h"

/* clang-format off */
#define FP8_RMS_NORM_INPUTS(USE)                                              \
    USE(MATRIX, 1, const global uchar *, x)                                   \
    USE(VECTOR, 1, const global STORAGE(X_SCALE_DTYPE) *, x_scale)            \
    USE(VECTOR, WEIGHT_DTYPE, const global STORAGE(WEIGHT_DTYPE) *, weight)   \
    USE(NUMBER, 1, ulong, cols)

/* work: rows. */
#define FP8_RMS_NORM_ROWS_ARGS(USE)                                           \
    FP8_RMS_NORM_INPUTS(USE)                                                  \
    USE(VECTOR, 1, global float *, rstd)                                      \
    USE(VECTOR, 1, global float *, largest)                                   \
    USE(VECTOR, SCALE_DTYPE, global STORAGE(SCALE_DTYPE) *, row_scale)        \
    USE(NUMBER, 1, ulong, iterations)                                         \
    USE(NUMBER, 1, real, eps)

/* work: tiles. q, q_t and scale: of y. */
#define FP8_RMS_NORM_TILE_ARGS(USE)                                           \
    FP8_RMS_NORM_INPUTS(USE)                                                  \
    WHOLE_SCALE_ARGS(USE)                                                     \
    USE(VECTOR, 1, const global float *, rstd)                                \
    USE(MATRIX, WRITE_Q, global uchar *, q)                                   \
    USE(MATRIX, TRANSPOSED, global uchar *, q_t)                              \
    USE(NUMBER, 1, ulong, rows)
/* clang-format on */

#endif
