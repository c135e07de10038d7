/* A segment is read once and held in its lanes' registers. */
#ifndef NORM_REGISTERS_H
#define NORM_REGISTERS_H

#include "norm/norm_statistics.h"

/* As in norm_reread.h; here it is empty. */
struct group_memory {
    char unused;
};

struct held {
    held_t s[HELD];
};

/* Called between one use of the vectors and the next. */
static inline void forget_wide(struct held *held) {
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (sizeof(held_t) < sizeof(realv))
            forget((uint *)&held->s[i], sizeof(held_t) / sizeof(uint));
}

INLINED struct statistics statistics_of(const struct call *call, const struct segment *segment, struct lanes *lanes,
                                        struct held *held) {
    struct moments moments = {0, 0, 0, 0, 0, 0};
    const real origin = origin_of(call, segment);
    struct run run;
    start_run(&run);
    index_t taken = 0; /* elements of earlier runs */
#pragma unroll
    for (uint i = 0; i < HELD; i++) {
        if (!has_vector(segment, i))
            continue;
        if (i > 0 && i % RUN == 0) {
            end_run(&run, &moments, elements_from(segment->lane, i, segment->lead) - taken);
            taken = elements_from(segment->lane, i, segment->lead);
        }
        take(&run, i % RUN, widen_s(segment, held->s[i]), own_part(segment->lane + i * LANES, segment->lead));
    }
    const index_t own = segment->active ? own_elements(segment->lane, segment->lead) : 0;
    if (own > taken)
        end_run(&run, &moments, own - taken);
    forget_wide(held);
    return statistics_over_lanes(call, &moments, origin, lanes);
}

/* Early, weight and bias are loaded together with x, which has the least latency. Late, they take no registers while the
 * lanes add up, which lets more work-groups run at once. */
#if WEIGHTS == WEIGHTS_EARLY
#define X_HINT LOAD_IN_TURN
#define AFFINES HELD
#else
#define X_HINT LOAD_PLAIN
#define AFFINES AFFINES_AT_ONCE
#endif

#if PAIRS_OF_VECTORS

/* A lane's i-th vector of y before it is rotated. Writes the outputs besides y. */
INLINED realv take_unrotated(const struct call *call, const struct segment *segment, const uint i, const struct held *held,
                             struct affine *affine, const struct statistics statistics) {
    const index_t v = segment->lane + i * LANES;
    const realv s = widen_s(segment, held->s[i]);
    if (WEIGHTS != WEIGHTS_EARLY)
        load_affine(segment, v, call->aligned, LOAD_PLAIN, &affine[i % AFFINES]);
    put_beside(call, segment, v, s);
    return y_of(call, s, &affine[i % AFFINES], statistics);
}

/* Each lane has both vectors of its pairs, and has read them before it writes, as y may be x. */
INLINED float put_segment(const struct call *call, const struct segment *segment, const struct held *held,
                          struct affine *affine, const struct statistics statistics, struct lanes *lanes) {
    const float scale = tensor_scale(call);
    (void)lanes;
#pragma unroll
    for (uint i = 0; i < OWN_PAIRS; i++) {
        if (!segment->active)
            continue;
        const realv first = take_unrotated(call, segment, first_of_own_pair(i), held, affine, statistics);
        const realv second = take_unrotated(call, segment, second_of_own_pair(i), held, affine, statistics);
        put_pair(call, segment, segment->lane + i * LANES, first, second, scale);
    }
#pragma unroll
    for (uint i = 2 * OWN_PAIRS; i < HELD; i++)
        if (has_vector(segment, i))
            put_y(call, segment, segment->lane + i * LANES, take_unrotated(call, segment, i, held, affine, statistics),
                  scale);
    return 0;
}

#else

/* Loads weights, biases and z of a lane's vectors from the i-th on. */
INLINED void load_affines(const struct call *call, const struct segment *segment, const uint i, struct affine *affine) {
#pragma unroll
    for (uint j = 0; j < AFFINES; j++)
        if (i + j < HELD && has_vector(segment, i + j))
            load_affine(segment, segment->lane + (i + j) * LANES, call->aligned, LOAD_PLAIN, &affine[j]);
}

/* Writes the outputs of a segment, without its statistics. Returns the largest |y| of this lane's part, with MEASURES. */
INLINED float put_segment(const struct call *call, const struct segment *segment, const struct held *held,
                          struct affine *affine, const struct statistics statistics, struct lanes *lanes) {
#if MEASURED || MEASURES
    realv y[HELD];
#endif
#pragma unroll
    for (uint i = 0; i < HELD; i++) {
#if MEASURED || MEASURES
        y[i] = 0;
#endif
        if (WEIGHTS != WEIGHTS_EARLY && i % AFFINES == 0)
            load_affines(call, segment, i, affine);
        if (!has_vector(segment, i))
            continue;
        const index_t v = segment->lane + i * LANES;
        const realv s = widen_s(segment, held->s[i]);
        put_beside(call, segment, v, s);
#if MEASURED || MEASURES
        y[i] = y_of(call, s, &affine[i % AFFINES], statistics);
#else
        put_vector(call, segment, v, s, &affine[i % AFFINES], statistics, tensor_scale(call));
#endif
    }
#if MEASURES
    return take_largest(call, segment, lanes, magnitudes_of(segment, y, HELD));
#elif MEASURED
    put_measured(call, segment, lanes, 0, y, HELD);
#endif
    (void)lanes;
    return 0;
}

#endif

/* Returns the largest |y| of this lane's part, with MEASURES. */
INLINED float normalise(const struct call *call, const struct segment *segment, struct lanes *lanes,
                        local struct group_memory *in_local) {
    (void)in_local;
    struct held held;
    struct parts parts[HELD];
    struct affine affine[AFFINES];
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (has_vector(segment, i))
            load_parts(segment, segment->lane + i * LANES, call->aligned, X_HINT, &parts[i]);
        else
            no_parts(&parts[i]);
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (WEIGHTS == WEIGHTS_EARLY && has_vector(segment, i))
            load_affine(segment, segment->lane + i * LANES, call->aligned, X_HINT, &affine[i % AFFINES]);
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        held.s[i] = s_of(segment, &parts[i], kept_in(call, segment, segment->lane + i * LANES));
    const struct statistics statistics = statistics_of(call, segment, lanes, &held);
    const float amax = put_segment(call, segment, &held, affine, statistics, lanes);
    join_lanes();
    save_statistics(call, segment, statistics);
    return amax;
}

#endif
