/* Group norm by chunks in one launch, with channels first, whose work-groups exchange the moments of chunks. It reads x
 * twice, the second time from the L2 cache. See group_norm_tickets.h. */

#include "norm/group_norm.h"
#include "norm/group_norm_y.h"

/* The arguments for moments and for y. work: units. */
struct call {
    MEMBERS(GROUP_NORM_MOMENTS_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

struct apply_call {
    MEMBERS(GROUP_NORM_EXCHANGE_ARGS)
    bool aligned;
    enum load_hint hint; /* of inputs */
};

#include "norm/group_norm_chunk_moments.h"
#include "norm/group_norm_chunk_y.h"

typedef struct call parts_call;
typedef struct apply_call outputs_call;

INLINED void take_parts(const struct call *call, const struct unit *unit, struct place *place) {
    take_moments(call, unit, &place->lanes, 0);
}

INLINED void write_outputs(const struct apply_call *call, const struct unit *unit, struct place *place) {
    struct output output = OUTPUT_OF(call, unit->sample);
    write_unit(call, unit, place, &output);
}

#include "norm/group_norm_exchange.h"

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_exchange(PARAMETERS(GROUP_NORM_EXCHANGE_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_MOMENTS_ARGS), .aligned = !ELEMENT_ALIGNED};
    const struct apply_call apply = {ARGUMENTS(GROUP_NORM_EXCHANGE_ARGS), .aligned = !ELEMENT_ALIGNED, .hint = HINT};
    take_tickets(&call, &apply, scratch, board);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_exchange_unaligned(PARAMETERS(GROUP_NORM_EXCHANGE_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_MOMENTS_ARGS), .aligned = false};
    const struct apply_call apply = {ARGUMENTS(GROUP_NORM_EXCHANGE_ARGS), .aligned = false};
    take_tickets(&call, &apply, scratch, board);
}
#endif
