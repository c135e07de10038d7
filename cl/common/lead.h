/* Segments that begin anywhere within an aligned vector (LEADS), since VEC does not divide the stride of the rows. Vector 0
 * begins `lead` elements before the segment, less than VEC, so that its accesses are aligned: vector v holds elements
 * v·VEC − lead …, and the first and the last vector may be partly filled. All tensors with the segment's elements have the
 * same lead. Tensors with the segment's columns, like weights, are not aligned with it: their vectors are shifted into
 * place, or read element by element. */
#ifndef LEAD_H
#define LEAD_H

#include "common/dtype.h"

/* What a kernel knows of a vector, mostly when it is compiled, added to its lead, so that no work-item tests it: NVIDIA's
 * compiler makes a branch of each such test, and instructions of one vector then no longer overlap with those of the next.
 * Functions of one vector take such a lead, those of a segment or a slot a plain one. */
#define NOT_FIRST 0x100u /* it is not vector 0 */
#define NOT_LAST 0x200u  /* the segment goes on to the vector's end, at least */
#define LEAD_ELEMENTS(lead) ((lead) % NOT_FIRST)

/* Whether a segment has a vector v. Compilers know the first comparison's result for most vectors of an unrolled loop. */
static inline bool is_vector(const index_t v, const uint lead) {
    return v < vectors_of(0) || v < vectors_of(lead);
}

/* Where a CPU's work-item has a whole segment, a vector that would be partly filled consists of the segment's first or last
 * VEC elements instead, of which some belong to its neighbour: a CPU loads these at once from any address. MOVES_EDGES: a
 * kernel does not depend on the places of elements within a vector. */
#ifndef MOVES_EDGES
#define MOVES_EDGES 0
#endif
#define EDGES_OVERLAP (MOVES_EDGES && ON_CPU && LANES == 1 && GROUP_SIZE >= VEC)

static inline struct part own_part(const index_t v, const uint lead) {
    const index_t end = GROUP_SIZE + LEAD_ELEMENTS(lead) - v * VEC;
    const bool whole_end = lead & NOT_LAST || v < WHOLE_VECTORS || end > VEC;
    const struct part part = {lead & NOT_FIRST || v > 0 ? 0 : LEAD_ELEMENTS(lead), whole_end ? VEC : (uint)end};
#if EDGES_OVERLAP
    const struct part moved = {VEC - part.to, VEC - part.from};
    return moved;
#else
    return part;
#endif
}

/* Whether all elements of vector v belong to the segment. */
static inline bool is_whole(const index_t v, const uint lead) {
    const bool whole_start = lead & NOT_FIRST || v > 0 || LEAD_ELEMENTS(lead) == 0;
    return whole_start && (lead & NOT_LAST || v < WHOLE_VECTORS || (v + 1) * VEC <= GROUP_SIZE + LEAD_ELEMENTS(lead));
}

/* The place of vector v's first element, counted from the segment's first one. */
static inline long place_of_vector(const index_t v, const uint lead) {
    if (EDGES_OVERLAP && !is_whole(v, lead))
        return v == 0 ? 0 : GROUP_SIZE - VEC;
    return (long)(v * VEC) - LEAD_ELEMENTS(lead);
}

static inline realv only_part_or(const realv value, const struct part part, const real other) {
    return fill_before(fill_from(value, part.to, other), part.from, other);
}

/* A CPU's compiler keeps sums in registers only if the accesses to whole vectors call no function. */
#if EDGES_OVERLAP
#define OUT_OF_LINE static __attribute__((noinline, unused))
#define ACCESS INLINED
#else
#define OUT_OF_LINE static inline
#define ACCESS static inline
#endif

/* Loads vector v of a segment that begins at base. Elements outside the segment have any value. */
#define DEFINE_LOAD_VECTOR(dtype)                                                                                        \
    ACCESS PACKED(dtype) JOIN(load_vector_, dtype)(const global STORAGE(dtype) * base, const index_t v, const uint lead, \
                                                   const bool aligned, const enum load_hint hint) {                      \
        const global STORAGE(dtype) *const p = base + place_of_vector(v, lead);                                          \
        if (EDGES_OVERLAP)                                                                                               \
            return LOAD(dtype)(p, false, hint);                                                                          \
        if ((LOADS_BEYOND && aligned) || is_whole(v, lead))                                                              \
            return LOAD(dtype)(p, aligned, hint);                                                                        \
        const struct part part = own_part(v, lead);                                                                      \
        ELEMENTS(dtype) loaded;                                                                                          \
        _Pragma("unroll") for (uint i = 0; i < VEC; i++) loaded.element[i] =                                             \
            i >= part.from && i < part.to ? p[i] : (STORAGE(dtype))0;                                                    \
        return loaded.packed;                                                                                            \
    }

/* Stores a part of a vector, powers of two of its elements at a time. */
#define DEFINE_STORE_SOME(dtype)                                                                     \
    OUT_OF_LINE void JOIN(store_some_, dtype)(global STORAGE(dtype) * p, const PACKED(dtype) packed, \
                                              const struct part part) {                              \
        const ELEMENTS(dtype) from = {packed};                                                       \
        const uint count = part.to - part.from;                                                      \
        uint at = part.from;                                                                         \
        _Pragma("unroll") for (uint some = VEC / 2; some > 0; some /= 2) if (count & some) {         \
            _Pragma("unroll") for (uint i = 0; i < some; i++) p[at + i] = from.element[at + i];      \
            at += some;                                                                              \
        }                                                                                            \
    }

#define DEFINE_STORE_VECTOR(dtype)                                                                                      \
    DEFINE_STORE_SOME(dtype)                                                                                            \
    ACCESS void JOIN(store_vector_, dtype)(global STORAGE(dtype) * base, const index_t v, const uint lead,              \
                                           const realv value, const bool aligned) {                                     \
        global STORAGE(dtype) *const p = base + place_of_vector(v, lead);                                               \
        if (is_whole(v, lead)) {                                                                                        \
            STORE(dtype)(p, value, aligned);                                                                            \
            return;                                                                                                     \
        }                                                                                                               \
        if (EDGES_OVERLAP) {                                                                                            \
            JOIN(store_some_, dtype)(p, NARROW(dtype)(value), own_part(v, lead));                                       \
            return;                                                                                                     \
        }                                                                                                               \
        const struct part part = own_part(v, lead);                                                                     \
        const ELEMENTS(dtype) narrowed = {NARROW(dtype)(value)};                                                        \
        _Pragma("unroll") for (uint i = 0; i < VEC; i++) if (i >= part.from && i < part.to) p[i] = narrowed.element[i]; \
    }

/* Loads the columns of vector v from a tensor of columns that begins at base with the segment's first one. Its vectors are
 * not aligned. */
#define DEFINE_LOAD_EACH(dtype)                                                                          \
    static inline PACKED(dtype)                                                                          \
        JOIN(load_columns_, dtype)(const global STORAGE(dtype) * base, const index_t v, const uint lead, \
                                   const bool aligned, const enum load_hint hint) {                      \
        (void)aligned;                                                                                   \
        return JOIN(load_vector_, dtype)(base, v, lead, false, hint);                                    \
    }

#if ISA == ISA_PTX && VEC >= 2

/* high:low shifted right by so many bits, its lower word. */
static inline uint shifted(const uint low, const uint high, const uint bits) {
    uint word;
    __asm__("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(low), "r"(high), "r"(bits));
    return word;
}

#define WORD_PAIRS (VEC / 4 + (VEC < 4 ? 2 : 1)) /* of words, over which a vector of 2-byte elements lies */
#define PLACES_BEFORE 16                         /* elements by which places are moved, so that none is negative */

/* Loads 2-byte elements as the aligned pairs of words over which they lie, and shifts these. Single words would take more
 * accesses, blocks of four words more selections. */
static inline WORDS load_halves(const global ushort *base, const index_t v, const uint lead) {
    const ulong start = (ulong)base / 8 * 8;
    const global uint2 *const pairs = (const global uint2 *)start;
    const uint behind = (uint)((ulong)base - start) / 2;
    const index_t first = PLACES_BEFORE + behind + v * VEC - LEAD_ELEMENTS(lead), last = (behind + GROUP_SIZE - 1) / 4;
    const bool inner = v > 0 && v + 1 + 4 / VEC < WHOLE_VECTORS;
    uint word[2 * WORD_PAIRS];
    WORDS loaded;
#pragma unroll
    for (uint i = 0; i < WORD_PAIRS; i++) {
        const index_t place = first / 4 + i;
        const uint2 pair = pairs[inner ? place - PLACES_BEFORE / 4
                                       : min(max(place, (index_t)PLACES_BEFORE / 4) - PLACES_BEFORE / 4, last)];
        word[2 * i] = pair.x;
        word[2 * i + 1] = pair.y;
    }
#pragma unroll
    for (uint i = 0; i <= VEC / 2; i++)
        word[i] = first & 2 ? word[i + 1] : word[i];
#pragma unroll
    for (uint i = 0; i < VEC / 2; i++)
        ((uint *)&loaded)[i] = shifted(word[i], word[i + 1], first % 2 * 16);
    return loaded;
}

#define DEFINE_LOAD_HALVES(dtype)                                                                        \
    static inline PACKED(dtype)                                                                          \
        JOIN(load_columns_, dtype)(const global STORAGE(dtype) * base, const index_t v, const uint lead, \
                                   const bool aligned, const enum load_hint hint) {                      \
        (void)aligned, (void)hint;                                                                       \
        return load_halves(base, v, lead);                                                               \
    }

#else
#define DEFINE_LOAD_HALVES DEFINE_LOAD_EACH
#endif

#if ISA == ISA_PTX && VEC == 8

/* Loads floats as the three blocks of 16 bytes over which they lie, and shifts these: neighbouring lanes would access twice
 * as many lines of the cache as float by float. */
static inline float8 load_columns_f32(const global float *base, const index_t v, const uint lead, const bool aligned,
                                      const enum load_hint hint) {
    const ulong start = (ulong)base / 16 * 16;
    const global uint4 *const blocks = (const global uint4 *)start;
    /* float behind blocks - VEC / 4 */
    const index_t first = VEC + (uint)((ulong)base - start) / 4 + v * VEC - LEAD_ELEMENTS(lead);
    const index_t last = (GROUP_SIZE - 1 + (uint)((ulong)base - start) / 4) / 4;
    const bool inner = v > 0 && v + 1 < WHOLE_VECTORS;
    uint word[12];
    uint8 loaded;
    (void)aligned, (void)hint;
#pragma unroll
    for (uint i = 0; i < 3; i++) {
        const index_t place = first / 4 + i;
        const uint4 block =
            blocks[inner ? place - VEC / 4 : min((index_t)(max(place, (index_t)(VEC / 4)) - VEC / 4), last)];
        word[4 * i] = block.x;
        word[4 * i + 1] = block.y;
        word[4 * i + 2] = block.z;
        word[4 * i + 3] = block.w;
    }
#pragma unroll
    for (uint i = 0; i < 10; i++)
        word[i] = first & 2 ? word[i + 2] : word[i];
#pragma unroll
    for (uint i = 0; i < 8; i++)
        ((uint *)&loaded)[i] = first & 1 ? word[i + 1] : word[i];
    return as_float8(loaded);
}

#define DEFINE_LOAD_FLOATS(dtype)
#else
#define DEFINE_LOAD_FLOATS DEFINE_LOAD_EACH
#endif

/* The number of elements in so many of a lane's vectors, from `first` on. */
static inline index_t elements_from(const index_t first, const index_t count, const uint lead) {
    const index_t last = vectors_of(lead) - 1;
    const index_t beyond = (last + 1) * VEC - lead - GROUP_SIZE; /* elements that vector `last` has not */
    if (count == 0)
        return 0;
    return count * VEC - (first == 0 ? lead : 0) - (first + (count - 1) * LANES == last ? beyond : 0);
}

#endif
