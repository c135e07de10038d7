/* The arguments of a weight map: see cl/common/arguments.h. weight and bias are [weight_rows, cols], with strides in
 * elements, and row r uses their row (r / weight_repeat) mod weight_rows. A kernel without a map has no members for it. */
#ifndef WEIGHT_MAP_ARGS_H
#define WEIGHT_MAP_ARGS_H

/* clang-format off */
#if defined __OPENCL_C_VERSION__ && !defined WEIGHT_MAP
#define WEIGHT_MAP 0
#define WEIGHT_MAP_ARGS(USE)
#define WEIGHT_SUMS_ARGS(USE)
#else
#define WEIGHT_MAP_ARGS(USE)                                                                 \
    USE(NUMBER, WEIGHT_MAP, ulong, weight_rows)                                              \
    USE(NUMBER, WEIGHT_MAP, ulong, weight_repeat)                                            \
    USE(NUMBER, WEIGHT_MAP, ulong, weight_stride)                                            \
    USE(NUMBER, WEIGHT_MAP, ulong, bias_stride)

/* For the gradients, which are [weight_rows, cols] too. */
#define WEIGHT_SUMS_ARGS(USE)                                                                \
    USE(NUMBER, WEIGHT_MAP, ulong, weight_rows)                                              \
    USE(NUMBER, WEIGHT_MAP, ulong, dweight_stride)                                           \
    USE(NUMBER, WEIGHT_MAP, ulong, dbias_stride)
#endif
/* clang-format on */

#endif
