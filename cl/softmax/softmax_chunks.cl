/* Softmax of rows too few to fill the device: a work-group takes one of the CHUNKS of a row. A first kernel computes the
 * largest element and the sum of each chunk. A second one merges those of its row, and writes y.
 *
 * Macros as for softmax.cl; SEGMENTS is 1, KEEP is KEEP_REREAD. */

#include "softmax/softmax_reread.h"

/* totals: [rows, CHUNKS]. */
INLINED void take_share(const struct call *call, global real *totals, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    for (ulong i = 0; i < call->iterations; i++) {
        const ulong index = get_group_id(0) * call->iterations + i;
        if (index >= call->work)
            break; /* the whole work-group */
        const struct row row = row_at(call, index / CHUNKS, (index_t)(index % CHUNKS), true);
        const struct totals own = totals_of(call, &row, &lanes);
        if (row.lane == 0) {
            totals[2 * index] = own.largest;
            totals[2 * index + 1] = own.sum;
        }
    }
    last_barrier();
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
        sum += moved(totals[2 * i + 1], totals[2 * i], largest);
    const struct totals merged = {largest, sum_over_lanes(lanes, sum)};
    return merged;
}

INLINED void put_share(const struct call *call, const global real *totals, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    for (ulong i = 0; i < call->iterations; i++) {
        const ulong index = get_group_id(0) * call->iterations + i;
        if (index >= call->work)
            break; /* the whole work-group */
        const struct row row = row_at(call, index / CHUNKS, (index_t)(index % CHUNKS), true);
        put_row(call, &row, totals_of_chunks(totals + index / CHUNKS * (2 * CHUNKS), &lanes));
    }
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_totals(PARAMETERS(SOFTMAX_TOTALS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(SOFTMAX_INPUTS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, totals + totals_at, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_apply(PARAMETERS(SOFTMAX_APPLY_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(SOFTMAX_ARGS), .aligned = !ELEMENT_ALIGNED};
    put_share(&call, totals + totals_at, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
softmax_totals_unaligned(PARAMETERS(SOFTMAX_TOTALS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(SOFTMAX_INPUTS), .aligned = false};
    take_share(&call, totals + totals_at, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
softmax_apply_unaligned(PARAMETERS(SOFTMAX_APPLY_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(SOFTMAX_ARGS), .aligned = false};
    put_share(&call, totals + totals_at, scratch);
}
#endif
