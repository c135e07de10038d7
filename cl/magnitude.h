/* Largest magnitudes, in which NaNs and infinities do not count. */
#ifndef MAGNITUDE_H
#define MAGNITUDE_H

#include "lanes.h"

/* Each element's magnitude where it is finite, else 0; the larger of that and so_far. */
static inline floatv larger_magnitudes(const floatv so_far, const floatv v) {
    const uintv magnitude = AS_UINTV(v) & 0x7fffffffu;
    const uintv finite = choose(magnitude < 0x7f800000u, magnitude, (uintv)0);
    return AS_FLOATV(max(AS_UINTV(so_far), finite));
}

#endif
