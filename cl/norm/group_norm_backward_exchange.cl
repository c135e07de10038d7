/* The gradients of group norm by chunks in one launch, with channels first, whose work-groups exchange the sums of chunks.
 * It reads x and dy twice, the second time from the L2 cache. See group_norm_tickets.h. */

#include "norm/group_norm_backward.h"
#include "norm/group_norm_shares.h"
#include "norm/group_norm_sums.h"
#include "norm/group_norm_tickets.h"

/* The arguments for dx. work: units. */
struct dx_call {
    MEMBERS(GROUP_NORM_BACKWARD_EXCHANGE_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "norm/group_norm_chunk_dx.h"

/* Writes dx of a unit, whose first vectors are on their way while its group's sums are added up. Every work-item of the
 * work-group calls it. */
INLINED void write_unit(const struct dx_call *call, const struct unit *unit, struct lanes *lanes) {
    struct batch batch;
    struct shares shares = {{0, 0}, {0, 0}};
    load_chunk(call, unit, &batch);
    take_group(&shares, call->parts, call->weight, group_of(unit), unit->lane);
    real sums[2] = {shares.of_dn.sum, shares.of_product.sum};
    sum_lanes(lanes, sums, 2);
    join_lanes();
    if (unit->active)
        write_with_sums(call, unit, &batch, sums);
}

/* Takes the sums of some units of a task, or writes dx of its piece. */
INLINED void take_step(const struct sums_call *call, const struct dx_call *apply, struct task *task, struct lanes *lanes) {
    if (task->takes.first < task->takes.end) {
        const struct unit unit = unit_from(task->takes.first, task->takes.end);
        take_sums(call, &unit, lanes, 0);
        task->takes.first += UNITS;
    } else {
        const struct unit unit = unit_from((ulong)task->piece * UNITS, call->work);
        write_unit(apply, &unit, lanes);
        task->writes = false;
    }
}

/* No barrier is in a branch that need not be, since PoCL builds every path after it. */
INLINED void take_tickets(const struct sums_call *call, const struct dx_call *apply, local real *scratch,
                          local uint *board) {
    if (call->work == 0)
        return;
    struct lanes lanes = {.scratch = scratch};
    const struct order order = order_of(call->work, apply->ahead, apply->tickets);
    struct tickets tickets = first_ticket(apply->tickets, board);
    struct task task = {{0, 0}, 0, false, false};
    while (next_step(&order, &tickets, &task, call->work)) {
        const struct range own = range_of_piece(task.piece, call->work);
        const struct unit unit = unit_from(own.first, call->work);
        const bool arrived = !task.waits || has_arrived(apply->parts, group_of(&unit), unit.lane, LANES);
        look_for_parts(&tickets, &task, &own, arrived);
        take_step(call, apply, &task, &lanes);
    }
    end_steps(apply->tickets);
}

#define LOCAL_MEMORY                 \
    local real scratch[2 * SCRATCH]; \
    local uint board[BOARD_WORDS];

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
