/* One launch whose work-groups hold pieces of rows in registers, and exchange the numbers of pieces: a row has CHUNKS of
 * them. A work-group takes one piece after the other. It holds two of them: it posts the numbers of the one that has been
 * loaded, writes the one before, the numbers of whose row have arrived meanwhile, and loads the next.
 *
 * Pieces are drawn in the order of rows, and posted before their work-group waits. Nevertheless no work-group waits
 * without bound: after some looks it computes the numbers of all pieces of the row itself, to the same bits.
 *
 * The including file defines
 *
 *     struct call                      with work, the pieces of all rows
 *     struct held                      a lane's part of a piece
 *     struct shared                    what the work-items of a work-group share
 *     NUMBERS                          of a piece
 *     load_piece(call, index, active, held)
 *     post_piece(call, index, active, held, shared, messages)
 *                                      posts the numbers of a held piece, if it is active, as messages [NUMBERS]
 *     post_again(call, index, shared, messages)
 *                                      posts the same bits of a piece that is not held
 *     write_piece(call, index, active, held, shared, messages)
 *                                      writes an active piece; messages: of its row, [CHUNKS, NUMBERS]
 *
 * SEGMENTS is 1. Every work-item of the work-group calls these. Without a piece, active is false, and index is that of any
 * piece. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "common/clear_words.h"
#include "common/message.h"
#include "common/posters.h"

enum { FIRST_MESSAGE = 16 }; /* behind the words of posters.h, a cache line */

#define LOOKS (ROW_SPLIT == ROW_SPLIT_EXCHANGE ? MOST_LOOKS : 0)

struct piece {
    ulong index; /* chunk of all rows; from call->work on: none */
    struct held held;
};

/* What the pieces of a work-group share. */
struct exchange {
    volatile global uint *drawn;
    volatile global uint *messages; /* [rows, CHUNKS, NUMBERS] */
    local uint *ticket;
    local uint *missing; /* 1 if a message is */
    uint looks;          /* for a message, before it counts as missing */
};

#define BOARD_WORDS 2 /* of local memory */

/* Draws the next piece. Also says that no message is missing yet. */
INLINED ulong draw(const struct exchange *exchange) {
    if (get_local_id(0) == 0) {
        *exchange->ticket = atomic_inc(exchange->drawn);
        *exchange->missing = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return *exchange->ticket;
}

/* Whether this lane's share of a row's messages, [CHUNKS, NUMBERS], has arrived, as soon as it has, or else after so many
 * looks. */
static inline bool has_arrived(const volatile global uint *messages, const uint most_looks) {
    bool all = true;
    for (uint i = (uint)get_local_id(0); i < CHUNKS * NUMBERS && all; i += LANES) {
        all = false;
        for (uint looks = 0; looks < most_looks && !all; looks++)
            all = messages[i] != 0;
    }
    return all;
}

static inline volatile global uint *messages_of(const struct exchange *exchange, const ulong index) {
    return exchange->messages + index * NUMBERS;
}

/* Posts the numbers of all pieces of a row, if one is missing. */
INLINED void post_missing(const struct call *call, const struct exchange *exchange, const ulong first,
                          struct shared *shared) {
    for (uint chunk = *exchange->missing ? 0 : CHUNKS; chunk < CHUNKS; chunk++) {
        post_again(call, first + chunk, shared, messages_of(exchange, first + chunk));
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

/* Writes a piece, as soon as the numbers of its row are there. No barrier is in a branch, since PoCL builds every path
 * after it: without a piece to write, the first row's messages are received, and nothing is written. */
INLINED void finish(const struct call *call, const struct exchange *exchange, struct shared *shared,
                    const struct piece *piece) {
    const bool writes = piece->index < call->work && !only_posts();
    const ulong index = writes ? piece->index : 0, first = index - index % CHUNKS;
    const volatile global uint *messages = messages_of(exchange, first);
    if (writes && !has_arrived(messages, exchange->looks))
        *exchange->missing = 1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* after it, messages that one work-item saw are read by others */
    post_missing(call, exchange, first, shared);
    write_piece(call, index, writes, &piece->held, shared, messages);
}

INLINED void load_next(const struct call *call, const struct exchange *exchange, struct piece *piece) {
    piece->index = draw(exchange);
    const bool active = piece->index < call->work;
    load_piece(call, active ? piece->index : 0, active, &piece->held);
}

/* Posts the numbers of a piece, finishes the one before, and loads the next in its place. */
INLINED void take_step(const struct call *call, const struct exchange *exchange, struct shared *shared,
                       const struct piece *piece, struct piece *before) {
    const bool active = piece->index < call->work;
    const ulong index = active ? piece->index : 0;
    post_piece(call, index, active, &piece->held, shared, messages_of(exchange, index));
    finish(call, exchange, shared, before);
    load_next(call, exchange, before);
}

INLINED void take_pieces(const struct call *call, volatile global uint *words, struct shared *shared, local uint *board) {
    if (call->work == 0)
        return;
    const struct exchange exchange = {words + (only_posts() ? DRAWN_BY_POSTERS : DRAWN), words + FIRST_MESSAGE, board,
                                      board + 1, words[ALL_POSTED] ? 1 : LOOKS};
    struct piece even, odd;
    load_next(call, &exchange, &even);
    odd.index = call->work;
    do {
        take_step(call, &exchange, shared, &even, &odd);
        take_step(call, &exchange, shared, &odd, &even);
    } while (min(even.index, odd.index) < call->work);
    if (only_posts() && get_local_id(0) == 0)
        words[ALL_POSTED] = 1;
    last_barrier();
}

#endif
