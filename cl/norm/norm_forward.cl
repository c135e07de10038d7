/* Layer, RMS and L2 normalisation, forward: see clnorm_norm_desc and clnorm_l2_norm_desc for the formulas.
 *
 * A work-group owns (row, group) segments, and takes SEGMENTS of them at a time with LANES work-items each. KEEP says where
 * a segment is kept while its statistics are computed, with a header for each case.
 *
 * Macros (src/program/spec.h): NORM, FLOORED, GROUP_SIZE, GROUPS, X_DTYPE, X_SCALE_DTYPE, X_SCALING, X_GROUP, Y_DTYPE,
 * Z_DTYPE, WEIGHT_DTYPE, BIAS_DTYPE, GATE, GATE_FIRST, WEIGHT_OFFSET, RESIDUAL_DTYPE, RESIDUAL_OUT_DTYPE, ROW_SCALE,
 * DROPOUT, SAVE_MASK, ACTIVATION, SAVE_MEAN, SAVE_RSTD, SCALING, Y_GROUP, SCALE_DTYPE (of y), Y_SCALES, WRITES_Y, MEASURES,
 * SAVE_Y_ROW_SCALE, COMPATIBLE, VEC, LANES, SEGMENTS, KEEP, UNROLL, WEIGHTS, REDUCE, STORES, ISA, FP8_ISA, LOCAL_VECTORS,
 * LOOP, CHUNKS (1), ELEMENT_ALIGNED; perhaps LEADS, WEIGHT_MAP, COLUMNS_OF_WEIGHT, and those of norm_rope.h. */

#define MOVES_EDGES 1 /* see common/lead.h */

#include "norm/norm_statistics.h"

#if MEASURED || MEASURES
#include "norm/norm_quantized.h"
#endif

#if KEEP == KEEP_REGISTERS
#include "norm/norm_registers.h"
#else
#include "norm/norm_reread.h"
#endif

/* This work-group's segments. */
INLINED void normalise_share(const struct call *call, local real *scratch, local struct group_memory *in_local) {
    struct lanes lanes = {.scratch = scratch};
    const ulong turns = LOOP ? call->iterations : 1; /* without a loop, compilers load weights after x, not before it */
    const ulong first = get_group_id(0) * turns * SEGMENTS;
    float amax = 0;
    for (ulong turn = 0; turn < turns; turn++) {
        const ulong index = first + turn * SEGMENTS;
        if (index >= call->work)
            break; /* the whole work-group */
        const struct segment segment = segment_at(call, index + get_local_id(0) / LANES, 0);
        amax = fmax(amax, normalise(call, &segment, &lanes, in_local));
    }
#if MEASURES
    put_largest(call, &lanes, amax);
#endif
    (void)amax;
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void norm_forward(PARAMETERS(NORM_FORWARD_ARGS)) {
    local real scratch[2 * SCRATCH];
    local struct group_memory in_local;
    const struct call call = {ARGUMENTS(NORM_FORWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    normalise_share(&call, scratch, &in_local);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void norm_forward_unaligned(PARAMETERS(NORM_FORWARD_ARGS)) {
    local real scratch[2 * SCRATCH];
    local struct group_memory in_local;
    const struct call call = {ARGUMENTS(NORM_FORWARD_ARGS), .aligned = false};
    normalise_share(&call, scratch, &in_local);
}
#endif
