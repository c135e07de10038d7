/* The arguments of the kernels of norm_slices*.cl: see cl/common/arguments.h. Kernels that go through x have the arguments
 * of the forward (norm_forward_args.h).
 *
 *     moments       [groups, rows, 3]: mean, Σ(x − mean)² and number of the elements
 *     chunk_moments [rows, groups, CHUNKS, 3]: the same of chunks
 *     sums          [groups, rows, 2]: Σ(x̂ · wdy), Σwdy
 *     chunk_sums    [2, CHUNKS, groups, rows]: the same in the layout of norm_backward_sums.cl and norm_backward.cl
 *     mean, rstd    [groups, rows] */
#ifndef NORM_SLICES_ARGS_H
#define NORM_SLICES_ARGS_H

/* clang-format off */
/* work: segments, of which a work-group takes one at a time. */
#define NORM_MERGE_MOMENTS_ARGS(USE)                              \
    USE(NUMBER, 1, ulong, rows)                                   \
    USE(NUMBER, 1, ulong, iterations)                             \
    USE(VECTOR, 1, const global real *, chunk_moments)            \
    USE(VECTOR, 1, global real *, moments)

/* work: segments, with a work-item each, here and in the next list. */
#define NORM_OPEN_MOMENTS_ARGS(USE)                               \
    USE(NUMBER, 1, real, eps)                                     \
    USE(VECTOR, 1, const global real *, moments)                  \
    USE(VECTOR, HAS_SUMS, const global real *, sums)              \
    USE(VECTOR, READS_MEAN, global real *, mean)                  \
    USE(VECTOR, 1, global real *, rstd)                           \
    USE(VECTOR, HAS_SUMS, global real *, chunk_sums)

#define NORM_MERGE_SUMS_ARGS(USE)                                 \
    USE(VECTOR, 1, const global real *, chunk_sums)               \
    USE(VECTOR, 1, global real *, sums)
/* clang-format on */

#endif
