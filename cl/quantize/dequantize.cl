/* Numbers from codes and their scales. LANES work-items share a row, and a work-group takes SEGMENTS rows at a time.
 *
 * Macros (src/program/spec.h): X_DTYPE, Q_DTYPE, SCALE_DTYPE, SCALING, GROUP_SIZE, GROUPS, VEC, LANES, SEGMENTS, STORES,
 * ISA, FP8_ISA, ELEMENT_ALIGNED; perhaps LEADS and TAILS. */

#include "common/arguments.h"
#include "common/fp8.h"
#include "quantize/quantize_args.h"

struct call {
    MEMBERS(DEQUANTIZE_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

#include "quantize/row.h"

DEFINE_LOAD_ELEMENTS(load_part_of_q, Q_DTYPE)
DEFINE_STORE_ELEMENTS(store_part_of_x, X_DTYPE)

static inline float scale_at(const struct call *call, const ulong row, const ulong column) {
    const ulong index = SCALING == SCALING_TENSOR ? 0 : SCALING == SCALING_ROW ? row : row * GROUPS + column / GROUP_SIZE;
    return LOAD1(SCALE_DTYPE)(call->scale + index);
}

static inline void dequantize_row(const struct call *call, const ulong row) {
    const global uchar *const q = call->q + row * call->q_stride - lead_of(call, row);
    global STORAGE(X_DTYPE) *const x = call->x + row * call->x_stride - lead_of(call, row);
    const ulong end = end_of_row(call, row);
    for (ulong column = get_local_id(0) % LANES * VEC; column < end; column += LANES * VEC) {
        const struct part part = part_of(call, row, column);
        const bool whole = is_whole(part);
        const BYTES codes = whole ? load_bytes(q + column, call->aligned, LOAD_LAST) : load_part_of_q(q + column, part);
        const floatv numbers = WIDEN(Q_DTYPE)(codes) * scale_at(call, row, column);
        if (whole) {
            STORE(X_DTYPE)(x + column, numbers, call->aligned);
        } else {
            store_part_of_x(x + column, NARROW(X_DTYPE)(numbers), part);
        }
    }
}

/* This work-group's rows. */
static inline void dequantize_share(const struct call *call) {
    for (ulong turn = 0; turn < call->iterations; turn++) {
        const ulong row = (get_group_id(0) * call->iterations + turn) * SEGMENTS + get_local_id(0) / LANES;
        if (row < call->work)
            dequantize_row(call, row);
    }
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(LANES * SEGMENTS, 1, 1))) void dequantize(PARAMETERS(DEQUANTIZE_ARGS)) {
    const struct call call = {ARGUMENTS(DEQUANTIZE_ARGS), .aligned = !ELEMENT_ALIGNED};
    dequantize_share(&call);
}

#if !ELEMENT_ALIGNED
/* For any offsets. */
kernel __attribute__((reqd_work_group_size(LANES * SEGMENTS, 1, 1))) void
dequantize_unaligned(PARAMETERS(DEQUANTIZE_ARGS)) {
    const struct call call = {ARGUMENTS(DEQUANTIZE_ARGS), .aligned = false};
    dequantize_share(&call);
}
#endif
