/* The gradients of group norm with channels first, where a group of a sample fits in the registers of LANES work-items:
 * they read x and dy once. See clnorm_group_norm_backward_desc. */

#include "norm/group_norm_backward.h"

/* The arguments of a launch. work: groups of samples. */
struct call {
    MEMBERS(GROUP_NORM_BACKWARD_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "norm/group_norm_segment_dx.h"

INLINED void take_segment(const struct call *call, const ulong index, const bool active, struct lanes *lanes) {
    const struct place own_place = place_of(index, active), *const place = &own_place;
    struct held held;
    real sums[2];
    load_held(call, place, &held);
    sum_held(call, place, &held, true, lanes, sums);
    write_held(call, place, &held, sums);
}

#include "common/take_share.h"

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_backward_held(PARAMETERS(GROUP_NORM_BACKWARD_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(GROUP_NORM_BACKWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_backward_held_unaligned(PARAMETERS(GROUP_NORM_BACKWARD_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(GROUP_NORM_BACKWARD_ARGS), .aligned = false};
    take_share(&call, scratch);
}
#endif
