/* One launch whose work-groups hold pieces of rows in registers, and exchange the numbers of pieces: a row has PIECES of
 * them. A work-group takes one piece after the other. It holds two of them: it posts the numbers of the one that has been
 * loaded, writes the one before, the numbers of whose row have arrived meanwhile, and loads the next.
 *
 * Work-groups take pieces in the order of rows, and post them before they wait. Nevertheless no work-group waits without
 * bound (waiting.h): after some looks it posts the numbers of all pieces of the row itself. It loads one after the other in
 * place of its own, and the code that posts them is the same, for the same bits. The first pieces may be those of
 * work-groups that do not run yet, as something else occupies the device. The looks for their messages are fewer.
 *
 * The including file defines
 *
 *     struct call                      with work, the pieces of all rows
 *     struct held                      a lane's part of a piece
 *     struct shared                    what the work-items of a work-group share
 *     PAIRS                            of numbers of a piece
 *     PIECES                           of a row, where they are not its CHUNKS
 *     load_piece(call, index, active, held)
 *     post_piece(call, index, active, held, shared, outbox)
 *                                      posts the PAIRS of a held piece, if it is active, and writes nothing else if it is
 *                                      late; called once after each load, since it may leave in held what write_piece
 *                                      needs
 *     write_piece(call, index, active, held, shared, received)
 *                                      writes an active piece; received: the numbers of its row, [PIECES, PAIRS, 2]
 *
 * and includes tickets.h, or cleared_message.h. SEGMENTS is 1. Every work-item of the work-group calls these. Without a
 * piece, active is false, and index is that of any piece. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "common/exchange_sizes.h"

#ifndef PIECES
#define PIECES CHUNKS
#endif

/* Of a kernel: the size of its work-groups. Where their registers are bounded it is not said, as NVIDIA's assembler would
 * ignore the bound. */
#if MOST_REGISTERS
#define WORK_GROUP_ATTRIBUTE
#else
#define WORK_GROUP_ATTRIBUTE __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1)))
#endif

#define LOOKS (ROW_SPLIT == ROW_SPLIT_EXCHANGE ? MOST_LOOKS : 1)
#define FIRST_LOOKS min((uint)LOOKS, 128u)

struct piece {
    ulong index; /* among those of all rows; from call->work on: none */
    struct held held;
};

#define MESSAGES (PAIRS * MESSAGES_OF_PAIR) /* of a piece */

/* What the pieces of a work-group share. */
struct exchange {
    struct desk desk;
    volatile global message_t *messages; /* [rows, PIECES, MESSAGES] */
    ulong launch;                        /* its number */
    local uint *ticket;
    local uint *missing;   /* 1 if a message is */
    local float *received; /* [PIECES, PAIRS, 2], of one row */
};

/* The local memory of a struct exchange. */
#define RECEIVED_PAIRS (PIECES * PAIRS)
#define BOARD_WORDS EXCHANGE_BOARD

static inline volatile global message_t *messages_of(const struct exchange *exchange, const ulong index) {
    return exchange->messages + index * MESSAGES;
}

/* Messages that a lane looks at together, so that it waits once for all of them. Where many lanes hold pieces of large
 * groups, the registers for that cost more than the waits. */
#define MOST_AT_ONCE (LANES > 128 ? 1u : 4u)
#define OWN_MESSAGES ((PIECES * MESSAGES + LANES - 1u) / LANES) /* of a row, of a lane at most */
#define LOOKED_AT (OWN_MESSAGES < MOST_AT_ONCE ? OWN_MESSAGES : MOST_AT_ONCE)

/* Messages LANES apart. */
struct looked {
    message_t message[LOOKED_AT];
};

/* first: the first lane's first message. */
INLINED void look(const struct exchange *exchange, const volatile global message_t *messages, const uint first,
                  struct looked *looked) {
#pragma unroll
    for (uint k = 0; k < LOOKED_AT; k++) {
        const uint i = first + (uint)get_local_id(0) + k * LANES;
        looked->message[k] = i < PIECES * MESSAGES ? messages[i] : no_message(exchange->launch);
    }
}

/* Receives this lane's share of a row's messages. early: its first ones. Returns whether all have arrived, as soon as they
 * have, or else after so many looks for one. Every lane has equally many rounds of the outer loop, as PoCL 3.1 mixes up
 * unlike ones. */
INLINED bool receive(const struct exchange *exchange, const volatile global message_t *messages, const struct looked *early,
                     const uint most_looks) {
    bool all = true;
    for (uint first = 0; first < PIECES * MESSAGES; first += LOOKED_AT * LANES) {
        struct looked looked = *early;
        if (first > 0)
            look(exchange, messages, first, &looked);
#pragma unroll
        for (uint k = 0; k < LOOKED_AT; k++) {
            const uint i = first + (uint)get_local_id(0) + k * LANES;
            if (i < PIECES * MESSAGES) {
                message_t message = looked.message[k];
                for (uint looks = 1; looks < most_looks && all && !has_arrived(message, exchange->launch); looks++)
                    message = messages[i];
                put_numbers(exchange->received, i, message);
                all = all && has_arrived(message, exchange->launch);
            }
        }
    }
    return all;
}

/* Posts the numbers of all pieces of a row, if one is missing. own: the piece that is held, which comes last and is held
 * again. */
INLINED void post_missing(const struct call *call, const struct exchange *exchange, const ulong own, struct shared *shared,
                          struct held *held) {
    const uint of_row = (uint)(own % PIECES);
    for (uint i = *exchange->missing ? 1 : PIECES + 1; i <= PIECES; i++) {
        const ulong index = own - of_row + (of_row + i) % PIECES;
        const struct outbox outbox = {messages_of(exchange, index), exchange->launch, true};
        load_piece(call, index, true, held);
        post_piece(call, index, true, held, shared, &outbox);
        fence_after_loads();
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* the messages are read below */
        fence_after_loads();
        for (uint k = (uint)get_local_id(0); k < MESSAGES; k += LANES)
            put_numbers(exchange->received, (uint)(index % PIECES) * MESSAGES + k, messages_of(exchange, index)[k]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

static inline bool is_there(const struct call *call, const struct piece *piece) {
    return piece->index < call->work;
}

/* The index of a piece, or of the first one if it is not there: no barrier is in a branch, since PoCL builds every path
 * after it, so that messages of the first one's row are received, and nothing is written. */
static inline ulong index_of(const struct call *call, const struct piece *piece) {
    return is_there(call, piece) ? piece->index : 0;
}

static inline const volatile global message_t *messages_of_row(const struct exchange *exchange, const ulong index) {
    return messages_of(exchange, index - index % PIECES);
}

/* Writes a piece, as soon as the numbers of its row are there. Meanwhile it draws the next one, whose ticket it returns in
 * the first work-item. */
INLINED uint finish(const struct call *call, const struct exchange *exchange, struct shared *shared,
                    const struct looked *early, struct piece *piece) {
    const bool writes = is_there(call, piece);
    const ulong index = index_of(call, piece);
    const bool is_first = index - index % PIECES < get_num_groups(0);
    const uint looks = !writes ? 0 : is_first ? FIRST_LOOKS : LOOKS;
    if (!receive(exchange, messages_of_row(exchange, index), early, looks) && writes)
        *exchange->missing = 1;
    fence_after_loads(); /* before it writes: see waiting.h */
    barrier(CLK_LOCAL_MEM_FENCE);
    post_missing(call, exchange, index, shared, &piece->held);
    const uint ticket = get_local_id(0) == 0 ? draw_ticket(&exchange->desk, LOOKS) : 0;
    write_piece(call, index, writes, &piece->held, shared, exchange->received);
    return ticket;
}

/* Loads the piece of the first work-item's ticket. Also says that no message is missing yet. */
INLINED void load_drawn(const struct call *call, const struct exchange *exchange, const uint ticket, struct piece *piece) {
    if (get_local_id(0) == 0) {
        *exchange->ticket = ticket;
        *exchange->missing = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    piece->index = *exchange->ticket;
    load_piece(call, index_of(call, piece), is_there(call, piece), &piece->held);
}

/* Posts the numbers of a piece, finishes the one before, and loads the next in its place. It looks at messages before
 * it computes the numbers, to hide the time of that load. */
INLINED void take_step(const struct call *call, const struct exchange *exchange, struct shared *shared, struct piece *piece,
                       struct piece *before) {
    const ulong index = index_of(call, piece);
    const struct outbox outbox = {messages_of(exchange, index), exchange->launch, false};
    struct looked early;
    look(exchange, messages_of_row(exchange, index_of(call, before)), 0, &early);
    post_piece(call, index, is_there(call, piece), &piece->held, shared, &outbox);
    const uint ticket = finish(call, exchange, shared, &early, before);
    load_drawn(call, exchange, ticket, before);
}

/* messages: those of pieces begin at FIRST_MESSAGE. received: [RECEIVED_PAIRS]; board: [BOARD_WORDS]. */
INLINED void take_pieces(const struct call *call, volatile global message_t *messages, const ulong launch,
                         struct shared *shared, local float2 *received, local uint *board) {
    if (call->work == 0)
        return;
    const struct exchange exchange = {open_desk(messages, launch, board + 2),
                                      messages + FIRST_MESSAGE,
                                      launch,
                                      board,
                                      board + 1,
                                      (local float *)received};
    struct piece pieces[2];
    load_drawn(call, &exchange, get_local_id(0) == 0 ? draw_first(&exchange.desk) : 0, &pieces[0]);
    pieces[1].index = call->work;
    do {
#if ON_CPU /* Its compiler builds one step in half of the time of two. */
        for (uint turn = 0; turn < 2; turn++)
            take_step(call, &exchange, shared, &pieces[turn], &pieces[1 - turn]);
#else /* Constant indices keep the pieces in registers. */
        take_step(call, &exchange, shared, &pieces[0], &pieces[1]);
        take_step(call, &exchange, shared, &pieces[1], &pieces[0]);
#endif
    } while (min(pieces[0].index, pieces[1].index) < call->work);
    last_barrier();
}

#endif
