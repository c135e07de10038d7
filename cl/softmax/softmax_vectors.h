/* The vectors of a lane in a row, or a chunk of it, of softmax or its gradient. The including file has a struct row with
 * chunk, lane and active. */
#ifndef SOFTMAX_VECTORS_H
#define SOFTMAX_VECTORS_H

#include "common/chunk.h"

static inline index_t own_vectors(const struct row *row) {
    return row->active ? vectors_of_lane(row->chunk, row->lane, row->lead) : 0;
}

static inline index_t in_blocks(const struct row *row) {
    return row->active ? in_blocks_of_lane(row->chunk, row->lane, row->lead) : 0;
}

static inline index_t vector_of(const struct row *row, const index_t i) {
    return vector_of_lane(row->chunk, row->lane, i);
}

#endif
