/* Softmax of rows too few to fill the device: a work-group takes one of the CHUNKS of a row. A first kernel takes the
 * largest element and the sum of each chunk; a second one merges those of its row, and writes y.
 *
 * Macros as for softmax.cl; SEGMENTS is 1, KEEP is KEEP_REREAD. */

#include "softmax_reread.h"

/* totals: [rows, CHUNKS]. Those of an empty chunk are of nothing: -∞ and 0. */
INLINED void take_share(const struct call *call, global real *totals, const ulong work, const ulong rounds,
                        local real *scratch) {
    struct lanes lanes = {scratch, 0};
    for (ulong round = 0; round < rounds; round++) {
        const ulong index = get_group_id(0) * rounds + round;
        if (index >= work)
            return; /* the whole work-group */
        const struct row row = row_at(call, index / CHUNKS, (index_t)(index % CHUNKS), true);
        const struct totals own = totals_of(call, &row, &lanes);
        if (row.lane == 0) {
            totals[2 * index] = own.largest;
            totals[2 * index + 1] = own.sum;
        }
    }
}

/* totals: [CHUNKS], of the row. */
INLINED struct totals totals_of_chunks(const global real *totals, struct lanes *lanes) {
    const uint lane = (uint)get_local_id(0);
    real largest = -(real)INFINITY;
    for (index_t i = lane; i < CHUNKS; i += LANES)
        largest = fmax(largest, totals[2 * i]);
    largest = largest_over_lanes(lanes, largest);
    real sum = 0;
    for (index_t i = lane; i < CHUNKS; i += LANES)
        sum += totals[2 * i + 1] * first_element(exponential((realv)(totals[2 * i] - origin_of(largest))));
    const struct totals merged = {largest, sum_over_lanes(lanes, sum)};
    return merged;
}

INLINED void put_share(const struct call *call, const global real *totals, const ulong work, const ulong rounds,
                       local real *scratch) {
    struct lanes lanes = {scratch, 0};
    for (ulong round = 0; round < rounds; round++) {
        const ulong index = get_group_id(0) * rounds + round;
        if (index >= work)
            return; /* the whole work-group */
        const struct row row = row_at(call, index / CHUNKS, (index_t)(index % CHUNKS), true);
        put_row(call, &row, totals_of_chunks(totals + index / CHUNKS * (2 * CHUNKS), &lanes));
    }
}

#define TAKEN                                                                                                 \
    const global STORAGE(X_DTYPE) * x, const ulong x_at, global real *restrict totals, const ulong totals_at, \
        const ulong work, const ulong rounds, const ulong x_stride

#define PUT                                                                                                         \
    const global STORAGE(X_DTYPE) * x, const ulong x_at, const global real *restrict totals, const ulong totals_at, \
        global STORAGE(Y_DTYPE) * y, const ulong y_at, const ulong work, const ulong rounds, const ulong x_stride,  \
        const ulong y_stride

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_totals(TAKEN) {
    local real scratch[2 * SCRATCH];
    const struct call call = {x + x_at, 0, x_stride, 0, !ELEMENT_ALIGNED};
    take_share(&call, totals + totals_at, work, rounds, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_apply(PUT) {
    local real scratch[2 * SCRATCH];
    const struct call call = {x + x_at, y + y_at, x_stride, y_stride, !ELEMENT_ALIGNED};
    put_share(&call, totals + totals_at, work, rounds, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_totals_any(TAKEN) {
    local real scratch[2 * SCRATCH];
    const struct call call = {x + x_at, 0, x_stride, 0, false};
    take_share(&call, totals + totals_at, work, rounds, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_apply_any(PUT) {
    local real scratch[2 * SCRATCH];
    const struct call call = {x + x_at, y + y_at, x_stride, y_stride, false};
    put_share(&call, totals + totals_at, work, rounds, scratch);
}
#endif
