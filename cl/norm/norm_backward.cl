/* Layer, RMS and L2 normalisation, backward: dx, dz, y recomputed, and sums over rows for dweight and dbias. See
 * clnorm_norm_backward_desc and clnorm_l2_norm_backward_desc for the formulas.
 *
 * A work-group goes through many rows, always at the same columns, and adds up their terms of dweight and dbias. At the end
 * it writes these sums to a slot. KEEP and ACCUMULATOR say whether it holds a row's columns in registers or reads them
 * again from memory, with a header for each case.
 *
 * Macros (src/program/spec.h): NORM, FLOORED, GROUP_SIZE, GROUPS, X_DTYPE, X_SCALE_DTYPE, X_SCALING, X_GROUP, Z_DTYPE,
 * DY_DTYPE, WEIGHT_DTYPE, BIAS_DTYPE, DX_DTYPE, DZ_DTYPE, Y_DTYPE, DWEIGHT_DTYPE, DBIAS_DTYPE, RESIDUAL_DTYPE,
 * DRESIDUAL_OUT_DTYPE, DRESIDUAL_DTYPE, S_GIVEN, Y_GIVEN, ROW_SCALE, DROPOUT, ACTIVATION, ACCUMULATE, GATE, GATE_FIRST,
 * WEIGHT_OFFSET, LOCKED, VEC, LANES, SEGMENTS, KEEP, UNROLL, WEIGHTS, REDUCE, STORES, ISA, READS_MEAN, HAS_SUMS, HAS_SLOTS,
 * EXCHANGES, TILE, ACCUMULATOR, COLUMN_LANES, PIPELINE, PREFETCH, RUN_LENGTH, SPAN, ABREAST, CHUNKS, ROW_SPLIT, FP8_ISA,
 * ELEMENT_ALIGNED; perhaps LEADS, WEIGHT_MAP, COLUMNS_OF_WEIGHT, and those of norm_rope.h. */

#include "norm/norm_backward.h"
#include "norm/norm_backward_columns.h"
#include "norm/norm_backward_share.h"
#include "norm/slots.h"
#include "norm/team.h"

#if KEEP == KEEP_REGISTERS || ACCUMULATOR == ACCUMULATOR_REGISTERS || ACCUMULATOR == ACCUMULATOR_SPLIT || \
    ACCUMULATOR == ACCUMULATOR_COLUMNS
#include "norm/norm_backward_registers.h"
#else
#include "norm/norm_backward_memory.h"
#endif

#define BLOCKS ((GROUPS / SPAN + GROUPS_ABREAST - 1) / GROUPS_ABREAST * TILES) /* work-groups that share a row */

#if Y_GIVEN /* with work 0 there is no buffer to read */
#define POISON (work > 0 && fault[fault_at] ? (real)NAN : (real)0)
#else
#define POISON 0
#endif

/* The local memory of a work-group. */
#define LOCAL_MEMORY                 \
    local real scratch[2 * SCRATCH]; \
    local realv space[SPACE];        \
    local float4 received[RECEIVED]; \
    local uint missing[2];           \
    local uint broadcast;

INLINED void walk_share(const struct call *call, local real *scratch, local realv *space, local float4 *received,
                        local uint *missing, local uint *broadcast) {
    if (call->rows == 0)
        return;
    const ulong work_group = WORK_GROUP;
    const bool has_rows = work_group >= COLUMN_GROUPS;
    take_columns(call, work_group, space);
    const ulong weight_rows = weight_rows_of(call);
    const ulong weight_blocks = (weight_rows + WEIGHT_ROWS_ABREAST - 1) / WEIGHT_ROWS_ABREAST;
    const ulong place = has_rows ? work_group - COLUMN_GROUPS : 0;
    const ulong block = place % BLOCKS;
    struct team team;
#if EXCHANGES
    join_team(call->messages, call->launch, (uint)(block % TILES), received, missing, &team);
#else
    (void)received, (void)missing;
#endif
    const ulong weight_row = place / BLOCKS % weight_blocks * WEIGHT_ROWS_ABREAST;
    const ulong row_group = place / BLOCKS / weight_blocks;
    const ulong neighbours = RUN_LENGTH ? (ulong)RUN_LENGTH * ROWS_AT_ONCE : call->share_rows;
    const ulong first = has_rows ? row_group * (LEADS ? 1 : neighbours) : call->rows / weight_rows;
    const ulong end = RUN_LENGTH ? call->rows / weight_rows : min(first + call->share_rows, call->rows / weight_rows);
    const ulong group = block / TILES * SPAN * GROUPS_ABREAST;
    struct share share = {first, end, call->share_rows - neighbours, (uint)(block % TILES), group, weight_row, 0, true};
    take_segment(call, &share);
    const ulong slot_index = HAS_SLOTS ? weight_row * call->slots + row_group % call->slots : 0;
    const ulong slot_columns = SLOT_COLUMNS(GROUPS * (ulong)GROUP_SIZE);
    const ulong column = slot_index * slot_columns + group * GROUP_SIZE;
    struct slot slot = {
        .dweight = (global real *)call->dweight + column,
        .dbias = (global real *)call->dbias + column,
        .abreast = (uint)min((ulong)ABREAST, GROUPS > 1 ? GROUPS - group : weight_rows - weight_row),
        .step = GROUPS > 1 ? GROUP_SIZE : call->slots * slot_columns,
        .aligned = call->aligned,
    };
    walk(call, &share, &slot, call->locks + block * weight_rows * call->slots + slot_index, scratch, space, broadcast,
         &team);
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void norm_backward(PARAMETERS(NORM_BACKWARD_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(NORM_BACKWARD_ARGS), .rows = work, .poison = POISON, .aligned = !ELEMENT_ALIGNED};
    walk_share(&call, scratch, space, received, missing, &broadcast);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_backward_unaligned(PARAMETERS(NORM_BACKWARD_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(NORM_BACKWARD_ARGS), .rows = work, .poison = POISON, .aligned = false};
    walk_share(&call, scratch, space, received, missing, &broadcast);
}
#endif

#if LOCKED
#include "common/clear_words.h"
#endif
