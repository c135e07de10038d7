/* The pieces of rows of softmax or of its gradient, for common/exchange.h. The including file defines
 *
 *     struct row, row_at()                     see softmax_vectors.h
 *     struct held                              a lane's vectors of a piece
 *     struct totals                            of a piece, or of a row
 *     NUMBERS, number_of(totals, k)            how many numbers these are, and the k-th
 *     of_numbers(numbers)                      the totals with these numbers
 *     no_totals(), merged(a, b)                of nothing, and of two parts of a row
 *     merged_lanes(totals, lanes)              of the parts that the lanes have
 *     load_vectors(call, row, held)
 *     totals_of_held(row, held, lanes)
 *     write_vectors(call, row, held, totals)   totals: of the row */
#ifndef SOFTMAX_EXCHANGE_H
#define SOFTMAX_EXCHANGE_H

struct shared {
    struct lanes lanes;
};

static inline struct row row_of(const struct call *call, const ulong index, const bool active) {
    return row_at(call, index / CHUNKS, (index_t)(index % CHUNKS), active);
}

INLINED void load_piece(const struct call *call, const ulong index, const bool active, struct held *held) {
    const struct row row = row_of(call, index, active);
    load_vectors(call, &row, held);
}

static inline void post(volatile global uint *messages, const struct totals *totals) {
    if (get_local_id(0) == 0)
        for (uint k = 0; k < NUMBERS; k++)
            messages[k] = AS_MESSAGE(number_of(totals, k));
}

INLINED void post_piece(const struct call *call, const ulong index, const bool active, const struct held *held,
                        struct shared *shared, volatile global uint *messages) {
    const struct row row = row_of(call, index, active);
    const struct totals totals = totals_of_held(&row, held, &shared->lanes);
    if (active)
        post(messages, &totals);
}

/* Merges this lane's share of a row's messages. */
static inline struct totals merged_chunks(const local uint *received) {
    struct totals own = no_totals();
    for (uint first = 0; first < CHUNKS; first += LANES) { /* PoCL 3.1 mixes up lanes with unlike numbers of rounds */
        const uint i = first + (uint)get_local_id(0);
        real numbers[NUMBERS];
        for (uint k = 0; k < NUMBERS; k++)
            numbers[k] = AS_SUM(received[min(i, CHUNKS - 1u) * NUMBERS + k]);
        if (i < CHUNKS)
            own = merged(own, of_numbers(numbers));
    }
    return own;
}

INLINED void write_piece(const struct call *call, const ulong index, const bool active, const struct held *held,
                         struct shared *shared, const local uint *received) {
    const struct totals totals = merged_lanes(merged_chunks(received), &shared->lanes);
    const struct row row = row_of(call, index, active);
    write_vectors(call, &row, held, totals);
}

#include "common/exchange.h"

#define LOCAL_MEMORY                 \
    local real scratch[2 * SCRATCH]; \
    local uint board[BOARD_WORDS];   \
    struct shared shared = {{.scratch = scratch}};

#endif
