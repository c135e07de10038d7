/* A row, or one of its CHUNKS, is read several times, UNROLL vectors of a lane at a time. Lanes that share it read it
 * twice, first for the largest element and the sum relative to the largest so far (Milakov, Gimelshein 2018,
 * arXiv:1805.02867). A CPU's work-item has it in its cache, where another pass costs less than another exponential: it
 * computes the largest, then the sum, and keeps the exponentials of a whole row in y if y has the precision. */
#ifndef SOFTMAX_REREAD_H
#define SOFTMAX_REREAD_H

#include "softmax/running_sum.h"
#include "softmax/softmax_totals.h"
#include "softmax/softmax_vectors.h"

INLINED void load_block(const struct call *call, const struct row *row, const index_t i, const enum load_hint hint,
                        realv *block) {
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        block[j] = load_x(call, row, vector_of(row, i + j), hint);
    if (LEADS) /* elsewhere blocks have whole vectors */
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            block[j] = masked(row, vector_of(row, i + j), block[j]);
}

static inline realv load_masked(const struct call *call, const struct row *row, const index_t v,
                                const enum load_hint hint) {
    return masked(row, v, load_x(call, row, v, hint));
}

#if LANES > 1

/* The totals of the vectors so far, for each position. */
struct online {
    realv largest;
    realv sum; /* of exponentials of differences from the largest */
};

static inline void take_vectors(struct online *online, const realv *v, const uint count) {
    realv largest = online->largest;
#pragma unroll
    for (uint j = 0; j < count; j++)
        largest = larger(largest, v[j]);
    const realv origin = origins(largest);
    realv sum = online->sum * exponential_of_minus(origin - online->largest);
#pragma unroll
    for (uint j = 0; j < count; j++)
        sum += exponential_of_minus(origin - v[j]);
    online->largest = largest;
    online->sum = sum;
}

INLINED struct totals totals_of(const struct call *call, const struct row *row, struct lanes *lanes) {
    struct online online = {-(realv)INFINITY, 0};
    realv block[UNROLL];
    index_t i = 0;
    for (; i < in_blocks(row); i += UNROLL) {
        load_block(call, row, i, LOAD_FIRST, block);
        take_vectors(&online, block, UNROLL);
    }
    for (; i < own_vectors(row); i++) {
        block[0] = load_masked(call, row, vector_of(row, i), LOAD_FIRST);
        take_vectors(&online, block, 1);
    }
    const real largest = largest_over_lanes(lanes, largest_element(online.largest));
    const realv sum = online.sum * exponential_of_minus(origin_of(largest) - online.largest);
    const struct totals totals = {largest, sum_over_lanes(lanes, sum_elements(sum))};
    return totals;
}

#define STASHED 0

#else

#define STASHED (CHUNKS == 1 && IS_REAL(Y_DTYPE) && STORES != STORES_STREAMING)

static inline real largest_of(const struct call *call, const struct row *row) {
    realv largest[UNROLL];
    realv block[UNROLL];
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        largest[j] = -(realv)INFINITY;
    index_t i = 0;
    for (; i < in_blocks(row); i += UNROLL) {
        load_block(call, row, i, LOAD_FIRST, block);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            largest[j] = larger(largest[j], block[j]);
    }
    for (; i < own_vectors(row); i++)
        largest[0] = larger(largest[0], load_masked(call, row, vector_of(row, i), LOAD_FIRST));
#pragma unroll
    for (uint j = 1; j < UNROLL; j++)
        largest[0] = larger(largest[0], largest[j]);
    return largest_element(largest[0]);
}

static inline realv take_vector(const struct call *call, const struct row *row, const index_t v, const realv x,
                                const real origin) {
    const realv power = exponential_of_minus(origin - x);
    if (STASHED)
        store_y(call, row, v, power);
    return power;
}

INLINED struct totals totals_of(const struct call *call, const struct row *row, struct lanes *lanes) {
    const real largest = largest_of(call, row);
    const real origin = origin_of(largest);
    struct running_sum sum;
    realv block[UNROLL];
    running_sum_start(&sum);
    index_t i = 0;
    for (; i < in_blocks(row); i += UNROLL) {
        load_block(call, row, i, LOAD_FIRST, block);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            sum.run[j] += take_vector(call, row, vector_of(row, i + j), block[j], origin);
        running_sum_end_block(&sum);
    }
    for (; i < own_vectors(row); i++) {
        const index_t v = vector_of(row, i);
        sum.runs += take_vector(call, row, v, load_masked(call, row, v, LOAD_FIRST), origin);
    }
    (void)lanes;
    const struct totals totals = {largest, running_sum_total(&sum)};
    return totals;
}

#endif

#if STASHED
static inline realv power_at(const struct call *call, const struct row *row, const index_t v, const real origin) {
    (void)origin;
    return WIDEN(Y_DTYPE)(LOAD_VECTOR(Y_DTYPE)(row->y, v, row->lead, call->aligned, LOAD_PLAIN));
}
#else
static inline realv power_at(const struct call *call, const struct row *row, const index_t v, const real origin) {
    return exponential_of_minus(origin - load_x(call, row, v, LOAD_LAST));
}
#endif

/* Prefetches the row that a CPU's work-item takes next. Chunks of a row have different work-groups. */
static inline void prefetch_next(const struct call *call, const struct row *row, const index_t v) {
    if (CHUNKS > 1)
        return;
    prefetch_to_read(row->x + call->x_stride + v * VEC);
    prefetch_to_write(row->y + call->y_stride + v * VEC);
}

/* Writes y of a row or a chunk. totals: of the row. */
static inline void put_row(const struct call *call, const struct row *row, const struct totals totals) {
    const real origin = origin_of(totals.largest);
    const real scale = scale_of(totals.sum);
    index_t i = 0;
    for (; i < in_blocks(row); i += UNROLL) {
        realv power[UNROLL];
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            power[j] = power_at(call, row, vector_of(row, i + j), origin);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            store_y(call, row, vector_of(row, i + j), power[j] * scale);
            prefetch_next(call, row, vector_of(row, i + j));
        }
    }
    for (; i < own_vectors(row); i++) {
        const index_t v = vector_of(row, i);
        store_y(call, row, v, power_at(call, row, v, origin) * scale);
    }
}

INLINED void take_row(const struct call *call, const struct row *row, struct lanes *lanes) {
    put_row(call, row, totals_of(call, row, lanes));
}

#endif
