/* y in 8 bits, by a scale for all of it, for a row, or for Y_GROUP columns. VEC divides Y_GROUP, so that a vector has one
 * scale. */
#ifndef NORM_QUANTIZED_H
#define NORM_QUANTIZED_H

#include "norm/norm.h"
#include "quantize/magnitude.h"

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

/* Those of count vectors of y, a lane's first ones. */
static inline largest magnitudes_of(const struct segment *segment, const realv *y, const uint count) {
    largest magnitudes = 0;
#pragma unroll
    for (uint i = 0; i < count; i++)
        magnitudes = with_magnitudes(magnitudes, y[i], segment->lane + i * LANES);
    return magnitudes;
}

/* The scale of what has these magnitudes in this lane, beginning with its i-th vector. Every work-item of the work-group
 * calls it. */
INLINED float take_scale(const struct call *call, const struct segment *segment, struct lanes *lanes,
                         const largest magnitudes, const index_t i) {
    const float amax = largest_over_neighbours(lanes, largest_of(magnitudes), WIDTH);
    const float scale = ROUND(SCALE_DTYPE)(scale_of(amax, FP8_LARGEST(Y_DTYPE)));
    const ulong column = segment->column + (segment->lane + i * LANES) * VEC;
    if (segment->lane % WIDTH == 0 && has_vector(segment, i))
        STORE1(SCALE_DTYPE)(call->y_scale + place_of_scale(SCALING, Y_GROUP, segment->row, column), scale);
    return scale;
}

/* What a lane's part of a segment adds to the largest |y| of all, from its magnitudes; and the scale that the row would
 * have by itself. Every work-item of the work-group calls it. */
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

/* own: the largest of a lane's parts of its segments. Every work-item of the work-group calls it. */
INLINED void put_largest(const struct call *call, struct lanes *lanes, const float own) {
    const float amax = largest_over_segments(lanes->scratch, largest_over_lanes(lanes, own));
    if (call->work > 0 && get_local_id(0) == 0)
        call->magnitudes[get_group_id(0)] = amax;
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
