/* The gradients of group norm by chunks in one launch, with channels first, whose work-groups exchange the sums of chunks.
 * It reads x and dy twice, the second time from the L2 cache. See group_norm_tickets.h. */

#include "norm/group_norm_backward.h"
#include "norm/group_norm_shares.h"
#include "norm/group_norm_sums.h"

/* The arguments for dx. work: units. */
struct dx_call {
    MEMBERS(GROUP_NORM_BACKWARD_EXCHANGE_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "norm/group_norm_chunk_dx.h"

typedef struct sums_call parts_call;
typedef struct dx_call outputs_call;

/* What the work-items of a work-group share. */
struct place {
    struct lanes lanes;
};

INLINED void take_parts(const struct sums_call *call, const struct unit *unit, struct place *place) {
    take_sums(call, unit, &place->lanes, 0);
}

/* Writes dx of a unit, whose first vectors are on their way while its group's sums are added up. Every work-item of the
 * work-group calls it. */
INLINED void write_outputs(const struct dx_call *call, const struct unit *unit, struct place *place) {
    struct batch batch;
    struct shares shares = {{0, 0}, {0, 0}};
    load_chunk(call, unit, &batch);
    take_group(&shares, call->parts, call->weight, group_of(unit), unit->lane);
    real sums[2] = {shares.of_dn.sum, shares.of_product.sum};
    sum_lanes(&place->lanes, sums, 2);
    join_lanes();
    if (unit->active)
        write_with_sums(call, unit, &batch, sums);
}

#include "norm/group_norm_exchange.h"

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_backward_exchange(PARAMETERS(GROUP_NORM_BACKWARD_EXCHANGE_ARGS)) {
    LOCAL_MEMORY
    const struct sums_call call = {ARGUMENTS(GROUP_NORM_SUMS_ARGS), .aligned = !ELEMENT_ALIGNED};
    const struct dx_call apply = {ARGUMENTS(GROUP_NORM_BACKWARD_EXCHANGE_ARGS), .aligned = !ELEMENT_ALIGNED, .hint = HINT};
    take_tickets(&call, &apply, scratch, board);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_backward_exchange_unaligned(PARAMETERS(GROUP_NORM_BACKWARD_EXCHANGE_ARGS)) {
    LOCAL_MEMORY
    const struct sums_call call = {ARGUMENTS(GROUP_NORM_SUMS_ARGS), .aligned = false};
    const struct dx_call apply = {ARGUMENTS(GROUP_NORM_BACKWARD_EXCHANGE_ARGS), .aligned = false};
    take_tickets(&call, &apply, scratch, board);
}
#endif
