/* The arguments of the kernels of group norm: see cl/common/arguments.h. x, residual, dy, y, residual_out, dx: [rows,
 * elements of a sample]. weight, bias, dweight, dbias: [CHANNELS]. mean, rstd: [rows, GROUPS]. parts: two numbers for
 * each part of each row of parts, see cl/norm/group_norm_part.h. slopes: [rows, GROUPS, 2].
 * x_scale, y_scale: of an 8-bit x or y, [1], or [rows] with SCALING_ROW. y_given: the scale of an 8-bit y where the
 * descriptor gives it. magnitudes: the largest |y| of pieces of the work; those of a sample are contiguous. The host, which
 * has no arguments.h, sees every list; the device sees those for which the build has a macro. */
#ifndef GROUP_NORM_ARGS_H
#define GROUP_NORM_ARGS_H

/* Last layout: the most vectors of a row that a single lane has. */
#define MOST_HELD_VECTORS 64

/* clang-format off */
#if defined(X_SCALE_DTYPE) || !defined(ARGUMENTS_H)
#define GROUP_NORM_X_SCALE(USE)                                                     \
    USE(VECTOR, X_SCALE_DTYPE, const global STORAGE(X_SCALE_DTYPE) *, x_scale)
#else
#define GROUP_NORM_X_SCALE(USE)
#endif

#if defined(SCALING) || !defined(ARGUMENTS_H)
#define GROUP_NORM_Y_SCALE(USE)                                                     \
    USE(NUMBER, SCALING, real, y_given)                                             \
    USE(VECTOR, SCALE_DTYPE, const global STORAGE(SCALE_DTYPE) *, y_scale)          \
    USE(VECTOR, MEASURES, global float *, magnitudes)
#else
#define GROUP_NORM_Y_SCALE(USE)
#endif

/* dresidual_out is added to dx; dresidual is a copy of dx. */
#if defined(DRESIDUAL_OUT_DTYPE) || defined(DRESIDUAL_DTYPE) || !defined(ARGUMENTS_H)
#define GROUP_NORM_DRESIDUAL(USE)                                                   \
    USE(MATRIX, DRESIDUAL_OUT_DTYPE, const global STORAGE(DRESIDUAL_OUT_DTYPE) *, dresidual_out) \
    USE(MATRIX, DRESIDUAL_DTYPE, global STORAGE(DRESIDUAL_DTYPE) *, dresidual)
#else
#define GROUP_NORM_DRESIDUAL(USE)
#endif

#define GROUP_NORM_READ(USE)                                                        \
    USE(NUMBER, 1, ulong, iterations)                                               \
    USE(MATRIX, 1, const global STORAGE(X_DTYPE) *, x)                              \
    USE(MATRIX, RESIDUAL_DTYPE, const global STORAGE(RESIDUAL_DTYPE) *, residual)   \
    GROUP_NORM_X_SCALE(USE)

#define GROUP_NORM_AFFINE(USE)                                                      \
    USE(VECTOR, WEIGHT_DTYPE, const global STORAGE(WEIGHT_DTYPE) *, weight)         \
    USE(VECTOR, BIAS_DTYPE, const global STORAGE(BIAS_DTYPE) *, bias)

#define GROUP_NORM_WRITE(USE)                                                       \
    USE(MATRIX, 1, global STORAGE(Y_DTYPE) *, y)                                    \
    USE(MATRIX, RESIDUAL_OUT_DTYPE, global STORAGE(RESIDUAL_OUT_DTYPE) *, residual_out) \
    GROUP_NORM_Y_SCALE(USE)

#define GROUP_NORM_GIVEN(USE)                                                       \
    USE(VECTOR, 1, const global real *, mean)                                       \
    USE(VECTOR, 1, const global real *, rstd)

/* work: groups of samples, or slices of groups. */
#define GROUP_NORM_ARGS(USE)                                                        \
    GROUP_NORM_READ(USE)                                                            \
    GROUP_NORM_AFFINE(USE)                                                          \
    GROUP_NORM_WRITE(USE)                                                           \
    USE(NUMBER, 1, real, eps)                                                       \
    USE(VECTOR, SAVE_MEAN, global real *, mean)                                     \
    USE(VECTOR, SAVE_RSTD, global real *, rstd)

/* The moments of chunks, the statistics from moments, and y from statistics. */
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

/* y from moments, which are few enough for every work-group to merge those of its groups. */
#define GROUP_NORM_APPLY_MOMENTS_ARGS(USE)                                          \
    GROUP_NORM_READ(USE)                                                            \
    GROUP_NORM_AFFINE(USE)                                                          \
    GROUP_NORM_WRITE(USE)                                                           \
    USE(NUMBER, 1, real, eps)                                                       \
    USE(VECTOR, 1, const global real *, parts)                                      \
    USE(VECTOR, SAVE_MEAN, global real *, mean)                                     \
    USE(VECTOR, SAVE_RSTD, global real *, rstd)

/* The same in one launch, which computes the moments too. ahead: pieces by which they run ahead; tickets: see
 * group_norm_tickets.h. */
#define GROUP_NORM_EXCHANGE_ARGS(USE)                                               \
    GROUP_NORM_READ(USE)                                                            \
    GROUP_NORM_AFFINE(USE)                                                          \
    GROUP_NORM_WRITE(USE)                                                           \
    USE(NUMBER, 1, real, eps)                                                       \
    USE(NUMBER, 1, ulong, ahead)                                                    \
    USE(VECTOR, 1, volatile global uint *, tickets)                                 \
    USE(VECTOR, 1, global real *, parts)                                            \
    USE(VECTOR, SAVE_MEAN, global real *, mean)                                     \
    USE(VECTOR, SAVE_RSTD, global real *, rstd)

/* Pieces of segments, or of slices, in one launch. words: of tickets, then of messages, see cl/common/exchange.h; those of
 * slices are cleared before. */
#define GROUP_NORM_PIECES_ARGS(USE)                                                 \
    GROUP_NORM_ARGS(USE)                                                            \
    USE(VECTOR, 1, volatile global uint4 *, words)                                  \
    USE(LAUNCH, 1, ulong, launch)

#define GROUP_NORM_LAST_PIECES_ARGS(USE)                                            \
    GROUP_NORM_ARGS(USE)                                                            \
    USE(VECTOR, 1, volatile global uint *, words)

/* The backward: groups of samples; or sums of chunks, slopes from sums, and dx from slopes. */
#define GROUP_NORM_BACKWARD_READ(USE)                                               \
    USE(NUMBER, 1, ulong, iterations)                                               \
    USE(MATRIX, 1, const global STORAGE(X_DTYPE) *, x)                              \
    USE(MATRIX, 1, const global STORAGE(DY_DTYPE) *, dy)                            \
    GROUP_NORM_AFFINE(USE)                                                          \
    GROUP_NORM_GIVEN(USE)                                                           \
    GROUP_NORM_X_SCALE(USE)

#define GROUP_NORM_BACKWARD_WRITE(USE)                                              \
    USE(MATRIX, 1, global STORAGE(DX_DTYPE) *, dx)                                  \
    GROUP_NORM_DRESIDUAL(USE)

#define GROUP_NORM_BACKWARD_ARGS(USE)                                               \
    GROUP_NORM_BACKWARD_READ(USE)                                                   \
    USE(VECTOR, HAS_SUMS, global real *, parts)                                     \
    GROUP_NORM_BACKWARD_WRITE(USE)

/* The slices of a work-group are of the samples of a bundle: see group_norm_part.h. rows: samples. */
#define GROUP_NORM_LAST_BACKWARD_ARGS(USE)                                          \
    USE(NUMBER, 1, ulong, rows)                                                     \
    GROUP_NORM_BACKWARD_ARGS(USE)

/* Pieces of segments or slices, in one launch. words: of tickets, then messages: see cl/common/exchange.h. */
#define GROUP_NORM_BACKWARD_PIECES_ARGS(USE)                                        \
    GROUP_NORM_BACKWARD_ARGS(USE)                                                   \
    USE(VECTOR, 1, volatile global uint *, words)

#define GROUP_NORM_SUMS_ARGS(USE)                                                   \
    GROUP_NORM_BACKWARD_READ(USE)                                                   \
    USE(VECTOR, 1, global real *, parts)

#define GROUP_NORM_SLOPES_ARGS(USE)                                                 \
    USE(NUMBER, 1, ulong, iterations)                                               \
    USE(VECTOR, WEIGHT_DTYPE, const global STORAGE(WEIGHT_DTYPE) *, weight)         \
    USE(VECTOR, 1, const global real *, rstd)                                       \
    USE(NUMBER, 1, ulong, rows)                                                     \
    USE(VECTOR, 1, const global real *, parts)                                      \
    USE(VECTOR, 1, global real *, slopes)                                           \
    USE(VECTOR, DWEIGHT_DTYPE, global STORAGE(DWEIGHT_DTYPE) *, dweight)            \
    USE(VECTOR, DBIAS_DTYPE, global STORAGE(DBIAS_DTYPE) *, dbias)

#define GROUP_NORM_DX_ARGS(USE)                                                     \
    GROUP_NORM_BACKWARD_READ(USE)                                                   \
    USE(VECTOR, 1, const global real *, slopes)                                     \
    GROUP_NORM_BACKWARD_WRITE(USE)

/* dx, with the slopes of a group from parts; and the sums of channels over samples, for all channels or none. */
#define GROUP_NORM_DX_OF_SUMS_ARGS(USE)                                             \
    GROUP_NORM_BACKWARD_READ(USE)                                                   \
    USE(NUMBER, 1, ulong, rows)                                                     \
    USE(NUMBER, 1, ulong, channels)                                                 \
    USE(VECTOR, 1, const global real *, parts)                                      \
    GROUP_NORM_BACKWARD_WRITE(USE)                                                  \
    USE(VECTOR, DWEIGHT_DTYPE, global STORAGE(DWEIGHT_DTYPE) *, dweight)            \
    USE(VECTOR, DBIAS_DTYPE, global STORAGE(DBIAS_DTYPE) *, dbias)

/* dx in one launch, which computes the sums too. */
#define GROUP_NORM_BACKWARD_EXCHANGE_ARGS(USE)                                      \
    GROUP_NORM_BACKWARD_READ(USE)                                                   \
    USE(NUMBER, 1, ulong, ahead)                                                    \
    USE(VECTOR, 1, volatile global uint *, tickets)                                 \
    USE(VECTOR, 1, global real *, parts)                                            \
    GROUP_NORM_BACKWARD_WRITE(USE)

/* The scales of y, each from terms magnitudes. */
#define GROUP_NORM_SCALES_ARGS(USE)                                                 \
    USE(NUMBER, 1, ulong, iterations)                                               \
    USE(NUMBER, 1, ulong, terms)                                                    \
    USE(VECTOR, 1, const global float *, magnitudes)                                \
    USE(VECTOR, 1, global STORAGE(SCALE_DTYPE) *, y_scale)

/* The sums over each batch of samples or bundles, as parts of channels that have one part each. rows: all of them; samples:
 * those of a batch. work: batches of channels. */
#define GROUP_NORM_BATCHES_ARGS(USE)                                                \
    USE(NUMBER, 1, ulong, iterations)                                               \
    USE(NUMBER, 1, ulong, rows)                                                     \
    USE(NUMBER, 1, ulong, samples)                                                  \
    USE(VECTOR, 1, const global real *, parts)                                      \
    USE(VECTOR, 1, global real *, sums)

/* The sums over samples, or bundles of them. work: channels. */
#define GROUP_NORM_DWEIGHT_ARGS(USE)                                                \
    USE(NUMBER, 1, ulong, iterations)                                               \
    USE(NUMBER, 1, ulong, rows)                                                     \
    USE(VECTOR, 1, const global real *, parts)                                      \
    USE(VECTOR, DWEIGHT_DTYPE, global STORAGE(DWEIGHT_DTYPE) *, dweight)            \
    USE(VECTOR, DBIAS_DTYPE, global STORAGE(DBIAS_DTYPE) *, dbias)
/* clang-format on */

/* Macros that a build may leave undefined. */
#ifdef ARGUMENTS_H
#ifndef SCALE_DTYPE
#define SCALE_DTYPE none
#endif
#ifndef MEASURES
#define MEASURES 0
#endif
#ifndef MERGES
#define MERGES 0
#endif
#ifndef BLOCK
#define BLOCK 0
#endif
#ifndef ROW_SPLIT
#define ROW_SPLIT ROW_SPLIT_TWO_PASSES
#endif
#ifndef ROW_POSITIONS
#define ROW_POSITIONS 1
#endif
#ifndef DRESIDUAL_OUT_DTYPE
#define DRESIDUAL_OUT_DTYPE none
#endif
#ifndef DRESIDUAL_DTYPE
#define DRESIDUAL_DTYPE none
#endif
#ifndef ACCUMULATE
#define ACCUMULATE 0
#endif
#endif

#endif
