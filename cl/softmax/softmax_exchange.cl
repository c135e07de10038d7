/* Softmax of wide rows, by chunks in one launch, whose work-groups exchange the totals of chunks. See common/exchange.h.
 *
 * Macros as for softmax.cl, ROW_SPLIT and MOST_REGISTERS; SEGMENTS is 1, KEEP is KEEP_REGISTERS. */

#include "softmax/softmax.h"
#include "softmax/softmax_piece.h"
#include "softmax/softmax_totals.h"

struct held {
    PACKED(X_DTYPE) x[PIECE_HELD];
};

static inline float2 numbers_of_totals(const struct totals *totals) {
    return (float2)(totals->largest, totals->sum);
}

static inline struct totals totals_of_numbers(const float2 numbers) {
    const struct totals totals = {numbers.x, numbers.y};
    return totals;
}

static inline struct totals no_totals(void) {
    const struct totals totals = {-(real)INFINITY, 0};
    return totals;
}

static inline struct totals merged(const struct totals a, const struct totals b) {
    const real largest = fmax(a.largest, b.largest);
    const struct totals totals = {largest, moved(a.sum, a.largest, largest) + moved(b.sum, b.largest, largest)};
    return totals;
}

INLINED struct totals merged_lanes(const struct totals own, struct lanes *lanes) {
    const real largest = largest_over_lanes(lanes, own.largest);
    const struct totals totals = {largest, sum_over_lanes(lanes, moved(own.sum, own.largest, largest))};
    return totals;
}

static inline PACKED(X_DTYPE) load_vector(const struct call *call, const struct row *row, const uint i) {
    const struct row at = row_at_vector(row, i);
    return LOAD_VECTOR(X_DTYPE)(at.x, vector_of(row, i), at.lead, call->aligned, LOAD_PLAIN);
}

INLINED void load_vectors(const struct call *call, const struct row *row, struct held *held) {
#pragma unroll
    for (uint i = 0; i < PIECE_HELD; i++)
        if (has_vector(row, i))
            held->x[i] = load_vector(call, row, i);
}

static inline realv masked_vector(const struct row *row, const uint i, const PACKED(X_DTYPE) x) {
    const struct row at = row_at_vector(row, i);
    return masked(&at, vector_of(row, i), WIDEN(X_DTYPE)(x));
}

INLINED struct totals totals_of_held(const struct row *row, const struct held *held, struct lanes *lanes) {
    realv largest = -(realv)INFINITY, sum = 0;
#pragma unroll
    for (uint i = 0; i < PIECE_HELD; i++)
        if (has_vector(row, i))
            largest = larger(largest, masked_vector(row, i, held->x[i]));
    struct totals totals = {largest_over_lanes(lanes, largest_element(largest)), 0};
#pragma unroll
    for (uint i = 0; i < PIECE_HELD; i++)
        if (has_vector(row, i))
            sum += exponential_of_minus(origin_of(totals.largest) - masked_vector(row, i, held->x[i]));
    totals.sum = sum_over_lanes(lanes, sum_elements(sum));
    return totals;
}

INLINED void write_vectors(const struct call *call, const struct row *row, const struct held *held,
                           const struct totals totals) {
    const real origin = origin_of(totals.largest), scale = scale_of(totals.sum);
#pragma unroll
    for (uint i = 0; i < PIECE_HELD; i++)
        if (has_vector(row, i)) {
            const struct row at = row_at_vector(row, i);
            store_y(call, &at, vector_of(row, i), exponential_of_minus(origin - WIDEN(X_DTYPE)(held->x[i])) * scale);
        }
}

#include "softmax/softmax_exchange.h"

/* For offsets that are multiples of a vector's size. */
kernel WORK_GROUP_ATTRIBUTE void softmax_exchange(PARAMETERS(SOFTMAX_EXCHANGE_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(SOFTMAX_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_pieces(&call, messages + messages_at, launch, &shared, received, board);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel WORK_GROUP_ATTRIBUTE void softmax_exchange_unaligned(PARAMETERS(SOFTMAX_EXCHANGE_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(SOFTMAX_ARGS), .aligned = false};
    take_pieces(&call, messages + messages_at, launch, &shared, received, board);
}
#endif
