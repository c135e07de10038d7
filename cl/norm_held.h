/* Statistics of a segment whose vectors stay at hand: the mean first, then the squared deviations from it.
 * Where they stay is for the including header to say: struct held, held_at, forget_wide. */
#ifndef NORM_HELD_H
#define NORM_HELD_H

#include "norm.h"

struct held;

static inline bool has_vector(const struct segment *segment, const uint i) {
    return segment->active && (EVEN || segment->lane + i * LANES < VECTORS);
}

/* Vector i of a lane, zeros where it has none. */
static inline realv held_at(const struct held *held, const struct segment *segment, uint i);

/* Called between one use of the vectors and the next. */
static inline void forget_wide(struct held *held);

static inline struct statistics statistics_of(const struct call *call, const struct segment *segment, struct lanes *lanes,
                                              struct held *held) {
    struct statistics statistics = {0, 0};
    if (NORM == LAYER_NORM) {
        realv sum = 0;
#pragma unroll
        for (uint i = 0; i < HELD; i++)
            sum += held_at(held, segment, i);
        statistics.mean = sum_lanes(lanes, sum_elements(sum)) / (real)GROUP_SIZE;
        forget_wide(held);
    }
    realv squares = 0;
#pragma unroll
    for (uint i = 0; i < HELD; i++) {
        const realv s = held_at(held, segment, i);
        const realv deviation = NORM == LAYER_NORM ? only_elements(s - statistics.mean, segment->lane + i * LANES) : s;
        squares += deviation * deviation;
    }
    forget_wide(held);
    statistics.rstd = rstd_of(sum_lanes(lanes, sum_elements(squares)), call->eps);
    return statistics;
}

#endif
