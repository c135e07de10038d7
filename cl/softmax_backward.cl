/* The gradient of softmax: see clnorm_softmax_backward_desc for the formula.
 *
 * A work-group owns rows, SEGMENTS of them at a time, LANES work-items each. KEEP says whether y and dy are held in
 * registers or read again once their product is summed: a header for each way.
 *
 * Macros (src/spec.h): GROUP_SIZE (cols), X_DTYPE (y's, for the arithmetic), Y_DTYPE, DY_DTYPE, DX_DTYPE, VEC, LANES,
 * SEGMENTS, KEEP, UNROLL, CHUNKS (1), REDUCE, STORES, ISA, ELEMENT_ALIGNED. */

#include "softmax_backward.h"

#if KEEP == KEEP_REGISTERS
#include "softmax_backward_registers.h"
#else
#include "softmax_backward_reread.h"
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

#define PARAMETERS                                                                                                    \
    const global STORAGE(Y_DTYPE) * y, const ulong y_at, const global STORAGE(DY_DTYPE) * dy, const ulong dy_at,      \
        global STORAGE(DX_DTYPE) * dx, const ulong dx_at, const ulong work, const ulong rounds, const ulong y_stride, \
        const ulong dy_stride, const ulong dx_stride

#define CALL(aligned) \
    { y + y_at, dy + dy_at, dx + dx_at, y_stride, dy_stride, dx_stride, (aligned) }

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_backward(PARAMETERS) {
    local real scratch[2 * SCRATCH];
    const struct call call = CALL(!ELEMENT_ALIGNED);
    take_share(&call, work, rounds, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_backward_any(PARAMETERS) {
    local real scratch[2 * SCRATCH];
    const struct call call = CALL(false);
    take_share(&call, work, rounds, scratch);
}
#endif
