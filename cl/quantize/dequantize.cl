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

static inline float scale_at(const struct call *call, const ulong index) {
    return LOAD1(SCALE_DTYPE)(call->scale + index);
}

/* The numbers of the vector at a column of row.h. At the start of a group its first elements are of the group before, and
 * after the row's last group all are. */
static inline floatv scaled(const struct call *call, const ulong row, const ulong column, const floatv v) {
#if LEADS && SCALING == SCALING_GROUP
    const ulong group = row * GROUPS + min(column, call->cols - 1) / GROUP_SIZE;
    const ulong before = row * GROUPS + column / GROUP_SIZE - (column > 0 && column % GROUP_SIZE == 0);
    return v * fill_before(scale_at(call, group), lead_of(call, row), scale_at(call, before));
#elif SCALING == SCALING_GROUP
    return v * scale_at(call, row * GROUPS + column / GROUP_SIZE);
#else
    return v * scale_at(call, SCALING == SCALING_ROW ? row : 0);
#endif
}

static inline void dequantize_row(const struct call *call, const ulong row) {
    const global uchar *const q = call->q + row * call->q_stride - lead_of(call, row);
    global STORAGE(X_DTYPE) *const x = call->x + row * call->x_stride - lead_of(call, row);
    const ulong end = end_of_row(call, row);
    for (ulong column = get_local_id(0) % LANES * VEC; column < end; column += LANES * VEC) {
        const struct part part = part_of(call, row, column);
        const bool whole = is_whole(part);
        const BYTES codes = whole ? load_bytes(q + column, call->aligned, LOAD_LAST) : load_part_of_q(q + column, part);
        const floatv numbers = scaled(call, row, column, WIDEN(Q_DTYPE)(codes));
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
