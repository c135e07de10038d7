/* The pieces of rows of softmax or of its gradient, for common/exchange.h. The including file defines
 *
 *     struct row, row_at()                     see softmax_vectors.h
 *     struct held                              a lane's vectors of a piece
 *     struct totals                            of a piece, or of a row
 *     numbers_of_totals(totals)                these as two numbers
 *     totals_of_numbers(numbers)               the totals with these numbers
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

INLINED void post_piece(const struct call *call, const ulong index, const bool active, const struct held *held,
                        struct shared *shared, const struct outbox *outbox) {
    const struct row row = row_of(call, index, active);
    const struct totals totals = totals_of_held(&row, held, &shared->lanes);
    const float2 numbers = numbers_of_totals(&totals);
    if (active && get_local_id(0) == 0)
        post_pair(outbox, 0, numbers.x, numbers.y);
}

/* Merges this lane's share of a row's messages. */
static inline struct totals merged_chunks(const local real *received) {
    struct totals own = no_totals();
    for (uint first = 0; first < CHUNKS; first += LANES) { /* PoCL 3.1 mixes up lanes with unlike numbers of rounds */
        const uint i = first + (uint)get_local_id(0);
        const struct totals posted = totals_of_numbers(vload2(min(i, CHUNKS - 1u), received));
        if (i < CHUNKS)
            own = merged(own, posted);
    }
    return own;
}

INLINED void write_piece(const struct call *call, const ulong index, const bool active, const struct held *held,
                         struct shared *shared, const local real *received) {
    const struct totals totals = merged_lanes(merged_chunks(received), &shared->lanes);
    const struct row row = row_of(call, index, active);
    write_vectors(call, &row, held, totals);
}

#define PAIRS 1

#include "common/exchange.h"

#define LOCAL_MEMORY                       \
    local real scratch[2 * SCRATCH];       \
    local float2 received[RECEIVED_PAIRS]; \
    local uint board[BOARD_WORDS];         \
    struct shared shared = {{.scratch = scratch}};

#endif
