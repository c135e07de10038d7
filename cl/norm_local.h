/* A segment is read once and held in local memory, and in registers what does not fit there. The work-group goes through
 * its segments one by one; as soon as a vector has been normalised, the same vector of the next segment takes its place, on
 * its way while the rest is written.
 *
 * A lane's slots are its own: it alone fills and reads them, and nothing waits for another lane but the sums. */
#ifndef NORM_LOCAL_H
#define NORM_LOCAL_H

#include "norm_held.h"

#define REGISTER_SLOTS (HELD > LOCAL_SLOTS ? HELD - LOCAL_SLOTS : 0)

struct held {
    local held_t *slot; /* i is at slot[i · LANES] */
    held_t s[REGISTER_SLOTS + 1];
};

static inline realv held_at(const struct held *held, const struct segment *segment, const uint i) {
    if (!has_vector(segment, i))
        return 0;
    return widen_s(i < LOCAL_SLOTS ? held->slot[i * LANES] : held->s[i < LOCAL_SLOTS ? 0 : i - LOCAL_SLOTS]);
}

static inline void forget_wide(struct held *held) {
    (void)held;
}

/* Starts vector i of a segment on its way into its slot. */
static inline void fill(struct held *held, const struct segment *segment, const uint i, const bool aligned) {
    if (!has_vector(segment, i))
        return;
    const index_t v = segment->lane + i * LANES;
    if (i >= LOCAL_SLOTS)
        held->s[i - LOCAL_SLOTS] = load_s(segment, v, aligned, LOAD_PLAIN);
#if ISA == ISA_PTX
    else if (aligned && sizeof(held_t) == 16)
        start_copy16(held->slot + i * LANES, segment->x + v * VEC);
#endif
    else
        held->slot[i * LANES] = load_s(segment, v, aligned, LOAD_PLAIN);
}

/* Writes y, and has the next segment's vectors take the place of this one's. */
static inline void put_and_refill(const struct call *call, const struct segment *segment, const struct segment *next,
                                  struct held *held, const struct statistics statistics, const uint i) {
    if (has_vector(segment, i)) {
        const index_t v = segment->lane + i * LANES;
        const struct affine affine = load_affine(segment, v, call->aligned, LOAD_PLAIN);
        put_y(call, segment, v, held_at(held, segment, i), affine, statistics);
    }
    fill(held, next, i, call->aligned);
}

/* The segments of a work-group: every step-th from index on. */
static inline void normalise_all(const struct call *call, ulong index, const ulong step, struct lanes *lanes,
                                 local held_t *slots) {
    struct segment segment = segment_at(call, index);
    struct held held;
    held.slot = slots + segment.lane;
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        fill(&held, &segment, i, call->aligned);
    for (; index < call->work; index += step) {
        struct segment next = segment_at(call, index + step);
        next.active = index + step < call->work;
        wait_for_copies();
        const struct statistics statistics = statistics_of(call, &segment, lanes, &held);
#pragma unroll UNROLL
        for (uint i = 0; i < LOCAL_SLOTS; i++)
            put_and_refill(call, &segment, &next, &held, statistics, i);
#pragma unroll
        for (uint i = LOCAL_SLOTS; i < HELD; i++)
            put_and_refill(call, &segment, &next, &held, statistics, i);
        save_statistics(call, &segment, statistics);
        segment = next;
    }
}

#endif
