/* Mean and variance of a segment from one pass over the vectors of each lane, wherever they are held. */
#ifndef NORM_STATISTICS_H
#define NORM_STATISTICS_H

#include "common/chunk.h"
#include "norm/norm.h"

/* RUN: vectors whose deviations are taken from one pivot. CHAINS: independent sums, so that no addition waits for the one
 * before it. A CPU's work-item has a whole segment, and the end of a run costs it as much as ten vectors. */
#if LANES == 1
#define RUN 64
#define CHAINS 4
#else
#define RUN 16
#define CHAINS 1
#endif

/* Sums of a vector's elements, by position. Half a vector holds them where that saves registers. */
#if VEC == 8 && LANES > 1
typedef JOIN(real, 4) sums_t;

static inline sums_t plus(const sums_t sums, const realv v) {
    return sums + v.lo + v.hi;
}

static inline sums_t plus_squares(const sums_t sums, const realv v) {
    const sums_t low = sums + v.lo * v.lo;
    return low + v.hi * v.hi;
}

static inline real sum_positions(const sums_t sums) {
    const JOIN(real, 2) v2 = sums.lo + sums.hi;
    return v2.lo + v2.hi;
}
#else
typedef realv sums_t;

static inline sums_t plus(const sums_t sums, const realv v) {
    return sums + v;
}

static inline sums_t plus_squares(const sums_t sums, const realv v) {
    return sums + v * v;
}

static inline real sum_positions(const sums_t sums) {
    return sum_elements(sums);
}
#endif

/* Sums over a run of a lane's vectors: of deviations from a pivot for layer norm, of s itself for RMS norm. The pivot is
 * the mean of the run's first vector. As it is made of the run's own elements, the squares about it are at most 1 + RUN
 * times those about the run's mean, which limits the rounding errors of their difference. */
struct run {
    real pivot;
    sums_t sum[CHAINS];
    sums_t squares[CHAINS];
};

/* Whether a lane adds up the squares of its runs in sets: where it has very many, the rounding errors of one long chain of
 * additions would add up. */
#define SET_RUNS 64
#define HAS_SETS (VECTORS / LANES / RUN > 4 * SET_RUNS)

/* The moments of the elements that a lane has taken so far. */
struct moments {
    real origin;  /* the mean of the first run: those of others lie near it */
    real mean;    /* less the origin */
    real squares; /* Σ(s − mean)², with HAS_SETS without the current set */
    real count;
    real set;  /* with HAS_SETS: the squares of the current set */
    uint runs; /* with HAS_SETS */
};

static inline void add_squares(struct moments *moments, const real squares) {
    if (!HAS_SETS) {
        moments->squares += squares;
        return;
    }
    moments->set += squares;
    if (++moments->runs % SET_RUNS == 0) {
        moments->squares += moments->set;
        moments->set = 0;
    }
}

static inline real squares_of(const struct moments *moments) {
    return HAS_SETS ? moments->squares + moments->set : moments->squares;
}

/* Sums start at -0, since compilers can drop the addition of -0. */
static inline void start_run(struct run *run) {
    run->pivot = 0;
#pragma unroll
    for (uint k = 0; k < CHAINS; k++)
        run->sum[k] = run->squares[k] = -(real)0;
}

static inline bool is_full(const struct part part) {
    return part.from == 0 && part.to == VEC;
}

static inline real pivot_of(const realv s, const struct part part) {
#if LEADS && !EDGES_OVERLAP /* else all elements are the segment's */
    if (is_full(part))
        return sum_elements(s) / (real)VEC;
    const struct part one = {part.from, part.from + 1};
    const real first = sum_elements(only_part_or(s, one, 0)); /* exactly the mean of equal elements */
    return first + sum_elements(only_part_or(s - first, part, 0)) / (real)(part.to - part.from);
#else
    return is_full(part) ? sum_elements(s) / (real)VEC : first_element(s);
#endif
}

/* Takes a part of the i-th vector of the run. Without LEADS its other elements are zeros. */
static inline void take(struct run *run, const uint i, const realv s, const struct part part) {
    realv deviation = s;
#if NORM == LAYER_NORM
    if (i == 0)
        run->pivot = pivot_of(s, part);
    deviation = s - run->pivot;
#endif
    if ((NORM == LAYER_NORM || LEADS) && !is_full(part))
        deviation = only_part_or(deviation, part, 0);
#if NORM == LAYER_NORM
    run->sum[i % CHAINS] = plus(run->sum[i % CHAINS], deviation);
#endif
    run->squares[i % CHAINS] = plus_squares(run->squares[i % CHAINS], deviation);
}

static inline void sum_chains(struct run *run) {
#pragma unroll
    for (uint k = 1; k < CHAINS; k++) {
        run->sum[0] += run->sum[k];
        run->squares[0] += run->squares[k];
    }
}

/* Chan, Golub, LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances". It takes no
 * difference of large sums, so that a mean far from zero costs no accuracy. */
static inline void merge(struct moments *a, const real mean, const real squares, const real count) {
    const real delta = mean - a->mean;
    const real share = count / (a->count + count);
    a->mean += delta * share;
    add_squares(a, squares + delta * delta * (a->count * share));
    a->count += count;
}

/* Adds the run to the moments, and starts the next run. count: elements of the run, at least 1. */
static inline void end_run(struct run *run, struct moments *moments, const uint count) {
    sum_chains(run);
    const real squares = sum_positions(run->squares[0]);
#if NORM == LAYER_NORM
    const real sum = sum_positions(run->sum[0]);
    const real shift = sum * ((real)1 / (real)count);
    if (moments->count == 0) {
        moments->origin = run->pivot + shift;
        moments->squares = squares - sum * shift;
        moments->count = count;
    } else {
        merge(moments, run->pivot - moments->origin + shift, squares - sum * shift, count);
    }
#else
    add_squares(moments, squares);
#endif
    start_run(run);
}

/* Whether the sum of equal elements is exact: pairwise sums of a power of two of them are, in whole vectors. */
#define EXACT_SUMS ((GROUP_SIZE & (GROUP_SIZE - 1)) == 0 && LEADS == 0 && REDUCE != REDUCE_SUBGROUP)

/* Whether the lanes' means are added up relative to an origin, so that the mean of equal elements is exactly theirs. Chunks
 * have any number of elements. With dropout the elements of a row are not equal. */
#define FROM_ORIGIN (NORM == LAYER_NORM && LANES > 1 && (CHUNKS > 1 || !EXACT_SUMS) && !DROPOUT)

/* That origin: near the first elements of the work-group's chunk; 0 where there is none. */
static inline real origin_of(const struct call *call, const struct segment *segment) {
#if FROM_ORIGIN
    const index_t begin = begin_of(segment->chunk);
    if (segment->active && is_vector(begin, segment->lead)) {
        struct parts parts;
        load_parts(segment, begin, call->aligned, LOAD_PLAIN, &parts);
        return pivot_of(widen_s(segment, s_of(segment, &parts, 0)), own_part(begin, segment->lead));
    }
#endif
    (void)call, (void)segment;
    return 0;
}

/* The moments of many elements. */
struct spread {
    real mean;    /* 0 for RMS norm */
    real squares; /* Σ(s − mean)² */
};

/* Merges the lanes' moments by the same formula: it adds up the squared deviations from the lanes' means, and those of the
 * means. A lane of its own has those of all. count: elements of all lanes, at least 1. */
INLINED struct spread merge_lanes(const struct moments *moments, const real origin, const real count, struct lanes *lanes) {
#if NORM == LAYER_NORM && LANES == 1
    const struct spread spread = {moments->origin + moments->mean, squares_of(moments)};
    (void)origin, (void)count, (void)lanes;
#elif NORM == LAYER_NORM
    const real own = moments->origin - origin + moments->mean;
    const real mean = sum_over_lanes(lanes, own * moments->count) / count;
    const real delta = distance_of(own - mean, moments->count);
    const real squares = sum_over_lanes(lanes, squares_of(moments) + delta * delta * moments->count);
    const struct spread spread = {origin + mean, squares};
#else
    const struct spread spread = {0, sum_over_lanes(lanes, squares_of(moments))};
    (void)origin, (void)count;
#endif
    return spread;
}

INLINED struct statistics statistics_over_lanes(const struct call *call, const struct moments *moments, const real origin,
                                                struct lanes *lanes) {
    const struct spread spread = merge_lanes(moments, origin, (real)GROUP_SIZE, lanes);
    const struct statistics statistics = {spread.mean, rstd_of(spread.squares, call->eps)};
    return statistics;
}

#endif
