/* Softmax: see clnorm_softmax_desc for the formula.
 *
 * A work-group owns rows, SEGMENTS of them at a time, LANES work-items each. Where a row is while its largest element and
 * its sum are taken is what KEEP says: a header for each way.
 *
 * Macros (src/spec.h): GROUP_SIZE (cols), X_DTYPE, Y_DTYPE, VEC, LANES, SEGMENTS, KEEP, UNROLL, CHUNKS (1), REDUCE, STORES,
 * ISA, ELEMENT_ALIGNED. */

#include "softmax.h"

#if KEEP == KEEP_REGISTERS
#include "softmax_registers.h"
#else
#include "softmax_reread.h"
#endif

/* This work-group's rows, out of work. rounds: how often it goes on to its next ones. */
INLINED void take_share(const struct call *call, const ulong work, const ulong rounds, local real *scratch) {
    struct lanes lanes = {scratch, 0};
    const ulong first = get_group_id(0) * rounds * SEGMENTS;
    for (ulong round = 0; round < rounds; round++) {
        const ulong index = first + round * SEGMENTS;
        if (index >= work)
            return; /* the whole work-group */
        const ulong own = index + get_local_id(0) / LANES;
        const struct row row = row_at(call, own, 0, SEGMENTS == 1 || own < work);
        take_row(call, &row, &lanes);
    }
}

#define PARAMETERS                                                                                                        \
    const global STORAGE(X_DTYPE) * x, const ulong x_at, global STORAGE(Y_DTYPE) * y, const ulong y_at, const ulong work, \
        const ulong rounds, const ulong x_stride, const ulong y_stride

#define CALL(aligned) \
    { x + x_at, y + y_at, x_stride, y_stride, (aligned) }

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax(PARAMETERS) {
    local real scratch[2 * SCRATCH];
    const struct call call = CALL(!ELEMENT_ALIGNED);
    take_share(&call, work, rounds, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_any(PARAMETERS) {
    local real scratch[2 * SCRATCH];
    const struct call call = CALL(false);
    take_share(&call, work, rounds, scratch);
}
#endif
