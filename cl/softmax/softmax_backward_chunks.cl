/* The gradient of softmax for rows too few to fill the device: a work-group takes one of the CHUNKS of a row. A first
 * kernel sums the products of each chunk. A second one adds up the sums of its row, and writes dx.
 *
 * Macros as for softmax_backward.cl; SEGMENTS is 1, KEEP is KEEP_REREAD. */

#include "softmax/softmax_backward_reread.h"

/* sums: [rows, CHUNKS]. */
INLINED void take_share(const struct call *call, global real *sums, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    for (ulong i = 0; i < call->iterations; i++) {
        const ulong index = get_group_id(0) * call->iterations + i;
        if (index >= call->work)
            break; /* the whole work-group */
        const struct row row = row_at(call, index / CHUNKS, (index_t)(index % CHUNKS), true);
        const real sum = sum_over_lanes(&lanes, own_sum(call, &row));
        if (row.lane == 0)
            sums[index] = sum;
    }
    last_barrier();
}

/* sums: [CHUNKS], of the row. */
INLINED real sum_of_chunks(const global real *sums, struct lanes *lanes) {
    real sum = 0;
    for (index_t i = (uint)get_local_id(0); i < CHUNKS; i += LANES)
        sum += sums[i];
    return sum_over_lanes(lanes, sum);
}

INLINED void put_share(const struct call *call, const global real *sums, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    for (ulong i = 0; i < call->iterations; i++) {
        const ulong index = get_group_id(0) * call->iterations + i;
        if (index >= call->work)
            break; /* the whole work-group */
        const struct row row = row_at(call, index / CHUNKS, (index_t)(index % CHUNKS), true);
        put_row(call, &row, sum_of_chunks(sums + index / CHUNKS * CHUNKS, &lanes));
    }
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
softmax_backward_sums(PARAMETERS(SOFTMAX_BACKWARD_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(SOFTMAX_BACKWARD_INPUTS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, sums + sums_at, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
softmax_backward_apply(PARAMETERS(SOFTMAX_BACKWARD_APPLY_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(SOFTMAX_BACKWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    put_share(&call, sums + sums_at, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
softmax_backward_sums_unaligned(PARAMETERS(SOFTMAX_BACKWARD_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(SOFTMAX_BACKWARD_INPUTS), .aligned = false};
    take_share(&call, sums + sums_at, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
softmax_backward_apply_unaligned(PARAMETERS(SOFTMAX_BACKWARD_APPLY_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(SOFTMAX_BACKWARD_ARGS), .aligned = false};
    put_share(&call, sums + sums_at, scratch);
}
#endif
