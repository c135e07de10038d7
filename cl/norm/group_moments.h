/* Mean and squared deviations from one pass over vectors. Where the elements of a vector belong to different channels,
 * and on CPUs, each position of a vector has moments of its own. Where many lanes share contiguous elements, the positions
 * are added up after each run. */
#ifndef GROUP_MOMENTS_H
#define GROUP_MOMENTS_H

#include "common/lanes.h"
#include "common/segment.h"

/* A run is the vectors whose deviations are taken from one pivot: where lanes share a segment, those that are loaded
 * together; of a single lane at most RUN, and at first FIRST_RUN, few with channels last, where a small image would have no
 * pivot but its first position. CHAINS: independent sums among which they are divided, so that no addition waits for the
 * one before. */
#define RUN 64
#if LANES == 1 && LAYOUT == LAYOUT_FIRST
#define CHAINS 4
#define FIRST_RUN 16
#else
#define CHAINS 1
#define FIRST_RUN 4
#endif

#if LAYOUT == LAYOUT_FIRST && LANES > 1
#define OF_MOMENT VEC /* positions that share moments */
typedef real momentv;
#define POSITIONS_OF(v) sum_elements(v)
#else
#define OF_MOMENT 1
typedef realv momentv;
#define POSITIONS_OF(v) (v)
#endif

struct run {
    momentv pivot;
    realv sum[CHAINS], squares[CHAINS]; /* of deviations from the pivot */
};

/* The moments of all vectors so far. */
struct moments {
    momentv origin;  /* the first vector, or its mean */
    momentv mean;    /* less the origin */
    momentv squares; /* Σ(s − mean)² */
    real count;      /* elements of each */
};

/* The moments of many elements. With a count of 0 the other members are unused. */
struct spread {
    real mean; /* relative to an origin that the caller knows */
    real squares, count;
};

static inline void moments_start(struct moments *moments, const realv first) {
    moments->origin = POSITIONS_OF(first) / (real)OF_MOMENT;
    moments->mean = moments->squares = 0;
    moments->count = 0;
}

/* The pivot is the mean so far, and a run is as long as all runs before it. The squares about the pivot are then only a
 * few times those about the mean, so that their difference loses only a few roundings; in the first run, whose pivot is its
 * first vector, at most FIRST_RUN times as many. */
static inline index_t run_length(const struct moments *moments, const index_t left) {
    const index_t wanted = (index_t)clamp(moments->count / (real)OF_MOMENT, (real)FIRST_RUN, (real)RUN);
    return min(wanted, left);
}

static inline void run_start(struct run *run, const struct moments *moments) {
    run->pivot = moments->origin + moments->mean;
#pragma unroll
    for (uint k = 0; k < CHAINS; k++)
        run->sum[k] = run->squares[k] = 0;
}

static inline void run_take(struct run *run, const uint chain, const realv s) {
    const realv deviation = s - run->pivot;
    run->sum[chain] += deviation;
    run->squares[chain] += deviation * deviation;
}

/* Chan, Golub, LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances". count: vectors of
 * the run, at least 1. */
static inline void run_end(struct run *run, struct moments *moments, const index_t count) {
#pragma unroll
    for (uint k = 1; k < CHAINS; k++) {
        run->sum[0] += run->sum[k];
        run->squares[0] += run->squares[k];
    }
    const momentv sum = POSITIONS_OF(run->sum[0]), squares = POSITIONS_OF(run->squares[0]);
    const real own = (real)count * OF_MOMENT, all = moments->count + own, share = own / all;
    const momentv shift = sum * ((real)1 / own);
    const momentv delta = run->pivot - moments->origin - moments->mean + shift;
    moments->squares += squares - sum * shift + delta * delta * (moments->count * share);
    moments->mean += delta * share;
    moments->count = all;
}

/* Without contraction, for the same bits in every kernel: several work-groups merge the chunks of a segment. */
static inline void spread_merge(struct spread *a, const struct spread b) {
#pragma OPENCL FP_CONTRACT OFF
    if (b.count == 0)
        return;
    const real delta = b.mean - a->mean, share = b.count / (a->count + b.count);
    const real distance = distance_of(delta, a->count);
    a->mean += delta * share;
    a->squares += b.squares + distance * distance * (a->count * share);
    a->count += b.count;
}

/* Combines all positions. */
static inline struct spread spread_of(const struct moments *moments, const real origin) {
    struct spread spread = {0, 0, 0};
    if (moments->count == 0)
        return spread;
    const momentv own = moments->origin - origin + moments->mean;
#if OF_MOMENT == 1
    spread.mean = sum_elements(own) / (real)VEC;
    const realv delta = own - spread.mean;
    spread.squares = sum_elements(moments->squares + delta * delta * moments->count);
    spread.count = moments->count * (real)VEC;
#else
    spread.mean = own;
    spread.squares = moments->squares;
    spread.count = moments->count;
#endif
    return spread;
}

/* Combines the lanes of a segment, without contraction too. count: its elements, at least 1. */
INLINED struct spread spread_over_lanes(const struct spread own, const real count, struct lanes *lanes) {
#pragma OPENCL FP_CONTRACT OFF
    struct spread spread = {0, 0, count};
    spread.mean = sum_over_lanes(lanes, own.mean * own.count) / count;
    const real delta = distance_of(own.mean - spread.mean, own.count);
    spread.squares = sum_over_lanes(lanes, own.squares + delta * delta * own.count);
    return spread;
}

#endif
