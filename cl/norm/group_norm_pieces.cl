/* Group norm with channels first in one launch, which reads x once: work-groups hold chunks of segments in registers, and
 * exchange their moments. See common/exchange.h and clnorm_group_norm_desc. */

#include "common/tickets.h"
#include "norm/group_norm.h"

/* The arguments of a launch. work: chunks of all segments. */
struct call {
    MEMBERS(GROUP_NORM_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "norm/group_moments.h"
#include "norm/group_norm_segment_held.h"

struct shared {
    struct lanes lanes;
};

#define PAIRS 1 /* mean and Σ(s − mean)² */

static inline struct chunk chunk_at(const ulong index, const bool active) {
    const struct place place = place_of(index / CHUNKS, active);
    return chunk_of(&place, index % CHUNKS);
}

INLINED void load_piece(const struct call *call, const ulong index, const bool active, struct held *held) {
    const struct chunk chunk = chunk_at(index, active);
    load_held(call, &chunk, held);
}

INLINED void post_piece(const struct call *call, const ulong index, const bool active, struct held *held,
                        struct shared *shared, const struct outbox *outbox) {
    const struct chunk chunk = chunk_at(index, active);
    const real mean = mean_of_held(call, &chunk, held, &shared->lanes);
    const real squares = squares_of_held(call, &chunk, held, mean, &shared->lanes);
    if (active && chunk.place.lane == 0)
        post_pair(outbox, 0, mean, squares);
}

/* Merges the moments of a segment's chunks, relative to the mean of the first one. */
INLINED struct spread merge_chunks(const local real *received, const real origin, const uint lane, struct lanes *lanes) {
    struct spread own = {0, 0, 0};
    for (uint first = 0; first < CHUNKS; first += LANES) { /* PoCL 3.1 mixes up lanes with unlike numbers of rounds */
        const uint i = first + lane;
        const local real *const posted = received + 2 * min(i, CHUNKS - 1u);
        const struct spread spread = {posted[0] - origin, posted[1], i < CHUNKS ? GROUP_SIZE / CHUNKS : 0};
        spread_merge(&own, spread);
    }
    return spread_over_lanes(own, (real)GROUP_SIZE, lanes);
}

INLINED void write_piece(const struct call *call, const ulong index, const bool active, const struct held *held,
                         struct shared *shared, const local real *received) {
    const struct chunk chunk = chunk_at(index, active);
    const real origin = received[0];
    const struct spread all = merge_chunks(received, origin, chunk.place.lane, &shared->lanes);
    const real mean = origin + all.mean, rstd = rstd_of(all.squares, call->eps);
    if (chunk.first == 0)
        write_statistics(call, &chunk.place, mean, rstd);
    struct output output = OUTPUT_OF(call, chunk.place.sample);
    write_held(call, &chunk, held, mean, rstd, &output);
}

#include "common/exchange.h"

#define LOCAL_MEMORY                        \
    local real scratch[2 * SCRATCH];        \
    local float2 exchanged[RECEIVED_PAIRS]; \
    local uint of_exchange[BOARD_WORDS];    \
    struct shared shared = {{.scratch = scratch}};

/* For offsets that are multiples of a vector's size. */
kernel WORK_GROUP_ATTRIBUTE void group_norm_pieces(PARAMETERS(GROUP_NORM_PIECES_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_pieces(&call, words + words_at, launch, &shared, exchanged, of_exchange);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel WORK_GROUP_ATTRIBUTE void group_norm_pieces_unaligned(PARAMETERS(GROUP_NORM_PIECES_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = false};
    take_pieces(&call, words + words_at, launch, &shared, exchanged, of_exchange);
}
#endif
