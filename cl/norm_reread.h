/* A segment is read twice, for its statistics and to be normalised, UNROLL vectors of a lane at a time. */
#ifndef NORM_REREAD_H
#define NORM_REREAD_H

#include "norm.h"

static inline realv fetch_s(const struct call *call, const struct segment *segment, const index_t v,
                            const enum load_hint hint) {
    return widen_s(load_s(segment, v, call->aligned, hint));
}

/* A lane's whole vectors. */
static inline index_t own_vectors(const struct segment *segment) {
    return segment->active ? WHOLE_VECTORS / LANES + (segment->lane < WHOLE_VECTORS % LANES) : 0;
}

static inline bool owns_tail(const struct segment *segment) {
    return TAIL != 0 && segment->active && segment->lane == WHOLE_VECTORS % LANES;
}

#if NORM == LAYER_NORM

/* Means and squared deviations of the vectors so far, element position by element position. */
struct moments {
    realv mean;
    realv squares; /* Σ(s − mean)² */
    real count;    /* vectors */
};

/* Chan, Golub, LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances": no difference of
 * large sums is taken, so a mean far from zero costs no accuracy. */
static inline void merge(struct moments *a, const realv mean, const realv squares, const real count) {
    const realv delta = mean - a->mean;
    const real share = count / (a->count + count);
    a->mean += delta * share;
    a->squares += squares + delta * delta * (a->count * share);
    a->count += count;
}

static inline void take_block(const struct call *call, const struct segment *segment, const index_t first,
                              struct moments *moments) {
    realv s[UNROLL];
    realv sum = 0;
#pragma unroll
    for (uint i = 0; i < UNROLL; i++) {
        s[i] = fetch_s(call, segment, segment->lane + (first + i) * LANES, LOAD_PLAIN);
        sum += s[i];
    }
    const realv mean = sum / (real)UNROLL;
    realv squares = 0;
#pragma unroll
    for (uint i = 0; i < UNROLL; i++)
        squares += (s[i] - mean) * (s[i] - mean);
    merge(moments, mean, squares, UNROLL);
}

/* A lane's moments are merged with the other lanes' by the same formula: squared deviations from the lane's means, and the
 * deviations of those means. */
static inline struct statistics statistics_of(const struct call *call, const struct segment *segment, struct lanes *lanes) {
    struct moments moments = {0, 0, 0};
    const index_t own = own_vectors(segment);
    index_t i = 0;
    for (; i + UNROLL <= own; i += UNROLL)
        take_block(call, segment, i, &moments);
    for (; i < own; i++)
        merge(&moments, fetch_s(call, segment, segment->lane + i * LANES, LOAD_PLAIN), 0, 1);
    realv tail = 0;
    if (owns_tail(segment))
        tail = fetch_s(call, segment, WHOLE_VECTORS, LOAD_PLAIN);

    const real sum = sum_elements(moments.mean) * moments.count + sum_elements(tail);
    const real mean = sum_lanes(lanes, sum) / (real)GROUP_SIZE;
    const realv delta = moments.mean - mean;
    realv squares = moments.squares + delta * delta * moments.count;
    if (owns_tail(segment)) {
        const realv deviation = keep_first(tail - mean, TAIL);
        squares += deviation * deviation;
    }
    const struct statistics statistics = {mean, rstd_of(sum_lanes(lanes, sum_elements(squares)), call->eps)};
    return statistics;
}

#else

static inline struct statistics statistics_of(const struct call *call, const struct segment *segment, struct lanes *lanes) {
    realv square[UNROLL]; /* several sums, so that none waits for the last addition */
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        square[j] = 0;
    const index_t own = own_vectors(segment);
    index_t i = 0;
    for (; i + UNROLL <= own; i += UNROLL) {
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            const realv s = fetch_s(call, segment, segment->lane + (i + j) * LANES, LOAD_PLAIN);
            square[j] += s * s;
        }
    }
    for (; i < own + owns_tail(segment); i++) {
        const realv s = fetch_s(call, segment, segment->lane + i * LANES, LOAD_PLAIN);
        square[0] += s * s;
    }
#pragma unroll
    for (uint j = 1; j < UNROLL; j++)
        square[0] += square[j];
    const struct statistics statistics = {0, rstd_of(sum_lanes(lanes, sum_elements(square[0])), call->eps)};
    return statistics;
}

#endif

static inline void normalise(const struct call *call, const struct segment *segment, struct lanes *lanes) {
    const struct statistics statistics = statistics_of(call, segment, lanes);
    const index_t own = own_vectors(segment);
    index_t i = 0;
    for (; i + UNROLL <= own; i += UNROLL) {
        realv s[UNROLL];
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            s[j] = fetch_s(call, segment, segment->lane + (i + j) * LANES, LOAD_LAST);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            const index_t v = segment->lane + (i + j) * LANES;
            put_y(call, segment, v, s[j], load_affine(segment, v, call->aligned, LOAD_PLAIN), statistics);
        }
    }
    for (; i < own + owns_tail(segment); i++) {
        const index_t v = segment->lane + i * LANES;
        put_y(call, segment, v, fetch_s(call, segment, v, LOAD_LAST), load_affine(segment, v, call->aligned, LOAD_PLAIN),
              statistics);
    }
    save_statistics(call, segment, statistics);
}

#endif
