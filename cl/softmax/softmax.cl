/* Softmax: see clnorm_softmax_desc for the formula.
 *
 * A work-group owns rows, and takes SEGMENTS of them at a time with LANES work-items each. KEEP says where a row is kept
 * while its largest element and its sum are computed, with a header for each case.
 *
 * Macros (src/program/spec.h): GROUP_SIZE (cols), X_DTYPE, Y_DTYPE, VEC, LANES, SEGMENTS, KEEP, UNROLL, CHUNKS (1), REDUCE,
 * STORES, ISA, ELEMENT_ALIGNED; perhaps LEADS. */

#include "softmax/softmax.h"

#if KEEP == KEEP_REGISTERS
#include "softmax/softmax_registers.h"
#else
#include "softmax/softmax_reread.h"
#endif

/* A segment is a row. */
INLINED void take_segment(const struct call *call, const ulong index, const bool active, struct lanes *lanes) {
    const struct row row = row_at(call, index, 0, active);
    take_row(call, &row, lanes);
}

#include "common/take_share.h"

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax(PARAMETERS(SOFTMAX_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(SOFTMAX_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_unaligned(PARAMETERS(SOFTMAX_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(SOFTMAX_ARGS), .aligned = false};
    take_share(&call, scratch);
}
#endif
