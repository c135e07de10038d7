/* Layer and RMS normalisation, forward: see clnorm_norm_desc for the formulas.
 *
 * A work-group owns (row, group) segments, SEGMENTS of them at a time, LANES work-items each. Where a segment is while its
 * statistics are taken is what KEEP says: a header for each way.
 *
 * Macros (src/spec.h): NORM, GROUP_SIZE, GROUPS, X_DTYPE, Y_DTYPE, Z_DTYPE, WEIGHT_DTYPE, BIAS_DTYPE, GATE, GATE_FIRST,
 * WEIGHT_OFFSET, RESIDUAL_DTYPE, RESIDUAL_OUT_DTYPE, ROW_SCALE, DROPOUT, SAVE_MASK, ACTIVATION, SAVE_MEAN, SAVE_RSTD,
 * SCALING, Y_GROUP, VEC, LANES, SEGMENTS, KEEP, UNROLL, WEIGHTS, REDUCE, STORES, ISA, FP8_ISA, SHELVED,
 * ROWS_AHEAD, ASKED, REGISTERS, LOOP, CHUNKS (1), ELEMENT_ALIGNED. */

#include "norm_call.h"
#include "norm_statistics.h"

#if MEASURED
#include "norm_quantized.h"
#endif

#if KEEP == KEEP_REGISTERS
#include "norm_registers.h"
#else
#include "norm_reread.h"
#endif

/* NVIDIA's compiler takes no number of registers for kernels whose work-groups have a size of their own. */
#if REGISTERS
#define OF_GROUP_ITEMS
#else
#define OF_GROUP_ITEMS __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1)))
#endif

/* This work-group's segments. rounds: how often it goes on to its next ones. */
INLINED void normalise_share(const struct call *call, const ulong rounds, local real *scratch, local struct shelf *shelf) {
    struct lanes lanes = {scratch, 0};
    const ulong turns = LOOP ? rounds : 1; /* without a loop, compilers fetch weights after x, not before it */
    const ulong first = get_group_id(0) * turns * SEGMENTS;
    for (ulong turn = 0; turn < turns; turn++) {
        const ulong index = first + turn * SEGMENTS;
        if (index >= call->work)
            return; /* the whole work-group */
        const struct segment segment = segment_at(call, index + get_local_id(0) / LANES, 0);
        normalise(call, &segment, &lanes, shelf);
    }
}

/* For offsets that are multiples of a vector's size. */
kernel OF_GROUP_ITEMS void norm_forward(TENSORS SCALARS) {
    local real scratch[2 * SCRATCH];
    local struct shelf shelf;
    const struct call call = CALL(!ELEMENT_ALIGNED);
    normalise_share(&call, rounds, scratch, &shelf);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel OF_GROUP_ITEMS void norm_forward_any(TENSORS SCALARS) {
    local real scratch[2 * SCRATCH];
    local struct shelf shelf;
    const struct call call = CALL(false);
    normalise_share(&call, rounds, scratch, &shelf);
}
#endif
