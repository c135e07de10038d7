/* A slice of channels last: all positions of SPAN groups of a sample, or one of CHUNKS of them, which LANES work-items hold
 * in registers. They take a vector each of STEP neighbouring positions at a time, so that a lane has the same channels at
 * all of its positions. */
#ifndef GROUP_NORM_SLICE_H
#define GROUP_NORM_SLICE_H

#include "norm/group_norm.h"

#define SLICES (GROUPS / SPAN) /* of a sample */
#define SLICE_CHANNELS (SPAN * CHANNELS_OF_GROUP)
#define SLICE_VECTORS (SLICE_CHANNELS / VEC)
#define STEP (LANES / SLICE_VECTORS)
#define HELD_OF_LANE (CHUNK / STEP + (CHUNK % STEP != 0))

/* A lower bound of the positions of every chunk. */
#define LEAST_POSITIONS sub_sat((ulong)SPATIAL, (CHUNKS - 1) * (ulong)CHUNK)

/* The place of a slice, and of this lane in it. */
struct place {
    ulong sample;
    ulong channel;  /* the slice's first one */
    ulong first;    /* position */
    uint positions; /* their number */
    uint lane, phase, vector;
    bool active; /* the lane has vectors */
    bool writes; /* false for a slice that another segment has, read once more */
};

/* The segment of this work-item among those of its work-group: each has a slice. */
static inline uint own_segment(void) {
    return SEGMENTS > 1 ? (uint)get_local_id(0) / LANES : 0;
}

/* The place of this work-item in a slice of a sample. */
static inline struct place place_of(const ulong sample, const ulong slice, const bool writes) {
    const uint item = (uint)get_local_id(0), lane = SEGMENTS > 1 ? item % LANES : item;
    const struct place place = {sample,
                                slice * SLICE_CHANNELS,
                                0,
                                SPATIAL,
                                lane,
                                lane / SLICE_VECTORS,
                                lane % SLICE_VECTORS,
                                lane < STEP * SLICE_VECTORS,
                                SEGMENTS == 1 || writes};
    return place;
}

/* The same in a chunk of a slice. index: of the chunk among those of all slices. */
static inline struct place place_of_piece(const ulong index, const bool active) {
    const ulong slice = index / CHUNKS, chunk = index % CHUNKS;
    struct place place = place_of(slice / SLICES, slice % SLICES, true);
    place.active = place.active && active;
    place.first = chunk_begin(chunk);
    place.positions = chunk_count(chunk);
    return place;
}

/* Whether this lane has a k-th vector. Compilers know it of most. */
#define HOLDS(k) (place->active && (((k) + 1) * STEP <= LEAST_POSITIONS || place->phase + (k)*STEP < place->positions))

/* The k-th vector's first element in the sample. */
static inline ulong element_of(const struct place *place, const uint k) {
    return (place->first + place->phase + (ulong)k * STEP) * CHANNELS + place->channel + place->vector * VEC;
}

/* For each of the lane's channels, the number of its group. */
static inline realv of_lane(const local real *numbers, const struct place *place) {
    real element[VEC];
    for (uint i = 0; i < VEC; i++)
        element[i] = numbers[(place->vector * VEC + i) / CHANNELS_OF_GROUP];
    return VLOAD(element);
}

#endif
