/* Group norm with channels first in one launch, which reads x once: work-groups hold chunks of segments in registers, and
 * exchange their moments. See common/exchange.h and clnorm_group_norm_desc. */

#include "norm/group_norm.h"

/* The arguments of a launch. work: chunks of all segments. */
struct call {
    MEMBERS(GROUP_NORM_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "common/message.h"
#include "norm/group_norm_segment_held.h"

struct shared {
    struct lanes lanes;
};

#define NUMBERS 2 /* mean and Σ(s − mean)² */

static inline struct chunk chunk_at(const ulong index, const bool active) {
    const struct place place = place_of(index / CHUNKS, active);
    return chunk_of(&place, index % CHUNKS);
}

INLINED void load_piece(const struct call *call, const ulong index, const bool active, struct held *held) {
    const struct chunk chunk = chunk_at(index, active);
    load_held(call, &chunk, held);
}

INLINED void post_piece(const struct call *call, const ulong index, const bool active, struct held *held,
                        struct shared *shared, volatile global uint *messages) {
    const struct chunk chunk = chunk_at(index, active);
    const real mean = mean_of_held(call, &chunk, held, &shared->lanes);
    const real squares = squares_of_held(call, &chunk, held, mean, &shared->lanes);
    if (active && chunk.place.lane == 0) {
        messages[0] = AS_MESSAGE(mean);
        messages[1] = AS_MESSAGE(squares);
    }
}

/* The moments of a segment. */
struct moments {
    real mean, squares;
};

/* Merges those of its chunks, relative to the mean of the first one. All chunks have equally many elements.
 * Without contraction, for the same bits in every kernel. */
INLINED struct moments merge_chunks(const local uint *received, const uint lane, struct lanes *lanes) {
#pragma OPENCL FP_CONTRACT OFF
    const real origin = AS_SUM(received[0]);
    real sum = 0, squares = 0;
    for (uint first = 0; first < CHUNKS; first += LANES) { /* PoCL 3.1 mixes up lanes with unlike numbers of rounds */
        const uint i = first + lane;
        sum += i < CHUNKS ? AS_SUM(received[i * NUMBERS]) - origin : 0;
    }
    const real mean = sum_over_lanes(lanes, sum) * ((real)1 / CHUNKS);
    for (uint first = 0; first < CHUNKS; first += LANES) {
        const uint i = first + lane;
        const real delta = i < CHUNKS ? AS_SUM(received[i * NUMBERS]) - origin - mean : 0;
        squares += (i < CHUNKS ? AS_SUM(received[i * NUMBERS + 1]) : 0) + delta * delta * (GROUP_SIZE / CHUNKS);
    }
    const struct moments moments = {origin + mean, sum_over_lanes(lanes, squares)};
    return moments;
}

INLINED void write_piece(const struct call *call, const ulong index, const bool active, const struct held *held,
                         struct shared *shared, const local uint *received) {
    const struct chunk chunk = chunk_at(index, active);
    const struct moments all = merge_chunks(received, chunk.place.lane, &shared->lanes);
    const real rstd = rstd_of(all.squares, call->eps);
    if (chunk.first == 0)
        write_statistics(call, &chunk.place, all.mean, rstd);
    struct output output = OUTPUT_OF(call, chunk.place.sample);
    write_held(call, &chunk, held, all.mean, rstd, &output);
}

#include "common/exchange.h"

#define LOCAL_MEMORY                     \
    local real scratch[2 * SCRATCH];     \
    local uint of_exchange[BOARD_WORDS]; \
    struct shared shared = {{.scratch = scratch}};

/* For offsets that are multiples of a vector's size. */
kernel WORK_GROUP_ATTRIBUTE void group_norm_pieces(PARAMETERS(GROUP_NORM_PIECES_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_pieces(&call, words + words_at, &shared, of_exchange);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel WORK_GROUP_ATTRIBUTE void group_norm_pieces_unaligned(PARAMETERS(GROUP_NORM_PIECES_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = false};
    take_pieces(&call, words + words_at, &shared, of_exchange);
}
#endif
