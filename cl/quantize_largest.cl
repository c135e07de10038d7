/* The largest of many magnitudes, and the scale of a tensor that has them. One work-group of LANES work-items.
 *
 * Macros (src/spec.h): X_DTYPE (f32), Q_DTYPE, SCALE_DTYPE (none: no scale is written), AMAX, VEC (1), LANES, SEGMENTS (1),
 * REDUCE, STORES, ISA, FP8_ISA, ELEMENT_ALIGNED. */

#include "magnitude.h"
#include "quantize.h"

kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void
quantize_largest(const global float *magnitudes, const ulong magnitudes_at, global STORAGE(SCALE_DTYPE) * scale,
                 const ulong scale_at, global float *amax, const ulong amax_at, const ulong work) {
    local float scratch[2 * SCRATCH];
    struct lanes lanes = {scratch, 0};
    const float amax_of_all = largest_of_all(magnitudes + magnitudes_at, work, &lanes);
    if (work == 0 || get_local_id(0) != 0)
        return;
    if (AMAX)
        amax[amax_at] = amax_of_all;
#if PRESENT(SCALE_DTYPE)
    STORE1(SCALE_DTYPE)(scale + scale_at, ROUND(SCALE_DTYPE)(scale_of(amax_of_all, FP8_LARGEST(Q_DTYPE))));
#endif
}
