/* The arguments of the kernels of softmax and of its gradient: see cl/common/arguments.h. work: rows, or chunks of all
 * rows. */
#ifndef SOFTMAX_ARGS_H
#define SOFTMAX_ARGS_H

/* clang-format off */
#define SOFTMAX_INPUTS(USE)                                         \
    USE(NUMBER, 1, ulong, iterations)                               \
    USE(ROWS, 1, const global STORAGE(X_DTYPE) *, x)

#define SOFTMAX_ARGS(USE)                                           \
    SOFTMAX_INPUTS(USE)                                             \
    USE(ROWS, 1, global STORAGE(Y_DTYPE) *, y)

/* totals: [rows, CHUNKS] of struct totals. */
#define SOFTMAX_TOTALS_ARGS(USE)                                    \
    SOFTMAX_INPUTS(USE)                                             \
    USE(VECTOR, 1, global real *restrict, totals)

#define SOFTMAX_APPLY_ARGS(USE)                                     \
    SOFTMAX_ARGS(USE)                                               \
    USE(VECTOR, 1, const global real *restrict, totals)

/* messages: HEADER_MESSAGES, then [rows, CHUNKS]. */
#define SOFTMAX_EXCHANGE_ARGS(USE)                                  \
    SOFTMAX_ARGS(USE)                                               \
    USE(VECTOR, 1, volatile global uint4 *, messages)               \
    USE(LAUNCH, 1, ulong, launch)

#define SOFTMAX_BACKWARD_INPUTS(USE)                                \
    USE(NUMBER, 1, ulong, iterations)                               \
    USE(ROWS, 1, const global STORAGE(Y_DTYPE) *, y)                \
    USE(ROWS, 1, const global STORAGE(DY_DTYPE) *, dy)

#define SOFTMAX_BACKWARD_ARGS(USE)                                  \
    SOFTMAX_BACKWARD_INPUTS(USE)                                    \
    USE(ROWS, 1, global STORAGE(DX_DTYPE) *, dx)

/* sums: [rows, CHUNKS]. */
#define SOFTMAX_BACKWARD_SUMS_ARGS(USE)                             \
    SOFTMAX_BACKWARD_INPUTS(USE)                                    \
    USE(VECTOR, 1, global real *restrict, sums)

#define SOFTMAX_BACKWARD_APPLY_ARGS(USE)                            \
    SOFTMAX_BACKWARD_ARGS(USE)                                      \
    USE(VECTOR, 1, const global real *restrict, sums)

#define SOFTMAX_BACKWARD_EXCHANGE_ARGS(USE)                         \
    SOFTMAX_BACKWARD_ARGS(USE)                                      \
    USE(VECTOR, 1, volatile global uint4 *, messages)               \
    USE(LAUNCH, 1, ulong, launch)
/* clang-format on */

#endif
