/* The gradient of softmax for wide rows, by chunks in one launch, whose work-groups exchange the sums of chunks. See
 * common/exchange.h.
 *
 * Macros as for softmax_backward.cl, ROW_SPLIT and MOST_REGISTERS; SEGMENTS is 1, KEEP is KEEP_REGISTERS. */

#include "softmax/softmax_backward.h"
#include "softmax/softmax_piece.h"

struct held {
    struct point point[PIECE_HELD];
};

struct totals {
    real sum; /* of y · dy */
};

static inline float2 numbers_of_totals(const struct totals *totals) {
    return (float2)(totals->sum, 0);
}

static inline struct totals totals_of_numbers(const float2 numbers) {
    const struct totals totals = {numbers.x};
    return totals;
}

static inline struct totals no_totals(void) {
    const struct totals totals = {0};
    return totals;
}

static inline struct totals merged(const struct totals a, const struct totals b) {
    const struct totals totals = {a.sum + b.sum};
    return totals;
}

INLINED struct totals merged_lanes(const struct totals own, struct lanes *lanes) {
    const struct totals totals = {sum_over_lanes(lanes, own.sum)};
    return totals;
}

INLINED void load_vectors(const struct call *call, const struct row *row, struct held *held) {
#pragma unroll
    for (uint i = 0; i < PIECE_HELD; i++)
        if (has_vector(row, i)) {
            const struct row at = row_at_vector(row, i);
            load_point(call, &at, vector_of(row, i), LOAD_PLAIN, &held->point[i]);
        }
}

INLINED struct totals totals_of_held(const struct row *row, const struct held *held, struct lanes *lanes) {
    realv products = 0;
#pragma unroll
    for (uint i = 0; i < PIECE_HELD; i++)
        if (has_vector(row, i)) {
            const struct row at = row_at_vector(row, i);
            products += product_of(&at, vector_of(row, i), &held->point[i]);
        }
    const struct totals own = {sum_elements(products)};
    return merged_lanes(own, lanes);
}

INLINED void write_vectors(const struct call *call, const struct row *row, const struct held *held,
                           const struct totals totals) {
#pragma unroll
    for (uint i = 0; i < PIECE_HELD; i++)
        if (has_vector(row, i)) {
            const struct row at = row_at_vector(row, i);
            put_dx(call, &at, vector_of(row, i), &held->point[i], totals.sum);
        }
}

#include "softmax/softmax_exchange.h"

/* For offsets that are multiples of a vector's size. */
kernel WORK_GROUP_ATTRIBUTE void softmax_backward_exchange(PARAMETERS(SOFTMAX_BACKWARD_EXCHANGE_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(SOFTMAX_BACKWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_pieces(&call, messages + messages_at, launch, &shared, received, board);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel WORK_GROUP_ATTRIBUTE void softmax_backward_exchange_unaligned(PARAMETERS(SOFTMAX_BACKWARD_EXCHANGE_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(SOFTMAX_BACKWARD_ARGS), .aligned = false};
    take_pieces(&call, messages + messages_at, launch, &shared, received, board);
}
#endif
