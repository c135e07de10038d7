/* The arguments of the kernels of L2 norm: see cl/common/arguments.h. work: segments, [groups, rows]; for the sums over
 * rows: spans of columns, or columns. floor: 1 if eps is the minimum length, 0 if it is added to the sum of squares. */
#ifndef L2_NORM_ARGS_H
#define L2_NORM_ARGS_H

#include "norm/weight_map_args.h"

/* clang-format off */
#define L2_NORM_INPUTS(USE)                                                 \
    USE(NUMBER, 1, ulong, iterations)                                       \
    USE(NUMBER, 1, ulong, rows)                                             \
    USE(NUMBER, 1, ulong, floor)                                            \
    USE(NUMBER, 1, real, eps)                                               \
    WEIGHT_MAP_ARGS(USE)                                                    \
    USE(ROWS, 1, const global STORAGE(X_DTYPE) *, x)                        \
    USE(VECTOR, WEIGHT_DTYPE, const global STORAGE(WEIGHT_DTYPE) *, weight)

#define L2_NORM_ARGS(USE)                                                   \
    L2_NORM_INPUTS(USE)                                                     \
    USE(ROWS, 1, global STORAGE(Y_DTYPE) *, y)                              \
    USE(VECTOR, SAVE_RSTD, global real *, norm)

/* norm: [groups, rows], a part of the workspace. */
#define L2_NORM_BACKWARD_ARGS(USE)                                          \
    L2_NORM_INPUTS(USE)                                                     \
    USE(ROWS, 1, const global STORAGE(DY_DTYPE) *, dy)                      \
    USE(ROWS, 1, global STORAGE(DX_DTYPE) *, dx)                            \
    USE(VECTOR, DWEIGHT_DTYPE, global real *, norm)

/* slots: [weight_rows, count, columns], a part of the workspace; share: rows of a slot. */
#define L2_NORM_SLOTS_ARGS(USE)                                             \
    USE(NUMBER, 1, ulong, rows)                                             \
    USE(NUMBER, 1, ulong, share)                                            \
    USE(NUMBER, 1, ulong, count)                                            \
    WEIGHT_MAP_ARGS(USE)                                                    \
    USE(ROWS, 1, const global STORAGE(X_DTYPE) *, x)                        \
    USE(ROWS, 1, const global STORAGE(DY_DTYPE) *, dy)                      \
    USE(VECTOR, 1, const global real *, norm)                               \
    USE(VECTOR, 1, global real *, slots)

#define L2_NORM_DWEIGHT_ARGS(USE)                                           \
    USE(NUMBER, 1, ulong, count)                                            \
    WEIGHT_SUMS_ARGS(USE)                                                   \
    USE(VECTOR, 1, const global real *, slots)                              \
    USE(VECTOR, 1, global STORAGE(DWEIGHT_DTYPE) *, dweight)
/* clang-format on */

#endif
