/* How the lanes share a segment of GROUP_SIZE elements: vector v holds elements v·VEC … v·VEC + VEC − 1, lane l has the
 * vectors l, l + LANES, l + 2·LANES, …; where VEC does not divide GROUP_SIZE, a last vector is partly filled. */
#ifndef SEGMENT_H
#define SEGMENT_H

#include "common/dtype.h"

#define WHOLE_VECTORS (GROUP_SIZE / VEC)
#define TAIL (GROUP_SIZE % VEC) /* elements of the partly filled vector */
#define VECTORS ((GROUP_SIZE + VEC - 1) / VEC)
#define HELD ((VECTORS + LANES - 1) / LANES) /* maximum vectors of a lane */
#define EVEN (VECTORS % LANES == 0)          /* each lane has HELD vectors */

#include "common/tail.h"

#if GROUP_SIZE < 0x7fffffff
typedef uint index_t; /* of an element within a segment */
#else
typedef ulong index_t;
#endif

/* The number of vectors, 16 bytes of x, whose weights are loaded before any of their outputs is stored. A compiler
 * cannot move a load of a weight before an earlier store, as the two may overlap. */
#define WEIGHTS_AT_ONCE (sizeof(PACKED(X_DTYPE)) < 16 ? 16 / sizeof(PACKED(X_DTYPE)) : 1)

/* Loads vector v of a segment that begins at base. Elements past the segment's end are zeros. */
#define DEFINE_LOAD_VECTOR(dtype)                                                                              \
    static inline PACKED(dtype) JOIN(load_vector_, dtype)(const global STORAGE(dtype) * base, const index_t v, \
                                                          const bool aligned, const enum load_hint hint) {     \
        if (TAIL == 0 || v < WHOLE_VECTORS)                                                                    \
            return LOAD(dtype)(base + v * VEC, aligned, hint);                                                 \
        return LOAD_TAIL(dtype)(base + WHOLE_VECTORS * VEC);                                                   \
    }

#define DEFINE_STORE_VECTOR(dtype)                                                                                  \
    static inline void JOIN(store_vector_, dtype)(global STORAGE(dtype) * base, const index_t v, const realv value, \
                                                  const bool aligned) {                                             \
        if (TAIL == 0 || v < WHOLE_VECTORS)                                                                         \
            STORE(dtype)(base + v * VEC, value, aligned);                                                           \
        else                                                                                                        \
            STORE_TAIL(dtype)(base + WHOLE_VECTORS * VEC, NARROW(dtype)(value));                                    \
    }

#if IS_DOUBLE(X_DTYPE)
DEFINE_LOAD_VECTOR(f64)
DEFINE_STORE_VECTOR(f64)
#else
DEFINE_LOAD_VECTOR(f32)
DEFINE_LOAD_VECTOR(f16)
DEFINE_LOAD_VECTOR(bf16)
DEFINE_STORE_VECTOR(f32)
DEFINE_STORE_VECTOR(f16)
DEFINE_STORE_VECTOR(bf16)
#endif
#if MIXED
DEFINE_LOAD_VECTOR(OTHER)
DEFINE_STORE_VECTOR(OTHER)
#endif

#define LOAD_VECTOR(dtype) JOIN(load_vector_, dtype)
#define STORE_VECTOR(dtype) JOIN(store_vector_, dtype)
/* value, with zeros where vector v has no elements. */
static inline realv only_elements(const realv value, const index_t v) {
    if (v < WHOLE_VECTORS)
        return value;
    return keep_first(value, TAIL != 0 && v == WHOLE_VECTORS ? TAIL : 0);
}

/* The number of a lane's elements of a segment. */
static inline index_t own_elements(const uint lane) {
    const index_t whole = WHOLE_VECTORS / LANES + (lane < WHOLE_VECTORS % LANES);
    return whole * VEC + (lane == WHOLE_VECTORS % LANES ? TAIL : 0);
}

#endif
