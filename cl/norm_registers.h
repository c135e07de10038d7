/* A segment is read once and held in its lanes' registers. */
#ifndef NORM_REGISTERS_H
#define NORM_REGISTERS_H

#include "norm_held.h"

struct held {
    held_t s[HELD];
};

static inline realv held_at(const struct held *held, const struct segment *segment, const uint i) {
    (void)segment;
    return widen_s(held->s[i]);
}

static inline void forget_wide(struct held *held) {
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (sizeof(held_t) < sizeof(realv))
            forget((uint *)&held->s[i], sizeof(held_t) / sizeof(uint));
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

static inline void normalise(const struct call *call, const struct segment *segment, struct lanes *lanes) {
    struct held held;
    struct affine affine[AFFINES];
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        held.s[i] = has_vector(segment, i) ? load_s(segment, segment->lane + i * LANES, call->aligned, X_HINT) : (held_t)0;
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (WEIGHTS == WEIGHTS_EARLY && has_vector(segment, i))
            affine[i % AFFINES] = load_affine(segment, segment->lane + i * LANES, call->aligned, X_HINT);
    const struct statistics statistics = statistics_of(call, segment, lanes, &held);
#pragma unroll
    for (uint i = 0; i < HELD; i++) {
        if (!has_vector(segment, i))
            continue;
        const index_t v = segment->lane + i * LANES;
        if (WEIGHTS != WEIGHTS_EARLY)
            affine[0] = load_affine(segment, v, call->aligned, LOAD_PLAIN);
        put_y(call, segment, v, widen_s(held.s[i]), affine[i % AFFINES], statistics);
    }
    save_statistics(call, segment, statistics);
}

#endif
