/* The order of work in a launch of group norm, with channels first, whose work-groups exchange parts. A piece is what a
 * work-group takes at a time: UNITS units. The launch takes the parts of each piece, and later writes its outputs, which
 * need the parts of whole groups. Parts run ahead of outputs: so far that those of a group have arrived, and not so far
 * that the L2 cache has lost the inputs, which are read again.
 *
 * A work-group draws one ticket after the other. Outputs wait for parts with lower tickets alone, and work-groups that run
 * have drawn those. Nevertheless no work-group waits without bound (waiting.h): after some looks it takes the missing
 * parts itself, to the same bits. */
#ifndef GROUP_NORM_TICKETS_H
#define GROUP_NORM_TICKETS_H

#include "common/cleared_message.h"
#include "norm/group_norm.h"

/* How inputs are loaded the second time. Where lanes have unlike numbers of vectors, NVIDIA's compiler makes a branch of
 * each load with a hint. */
#define HINT (EVEN_SHARES ? LOAD_LAST : LOAD_PLAIN)

/* A work-group's tickets. */
struct tickets {
    volatile global uint *number;
    local uint *drawn;   /* [2]: by turns */
    local uint *missing; /* [2]: by turns, 1 if a part is missing */
    uint count;          /* of steps */
    uint next;           /* in the first work-item */
};

#define BOARD_WORDS 4 /* of local memory */

/* Draws a number, in the first work-item. NVIDIA's assembler adds up the atomic operations of a warp's lanes if they have
 * one address, and the warp then waits for the result at once. It cannot tell that here, so that the warp goes on until
 * it needs the number. */
static inline uint draw_number(volatile global uint *number) {
#if ISA == ISA_PTX
    uint lane;
    __asm__("mov.u32 %0, %%tid.x;" : "=r"(lane));
    number += lane;
#endif
    return atomic_inc(number);
}

INLINED struct tickets first_ticket(volatile global uint *words, local uint *board) {
    struct tickets tickets = {words, board, board + 2, 0, 0};
    if (get_local_id(0) == 0) {
        tickets.next = draw_number(tickets.number);
        tickets.missing[1] = 0; /* of the first step */
    }
    return tickets;
}

/* Begins a step. Returns the work-group's ticket if it needs one, and draws the next one in advance. */
INLINED uint draw(struct tickets *tickets, const bool needed) {
    local uint *const drawn = tickets->drawn + tickets->count++ % 2;
    if (get_local_id(0) == 0)
        *drawn = tickets->next;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* after it, parts that this work-group posts are read */
    if (get_local_id(0) == 0 && needed)
        tickets->next = draw_number(tickets->number);
    return *drawn;
}

/* Units. */
struct range {
    ulong first, end;
};

/* The units on whose parts the outputs of a range depend: those of its groups. */
#define SOURCES ((ulong)CHUNKS * CHANNELS_OF_GROUP)

static inline struct range sources_of(const struct range *range) {
    const struct range sources = {range->first / SOURCES * SOURCES, ((range->end - 1) / SOURCES + 1) * SOURCES};
    return sources;
}

static inline struct range range_of_piece(const uint piece, const ulong units) {
    const struct range range = {(ulong)piece * UNITS, min((ulong)(piece + 1) * UNITS, units)};
    return range;
}

/* What a work-group does next: it takes the parts of units, or writes the outputs of a piece. */
struct task {
    struct range takes;
    uint piece;
    bool writes;
    bool waits; /* for the parts that the outputs need */
};

/* First the parts of so many pieces; then by turns outputs of one and parts of another; at last the outputs of as many. */
static inline bool writes_outputs(const uint ticket, const uint pieces, const uint ahead) {
    return ticket >= 2 * pieces - ahead || (ticket >= ahead && (ticket - ahead) % 2 == 0);
}

static inline uint piece_of(const uint ticket, const uint pieces, const uint ahead) {
    if (ticket >= 2 * pieces - ahead)
        return ticket - pieces;
    return ticket < ahead ? ticket : (ticket - ahead) / 2 + (writes_outputs(ticket, pieces, ahead) ? 0 : ahead);
}

/* The order of a launch. */
struct order {
    uint pieces, ahead;
};

static inline struct order order_of(const ulong units, const ulong ahead) {
    const struct order order = {(uint)((units + UNITS - 1) / UNITS), (uint)ahead};
    return order;
}

static inline struct task task_of(const struct order *order, const uint ticket, const ulong units) {
    const bool writes = writes_outputs(ticket, order->pieces, order->ahead);
    const uint piece = piece_of(ticket, order->pieces, order->ahead);
    struct task task = {range_of_piece(piece, units), piece, writes, writes};
    if (writes)
        task.takes.end = task.takes.first;
    return task;
}

/* Whether a task has been done. */
static inline bool is_done(const struct task *task) {
    return !task->writes && task->takes.first >= task->takes.end;
}

/* Begins a step, with a new task if the one before is done. Returns false after the last one. */
INLINED bool next_step(const struct order *order, struct tickets *tickets, struct task *task, const ulong units) {
    const bool done = is_done(task);
    const uint ticket = draw(tickets, done);
    const bool more = ticket < 2 * order->pieces;
    if (done && more)
        *task = task_of(order, ticket, units);
    return !done || more;
}

/* Makes a task take all parts that its piece needs, if one is missing. arrived: whether this work-item misses none. Every
 * work-item calls it once a step. */
INLINED void look_for_parts(const struct tickets *tickets, struct task *task, const struct range *piece,
                            const bool arrived) {
    local uint *const missing = tickets->missing + tickets->count % 2;
    if (!arrived)
        *missing = 1;
    fence_after_loads(); /* before outputs are written: see waiting.h */

    /* After it, parts that one work-item saw are read by others. */
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0)
        tickets->missing[(tickets->count + 1) % 2] = 0;
    if (*missing)
        task->takes = sources_of(piece);
    task->waits = false;
}

#endif
