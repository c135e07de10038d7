/* A row is read again, UNROLL vectors of a lane at a time. Lanes that share a row read it twice: first for the largest
 * element and, relative to the largest so far, the sum (Milakov, Gimelshein 2018, arXiv:1805.02867). A CPU's work-item has
 * the row in its cache, where another pass costs less than another exponential does: it takes the largest, then the sum,
 * and leaves the exponentials in y where they fit it. */
#ifndef SOFTMAX_REREAD_H
#define SOFTMAX_REREAD_H

#include "running_sum.h"
#include "softmax.h"

/* A lane's vectors, the last one perhaps partly filled. */
static inline index_t own_vectors(const struct row *row) {
    return row->active ? VECTORS / LANES + (row->lane < VECTORS % LANES) : 0;
}

/* How many of them are in blocks of UNROLL; those are whole. */
static inline index_t in_blocks(const struct row *row) {
    const index_t whole = row->active ? WHOLE_VECTORS / LANES + (row->lane < WHOLE_VECTORS % LANES) : 0;
    return whole / UNROLL * UNROLL;
}

static inline void load_block(const struct call *call, const struct row *row, const index_t i, const enum load_hint hint,
                              realv *block) {
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        block[j] = load_x(call, row, row->lane + (i + j) * LANES, hint);
}

/* What the exponentials of a row are made with. */
struct totals {
    real origin, sum;
};

#if LANES > 1

/* Of the vectors so far, by position. */
struct online {
    realv largest;
    realv sum; /* of exponentials of differences from it */
};

static inline void take_vectors(struct online *online, const realv *v, const uint count) {
    realv largest = online->largest;
#pragma unroll
    for (uint j = 0; j < count; j++)
        largest = larger(largest, v[j]);
    const realv origin = origins(largest);
    realv sum = online->sum * exponential(online->largest - origin);
#pragma unroll
    for (uint j = 0; j < count; j++)
        sum += exponential(v[j] - origin);
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
        block[0] = load_x(call, row, row->lane + i * LANES, LOAD_FIRST);
        take_vectors(&online, block, 1);
    }
    const real origin = origin_of(largest_over_lanes(lanes, largest_element(online.largest)));
    const realv sum = online.sum * exponential(online.largest - origin);
    const struct totals totals = {origin, sum_over_lanes(lanes, sum_elements(sum))};
    return totals;
}

#define STASHED 0

#else

#define STASHED (IS_REAL(Y_DTYPE) && STORES != STORES_STREAMING)

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
        largest[0] = larger(largest[0], load_x(call, row, i, LOAD_FIRST));
#pragma unroll
    for (uint j = 1; j < UNROLL; j++)
        largest[0] = larger(largest[0], largest[j]);
    return largest_element(largest[0]);
}

static inline realv take_vector(const struct call *call, const struct row *row, const index_t v, const realv x,
                                const real origin) {
    const realv power = exponential(x - origin);
    if (STASHED)
        store_y(call, row, v, power);
    return power;
}

INLINED struct totals totals_of(const struct call *call, const struct row *row, struct lanes *lanes) {
    const real origin = origin_of(largest_of(call, row));
    struct running_sum sum;
    realv block[UNROLL];
    running_sum_start(&sum);
    index_t i = 0;
    for (; i < in_blocks(row); i += UNROLL) {
        load_block(call, row, i, LOAD_FIRST, block);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            sum.run[j] += take_vector(call, row, i + j, block[j], origin);
        running_sum_end_block(&sum);
    }
    for (; i < own_vectors(row); i++)
        sum.runs += take_vector(call, row, i, load_x(call, row, i, LOAD_FIRST), origin);
    (void)lanes;
    const struct totals totals = {origin, running_sum_total(&sum)};
    return totals;
}

#endif

#if STASHED
static inline realv power_at(const struct call *call, const struct row *row, const index_t v, const real origin) {
    (void)origin;
    return WIDEN(Y_DTYPE)(LOAD_VECTOR(Y_DTYPE)(row->y, v, call->aligned, LOAD_PLAIN));
}
#else
static inline realv power_at(const struct call *call, const struct row *row, const index_t v, const real origin) {
    return exponential(load_x(call, row, v, LOAD_LAST) - origin);
}
#endif

INLINED void take_row(const struct call *call, const struct row *row, struct lanes *lanes) {
    const struct totals totals = totals_of(call, row, lanes);
    const real scale = scale_of(totals.sum);
    index_t i = 0;
    for (; i < in_blocks(row); i += UNROLL) {
        realv power[UNROLL];
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            power[j] = power_at(call, row, row->lane + (i + j) * LANES, totals.origin);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            const index_t v = row->lane + (i + j) * LANES;
            store_y(call, row, v, power[j] * scale);
            ask_to_read(row->x + call->x_stride + v * VEC);
            ask_to_write(row->y + call->y_stride + v * VEC);
        }
    }
    for (; i < own_vectors(row); i++) {
        const index_t v = row->lane + i * LANES;
        store_y(call, row, v, power_at(call, row, v, totals.origin) * scale);
    }
}

#endif
