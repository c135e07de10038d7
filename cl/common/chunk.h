/* A segment is divided into CHUNKS of neighbouring vectors. Where there are several, each has a work-group. */
#ifndef CHUNK_H
#define CHUNK_H

#include "common/segment.h"

/* Vectors of a chunk; the last chunks may have fewer or none. Then a chunk's first vector, and its elements. */
#define CHUNK_VECTORS ((VECTORS + CHUNKS - 1) / CHUNKS)

static inline index_t begin_of(const index_t chunk) {
    return CHUNKS == 1 ? 0 : chunk * CHUNK_VECTORS;
}

static inline index_t elements_of_chunk(const index_t chunk, const uint lead) {
    const index_t begin = max(begin_of(chunk) * VEC, (index_t)lead);
    const index_t end = min((begin_of(chunk) + CHUNK_VECTORS) * VEC, (index_t)GROUP_SIZE + lead);
    return sub_sat(end, begin);
}

/* A chunk's vectors before the partly filled last one; with LEADS all its vectors. */
static inline index_t vectors_of_chunk(const index_t chunk, const uint lead) {
    const index_t all = LEADS ? vectors_of(lead) : WHOLE_VECTORS;
    /* Branches would compute the same, but LLVM 18, and so PoCL 6.0, aborts on them. */
    return CHUNKS == 1 ? all : min((index_t)CHUNK_VECTORS, sub_sat(all, begin_of(chunk)));
}

/* Whether the chunk ends with that last one. */
static inline bool has_tail(const index_t chunk) {
#if CHUNKS == 1 || LEADS
    (void)chunk;
    return LEADS ? false : TAIL != 0;
#else
    const index_t begin = begin_of(chunk);
    return TAIL != 0 && begin <= WHOLE_VECTORS && WHOLE_VECTORS < begin + CHUNK_VECTORS;
#endif
}

/* A lane's vectors of a chunk: the i-th one, and their number. The last one may be partly filled. */
static inline index_t vector_of_lane(const index_t chunk, const uint lane, const index_t i) {
    return begin_of(chunk) + lane + i * LANES;
}

static inline index_t vectors_of_lane(const index_t chunk, const uint lane, const uint lead) {
    return share_of_lane(lane, vectors_of_chunk(chunk, lead) + has_tail(chunk));
}

/* The number of them in whole blocks of UNROLL: of whole vectors, with LEADS of any. */
static inline index_t in_blocks_of_lane(const index_t chunk, const uint lane, const uint lead) {
    return share_of_lane(lane, vectors_of_chunk(chunk, lead)) / UNROLL * UNROLL;
}

#endif
