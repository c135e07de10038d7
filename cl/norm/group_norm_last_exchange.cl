/* Group norm with channels last in one launch, which reads x once: work-groups hold chunks of slices in registers, and
 * exchange their moments. See common/exchange.h and clnorm_group_norm_desc. */

#include "common/cleared_message.h"
#include "norm/group_norm.h"

/* The arguments of a launch. work: chunks of all slices. */
struct call {
    MEMBERS(GROUP_NORM_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "norm/group_norm_slice_y.h"

struct held {
    struct packed_s s[HELD_OF_LANE];
};

struct shared {
    const struct board *board;
};

#define PAIRS SPAN /* mean and Σ(s − mean)² */

INLINED void load_piece(const struct call *call, const ulong index, const bool active, struct held *held) {
    const struct place own = place_of_piece(index, active), *const place = &own;
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k))
            LOAD_PACKED_S(&held->s[k], call, place->sample, element_of(place, k), VEC);
    begin_loads();
}

INLINED void post_piece(const struct call *call, const ulong index, const bool active, const struct held *held,
                        struct shared *shared, const struct outbox *outbox) {
    const struct place place = place_of_piece(index, active);
    take_statistics(call, &place, held->s, shared->board);
    if (active && place.lane < SPAN)
        post_pair(outbox, place.lane, shared->board->means[place.lane], shared->board->totals[place.lane]);
}

/* The moments of a group in a chunk: with more lanes than chunks, some lanes have the last one with a count of 0. */
struct moments {
    real count, mean, squares;
};

static inline struct moments moments_of(const local real *received, const uint chunk, const uint group) {
    const uint own = min(chunk, CHUNKS - 1u);
    const local real *const posted = received + 2 * (own * SPAN + group);
    const struct moments moments = {chunk < CHUNKS ? (real)(chunk_count(own) * CHANNELS_OF_GROUP) : 0, posted[0],
                                    posted[1]};
    return moments;
}

/* Sums that SHARES lanes have for each group, [SHARES, SPAN]: every work-item gets that of its group. */
static inline real sum_shares(const local real *shares, const uint group) {
    real sum = 0;
    for (uint i = 0; i < SHARES; i++)
        sum += shares[i * SPAN + group];
    return sum;
}

/* Merges the moments of the chunks, relative to the first one's mean. means: of the groups; totals: their sums of squared
 * deviations. Every work-item goes through the loops, since PoCL 3.1 mixes up those with unlike numbers of rounds. Without
 * contraction, for the same bits in every kernel. */
INLINED void merge_chunks(const local real *received, const uint lane, const struct board *board) {
#pragma OPENCL FP_CONTRACT OFF
    const uint group = lane % SPAN, share = lane / SPAN;
    const real origin = moments_of(received, 0, group).mean;
    real sum = 0, squares = 0;
    for (uint first = 0; first < CHUNKS; first += SHARES) {
        const struct moments moments = moments_of(received, first + share, group);
        sum += (moments.mean - origin) * moments.count;
    }
    board->shares[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    const real mean = sum_shares(board->shares, group) / (real)GROUP_SIZE;
    for (uint first = 0; first < CHUNKS; first += SHARES) {
        const struct moments moments = moments_of(received, first + share, group);
        const real delta = moments.mean - origin - mean;
        squares += moments.count > 0 ? moments.squares + delta * delta * moments.count : 0;
    }
    board->space[lane] = squares;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < SPAN) {
        board->means[lane] = origin + mean;
        board->totals[lane] = sum_shares(board->space, group);
    }
}

INLINED void write_piece(const struct call *call, const ulong index, const bool active, const struct held *held,
                         struct shared *shared, const local real *received) {
    const struct place place = place_of_piece(index, active);
    merge_chunks(received, place.lane, shared->board);
    put_statistics(call, &place, active && index % CHUNKS == 0, shared->board);
    barrier(CLK_LOCAL_MEM_FENCE);
    struct output output = OUTPUT_OF(call, place.sample);
    write_slice(call, &place, held->s, shared->board, &output);
    barrier(CLK_LOCAL_MEM_FENCE); /* without it PoCL 3.1 computes NaNs where lanes are idle */
}

#include "common/exchange.h"

#define LOCAL_MEMORY                        \
    SLICE_MEMORY                            \
    local float2 exchanged[RECEIVED_PAIRS]; \
    local uint of_exchange[BOARD_WORDS];    \
    struct shared shared = {&board};

/* For offsets that are multiples of a vector's size. */
kernel WORK_GROUP_ATTRIBUTE void group_norm_last_exchange(PARAMETERS(GROUP_NORM_LAST_PIECES_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_pieces(&call, words + words_at, 0, &shared, exchanged, of_exchange);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel WORK_GROUP_ATTRIBUTE void group_norm_last_exchange_unaligned(PARAMETERS(GROUP_NORM_LAST_PIECES_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = false};
    take_pieces(&call, words + words_at, 0, &shared, exchanged, of_exchange);
}
#endif
