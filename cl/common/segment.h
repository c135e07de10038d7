/* How the lanes share a segment of GROUP_SIZE elements: vector v holds elements v·VEC … v·VEC + VEC − 1, lane l has the
 * vectors l, l + LANES, l + 2·LANES, …; where VEC does not divide GROUP_SIZE, a last vector is partly filled. With LEADS
 * vector 0 begins `lead` elements before the segment (lead.h). */
#ifndef SEGMENT_H
#define SEGMENT_H

#include "common/dtype.h"
#include "common/part.h"

#ifndef LEADS
#define LEADS 0
#endif

/* Neighbouring columns that use one weight. With LEADS it is 1. */
#ifndef COLUMNS_OF_WEIGHT
#define COLUMNS_OF_WEIGHT 1
#endif

#define WHOLE_VECTORS (GROUP_SIZE / VEC)
#define TAIL (GROUP_SIZE % VEC)                         /* elements of the partly filled vector, without LEADS */
#define REACH (0u + GROUP_SIZE + (LEADS ? VEC - 1 : 0)) /* most elements from vector 0's start to the segment's end */
#define VECTORS ((REACH + VEC - 1) / VEC)               /* of a segment, at most; unsigned, for nearly 2^31 elements */
#define HELD ((VECTORS + LANES - 1) / LANES)            /* of a lane, at most */
#define EVEN (VECTORS % LANES == 0 && !LEADS)           /* each lane has HELD vectors */

#include "common/tail.h"

#if GROUP_SIZE < 0x7fffffff
typedef uint index_t; /* of an element within a segment */
#else
typedef ulong index_t;
#endif

/* The number of vectors, 16 bytes of x, whose weights are loaded before any of their outputs is stored. A compiler
 * cannot move a load of a weight before an earlier store, as the two may overlap. */
#define WEIGHTS_AT_ONCE (sizeof(PACKED(X_DTYPE)) < 16 ? 16 / sizeof(PACKED(X_DTYPE)) : 1)

/* The lead of a segment that begins at an element of a tensor whose own start is aligned. */
static inline uint lead_of(const ulong element) {
    return LEADS ? (uint)element % VEC : 0;
}

/* The number of vectors of a segment. */
static inline index_t vectors_of(const uint lead) {
    return LEADS ? (GROUP_SIZE + lead + VEC - 1) / VEC : VECTORS;
}

#if LEADS

#include "common/lead.h"

#else

/* Whether a segment has a vector v. */
static inline bool is_vector(const index_t v, const uint lead) {
    (void)lead;
    return v < VECTORS;
}

/* from is 0. */
static inline struct part own_part(const index_t v, const uint lead) {
    const struct part part = {0, v < WHOLE_VECTORS ? VEC : v == WHOLE_VECTORS ? TAIL : 0};
    (void)lead;
    return part;
}

/* The place of vector v's first element, counted from the segment's first one. */
static inline long place_of_vector(const index_t v, const uint lead) {
    (void)lead;
    return (long)(v * VEC);
}

static inline bool is_whole(const index_t v, const uint lead) {
    (void)lead;
    return TAIL == 0 || v < WHOLE_VECTORS;
}

static inline realv only_part_or(const realv value, const struct part part, const real other) {
    return fill_from(value, part.to, other);
}

/* Loads vector v of a segment that begins at base. Elements past the segment's end are zeros. */
#define DEFINE_LOAD_VECTOR(dtype)                                                                       \
    static inline PACKED(dtype)                                                                         \
        JOIN(load_vector_, dtype)(const global STORAGE(dtype) * base, const index_t v, const uint lead, \
                                  const bool aligned, const enum load_hint hint) {                      \
        (void)lead;                                                                                     \
        if (TAIL == 0 || v < WHOLE_VECTORS)                                                             \
            return LOAD(dtype)(base + v * VEC, aligned, hint);                                          \
        return LOAD_TAIL(dtype)(base + WHOLE_VECTORS * VEC);                                            \
    }

#define DEFINE_STORE_VECTOR(dtype)                                                                                \
    static inline void JOIN(store_vector_, dtype)(global STORAGE(dtype) * base, const index_t v, const uint lead, \
                                                  const realv value, const bool aligned) {                        \
        (void)lead;                                                                                               \
        if (TAIL == 0 || v < WHOLE_VECTORS)                                                                       \
            STORE(dtype)(base + v * VEC, value, aligned);                                                         \
        else                                                                                                      \
            STORE_TAIL(dtype)(base + WHOLE_VECTORS * VEC, NARROW(dtype)(value));                                  \
    }

#define load_columns_f64 load_vector_f64
#define load_columns_f32 load_vector_f32
#define load_columns_f16 load_vector_f16
#define load_columns_bf16 load_vector_bf16

/* The number of elements in so many of a lane's vectors, from `first` on. */
static inline index_t elements_from(const index_t first, const index_t count, const uint lead) {
    const bool has_tail = TAIL != 0 && count > 0 && first + (count - 1) * LANES == WHOLE_VECTORS;
    (void)lead;
    return count * VEC - (has_tail ? VEC - TAIL : 0);
}

#endif

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
#if LEADS
DEFINE_LOAD_FLOATS(f32)
DEFINE_LOAD_HALVES(f16)
DEFINE_LOAD_HALVES(bf16)
#endif
#endif
#if MIXED
DEFINE_LOAD_VECTOR(OTHER)
DEFINE_STORE_VECTOR(OTHER)
#endif

#define LOAD_VECTOR(dtype) JOIN(load_vector_, dtype)
#define STORE_VECTOR(dtype) JOIN(store_vector_, dtype)

/* Loads the columns of vector v from a tensor of columns, like weight, that begins at the segment's first column. */
#if COLUMNS_OF_WEIGHT == 1
#define LOAD_COLUMNS(dtype) JOIN(load_columns_, dtype)
#else
#include "common/shared_columns.h"
#define LOAD_COLUMNS(dtype) JOIN(load_shared_, dtype)
#endif

/* value, with zeros, or other, where vector v has no elements. */
static inline realv only_elements_or(const realv value, const index_t v, const uint lead, const real other) {
    return is_whole(v, lead) ? value : only_part_or(value, own_part(v, lead), other);
}

static inline realv only_elements(const realv value, const index_t v, const uint lead) {
    return only_elements_or(value, v, lead, (real)0);
}

/* The number of a lane's vectors among so many. */
static inline index_t share_of_lane(const uint lane, const index_t vectors) {
    return vectors / LANES + (lane < vectors % LANES);
}

/* The number of a lane's vectors of a segment, and of their elements. */
static inline index_t own_vectors_of(const uint lane, const uint lead) {
    return share_of_lane(lane, vectors_of(lead));
}

static inline index_t own_elements(const uint lane, const uint lead) {
    return elements_from(lane, own_vectors_of(lane, lead), lead);
}

#endif
