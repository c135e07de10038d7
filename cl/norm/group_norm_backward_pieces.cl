/* The gradients of group norm with channels first in one launch, which reads x and dy once: work-groups hold pieces of
 * segments in registers, and exchange the sums of groups. See common/exchange.h and clnorm_group_norm_backward_desc. */

#include "common/cleared_message.h"
#include "norm/group_norm_backward.h"

/* The arguments of a launch. work: pieces of all segments. */
struct call {
    MEMBERS(GROUP_NORM_BACKWARD_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "norm/compensated_sum.h"
#include "norm/group_norm_segment_dx.h"

struct shared {
    struct lanes lanes;
};

#define PAIRS 1 /* Σ weight · dn and Σ weight · dn · x̂ */

INLINED void load_piece(const struct call *call, const ulong index, const bool active, struct held *held) {
    const struct place place = place_of(index, active);
    load_held(call, &place, held);
}

INLINED void post_piece(const struct call *call, const ulong index, const bool active, struct held *held,
                        struct shared *shared, const struct outbox *outbox) {
    const struct place place = place_of(index, active);
    real sums[2];
    sum_held(call, &place, held, !outbox->late, &shared->lanes, sums);
    if (active && get_local_id(0) == 0)
        post_pair(outbox, 0, sums[0], sums[1]);
}

/* Adds up the sums of a segment's pieces. */
INLINED void sum_pieces(const local real *received, struct lanes *lanes, real sums[2]) {
    struct compensated_sum of_dn = {0, 0}, of_product = {0, 0};
    for (uint first = 0; first < PIECES; first += LANES) { /* PoCL 3.1 mixes up lanes with unlike numbers of rounds */
        const uint i = first + (uint)get_local_id(0), own = min(i, PIECES - 1u);
        compensated_sum_add(&of_dn, i < PIECES ? received[2 * own] : 0);
        compensated_sum_add(&of_product, i < PIECES ? received[2 * own + 1] : 0);
    }
    sums[0] = of_dn.sum;
    sums[1] = of_product.sum;
    sum_lanes(lanes, sums, 2);
}

INLINED void write_piece(const struct call *call, const ulong index, const bool active, struct held *held,
                         struct shared *shared, const local real *received) {
    const struct place place = place_of(index, active);
    real sums[2];
    sum_pieces(received, &shared->lanes, sums);
    write_held(call, &place, held, sums);
}

#include "common/exchange.h"

#define LOCAL_MEMORY                        \
    local real scratch[2 * SCRATCH];        \
    local float2 exchanged[RECEIVED_PAIRS]; \
    local uint of_exchange[BOARD_WORDS];    \
    struct shared shared = {{.scratch = scratch}};

/* For offsets that are multiples of a vector's size. */
kernel WORK_GROUP_ATTRIBUTE void group_norm_backward_pieces(PARAMETERS(GROUP_NORM_BACKWARD_PIECES_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_BACKWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_pieces(&call, words + words_at, 0, &shared, exchanged, of_exchange);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel WORK_GROUP_ATTRIBUTE void group_norm_backward_pieces_unaligned(PARAMETERS(GROUP_NORM_BACKWARD_PIECES_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_BACKWARD_ARGS), .aligned = false};
    take_pieces(&call, words + words_at, 0, &shared, exchanged, of_exchange);
}
#endif
