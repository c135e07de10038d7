/* y in 8 bits, by a scale for all of it, for a row, or for Y_GROUP columns. VEC divides Y_GROUP, so that a vector has one
 * scale. */
#ifndef NORM_QUANTIZED_H
#define NORM_QUANTIZED_H

#include "magnitude.h"
#include "norm.h"

/* What shares a scale: BLOCK of a lane's vectors, of each of WIDTH neighbouring lanes. */
#if SCALING == SCALING_GROUP
#define SHARING (Y_GROUP / VEC)
#define WIDTH (SHARING < LANES ? SHARING : LANES)
#define BLOCK (SHARING / WIDTH < HELD ? SHARING / WIDTH : HELD)
#else
#define WIDTH LANES
#define BLOCK HELD
#endif

/* Magnitudes of y's elements in vector v, and of what was before it. */
static inline largest with_magnitudes(const largest so_far, const floatv y, const index_t v) {
    return larger_of(so_far, TAIL == 0 ? y : only_elements(y, v));
}

/* Where the scale of a lane's vector v goes. */
static inline ulong place_of_scale(const struct segment *segment, const index_t v) {
#if SCALING == SCALING_GROUP
    const ulong groups = (GROUPS * (ulong)GROUP_SIZE + Y_GROUP - 1) / Y_GROUP;
    return segment->row * groups + (segment->column + v * VEC) / Y_GROUP;
#else
    (void)v;
    return segment->row;
#endif
}

/* The scale of what has these magnitudes in this lane, beginning with its i-th vector. Every work-item of the work-group
 * calls it. */
INLINED float take_scale(const struct call *call, const struct segment *segment, struct lanes *lanes,
                         const largest magnitudes, const index_t i) {
    const float amax = largest_over_neighbours(lanes, largest_of(magnitudes), WIDTH);
    const float scale = scale_of(amax, FP8_LARGEST(Y_DTYPE));
    if (segment->lane % WIDTH == 0 && has_vector(segment, i))
        call->y_scale[place_of_scale(segment, segment->lane + i * LANES)] = scale;
    return scale;
}

/* Puts count vectors of each lane, from its first-th on; both are multiples of BLOCK, or there are no vectors beyond. Where
 * a lane has none, y is 0. Every work-item of the work-group calls it. */
INLINED void put_measured(const struct call *call, const struct segment *segment, struct lanes *lanes, const index_t first,
                          const realv *y, const uint count) {
#pragma unroll
    for (uint i = 0; i < count; i += BLOCK) {
        largest magnitudes = 0;
#pragma unroll
        for (uint j = i; j < i + BLOCK && j < count; j++)
            magnitudes = with_magnitudes(magnitudes, y[j], segment->lane + (first + j) * LANES);
        const float scale = take_scale(call, segment, lanes, magnitudes, first + i);
#pragma unroll
        for (uint j = i; j < i + BLOCK && j < count; j++)
            if (has_vector(segment, first + j))
                put_codes(call, segment, segment->lane + (first + j) * LANES, y[j], scale);
    }
}

#endif
