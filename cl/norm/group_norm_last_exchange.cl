/* Group norm with channels last in one launch, which reads x once: work-groups hold chunks of slices in registers, and
 * exchange their moments. See common/exchange.h and clnorm_group_norm_desc. */

#include "norm/group_norm.h"

/* The arguments of a launch. work: chunks of all slices. */
struct call {
    MEMBERS(GROUP_NORM_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "common/message.h"
#include "norm/group_norm_slice_y.h"

struct held {
    struct packed_s s[HELD_OF_LANE];
};

struct shared {
    const struct board *board;
    local real *received; /* [CHUNKS, SPAN, 2] */
};

#define NUMBERS (2 * SPAN) /* [SPAN, 2]: mean and Σ(s − mean)² */

/* The place of this work-item in a piece. */
static inline struct place place_of_piece(const ulong index, const bool active) {
    const ulong slice = index / CHUNKS, chunk = index % CHUNKS;
    struct place place = place_of(slice / SLICES, slice % SLICES, true);
    place.active = place.active && active;
    place.first = chunk_begin(chunk);
    place.positions = chunk_count(chunk);
    return place;
}

INLINED void load_piece(const struct call *call, const ulong index, const bool active, struct held *held) {
    const struct place own = place_of_piece(index, active), *const place = &own;
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k))
            LOAD_PACKED_S(&held->s[k], call, place->sample, element_of(place, k), VEC);
    begin_loads();
}

static inline void post(const struct place *place, const struct board *board, volatile global uint *messages) {
    if (place->lane < SPAN) {
        messages[2 * place->lane] = AS_MESSAGE(board->means[place->lane]);
        messages[2 * place->lane + 1] = AS_MESSAGE(board->totals[place->lane]);
    }
}

INLINED void post_piece(const struct call *call, const ulong index, const bool active, const struct held *held,
                        struct shared *shared, volatile global uint *messages) {
    const struct place place = place_of_piece(index, active);
    take_statistics(call, &place, held->s, shared->board);
    if (active)
        post(&place, shared->board, messages);
}

INLINED void post_again(const struct call *call, const ulong index, struct shared *shared, volatile global uint *messages) {
    const struct place place = place_of_piece(index, true);
    take_statistics(call, &place, 0, shared->board);
    post(&place, shared->board, messages);
}

/* Merges the moments of the chunks, relative to the first one's mean. means: of the groups; totals: their sums of squared
 * deviations. Every work-item goes through the loops, since PoCL 3.1 mixes up those with unlike numbers of rounds. Without
 * contraction, for the same bits in every kernel. */
static inline void merge_chunks(const local real *received, const uint lane, const struct board *board) {
#pragma OPENCL FP_CONTRACT OFF
    const local real *const moments = received + 2 * min(lane, SPAN - 1u);
    const real origin = moments[0];
    real sum = 0, squares = 0;
    for (uint chunk = 0; chunk < CHUNKS; chunk++)
        sum += (moments[chunk * NUMBERS] - origin) * (real)(chunk_count(chunk) * CHANNELS_OF_GROUP);
    const real mean = sum / (real)GROUP_SIZE;
    for (uint chunk = 0; chunk < CHUNKS; chunk++) {
        const real count = (real)(chunk_count(chunk) * CHANNELS_OF_GROUP);
        const real delta = count > 0 ? moments[chunk * NUMBERS] - origin - mean : 0;
        squares += moments[chunk * NUMBERS + 1] + delta * delta * count;
    }
    if (lane < SPAN) {
        board->means[lane] = origin + mean;
        board->totals[lane] = squares;
    }
}

/* Every work-item has equally many rounds: PoCL 3.1 computes wrong sums where the lengths of loops differ. */
INLINED void receive(const volatile global uint *messages, const struct shared *shared) {
    for (uint first = 0; first < CHUNKS * NUMBERS; first += LANES) {
        const uint i = first + (uint)get_local_id(0);
        if (i < CHUNKS * NUMBERS)
            shared->received[i] = AS_SUM(messages[i]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

INLINED void write_piece(const struct call *call, const ulong index, const bool active, const struct held *held,
                         struct shared *shared, const volatile global uint *messages) {
    const struct place place = place_of_piece(index, active);
    receive(messages, shared);
    merge_chunks(shared->received, place.lane, shared->board);
    put_statistics(call, &place, active && index % CHUNKS == 0, shared->board);
    struct output output = OUTPUT_OF(call, place.sample);
    write_slice(call, &place, held->s, shared->board, &output);
    barrier(CLK_LOCAL_MEM_FENCE); /* before the next piece's statistics */
}

#include "common/exchange.h"

#define LOCAL_MEMORY                       \
    SLICE_MEMORY                           \
    local real received[CHUNKS * NUMBERS]; \
    local uint tickets[BOARD_WORDS];       \
    struct shared shared = {&board, received};

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_last_exchange(PARAMETERS(GROUP_NORM_LAST_EXCHANGE_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_pieces(&call, words + words_at, &shared, tickets);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_last_exchange_unaligned(PARAMETERS(GROUP_NORM_LAST_EXCHANGE_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = false};
    take_pieces(&call, words + words_at, &shared, tickets);
}
#endif
