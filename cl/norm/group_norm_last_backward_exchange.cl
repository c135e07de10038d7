/* The gradients of group norm with channels last in one launch, which reads x and dy once: work-groups hold chunks of
 * slices in registers, and exchange the sums of their groups. See common/exchange.h and clnorm_group_norm_backward_desc. */

#include "common/cleared_message.h"
#include "norm/group_norm_backward.h"

/* The arguments of a launch. work: chunks of all slices. */
struct call {
    MEMBERS(GROUP_NORM_BACKWARD_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "norm/group_norm_slice_dx.h"

struct shared {
    const struct board *board;
    local real *shares; /* [SHARES, NUMBERS] */
};

#define PAIRS SPAN
#define NUMBERS (2 * PAIRS)                                          /* [2, SPAN]: a group's sums, times its weights */
#define SHARES (CHUNKS * NUMBERS < LANES ? CHUNKS : LANES / NUMBERS) /* of the sum over chunks */

INLINED void load_piece(const struct call *call, const ulong index, const bool active, struct held *held) {
    const struct place place = place_of_piece(index, active);
    load_slice(call, &place, held);
}

/* Writes the sums of the chunk's channels, as a part of each. */
static inline void put_sums(const struct call *call, const struct place *place, const ulong chunk,
                            const struct board *board) {
#if HAS_SUMS
    for (uint first = 0; first < SLICE_CHANNELS; first += LANES) {
        const uint i = first + place->lane;
        if (i < SLICE_CHANNELS)
            put_part(call->parts, part_of(place->sample, place->channel + i, chunk), board->lanes[i],
                     board->lanes[STEP * SLICE_CHANNELS + i]);
    }
#endif
    (void)call, (void)place, (void)chunk, (void)board;
}

INLINED void post_piece(const struct call *call, const ulong index, const bool active, struct held *held,
                        struct shared *shared, const struct outbox *outbox) {
    const struct place place = place_of_piece(index, active);
    const struct channels channels = channels_of(call, &place);
    struct channel_sums own;
    channel_sums_start(&own);
    sum_held(&place, &channels, held, &own);
    put_lane(&place, &channels, &own, shared->board);
    sum_channels(call, &place, shared->board);
    if (!active)
        return;
    if (!outbox->late)
        put_sums(call, &place, index % CHUNKS, shared->board);
    if (place.lane < PAIRS)
        post_pair(outbox, place.lane, sum_of_group(shared->board, 2 * place.lane),
                  sum_of_group(shared->board, 2 * place.lane + 1));
}

/* Computes the slopes of the piece's groups. */
INLINED void take_slopes(const struct call *call, const struct place *place, const struct shared *shared,
                         const local real *received) {
    const real scale = scale_of(call, place, min(place->lane, NUMBERS - 1u));
    real share = 0;
    for (uint first = 0; first < CHUNKS * NUMBERS; first += SHARES * NUMBERS) { /* as many rounds for every work-item */
        const uint i = first + place->lane;
        share += place->lane < SHARES * NUMBERS && i < CHUNKS * NUMBERS ? received[i] : 0;
    }
    if (place->lane < SHARES * NUMBERS)
        shared->shares[place->lane] = share;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (place->lane < NUMBERS) {
        real sum = 0;
        for (uint i = 0; i < SHARES; i++)
            sum += shared->shares[i * NUMBERS + place->lane];
        shared->board->slopes[place->lane] = scale * sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

INLINED void write_piece(const struct call *call, const ulong index, const bool active, const struct held *held,
                         struct shared *shared, const local real *received) {
    const struct place place = place_of_piece(index, active);
    const struct channels channels = channels_of(call, &place);
    take_slopes(call, &place, shared, received);
    write_slice(call, &place, &channels, held, shared->board);
    barrier(CLK_LOCAL_MEM_FENCE); /* as in group_norm_last_exchange.cl */
}

#include "common/exchange.h"

#define LOCAL_MEMORY                        \
    SLICE_MEMORY                            \
    local real shares[SHARES * NUMBERS];    \
    local float2 exchanged[RECEIVED_PAIRS]; \
    local uint of_exchange[BOARD_WORDS];    \
    struct shared shared = {&board, shares};

/* For offsets that are multiples of a vector's size. */
kernel WORK_GROUP_ATTRIBUTE void group_norm_last_backward_exchange(PARAMETERS(GROUP_NORM_BACKWARD_PIECES_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_BACKWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_pieces(&call, words + words_at, 0, &shared, exchanged, of_exchange);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel WORK_GROUP_ATTRIBUTE void group_norm_last_backward_exchange_unaligned(PARAMETERS(GROUP_NORM_BACKWARD_PIECES_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_BACKWARD_ARGS), .aligned = false};
    take_pieces(&call, words + words_at, 0, &shared, exchanged, of_exchange);
}
#endif
