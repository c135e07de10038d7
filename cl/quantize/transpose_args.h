/* The arguments of transpose.cl's kernels: see cl/common/arguments.h. */
#ifndef TRANSPOSE_ARGS_H
#define TRANSPOSE_ARGS_H

/* clang-format off */
#define TRANSPOSE_ARGS(USE)                      \
    USE(MATRIX, 1, const global uchar *, codes)  \
    USE(MATRIX, 1, global uchar *, q_t)          \
    USE(NUMBER, 1, ulong, rows)                  \
    USE(NUMBER, 1, ulong, cols)
/* clang-format on */

#endif
