/* The gradient of softmax for rows too few to fill the device: a work-group takes one of the CHUNKS of a row. A first
 * kernel sums the products of each chunk; a second one adds those of its row up, and writes dx.
 *
 * Macros as for softmax_backward.cl; SEGMENTS is 1, KEEP is KEEP_REREAD. */

#include "softmax_backward_reread.h"

/* sums: [rows, CHUNKS]. */
INLINED void take_share(const struct call *call, global real *sums, const ulong work, const ulong rounds,
                        local real *scratch) {
    struct lanes lanes = {scratch, 0};
    for (ulong round = 0; round < rounds; round++) {
        const ulong index = get_group_id(0) * rounds + round;
        if (index >= work)
            return; /* the whole work-group */
        const struct row row = row_at(call, index / CHUNKS, (index_t)(index % CHUNKS), true);
        const real sum = sum_over_lanes(&lanes, own_sum(call, &row));
        if (row.lane == 0)
            sums[index] = sum;
    }
}

/* sums: [CHUNKS], of the row. */
INLINED real sum_of_chunks(const global real *sums, struct lanes *lanes) {
    real sum = 0;
    for (index_t i = (uint)get_local_id(0); i < CHUNKS; i += LANES)
        sum += sums[i];
    return sum_over_lanes(lanes, sum);
}

INLINED void put_share(const struct call *call, const global real *sums, const ulong work, const ulong rounds,
                       local real *scratch) {
    struct lanes lanes = {scratch, 0};
    for (ulong round = 0; round < rounds; round++) {
        const ulong index = get_group_id(0) * rounds + round;
        if (index >= work)
            return; /* the whole work-group */
        const struct row row = row_at(call, index / CHUNKS, (index_t)(index % CHUNKS), true);
        put_row(call, &row, sum_of_chunks(sums + index / CHUNKS * CHUNKS, &lanes));
    }
}

#define TAKEN                                                                                                        \
    const global STORAGE(Y_DTYPE) * y, const ulong y_at, const global STORAGE(DY_DTYPE) * dy, const ulong dy_at,     \
        global real *restrict sums, const ulong sums_at, const ulong work, const ulong rounds, const ulong y_stride, \
        const ulong dy_stride

#define PUT                                                                                                      \
    const global STORAGE(Y_DTYPE) * y, const ulong y_at, const global STORAGE(DY_DTYPE) * dy, const ulong dy_at, \
        const global real *restrict sums, const ulong sums_at, global STORAGE(DX_DTYPE) * dx, const ulong dx_at, \
        const ulong work, const ulong rounds, const ulong y_stride, const ulong dy_stride, const ulong dx_stride

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_backward_sums(TAKEN) {
    local real scratch[2 * SCRATCH];
    const struct call call = {y + y_at, dy + dy_at, 0, y_stride, dy_stride, 0, !ELEMENT_ALIGNED};
    take_share(&call, sums + sums_at, work, rounds, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_backward_apply(PUT) {
    local real scratch[2 * SCRATCH];
    const struct call call = {y + y_at, dy + dy_at, dx + dx_at, y_stride, dy_stride, dx_stride, !ELEMENT_ALIGNED};
    put_share(&call, sums + sums_at, work, rounds, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_backward_sums_any(TAKEN) {
    local real scratch[2 * SCRATCH];
    const struct call call = {y + y_at, dy + dy_at, 0, y_stride, dy_stride, 0, false};
    take_share(&call, sums + sums_at, work, rounds, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_backward_apply_any(PUT) {
    local real scratch[2 * SCRATCH];
    const struct call call = {y + y_at, dy + dy_at, dx + dx_at, y_stride, dy_stride, dx_stride, false};
    put_share(&call, sums + sums_at, work, rounds, scratch);
}
#endif
