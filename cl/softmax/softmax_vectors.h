/* The vectors that a lane has of a row of softmax or of its gradient, or of a chunk of it. Whoever includes this has a
 * struct row with chunk, lane and active. */
#ifndef SOFTMAX_VECTORS_H
#define SOFTMAX_VECTORS_H

#include "common/chunk.h"

static inline index_t own_vectors(const struct row *row) {
    return row->active ? vectors_of_lane(row->chunk, row->lane) : 0;
}

static inline index_t in_blocks(const struct row *row) {
    return row->active ? in_blocks_of_lane(row->chunk, row->lane) : 0;
}

static inline index_t vector_of(const struct row *row, const index_t i) {
    return vector_of_lane(row->chunk, row->lane, i);
}

#endif
