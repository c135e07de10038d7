/* The CHUNKS that a segment is taken in, by a work-group each where there are several: neighbouring vectors. */
#ifndef CHUNK_H
#define CHUNK_H

#include "common/segment.h"

/* Vectors of every chunk but the last ones, which may have fewer or none; the first vector of one; its whole vectors. */
#define CHUNK_VECTORS ((VECTORS + CHUNKS - 1) / CHUNKS)

static inline index_t begin_of(const index_t chunk) {
    return CHUNKS == 1 ? 0 : chunk * CHUNK_VECTORS;
}

static inline index_t whole_vectors_of(const index_t chunk) {
    /* Branches would say the same, but make LLVM 18, and so PoCL 6.0, abort. */
    return CHUNKS == 1 ? WHOLE_VECTORS : min((index_t)CHUNK_VECTORS, sub_sat((index_t)WHOLE_VECTORS, begin_of(chunk)));
}

/* Whether it has the partly filled vector, after its whole ones. */
static inline bool has_tail(const index_t chunk) {
#if CHUNKS == 1
    (void)chunk;
    return TAIL != 0;
#else
    const index_t begin = begin_of(chunk);
    return TAIL != 0 && begin <= WHOLE_VECTORS && WHOLE_VECTORS < begin + CHUNK_VECTORS;
#endif
}

/* A lane's vectors of a chunk: the i-th, and how many there are, the last one perhaps partly filled. */
static inline index_t vector_of_lane(const index_t chunk, const uint lane, const index_t i) {
    return begin_of(chunk) + lane + i * LANES;
}

static inline index_t vectors_of_lane(const index_t chunk, const uint lane) {
    const index_t vectors = whole_vectors_of(chunk) + has_tail(chunk);
    return vectors / LANES + (lane < vectors % LANES);
}

/* How many of them are in blocks of UNROLL; those are whole. */
static inline index_t in_blocks_of_lane(const index_t chunk, const uint lane) {
    const index_t whole = whole_vectors_of(chunk);
    return (whole / LANES + (lane < whole % LANES)) / UNROLL * UNROLL;
}

#endif
