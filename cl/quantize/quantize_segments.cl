/* The largest magnitude of each row or group, its scale, and its codes: LANES work-items a segment, SEGMENTS of them in a
 * work-group at a time. A segment is a row, or with SCALING_GROUP GROUP_SIZE neighbouring elements, GROUPS of them in a
 * row, the last one maybe shorter. With SCALING_TENSOR only magnitudes are wanted, and amax has one for each work-group.
 *
 * Macros (src/spec.h): X_DTYPE, Q_DTYPE, SCALE_DTYPE (none: no scale is written), AMAX, WRITE_Q, SCALING, GROUP_SIZE,
 * GROUPS, STOCHASTIC, VEC, LANES, SEGMENTS, UNROLL, REDUCE, STORES, ISA, FP8_ISA, ELEMENT_ALIGNED. */

#include "common/arguments.h"
#include "quantize/magnitude.h"
#include "quantize/quantize.h"
#include "quantize/quantize_args.h"

struct call {
    MEMBERS(QUANTIZE_SEGMENTS_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

#include "quantize/quantize_call.h"

#define STEP (LANES * VEC)
#define AT_ONCE 4 /* vectors */

/* The largest magnitude of a lane's part of a segment. */
static inline float amax_of(const struct call *call, const ulong row, const ulong begin, const ulong end) {
    largest magnitudes = 0;
    ulong column = begin;
    for (; column + (AT_ONCE - 1) * STEP < end; column += AT_ONCE * STEP) {
        PACKED(X_DTYPE) x[AT_ONCE];
#pragma unroll
        for (uint k = 0; k < AT_ONCE; k++)
            x[k] = load_x(call, row, column + k * STEP, LOAD_FIRST);
        begin_loads();
#pragma unroll
        for (uint k = 0; k < AT_ONCE; k++)
            magnitudes = larger_of(magnitudes, WIDEN(X_DTYPE)(x[k]));
    }
    for (; column < end; column += STEP)
        magnitudes = larger_of(magnitudes, WIDEN(X_DTYPE)(load_x(call, row, column, LOAD_FIRST)));
    return largest_of(magnitudes);
}

INLINED float take_segment(const struct call *call, const ulong index, struct lanes *lanes) {
    const bool active = index < call->work;
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong row = SCALING == SCALING_GROUP ? index / GROUPS : index;
    const ulong begin = SCALING == SCALING_GROUP ? index % GROUPS * GROUP_SIZE : 0;
    const ulong whole = SCALING == SCALING_GROUP && begin + GROUP_SIZE < call->cols ? begin + GROUP_SIZE : call->cols;
    const ulong end = active ? whole : begin;
    const float own_amax = largest_over_lanes(lanes, amax_of(call, row, begin + lane * VEC, end));
#if AMAX && SCALING != SCALING_TENSOR
    if (active && lane == 0)
        call->amax[index] = own_amax;
#endif
#if PRESENT(SCALE_DTYPE)
    const float rounded = ROUND(SCALE_DTYPE)(scale_of(own_amax, FP8_LARGEST(Q_DTYPE)));
    if (active && lane == 0)
        STORE1(SCALE_DTYPE)(call->scale + index, rounded);
#if WRITE_Q
#if LANES > 1
#pragma unroll 4
#endif
    for (ulong column = begin + lane * VEC; column < end; column += STEP)
        store_bytes(call->q + row * call->q_stride + column,
                    quantized(call, row, column, WIDEN(X_DTYPE)(load_x(call, row, column, LOAD_LAST)), rounded),
                    call->aligned);
#endif
#endif
    return own_amax;
}

/* This work-group's segments. */
INLINED void take_share(const struct call *call, local float *scratch) {
    struct lanes lanes = {.scratch = scratch};
    float largest = 0;
    for (ulong turn = 0; turn < call->iterations; turn++) {
        const ulong first = (get_group_id(0) * call->iterations + turn) * SEGMENTS;
        if (first >= call->work)
            break; /* the whole work-group */
        largest = fmax(largest, take_segment(call, first + get_local_id(0) / LANES, &lanes));
    }
#if SCALING == SCALING_TENSOR
    largest = largest_over_segments(scratch, largest);
    if (call->work > 0 && get_local_id(0) == 0)
        call->amax[get_group_id(0)] = largest;
#endif
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void quantize_segments(PARAMETERS(QUANTIZE_SEGMENTS_ARGS)) {
    local float scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(QUANTIZE_SEGMENTS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same codes. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
quantize_segments_unaligned(PARAMETERS(QUANTIZE_SEGMENTS_ARGS)) {
    local float scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(QUANTIZE_SEGMENTS_ARGS), .aligned = false};
    take_share(&call, scratch);
}
#endif
