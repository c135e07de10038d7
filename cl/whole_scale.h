/* The scale of a whole tensor: one that is there already; or that of the largest of the magnitudes which the kernel before
 * this one left, one of each of its work-groups. Every work-group then looks through them, which takes less time than a
 * launch of one that does, and the first one stores what the caller asked for. */
#ifndef WHOLE_SCALE_H
#define WHOLE_SCALE_H

#include "magnitude.h"
#include "quantize.h"

struct whole {
    global STORAGE(SCALE_DTYPE) * scale;
    global float *amax; /* with AMAX */
    const global float *magnitudes;
    ulong count; /* of them; 0: the scale is there */
};

#if LANES > 1
#define WHOLE_SCRATCH (2 * SCRATCH)
#else
#define WHOLE_SCRATCH 1
#endif

INLINED float whole_scale(const struct whole whole, local float *scratch) {
#if LANES > 1
    struct lanes lanes = {scratch, 0};
    const float amax = largest_of_all(whole.magnitudes, whole.count, &lanes); /* its barriers are no part of a branch */
    if (whole.count > 0) {
        const float scale = ROUND(SCALE_DTYPE)(scale_of(amax, FP8_LARGEST(Q_DTYPE)));
        if (get_group_id(0) == 0 && get_local_id(0) == 0) {
            STORE1(SCALE_DTYPE)(whole.scale, scale);
            if (AMAX)
                *whole.amax = amax;
        }
        return scale;
    }
#else
    (void)scratch;
#endif
    return LOAD_SCALE(SCALE_DTYPE)(whole.scale);
}

#endif
