/* Largest magnitudes: over a vector's elements, and over the lanes of lanes.h. NaNs and infinities do not count. */
#ifndef LARGEST_H
#define LARGEST_H

#include "lanes.h"

/* Each element's magnitude where it is finite, else 0; the larger of that and so_far. */
static inline floatv larger_magnitudes(const floatv so_far, const floatv v) {
    const uintv magnitude = AS_UINTV(v) & 0x7fffffffu;
    const uintv finite = choose(magnitude < 0x7f800000u, magnitude, (uintv)0);
    return AS_FLOATV(max(AS_UINTV(so_far), finite));
}

static inline float larger(const float a, const float b) {
    return a > b ? a : b;
}

static inline float largest_element(const floatv v) {
    float element[VEC];
    VSTORE(v, element);
    float largest = element[0];
#pragma unroll
    for (uint i = 1; i < VEC; i++)
        largest = larger(largest, element[i]);
    return largest;
}

/* The largest v of a segment's lanes, in each of them. Every work-item of the work-group must call it. */
INLINED float largest_over_lanes(struct lanes *lanes, float v) {
#if LANES == 1
    (void)lanes;
#elif REDUCE == REDUCE_SHUFFLE
#pragma unroll
    for (uint mask = STEP_LANES / 2; mask > 0; mask /= 2)
        v = larger(v, shuffle_xor(v, mask));
#if LANES > STEP_LANES
    local float *scratch = next_scratch(lanes);
    const uint item = (uint)get_local_id(0);
    const uint steps = LANES / STEP_LANES;
    if (item % STEP_LANES == 0)
        scratch[item / STEP_LANES] = v;
    segment_barrier();
    for (uint i = 0; i < steps; i++)
        v = larger(v, scratch[item / LANES * steps + i]);
#else
    (void)lanes;
#endif
#else
    local float *scratch = next_scratch(lanes);
    const uint item = (uint)get_local_id(0);
    scratch[item] = v;
    read_barrier();
    for (uint distance = LANES / 2; distance > 0; distance /= 2) {
        if (item % LANES < distance)
            scratch[item] = larger(scratch[item], scratch[item + distance]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    v = scratch[item / LANES * LANES];
#endif
    return v;
}

#endif
