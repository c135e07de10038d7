/* A piece: a chunk of a row that a work-group holds in registers, and the message by which it posts the chunk's totals. */
#ifndef SOFTMAX_PIECE_H
#define SOFTMAX_PIECE_H

#include "common/tickets.h"
#include "softmax/softmax_vectors.h"

#define PIECE_HELD ((CHUNK_VECTORS + LANES - 1) / LANES) /* vectors of a lane, at most */

/* The vectors of the last chunk, the shortest, at least. */
#define LEAST_VECTORS sub_sat((0u + GROUP_SIZE + VEC - 1) / VEC, (CHUNKS - 1u) * CHUNK_VECTORS)

/* Compilers know it of most vectors, where a piece is there at all. */
static inline bool has_vector(const struct row *row, const uint i) {
    return row->active && ((i + 1) * LANES <= LEAST_VECTORS || i < own_vectors(row));
}

/* The row for functions of vector i of a lane: its lead tells what compilers know of the vector (lead.h). */
static inline struct row row_at_vector(const struct row *row, const uint i) {
    struct row known = *row;
#if LEADS
    known.lead |= (i > 0 ? NOT_FIRST : 0) | ((i + 1) * LANES < LEAST_VECTORS ? NOT_LAST : 0);
#else
    (void)i;
#endif
    return known;
}

#endif
