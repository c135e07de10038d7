/* Largest magnitudes, in which NaNs and infinities do not count. */
#ifndef MAGNITUDE_H
#define MAGNITUDE_H

#include "common/lanes.h"

/* For each element the larger of so_far and its magnitude, if that is finite. */
static inline floatv larger_magnitudes(const floatv so_far, const floatv v) {
    const uintv magnitude = AS_UINTV(v) & 0x7fffffffu;
    const uintv finite = choose(magnitude < 0x7f800000u, magnitude, (uintv)0);
    return AS_FLOATV(max(AS_UINTV(so_far), finite));
}

/* The largest magnitude that a lane has seen. A single lane keeps one for each position in a vector. Several lanes keep one
 * for all positions, which takes one comparison per element unless an element is infinite. */
#if LANES == 1
typedef floatv largest;

static inline largest larger_of(const largest so_far, const floatv v) {
    return larger_magnitudes(so_far, v);
}

static inline float largest_of(const largest v) {
    return largest_element(v);
}
#else
typedef float largest;

static inline largest larger_of(const largest so_far, const floatv v) {
    const float any = largest_element(fabs(v));
    return fmax(so_far, any < INFINITY ? any : largest_element(larger_magnitudes(0, v)));
}

static inline float largest_of(const largest v) {
    return v;
}
#endif

/* The largest value over the segments of a work-group; all lanes of a segment have the same value. Every work-item of the
 * work-group must call it. */
INLINED float largest_over_segments(local float *scratch, float v) {
#if SEGMENTS > 1
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) % LANES == 0)
        scratch[get_local_id(0) / LANES] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < SEGMENTS; i++)
        v = fmax(v, scratch[i]);
#else
    (void)scratch;
#endif
    return v;
}

/* The largest of count magnitudes, for every lane of a work-group with one segment. Every work-item must call it. */
INLINED float largest_of_all(const global float *magnitudes, const ulong count, struct lanes *lanes) {
    float v = 0;
#if !ON_CPU /* many loads in flight; PoCL's compiler warns that it does not unroll this */
#pragma unroll 8
#endif
    for (ulong i = get_local_id(0); i < count; i += LANES)
        v = fmax(v, magnitudes[i]);
    return largest_over_lanes(lanes, v);
}

#endif
