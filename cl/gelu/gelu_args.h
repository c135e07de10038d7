/* The arguments of gelu.cl's kernels: see cl/common/arguments.h. */
#ifndef GELU_ARGS_H
#define GELU_ARGS_H

/* clang-format off */
#define GELU_ARGS(USE)                                              \
    USE(ROWS, 1, const global STORAGE(X_DTYPE) *, x)                \
    USE(ROWS, DY_DTYPE, const global STORAGE(DY_DTYPE) *, dy)       \
    USE(ROWS, 1, global STORAGE(OUT_DTYPE) *, out)                  \
    USE(NUMBER, 1, ulong, iterations)                               \
    USE(NUMBER, 1, ulong, blocks)                                   \
    USE(NUMBER, 1, ulong, cols)
/* clang-format on */

#endif
