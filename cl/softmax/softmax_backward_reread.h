/* A row of y and dy, or one of its CHUNKS, is read twice, UNROLL vectors of a lane at a time: for the sum of their product,
 * and for dx. */
#ifndef SOFTMAX_BACKWARD_REREAD_H
#define SOFTMAX_BACKWARD_REREAD_H

#include "softmax/running_sum.h"
#include "softmax/softmax_backward.h"
#include "softmax/softmax_vectors.h"

INLINED void load_block(const struct call *call, const struct row *row, const index_t i, const enum load_hint hint,
                        struct point *block) {
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        load_point(call, row, vector_of(row, i + j), hint, &block[j]);
}

static inline real own_sum(const struct call *call, const struct row *row) {
    struct running_sum sum;
    running_sum_start(&sum);
    index_t i = 0;
    for (; i < in_blocks(row); i += UNROLL) {
        struct point block[UNROLL];
        load_block(call, row, i, LOAD_FIRST, block);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            sum.run[j] += product_of(row, vector_of(row, i + j), &block[j]);
        running_sum_end_block(&sum);
    }
    for (; i < own_vectors(row); i++) {
        struct point point;
        load_point(call, row, vector_of(row, i), LOAD_FIRST, &point);
        sum.runs += product_of(row, vector_of(row, i), &point);
    }
    return running_sum_total(&sum);
}

/* Prefetches the row that a CPU's work-item takes next. Chunks of a row have different work-groups. */
static inline void prefetch_next(const struct call *call, const struct row *row, const index_t v) {
    if (CHUNKS > 1)
        return;
    prefetch_to_read(row->y + call->y_stride + v * VEC);
    prefetch_to_read(row->dy + call->dy_stride + v * VEC);
    prefetch_to_write(row->dx + call->dx_stride + v * VEC);
}

/* Writes dx of a row or a chunk. sum: of the row. Several lanes go through it backwards, as caches still hold what was read
 * last. */
static inline void put_row(const struct call *call, const struct row *row, const real sum) {
    for (index_t done = 0; done < in_blocks(row); done += UNROLL) {
        const index_t i = LANES > 1 ? in_blocks(row) - UNROLL - done : done;
        struct point block[UNROLL];
        load_block(call, row, i, LOAD_LAST, block);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            put_dx(call, row, vector_of(row, i + j), &block[j], sum);
            prefetch_next(call, row, vector_of(row, i + j));
        }
    }
    for (index_t i = in_blocks(row); i < own_vectors(row); i++) {
        const index_t v = vector_of(row, i);
        struct point point;
        load_point(call, row, v, LOAD_LAST, &point);
        put_dx(call, row, v, &point, sum);
    }
}

INLINED void take_row(const struct call *call, const struct row *row, struct lanes *lanes) {
    put_row(call, row, sum_over_lanes(lanes, own_sum(call, row)));
}

#endif
