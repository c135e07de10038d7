/* The arguments of the kernels that quantise and dequantise: see cl/common/arguments.h. By SCALING the scales are [1],
 * [rows] or [rows, GROUPS]; amax has the same shape. elements: of x. */
#ifndef QUANTIZE_ARGS_H
#define QUANTIZE_ARGS_H

/* clang-format off */
#define QUANTIZE_COMMON_ARGS(USE)                                             \
    USE(MATRIX, 1, const global STORAGE(X_DTYPE) *, x)                        \
    USE(MATRIX, WRITE_Q, global uchar *, q)                                   \
    USE(NUMBER, 1, ulong, cols)                                               \
    USE(NUMBER, TAILS, ulong, elements)                                       \
    USE(SEED, STOCHASTIC, ulong, seed)

/* work: segments. With SCALING_TENSOR amax is [work-groups]. */
#define QUANTIZE_SEGMENTS_ARGS(USE)                                           \
    QUANTIZE_COMMON_ARGS(USE)                                                 \
    USE(VECTOR, SCALE_DTYPE, global STORAGE(SCALE_DTYPE) *, scale)            \
    USE(VECTOR, AMAX, global float *, amax)                                   \
    USE(NUMBER, 1, ulong, iterations)

/* work: magnitudes. */
#define QUANTIZE_LARGEST_ARGS(USE)                                            \
    USE(VECTOR, 1, const global float *, magnitudes)                          \
    USE(VECTOR, SCALE_DTYPE, global STORAGE(SCALE_DTYPE) *, scale)            \
    USE(VECTOR, AMAX, global float *, amax)

/* Of whole_scale.h. count: magnitudes to search; 0: the scale is already written. */
#define WHOLE_SCALE_ARGS(USE)                                                 \
    QUANTIZE_LARGEST_ARGS(USE)                                                \
    USE(NUMBER, 1, ulong, count)

/* work: tiles. given: the scale of the whole tensor, without a SCALE_DTYPE. */
#define QUANTIZE_TILE_ARGS(USE)                                               \
    QUANTIZE_COMMON_ARGS(USE)                                                 \
    WHOLE_SCALE_ARGS(USE)                                                     \
    USE(MATRIX, TRANSPOSED, global uchar *, q_t)                              \
    USE(NUMBER, 1, ulong, rows)                                               \
    USE(NUMBER, 1, real, given)

/* work: rows. */
#define DEQUANTIZE_ARGS(USE)                                                  \
    USE(MATRIX, 1, const global uchar *, q)                                   \
    USE(VECTOR, 1, const global STORAGE(SCALE_DTYPE) *, scale)                \
    USE(MATRIX, 1, global STORAGE(X_DTYPE) *, x)                              \
    USE(NUMBER, 1, ulong, iterations)                                         \
    USE(NUMBER, 1, ulong, cols)                                               \
    USE(NUMBER, TAILS, ulong, elements)
/* clang-format on */

#endif
