/* The arguments of a rotation, for builds with ROPE: see cl/common/arguments.h.
 *
 *     rope_cos, rope_sin  [positions, ROPE_DIMS / 2]
 *     position            [rows / ROPE_REPEAT, rounded up]
 *
 * The host does not include arguments.h, and always has the list. */
#ifndef NORM_ROPE_ARGS_H
#define NORM_ROPE_ARGS_H

#if ROPE && !defined(ROPE_POSITION)
#define ROPE_POSITION 0
#endif

/* clang-format off */
#if ROPE || !defined(ARGUMENTS_H)
#define NORM_ROPE_ARGS(USE)                                                                  \
    USE(MATRIX, ROPE_COS_DTYPE, const global STORAGE(ROPE_COS_DTYPE) *restrict, rope_cos)    \
    USE(MATRIX, ROPE_SIN_DTYPE, const global STORAGE(ROPE_SIN_DTYPE) *restrict, rope_sin)    \
    USE(VECTOR, ROPE_POSITION, const global int *restrict, position)                         \
    USE(NUMBER, ROPE, ulong, rope_positions)
#else
#define NORM_ROPE_ARGS(USE)
#endif
/* clang-format on */

#endif
