/* Rotary position embedding: Su et al. 2021, arXiv:2104.09864. The first ROPE_DIMS columns of a segment are rotated in
 * pairs, by angles of the row's position. VEC divides ROPE_DIMS, and with ROPE_NEOX half of that, so that a vector is
 * rotated as a whole or not at all. The including file has a struct call with NORM_ROPE_ARGS and aligned.
 *
 * Macros: ROPE, ROPE_DIMS, ROPE_REPEAT, ROPE_COS_DTYPE, ROPE_SIN_DTYPE; perhaps ROPE_POSITION. */
#ifndef NORM_ROPE_H
#define NORM_ROPE_H

#include "common/segment.h"

/* Whether the columns of a pair are in two vectors, at the same position. Otherwise they are neighbours in one. */
#define PAIRS_OF_VECTORS (ROPE == ROPE_NEOX || VEC == 1)

#define ROTATED (ROPE_DIMS / VEC)   /* rotated vectors, the first ones of a segment */
#define PAIRS (ROPE_DIMS / 2 / VEC) /* of vectors */

/* The vectors of a pair. */
static inline index_t first_of_pair(const index_t pair) {
    return ROPE == ROPE_NEOX ? pair : 2 * pair;
}

static inline index_t second_of_pair(const index_t pair) {
    return ROPE == ROPE_NEOX ? pair + PAIRS : 2 * pair + 1;
}

/* Where LANES divides PAIRS, a lane has both vectors of each of its OWN_PAIRS, at these indices among its vectors. */
#define OWN_PAIRS (PAIRS / LANES)

static inline index_t first_of_own_pair(const index_t i) {
    return ROPE == ROPE_NEOX ? i : 2 * i;
}

static inline index_t second_of_own_pair(const index_t i) {
    return ROPE == ROPE_NEOX ? i + OWN_PAIRS : 2 * i + 1;
}

/* The angles of a row. */
struct angles {
    const global STORAGE(ROPE_COS_DTYPE) * cos; /* [ROPE_DIMS / 2] */
    const global STORAGE(ROPE_SIN_DTYPE) * sin;
    real none; /* 0, or NaN if the table does not have the row's position; then row 0 of the table is read */
};

/* row: of the tensor, not past its end. */
static inline void find_angles(const struct call *call, const ulong row, struct angles *angles) {
#if ROPE_POSITION
    const ulong wished = (ulong)(long)call->position[row / ROPE_REPEAT]; /* a negative position becomes a large number */
#else
    const ulong wished = row / ROPE_REPEAT;
#endif
    const bool there = wished < call->rope_positions;
    const ulong position = there ? wished : 0;
    angles->cos = call->rope_cos + position * call->rope_cos_stride;
    angles->sin = call->rope_sin + position * call->rope_sin_stride;
    angles->none = there ? (real)0 : (real)NAN;
}

/* Cosines or sines: of the i-th pair of vectors, or of the pairs in vector i, twice for each pair. */
#if PAIRS_OF_VECTORS
#define DEFINE_LOAD_TURNS(dtype)                                                                                           \
    static inline realv JOIN(load_turns_, dtype)(const global STORAGE(dtype) * row, const index_t i, const bool aligned) { \
        return WIDEN(dtype)(LOAD(dtype)(row + i * VEC, aligned, LOAD_PLAIN));                                              \
    }
#else
#define DEFINE_LOAD_TURNS(dtype)                                                                                           \
    static inline realv JOIN(load_turns_, dtype)(const global STORAGE(dtype) * row, const index_t i, const bool aligned) { \
        ELEMENTS(dtype) vector;                                                                                            \
        for (uint j = 0; j < VEC; j++)                                                                                     \
            vector.element[j] = row[i * (VEC / 2) + j / 2];                                                                \
        (void)aligned;                                                                                                     \
        return WIDEN(dtype)(vector.packed);                                                                                \
    }
#endif
#define LOAD_TURNS(dtype) JOIN(load_turns_, dtype)

#if IS_DOUBLE(X_DTYPE)
DEFINE_LOAD_TURNS(f64)
#else
DEFINE_LOAD_TURNS(f32)
DEFINE_LOAD_TURNS(f16)
DEFINE_LOAD_TURNS(bf16)
#endif

static inline realv cosines(const struct call *call, const struct angles *angles, const index_t i) {
    return LOAD_TURNS(ROPE_COS_DTYPE)(angles->cos, i, call->aligned) + angles->none;
}

static inline realv sines(const struct call *call, const struct angles *angles, const index_t i) {
    return LOAD_TURNS(ROPE_SIN_DTYPE)(angles->sin, i, call->aligned) + angles->none;
}

/* The direction of a rotation. */
enum turn { TURN_FORWARD, TURN_BACK };

#if PAIRS_OF_VECTORS

/* One vector of a pair, rotated. other: the other vector. first: v is the first one. */
static inline realv rotated(const struct call *call, const struct angles *angles, const index_t pair, const realv v,
                            const realv other, const bool first, const enum turn turn) {
    const realv product = other * sines(call, angles, pair);
    return v * cosines(call, angles, pair) + (first == (turn == TURN_BACK) ? product : -product);
}

#else

/* Vector i, rotated. */
static inline realv rotated(const struct call *call, const struct angles *angles, const index_t i, const realv v,
                            const enum turn turn) {
    const realv sine = sines(call, angles, i);
    realv product;
    product.even = v.odd * (turn == TURN_BACK ? sine.even : -sine.even);
    product.odd = v.even * (turn == TURN_BACK ? -sine.odd : sine.odd);
    return v * cosines(call, angles, i) + product;
}

#endif

#endif
