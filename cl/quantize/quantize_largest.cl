/* The largest of many magnitudes, and the scale of their tensor, by one work-group of LANES work-items.
 *
 * Macros (src/program/spec.h): X_DTYPE (f32), Q_DTYPE, SCALE_DTYPE (none: no scale is written), AMAX, VEC (1), LANES,
 * SEGMENTS (1), REDUCE, STORES, ISA, FP8_ISA, ELEMENT_ALIGNED. */

#include "common/arguments.h"
#include "quantize/magnitude.h"
#include "quantize/quantize.h"
#include "quantize/quantize_args.h"

struct call {
    MEMBERS(QUANTIZE_LARGEST_ARGS)
};

kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void quantize_largest(PARAMETERS(QUANTIZE_LARGEST_ARGS)) {
    local float scratch[2 * SCRATCH];
    struct lanes lanes = {.scratch = scratch};
    const struct call call = {ARGUMENTS(QUANTIZE_LARGEST_ARGS)};
    const float largest = largest_of_all(call.magnitudes, call.work, &lanes);
    if (call.work == 0 || get_local_id(0) != 0)
        return;
    if (AMAX)
        *call.amax = largest;
#if PRESENT(SCALE_DTYPE)
    STORE1(SCALE_DTYPE)(call.scale, ROUND(SCALE_DTYPE)(scale_of(largest, FP8_LARGEST(Q_DTYPE))));
#endif
}
