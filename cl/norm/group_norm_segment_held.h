/* A segment of channels first, or one of CHUNKS of it, which LANES work-items hold in registers. Chunks are equally large.
 * The including file defines a struct call with the members of GROUP_NORM_ARGS. */
#ifndef GROUP_NORM_SEGMENT_HELD_H
#define GROUP_NORM_SEGMENT_HELD_H

#include "norm/group_norm_segment_y.h"

/* A lane's vectors, as loaded; and its chunk's first element, from which deviations are taken, as a sum of large numbers
 * might overflow. */
struct held {
    struct packed_s s[VECTORS_OF_LANE];
    real origin;
};

/* The chunk of a segment that is held. first: vector of the segment. */
struct chunk {
    struct place place;
    index_t first;
};

static inline struct chunk chunk_of(const struct place *place, const ulong number) {
    const struct chunk chunk = {*place, (index_t)(number * CHUNK_VECTORS)};
    return chunk;
}

/* Whether this lane has a k-th vector. Compilers know it of most. */
#define HOLDS(k) \
    (chunk->place.active && (((k) + 1) * LANES <= CHUNK_VECTORS || chunk->place.lane + (k)*LANES < CHUNK_VECTORS))

static inline index_t vector_of(const struct chunk *chunk, const uint k) {
    return chunk->first + chunk->place.lane + (index_t)k * LANES;
}

INLINED void load_held(const struct call *call, const struct chunk *chunk, struct held *held) {
    const struct place *const place = &chunk->place;
#pragma unroll
    for (uint k = 0; k < VECTORS_OF_LANE; k++)
        if (HOLDS(k))
            LOAD_PACKED_S(&held->s[k], call, place->sample, place->first + (ulong)vector_of(chunk, k) * VEC, VEC);
    begin_loads();
    const ulong first = place->first + (ulong)chunk->first * VEC;
    held->origin = place->active ? first_element(LOAD_S(call, place->sample, first, 1)) : 0;
}

/* Called between one use of a vector and the next. */
static inline void forget_wide(struct packed_s *packed) {
    if (sizeof(packed->x) < sizeof(realv))
        forget((uint *)&packed->x, sizeof(packed->x) / sizeof(uint));
}

/* The chunk's mean. Every work-item of the work-group calls this and the next function. */
INLINED real mean_of_held(const struct call *call, const struct chunk *chunk, struct held *held, struct lanes *lanes) {
    realv sum = 0;
#pragma unroll
    for (uint k = 0; k < VECTORS_OF_LANE; k++) {
        if (HOLDS(k))
            sum += S_OF(call, chunk->place.sample, &held->s[k]) - held->origin;
        forget_wide(&held->s[k]);
    }
    return held->origin + sum_over_lanes(lanes, sum_elements(sum)) / (real)(GROUP_SIZE / CHUNKS);
}

/* The sum of the squares of its deviations from its mean. */
INLINED real squares_of_held(const struct call *call, const struct chunk *chunk, struct held *held, const real mean,
                             struct lanes *lanes) {
    realv squares = 0;
#pragma unroll
    for (uint k = 0; k < VECTORS_OF_LANE; k++)
        if (HOLDS(k)) {
            const realv deviation = S_OF(call, chunk->place.sample, &held->s[k]) - mean;
            squares += deviation * deviation;
            forget_wide(&held->s[k]);
        }
    return sum_over_lanes(lanes, sum_elements(squares));
}

INLINED void write_held(const struct call *call, const struct chunk *chunk, const struct held *held, const real mean,
                        const real rstd, struct output *output) {
#pragma unroll
    for (uint k = 0; k < VECTORS_OF_LANE; k++)
        if (HOLDS(k))
            write_whole_vector(call, &chunk->place, vector_of(chunk, k), mean, rstd, &held->s[k], output);
}

#endif
