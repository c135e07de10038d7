/* A segment is read once and held in its lanes' registers. */
#ifndef NORM_REGISTERS_H
#define NORM_REGISTERS_H

#include "norm.h"

struct held {
    held_t s[HELD];
};

static inline bool has_vector(const struct segment *segment, const uint i) {
    return segment->active && (EVEN || segment->lane + i * LANES < VECTORS);
}

/* Called between one use of the vectors and the next. */
static inline void forget_wide(struct held *held) {
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (sizeof(held_t) < sizeof(realv))
            forget((uint *)&held->s[i], sizeof(held_t) / sizeof(uint));
}

/* fmax would hide a NaN. */
static inline real not_below_zero(const real v) {
    return v < 0 ? (real)0 : v;
}

/* The mean first, then the deviations from it. Their own sum, 0 but for rounding, corrects both the mean and the squares: a
 * row of equal elements has no variance, however large they are. */
INLINED struct statistics statistics_of(const struct call *call, const struct segment *segment, struct lanes *lanes,
                                        struct held *held) {
    real mean = 0;
    if (NORM == LAYER_NORM) {
        realv sum = 0;
#pragma unroll
        for (uint i = 0; i < HELD; i++)
            sum += widen_s(held->s[i]);
        mean = sum_over_lanes(lanes, sum_elements(sum)) / (real)GROUP_SIZE;
        forget_wide(held);
    }
    realv squares = 0, deviations = 0;
#pragma unroll
    for (uint i = 0; i < HELD; i++) {
        const realv s = widen_s(held->s[i]);
        const realv deviation = NORM == LAYER_NORM ? only_elements(s - mean, segment->lane + i * LANES) : s;
        deviations += deviation;
        squares += deviation * deviation;
    }
    forget_wide(held);
    real sums[] = {sum_elements(squares), sum_elements(deviations)};
    sum_lanes(lanes, sums, NORM == LAYER_NORM ? 2 : 1);
    const real correction = NORM == LAYER_NORM ? sums[1] / (real)GROUP_SIZE : (real)0;
    const real corrected = NORM == LAYER_NORM ? not_below_zero(sums[0] - sums[1] * correction) : sums[0];
    const struct statistics statistics = {mean + correction, rstd_of(corrected, call->eps)};
    return statistics;
}

/* Early, weight and bias are on their way together with x, while the lanes add up: the least latency. Late, they do not
 * take up registers meanwhile: more work-groups at once. */
#if WEIGHTS == WEIGHTS_EARLY
#define X_HINT LOAD_IN_TURN
#define AFFINES HELD
#else
#define X_HINT LOAD_PLAIN
#define AFFINES 1
#endif

INLINED void normalise(const struct call *call, const struct segment *segment, struct lanes *lanes) {
    struct held held;
    struct affine affine[AFFINES];
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        held.s[i] = has_vector(segment, i) ? load_s(segment, segment->lane + i * LANES, call->aligned, X_HINT) : (held_t)0;
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (WEIGHTS == WEIGHTS_EARLY && has_vector(segment, i))
            load_affine(segment, segment->lane + i * LANES, call->aligned, X_HINT, &affine[i % AFFINES]);
    const struct statistics statistics = statistics_of(call, segment, lanes, &held);
#pragma unroll
    for (uint i = 0; i < HELD; i++) {
        if (!has_vector(segment, i))
            continue;
        const index_t v = segment->lane + i * LANES;
        if (WEIGHTS != WEIGHTS_EARLY)
            load_affine(segment, v, call->aligned, LOAD_PLAIN, &affine[0]);
        put_y(call, segment, v, widen_s(held.s[i]), &affine[i % AFFINES], statistics);
    }
    save_statistics(call, segment, statistics);
}

#endif
