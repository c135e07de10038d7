/* What a work-item remembers of a segment from its first read to the next: the elements that dropout keeps, and vectors of
 * s in local memory. */
#ifndef NORM_REMEMBERED_H
#define NORM_REMEMBERED_H

#include "norm/norm_statistics.h"

/* Whether s is written when it is first computed, and later read instead of computed again: where residual_out stores it
 * without conversion, in caches. Not where lanes read another lane's first vector, which residual_out may overwrite. */
#define READS_S (IS_REAL(RESIDUAL_OUT_DTYPE) && STORES != STORES_STREAMING && !FROM_ORIGIN)

/* Whether the elements that dropout keeps are drawn at the first read and remembered: where there is room, and the same
 * work-item reads the vectors again. */
#define REMEMBERS (DROPOUT && !READS_S && CHUNKS == 1)
#define REMEMBERS_BITS (REMEMBERS && LANES > 1 && HELD * VEC <= 64)
#define REMEMBERS_BYTES (REMEMBERS && LANES == 1 && ON_CPU && HELD * VEC <= 16384)

/* Whether 32 KiB, the least local memory of any device, has room for the scratch and a byte for each vector. */
#define KEPT_BITS_FIT (SEGMENTS * VECTORS + 2 * 8 * SCRATCH <= 32768)
#define REMEMBERS_LOCAL (REMEMBERS && LOCAL_VECTORS == 0 && LANES > 1 && !REMEMBERS_BITS && VEC <= 8 && KEPT_BITS_FIT)

/* A work-group's local memory: the kept bits of each vector where they do not fit in registers, and vectors of s. */
struct group_memory {
    uchar kept[REMEMBERS_LOCAL ? SEGMENTS * VECTORS : 1];
#if LOCAL_VECTORS
    held_t s[LOCAL_VECTORS * LANES]; /* with one segment in a work-group */
#endif
};

static inline bool is_in_local(const index_t v) {
    return v / LANES < LOCAL_VECTORS;
}

static inline index_t local_place(const index_t v) {
    return get_local_id(0) / LANES * VECTORS + v;
}

struct memory {
#if REMEMBERS_BYTES
    charv kept[HELD];
#else
    ulong kept; /* VEC bits for each of the lane's vectors */
#endif
    local struct group_memory *in_local;
};

INLINED void remember(struct memory *memory, const index_t v, const intv kept) {
#if REMEMBERS_BYTES
    memory->kept[v] = TO_CHARV(kept);
#elif REMEMBERS_BITS
    memory->kept |= (ulong)bits_of_lanes(kept) << v / LANES * VEC;
#elif REMEMBERS_LOCAL
    memory->in_local->kept[local_place(v)] = (uchar)bits_of_lanes(kept);
#else
    (void)memory, (void)v, (void)kept;
#endif
}

INLINED intv remembered(const struct call *call, const struct segment *segment, const index_t v,
                        const struct memory *memory) {
#if REMEMBERS_BYTES
    return TO_INTV(memory->kept[v]);
#elif REMEMBERS_BITS
    return lanes_of_bits((uint)(memory->kept >> v / LANES * VEC));
#elif REMEMBERS_LOCAL
    return lanes_of_bits(memory->in_local->kept[local_place(v)]);
#else
    return kept_in(call, segment, v);
#endif
}

#endif
