/* The arguments of the backward norms' kernels: see cl/common/arguments.h.
 *
 *     x_scale        of an 8-bit x: by X_SCALING [1], [rows], or [rows, groups of X_GROUP columns]
 *     mean, rstd     [groups, rows]
 *     row_scale      [rows]
 *     weight, bias   [cols], or with WEIGHT_MAP [weight_rows, cols]
 *     sums           [2, CHUNKS, groups, rows]: Σ(x̂ · wdn), Σwdn of a segment's chunks
 *     dweight, dbias [weight_rows, slots, SLOT_COLUMNS], or with ACCUMULATOR_COLUMNS the outputs
 *     kept_scale     the factor of elements that dropout keeps */
#ifndef NORM_BACKWARD_ARGS_H
#define NORM_BACKWARD_ARGS_H

#include "norm/norm_rope_args.h"
#include "norm/weight_map_args.h"

/* Elements of a slot: a multiple of four, so that vectors of four are aligned in every slot. */
#define SLOT_COLUMNS(cols) (((cols) + 3) / 4 * 4)

/* clang-format off */
/* The inputs of the gradients. */
#define NORM_BACKWARD_INPUTS(USE)                                                                           \
    USE(ROWS, 1, const global STORAGE(X_DTYPE) *, x)                                                        \
    USE(VECTOR, X_SCALE_DTYPE, const global STORAGE(X_SCALE_DTYPE) *restrict, x_scale)                      \
    USE(ROWS, 1, const global STORAGE(DY_DTYPE) *, dy)                                                      \
    USE(ROWS, Z_DTYPE, const global STORAGE(Z_DTYPE) *, z)                                                  \
    USE(VECTOR, WEIGHT_DTYPE, const global STORAGE(WEIGHT_DTYPE) *restrict, weight)                         \
    USE(VECTOR, BIAS_DTYPE, const global STORAGE(BIAS_DTYPE) *restrict, bias)                               \
    USE(VECTOR, READS_MEAN, const global real *restrict, mean)                                              \
    USE(VECTOR, 1, const global real *restrict, rstd)                                                       \
    USE(NUMBER, WEIGHT_OFFSET, real, weight_offset)                                                         \
    USE(NUMBER, FLOORED, real, eps)                                                                         \
    WEIGHT_MAP_ARGS(USE)                                                                                    \
    USE(ROWS, RESIDUAL_DTYPE, const global STORAGE(RESIDUAL_DTYPE) *, residual)                             \
    USE(VECTOR, ROW_SCALE, const global real *restrict, row_scale)                                          \
    USE(NUMBER, DROPOUT, real, kept_scale)                                                                  \
    USE(NUMBER, DROPOUT, ulong, threshold)                                                                  \
    USE(SEED, DROPOUT, ulong, seed)                                                                         \
    NORM_ROPE_ARGS(USE)

/* work: rows. For each row of weights, share_rows: rows of a work-group or, with RUN_LENGTH, of one run of all work-groups;
 * slots: their number; the i-th work-group of a block has slot i mod slots. */
#define NORM_BACKWARD_ARGS(USE)                                                                             \
    NORM_BACKWARD_INPUTS(USE)                                                                               \
    USE(VECTOR, HAS_SUMS, const global real *restrict, sums)                                                \
    USE(ROWS, DX_DTYPE, global STORAGE(DX_DTYPE) *, dx)                                                     \
    USE(ROWS, DZ_DTYPE, global STORAGE(DZ_DTYPE) *, dz)                                                     \
    USE(ROWS, Y_DTYPE, global STORAGE(Y_DTYPE) *, y)                                                        \
    USE(VECTOR, DWEIGHT_DTYPE, global STORAGE(DWEIGHT_DTYPE) *, dweight)                                    \
    USE(VECTOR, DBIAS_DTYPE, global STORAGE(DBIAS_DTYPE) *, dbias)                                          \
    USE(VECTOR, LOCKED, volatile global uint *, locks)                                                      \
    USE(VECTOR, EXCHANGES, volatile global uint4 *, messages)                                               \
    USE(LAUNCH, EXCHANGES, ulong, launch)                                                                   \
    USE(ROWS, DRESIDUAL_OUT_DTYPE, const global STORAGE(DRESIDUAL_OUT_DTYPE) *, dresidual_out)              \
    USE(ROWS, DRESIDUAL_DTYPE, global STORAGE(DRESIDUAL_DTYPE) *, dresidual)                                \
    USE(VECTOR, Y_GIVEN, const global uint *restrict, fault)                                                \
    USE(NUMBER, HAS_SLOTS, ulong, slots)                                                                    \
    USE(NUMBER, 1, ulong, share_rows)

/* work: chunks of all segments. */
#define NORM_BACKWARD_SUMS_ARGS(USE)                                                                        \
    NORM_BACKWARD_INPUTS(USE)                                                                               \
    USE(NUMBER, 1, ulong, rows)                                                                             \
    USE(NUMBER, 1, ulong, iterations)                                                                       \
    USE(VECTOR, 1, global real *restrict, sums)

/* work: columns, or 0. dweight_slots, dbias_slots: [weight_rows, slots, SLOT_COLUMNS] */
#define NORM_BACKWARD_REDUCE_ARGS(USE)                                                                      \
    USE(VECTOR, DWEIGHT_DTYPE, const global real *, dweight_slots)                                          \
    USE(VECTOR, DBIAS_DTYPE, const global real *, dbias_slots)                                              \
    USE(VECTOR, DWEIGHT_DTYPE, global STORAGE(DWEIGHT_DTYPE) *, dweight)                                    \
    USE(VECTOR, DBIAS_DTYPE, global STORAGE(DBIAS_DTYPE) *, dbias)                                          \
    WEIGHT_SUMS_ARGS(USE)                                                                                   \
    USE(NUMBER, 1, ulong, slots)

/* work: columns. The bounds: minimum |w|, maximum |bias / w|, maximum possible |x̂|, largest number of y's dtype. */
#define NORM_BACKWARD_CHECK_ARGS(USE)                                                                       \
    USE(VECTOR, WEIGHT_DTYPE, const global STORAGE(WEIGHT_DTYPE) *, weight)                                 \
    USE(VECTOR, BIAS_DTYPE, const global STORAGE(BIAS_DTYPE) *, bias)                                       \
    USE(VECTOR, 1, global uint *, fault)                                                                    \
    USE(NUMBER, 1, real, weight_offset)                                                                     \
    USE(NUMBER, 1, real, weight_bound)                                                                      \
    USE(NUMBER, 1, real, bias_bound)                                                                        \
    USE(NUMBER, 1, real, x_hat_bound)                                                                       \
    USE(NUMBER, 1, real, y_bound)
/* clang-format on */

#endif
