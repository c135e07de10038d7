/* A segment is read twice, for its statistics and to be normalised, UNROLL vectors of a lane at a time. Caches are asked to
 * keep it from the first time to the second, and no longer: registers stay free for more work-groups, and what the L2 cache
 * has of the output need not be written out while the kernel runs. */
#ifndef NORM_REREAD_H
#define NORM_REREAD_H

#include "norm.h"

#if WEIGHTS == WEIGHTS_KEPT
#define WEIGHTS_HINT LOAD_FIRST
#else
#define WEIGHTS_HINT LOAD_PLAIN
#endif

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

/* Means and squared deviations of the vectors so far, element position by element position, of s less a typical
 * element: means near zero lose nothing to rounding when they are subtracted from each other. */
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

static inline real first_element(const realv v) {
#if VEC == 1
    return v;
#else
    return v.s0;
#endif
}

/* The middle one of three elements: a row of equal ones, or one far from zero, has its mean near it, and one that begins
 * with an outlier does too. */
static inline real typical_element(const struct call *call, const struct segment *segment) {
    if (!segment->active)
        return 0;
    const real a = first_element(fetch_s(call, segment, 0, LOAD_PLAIN));
    const real b = first_element(fetch_s(call, segment, VECTORS / 2, LOAD_PLAIN));
    const real c = first_element(fetch_s(call, segment, VECTORS - 1, LOAD_PLAIN));
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

static inline void take_block(const struct call *call, const struct segment *segment, const index_t first,
                              const real origin, struct moments *moments) {
    realv s[UNROLL];
    realv sum = 0;
#pragma unroll
    for (uint i = 0; i < UNROLL; i++) {
        s[i] = fetch_s(call, segment, segment->lane + (first + i) * LANES, LOAD_FIRST) - origin;
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
INLINED struct statistics statistics_of(const struct call *call, const struct segment *segment, struct lanes *lanes) {
    struct moments moments = {0, 0, 0};
    const real origin = typical_element(call, segment);
    const index_t own = own_vectors(segment);
    index_t i = 0;
    for (; i + UNROLL <= own; i += UNROLL)
        take_block(call, segment, i, origin, &moments);
    for (; i < own; i++)
        merge(&moments, fetch_s(call, segment, segment->lane + i * LANES, LOAD_FIRST) - origin, 0, 1);
    realv tail = 0;
    if (owns_tail(segment))
        tail = keep_first(fetch_s(call, segment, WHOLE_VECTORS, LOAD_FIRST) - origin, TAIL);

    const real sum = sum_elements(moments.mean) * moments.count + sum_elements(tail);
    const real mean = sum_over_lanes(lanes, sum) / (real)GROUP_SIZE;
    const realv delta = moments.mean - mean;
    realv squares = moments.squares + delta * delta * moments.count;
    if (owns_tail(segment)) {
        const realv deviation = keep_first(tail - mean, TAIL);
        squares += deviation * deviation;
    }
    const real all = sum_over_lanes(lanes, sum_elements(squares));
    const struct statistics statistics = {origin + mean, rstd_of(all, call->eps)};
    return statistics;
}

#else

INLINED struct statistics statistics_of(const struct call *call, const struct segment *segment, struct lanes *lanes) {
    realv square[UNROLL]; /* several sums, so that none waits for the last addition */
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        square[j] = 0;
    const index_t own = own_vectors(segment);
    index_t i = 0;
    for (; i + UNROLL <= own; i += UNROLL) {
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            const realv s = fetch_s(call, segment, segment->lane + (i + j) * LANES, LOAD_FIRST);
            square[j] += s * s;
        }
    }
    for (; i < own + owns_tail(segment); i++) {
        const realv s = fetch_s(call, segment, segment->lane + i * LANES, LOAD_FIRST);
        square[0] += s * s;
    }
#pragma unroll
    for (uint j = 1; j < UNROLL; j++)
        square[0] += square[j];
    const struct statistics statistics = {0, rstd_of(sum_over_lanes(lanes, sum_elements(square[0])), call->eps)};
    return statistics;
}

#endif

/* Asks a CPU for the lines of the next segment while this one is written: its own prefetchers stop at the end of a page,
 * and know nothing of what is to be written. On PoCL it made the whole kernel 1.14 to 1.27 times as fast. */
static inline void ask_for_next(const struct call *call, const struct segment *segment, const index_t v) {
#if ELEMENT_ALIGNED && defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
    const ulong x_step = GROUPS == 1 ? call->x_stride : GROUP_SIZE;
    const ulong y_step = GROUPS == 1 ? call->y_stride : GROUP_SIZE;
    __builtin_prefetch((const void *)(size_t)(segment->x + x_step + v * VEC), 0, 2);
    __builtin_prefetch((const void *)(size_t)(segment->y + y_step + v * VEC), 1, 2);
#endif
#endif
    (void)call;
    (void)segment;
    (void)v;
}

INLINED void normalise(const struct call *call, const struct segment *segment, struct lanes *lanes) {
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
            struct affine affine;
            load_affine(segment, v, call->aligned, WEIGHTS_HINT, &affine);
            put_y(call, segment, v, s[j], &affine, statistics);
            ask_for_next(call, segment, v);
        }
    }
    for (; i < own + owns_tail(segment); i++) {
        const index_t v = segment->lane + i * LANES;
        const realv s = fetch_s(call, segment, v, LOAD_LAST);
        struct affine affine;
        load_affine(segment, v, call->aligned, WEIGHTS_HINT, &affine);
        put_y(call, segment, v, s, &affine, statistics);
    }
    save_statistics(call, segment, statistics);
}

#endif
