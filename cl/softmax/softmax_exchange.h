/* Wide rows in one launch, whose work-groups exchange the totals of chunks. A work-group takes one of the CHUNKS of a row
 * after the other, a piece each. It holds two pieces in registers: it posts the totals of the one that has been loaded,
 * writes the one before, whose row's totals have arrived meanwhile, and loads the next.
 *
 * Pieces are drawn in the order of memory, and posted before their work-group waits. Nevertheless no work-group waits
 * without bound: after some looks it computes the totals of all pieces of the row itself, to the same bits.
 *
 * The including file defines
 *
 *     struct row, row_at()                     see softmax_vectors.h
 *     struct held                              a lane's vectors of a piece
 *     struct totals                            of a piece, or of a row
 *     TOTALS, number_of(totals, k)             how many numbers these are, and the k-th
 *     of_numbers(numbers)                      the totals with these numbers
 *     no_totals(), merged(a, b)                of nothing, and of two parts of a row
 *     merged_lanes(totals, lanes)              of the parts that the lanes have
 *     load_piece(call, row, held)
 *     totals_of_piece(call, row, held, lanes)
 *     totals_of_memory(call, row, lanes)       the same bits, of a piece that is not held
 *     write_piece(call, row, held, totals)     totals: of the row
 *
 * Every work-item of the work-group calls those with call or lanes. */
#ifndef SOFTMAX_EXCHANGE_H
#define SOFTMAX_EXCHANGE_H

#include "common/clear_words.h"

/* The words before the messages: the numbers of pieces drawn in this launch and in one that only posts, and 1 if there was
 * one. Where an output overlaps an input, such a launch comes first, as the inputs of others can be read only until they
 * are overwritten (src/plan/plan_enqueue.c). */
enum { DRAWN, DRAWN_BY_POSTERS, ALL_POSTED, FIRST_MESSAGE = 16 };

static inline bool only_posts(void) {
    return get_global_offset(0) > 0;
}

#define LOOKS (ROW_SPLIT == ROW_SPLIT_EXCHANGE ? MOST_LOOKS : 0)

struct piece {
    ulong index; /* chunk of all rows; from call->work on: none */
    struct held held;
};

/* What the pieces of a work-group share. */
struct exchange {
    volatile global uint *drawn;
    volatile global uint *messages; /* [rows, CHUNKS, TOTALS] */
    local uint *ticket;
    local uint *missing; /* 1 if a message is */
    uint looks;          /* for a message, before it counts as missing */
};

#define BOARD_WORDS 2 /* of local memory */

static inline struct row row_of(const struct call *call, const ulong index) {
    return row_at(call, index / CHUNKS, (index_t)(index % CHUNKS), index < call->work);
}

/* Draws the next piece. Also says that no message is missing yet. */
INLINED ulong draw(const struct exchange *exchange) {
    if (get_local_id(0) == 0) {
        *exchange->ticket = atomic_inc(exchange->drawn);
        *exchange->missing = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return *exchange->ticket;
}

/* In one work-item. */
static inline void post(const struct exchange *exchange, const ulong index, const struct totals *totals) {
    for (uint k = 0; k < TOTALS; k++)
        exchange->messages[index * TOTALS + k] = AS_MESSAGE(number_of(totals, k));
}

/* Whether this lane's share of a row's messages, [CHUNKS, TOTALS], has arrived, as soon as it has, or else after so many
 * looks. */
static inline bool has_arrived(const volatile global uint *messages, const uint most_looks) {
    bool all = true;
    for (uint i = (uint)get_local_id(0); i < CHUNKS * TOTALS && all; i += LANES) {
        all = false;
        for (uint looks = 0; looks < most_looks && !all; looks++)
            all = messages[i] != 0;
    }
    return all;
}

/* Receives this lane's share of a row's messages. */
static inline struct totals receive(const volatile global uint *messages) {
    struct totals own = no_totals();
    for (uint first = 0; first < CHUNKS; first += LANES) { /* PoCL 3.1 mixes up lanes with unlike numbers of rounds */
        const uint i = first + (uint)get_local_id(0);
        real numbers[TOTALS];
        for (uint k = 0; k < TOTALS; k++)
            numbers[k] = AS_SUM(messages[min(i, CHUNKS - 1u) * TOTALS + k]);
        if (i < CHUNKS)
            own = merged(own, of_numbers(numbers));
    }
    return own;
}

/* Posts the totals of all pieces of a row, if one is missing. */
INLINED void post_missing(const struct call *call, const struct exchange *exchange, const ulong first,
                          struct lanes *lanes) {
    for (uint chunk = *exchange->missing ? 0 : CHUNKS; chunk < CHUNKS; chunk++) {
        const struct row row = row_of(call, first + chunk);
        const struct totals totals = totals_of_memory(call, &row, lanes);
        if (get_local_id(0) == 0)
            post(exchange, first + chunk, &totals);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

/* Writes a piece, as soon as the totals of its row are there. No barrier is in a branch, since PoCL builds every path after
 * it: without a piece to write, the first row's messages are received, and nothing is written. */
INLINED void finish(const struct call *call, const struct exchange *exchange, struct lanes *lanes,
                    const struct piece *piece) {
    const bool writes = piece->index < call->work && !only_posts();
    const ulong index = writes ? piece->index : 0, first = index - index % CHUNKS;
    const volatile global uint *messages = exchange->messages + first * TOTALS;
    if (writes && !has_arrived(messages, exchange->looks))
        *exchange->missing = 1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* after it, messages that one work-item saw are read by others */
    post_missing(call, exchange, first, lanes);
    const struct totals totals = merged_lanes(receive(messages), lanes);
    struct row row = row_of(call, index);
    row.active = writes;
    write_piece(call, &row, &piece->held, totals);
}

INLINED void load_next(const struct call *call, const struct exchange *exchange, struct piece *piece) {
    piece->index = draw(exchange);
    const struct row row = row_of(call, piece->index);
    load_piece(call, &row, &piece->held);
}

/* Posts the totals of a piece, finishes the one before, and loads the next in its place. */
INLINED void take_step(const struct call *call, const struct exchange *exchange, struct lanes *lanes,
                       const struct piece *piece, struct piece *before) {
    const struct row row = row_of(call, piece->index);
    const struct totals totals = totals_of_piece(call, &row, &piece->held, lanes);
    if (row.active && get_local_id(0) == 0)
        post(exchange, piece->index, &totals);
    finish(call, exchange, lanes, before);
    load_next(call, exchange, before);
}

INLINED void take_pieces(const struct call *call, volatile global uint *words, local real *scratch, local uint *board) {
    if (call->work == 0)
        return;
    struct lanes lanes = {.scratch = scratch};
    const struct exchange exchange = {words + (only_posts() ? DRAWN_BY_POSTERS : DRAWN), words + FIRST_MESSAGE, board,
                                      board + 1, words[ALL_POSTED] ? 1 : LOOKS};
    struct piece even, odd;
    load_next(call, &exchange, &even);
    odd.index = call->work;
    do {
        take_step(call, &exchange, &lanes, &even, &odd);
        take_step(call, &exchange, &lanes, &odd, &even);
    } while (min(even.index, odd.index) < call->work);
    if (only_posts() && get_local_id(0) == 0)
        words[ALL_POSTED] = 1;
    last_barrier();
}

#define LOCAL_MEMORY                 \
    local real scratch[2 * SCRATCH]; \
    local uint board[BOARD_WORDS];

#endif
