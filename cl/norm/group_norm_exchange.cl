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
#include "norm/group_norm_tickets.h"

/* Takes the moments of some units of a task, or writes y of its piece. */
INLINED void take_step(const struct call *call, const struct apply_call *apply, struct task *task, struct place *place) {
    if (task->takes.first < task->takes.end) {
        const struct unit unit = unit_from(task->takes.first, task->takes.end);
        take_moments(call, &unit, &place->lanes, 0);
        task->takes.first += UNITS;
    } else {
        const struct unit unit = unit_from((ulong)task->piece * UNITS, call->work);
        struct output output = OUTPUT_OF(apply, unit.sample);
        write_unit(apply, &unit, place, &output);
        task->writes = false;
    }
}

/* No barrier is in a branch that need not be, since PoCL builds every path after it. */
INLINED void take_tickets(const struct call *call, const struct apply_call *apply, local real *scratch, local uint *board) {
    if (call->work == 0)
        return;
    struct place place = {{.scratch = scratch}};
    const struct order order = order_of(call->work, apply->ahead, apply->tickets);
    struct tickets tickets = first_ticket(apply->tickets, board);
    struct task task = {{0, 0}, 0, false, false};
    while (next_step(&order, &tickets, &task, call->work)) {
        const struct range own = range_of_piece(task.piece, call->work);
        const struct unit unit = unit_from(own.first, call->work);
        const bool arrived = !task.waits || has_arrived(apply->parts, group_of(&unit), unit.lane, LANES);
        look_for_parts(&tickets, &task, &own, arrived);
        take_step(call, apply, &task, &place);
    }
    end_steps(apply->tickets);
}

#define LOCAL_MEMORY                 \
    local real scratch[2 * SCRATCH]; \
    local uint board[BOARD_WORDS];

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
