/* An 8-bit y with measured scales: one for all of it, for a row, or for Y_GROUP columns. VEC divides Y_GROUP, so that a
 * vector has one scale. */
#ifndef NORM_QUANTIZED_H
#define NORM_QUANTIZED_H

#include "norm/norm.h"
#include "quantize/magnitude.h"

/* A scale is shared by BLOCK vectors of each of WIDTH neighbouring lanes. */
#if SCALING == SCALING_GROUP
#define SHARING (Y_GROUP / VEC)
#define WIDTH (SHARING < LANES ? SHARING : LANES)
#define BLOCK (SHARING / WIDTH < HELD ? SHARING / WIDTH : HELD)
#else
#define WIDTH LANES
#define BLOCK HELD
#endif

/* Adds the magnitudes of vector v of y to those so far. */
static inline largest with_magnitudes(const struct segment *segment, const largest so_far, const floatv y,
                                      const index_t v) {
    return larger_of(so_far, only_elements(y, v, segment->lead));
}

/* The magnitudes of a lane's first count vectors of y. */
static inline largest magnitudes_of(const struct segment *segment, const realv *y, const uint count) {
    largest magnitudes = 0;
#pragma unroll
    for (uint i = 0; i < count; i++)
        magnitudes = with_magnitudes(segment, magnitudes, y[i], segment->lane + i * LANES);
    return magnitudes;
}

/* Writes and returns the scale of the elements with these magnitudes. i: the first of this lane's vectors with them. Every
 * work-item of the work-group must call it. */
INLINED float take_scale(const struct call *call, const struct segment *segment, struct lanes *lanes,
                         const largest magnitudes, const index_t i) {
    const float amax = largest_over_neighbours(lanes, largest_of(magnitudes), WIDTH);
    const float scale = ROUND(SCALE_DTYPE)(scale_of(amax, FP8_LARGEST(Y_DTYPE)));
    const ulong column = segment->column + (segment->lane + i * LANES) * VEC;
    if (segment->lane % WIDTH == 0 && has_vector(segment, i))
        STORE1(SCALE_DTYPE)(call->y_scale + place_of_scale(SCALING, Y_GROUP, segment->row, column), scale);
    return scale;
}

/* Returns the largest |y| of a lane's part of a segment. With SAVE_Y_ROW_SCALE it writes the scale that the row would have
 * by itself. Every work-item of the work-group must call it. */
INLINED float take_largest(const struct call *call, const struct segment *segment, struct lanes *lanes,
                           const largest magnitudes) {
    const float own = largest_of(magnitudes);
#if SAVE_Y_ROW_SCALE
    const float amax = largest_over_lanes(lanes, own);
    if (segment->lane == 0 && segment->active)
        STORE1(SCALE_DTYPE)(call->y_row_scale + segment->row, ROUND(SCALE_DTYPE)(scale_of(amax, FP8_LARGEST(Y_DTYPE))));
#else
    (void)call, (void)segment, (void)lanes;
#endif
    return own;
}

/* Writes the largest |y| of the work-group. own: that of this lane. Every work-item of the work-group must call it. */
INLINED void put_largest(const struct call *call, struct lanes *lanes, const float own) {
    const float amax = largest_over_segments(lanes->scratch, largest_over_lanes(lanes, own));
    if (call->work > 0 && get_local_id(0) == 0)
        call->magnitudes[get_group_id(0)] = amax;
}

/* Writes count vectors of each lane, from index first on. Both are multiples of BLOCK, unless there are no vectors beyond.
 * y is 0 where a lane has no vector. Every work-item of the work-group must call it. */
INLINED void put_measured(const struct call *call, const struct segment *segment, struct lanes *lanes, const index_t first,
                          const realv *y, const uint count) {
#pragma unroll
    for (uint i = 0; i < count; i += BLOCK) {
        largest magnitudes = 0;
#pragma unroll
        for (uint j = i; j < i + BLOCK && j < count; j++)
            magnitudes = with_magnitudes(segment, magnitudes, y[j], segment->lane + (first + j) * LANES);
        const float scale = take_scale(call, segment, lanes, magnitudes, first + i);
#pragma unroll
        for (uint j = i; j < i + BLOCK && j < count; j++)
            if (has_vector(segment, first + j))
                put_codes(call, segment, segment->lane + (first + j) * LANES, y[j], scale);
    }
}

#endif
