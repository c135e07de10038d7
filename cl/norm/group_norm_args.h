/* The arguments of the kernels of group norm: see cl/common/arguments.h. x, residual, dy, y, residual_out, dx: [rows,
 * SAMPLE], a sample a row. weight, bias, dweight, dbias: [CHANNELS]. mean, rstd: [rows, GROUPS]. parts: two numbers for
 * each sample, channel and chunk, which cl/norm/group_norm.h indexes. slopes: [rows, GROUPS, 2]. */
#ifndef GROUP_NORM_ARGS_H
#define GROUP_NORM_ARGS_H

/* clang-format off */
#define GROUP_NORM_READ(USE)                                                        \
    USE(NUMBER, 1, ulong, iterations)                                               \
    USE(MATRIX, 1, const global STORAGE(X_DTYPE) *, x)                              \
    USE(MATRIX, RESIDUAL_DTYPE, const global STORAGE(RESIDUAL_DTYPE) *, residual)

#define GROUP_NORM_AFFINE(USE)                                                      \
    USE(VECTOR, WEIGHT_DTYPE, const global STORAGE(WEIGHT_DTYPE) *, weight)         \
    USE(VECTOR, BIAS_DTYPE, const global STORAGE(BIAS_DTYPE) *, bias)

#define GROUP_NORM_WRITE(USE)                                                       \
    USE(MATRIX, 1, global STORAGE(Y_DTYPE) *, y)                                    \
    USE(MATRIX, RESIDUAL_OUT_DTYPE, global STORAGE(RESIDUAL_OUT_DTYPE) *, residual_out)

#define GROUP_NORM_GIVEN(USE)                                                       \
    USE(VECTOR, 1, const global real *, mean)                                       \
    USE(VECTOR, 1, const global real *, rstd)

/* A work-group a group of a sample. */
#define GROUP_NORM_ARGS(USE)                                                        \
    GROUP_NORM_READ(USE)                                                            \
    GROUP_NORM_AFFINE(USE)                                                          \
    GROUP_NORM_WRITE(USE)                                                           \
    USE(NUMBER, 1, real, eps)                                                       \
    USE(VECTOR, SAVE_MEAN, global real *, mean)                                     \
    USE(VECTOR, SAVE_RSTD, global real *, rstd)

/* The moments of chunks, the statistics from them, and the results from those. */
#define GROUP_NORM_MOMENTS_ARGS(USE)                                                \
    GROUP_NORM_READ(USE)                                                            \
    USE(VECTOR, 1, global real *, parts)

#define GROUP_NORM_MERGE_ARGS(USE)                                                  \
    USE(NUMBER, 1, ulong, iterations)                                               \
    USE(NUMBER, 1, real, eps)                                                       \
    USE(VECTOR, 1, const global real *, parts)                                      \
    USE(VECTOR, 1, global real *, mean)                                             \
    USE(VECTOR, 1, global real *, rstd)

#define GROUP_NORM_APPLY_ARGS(USE)                                                  \
    GROUP_NORM_READ(USE)                                                            \
    GROUP_NORM_AFFINE(USE)                                                          \
    GROUP_NORM_GIVEN(USE)                                                           \
    GROUP_NORM_WRITE(USE)

/* The backward's: a work-group a group of a sample, or sums of chunks, slopes from them, and dx from those. */
#define GROUP_NORM_BACKWARD_READ(USE)                                               \
    USE(NUMBER, 1, ulong, iterations)                                               \
    USE(MATRIX, 1, const global STORAGE(X_DTYPE) *, x)                              \
    USE(MATRIX, 1, const global STORAGE(DY_DTYPE) *, dy)                            \
    GROUP_NORM_AFFINE(USE)                                                          \
    GROUP_NORM_GIVEN(USE)

#define GROUP_NORM_BACKWARD_ARGS(USE)                                               \
    GROUP_NORM_BACKWARD_READ(USE)                                                   \
    USE(VECTOR, HAS_SUMS, global real *, parts)                                     \
    USE(MATRIX, 1, global STORAGE(DX_DTYPE) *, dx)

#define GROUP_NORM_SUMS_ARGS(USE)                                                   \
    GROUP_NORM_BACKWARD_READ(USE)                                                   \
    USE(VECTOR, 1, global real *, parts)

#define GROUP_NORM_SLOPES_ARGS(USE)                                                 \
    USE(NUMBER, 1, ulong, iterations)                                               \
    USE(VECTOR, WEIGHT_DTYPE, const global STORAGE(WEIGHT_DTYPE) *, weight)         \
    USE(VECTOR, 1, const global real *, rstd)                                       \
    USE(VECTOR, 1, const global real *, parts)                                      \
    USE(VECTOR, 1, global real *, slopes)

#define GROUP_NORM_DX_ARGS(USE)                                                     \
    GROUP_NORM_BACKWARD_READ(USE)                                                   \
    USE(VECTOR, 1, const global real *, slopes)                                     \
    USE(MATRIX, 1, global STORAGE(DX_DTYPE) *, dx)

/* The sums over samples, a work-group a channel. */
#define GROUP_NORM_DWEIGHT_ARGS(USE)                                                \
    USE(NUMBER, 1, ulong, iterations)                                               \
    USE(NUMBER, 1, ulong, rows)                                                     \
    USE(VECTOR, 1, const global real *, parts)                                      \
    USE(VECTOR, DWEIGHT_DTYPE, global STORAGE(DWEIGHT_DTYPE) *, dweight)            \
    USE(VECTOR, DBIAS_DTYPE, global STORAGE(DBIAS_DTYPE) *, dbias)
/* clang-format on */

#endif
