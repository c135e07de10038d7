/* The scale of a whole tensor: one that is already written, or one made of the largest of the magnitudes that the
 * work-groups of the kernel before have written. Every work-group searches these, which takes less time than a launch of
 * its own, and the first one stores the results that the caller requested. */
#ifndef WHOLE_SCALE_H
#define WHOLE_SCALE_H

#include "common/arguments.h"
#include "quantize/magnitude.h"
#include "quantize/quantize.h"
#include "quantize/quantize_args.h"

struct whole {
    MEMBERS(WHOLE_SCALE_ARGS)
};

#if LANES > 1
#define WHOLE_SCRATCH (2 * SCRATCH)
#else
#define WHOLE_SCRATCH 1
#endif

INLINED float whole_scale(const struct whole whole, local float *scratch) {
#if LANES > 1
    struct lanes lanes = {.scratch = scratch};
    const float amax = largest_of_all(whole.magnitudes, whole.count, &lanes); /* has barriers: outside of the branch */
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
    return LOAD1(SCALE_DTYPE)(whole.scale);
}

#endif
