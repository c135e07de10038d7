/* x as the norms read it. An 8-bit x is code · scale, with scales by X_SCALING. VEC divides X_GROUP, so that a vector has
 * one scale. */
#ifndef NORM_X_H
#define NORM_X_H

#include "common/segment.h"

#if IS_FP8(X_DTYPE) || IS_FP8(Y_DTYPE)
#include "common/fp8.h"
DEFINE_LOAD_TAIL(f8e4m3, ucharv, AS_BYTES)
DEFINE_LOAD_TAIL(f8e5m2, ucharv, AS_BYTES)
#endif
#if IS_FP8(X_DTYPE)
DEFINE_LOAD_VECTOR(f8e4m3)
DEFINE_LOAD_VECTOR(f8e5m2)
#endif

/* The index of the scale at a row and column. group: columns that share a scale with SCALING_GROUP. */
static inline ulong place_of_scale(const uint scaling, const uint group, const ulong row, const ulong column) {
    const ulong columns = GROUPS * (ulong)GROUP_SIZE;
    if (scaling == SCALING_GROUP)
        return row * ((columns + group - 1) / group) + column / group;
    return scaling == SCALING_ROW ? row : 0;
}

/* A vector of x, as loaded. */
struct x_vector {
    PACKED(X_DTYPE) packed;
#if IS_FP8(X_DTYPE)
    real scale;
#endif
};

/* Vector v of the segment that begins at base, in this row and column. */
static inline void load_x(const global STORAGE(X_DTYPE) * base, const global STORAGE(X_SCALE_DTYPE) * scales,
                          const ulong row, const ulong column, const index_t v, const uint lead, const bool aligned,
                          const enum load_hint hint, struct x_vector *x) {
    x->packed = LOAD_VECTOR(X_DTYPE)(base, v, lead, aligned, hint);
#if IS_FP8(X_DTYPE)
    x->scale = LOAD1(X_SCALE_DTYPE)(scales + place_of_scale(X_SCALING, X_GROUP, row, column + v * VEC));
#else
    (void)scales, (void)row, (void)column;
#endif
}

/* A vector of x past the end. */
static inline void no_x(struct x_vector *x) {
    x->packed = (PACKED(X_DTYPE))0;
#if IS_FP8(X_DTYPE)
    x->scale = 0;
#endif
}

static inline realv widen_x(const struct x_vector *x) {
#if IS_FP8(X_DTYPE)
    return WIDEN(X_DTYPE)(x->packed) * x->scale;
#else
    return WIDEN(X_DTYPE)(x->packed);
#endif
}

#endif
