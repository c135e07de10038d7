/* The steps of a work-group that exchanges parts with others: see group_norm_tickets.h. The including file defines
 *
 *     parts_call, outputs_call        the arguments for the parts, and for the outputs
 *     struct place                    what the work-items of a work-group share; its lanes come first
 *     take_parts(call, unit, place)   takes and posts the parts of a unit
 *     write_outputs(call, unit, place)
 *
 * of which every work-item of the work-group calls the functions. */
#ifndef GROUP_NORM_EXCHANGE_H
#define GROUP_NORM_EXCHANGE_H

#include "norm/group_norm_tickets.h"

/* Takes the parts of some units of a task, or writes the outputs of its piece, whose units begin at an index. */
INLINED void take_step(const parts_call *call, const outputs_call *apply, const ulong first, struct task *task,
                       struct place *place) {
    if (task->takes.first < task->takes.end) {
        const struct unit unit = unit_from(task->takes.first, task->takes.end);
        take_parts(call, &unit, place);
        task->takes.first += UNITS;
    } else {
        const struct unit unit = unit_from(first, call->work);
        write_outputs(apply, &unit, place);
        task->writes = false;
    }
}

/* No barrier is in a branch that need not be, since PoCL builds every path after it. */
INLINED void take_tickets(const parts_call *call, const outputs_call *apply, local real *scratch, local uint *board) {
    if (call->work == 0)
        return;
    struct place place = {{.scratch = scratch}};
    const struct order order = order_of(call->work, apply->ahead);
    struct tickets tickets = first_ticket(apply->tickets, board);
    struct task task = {{0, 0}, 0, false, false};
    while (next_step(&order, &tickets, &task, call->work)) {
        const struct range own = range_of_piece(task.piece, call->work);
        const struct unit unit = unit_from(own.first, call->work);
        const bool arrived = !task.waits || have_arrived(apply->parts, group_of(&unit), unit.lane, LANES);
        look_for_parts(&tickets, &task, &own, arrived);
        take_step(call, apply, own.first, &task, &place);
    }
    last_barrier();
}

#define LOCAL_MEMORY                 \
    local real scratch[2 * SCRATCH]; \
    local uint board[BOARD_WORDS];

#endif
