/* Layer and RMS normalisation, backward: dx, dz, y again, and sums over rows for dweight and dbias. See
 * clnorm_norm_backward_desc for the formulas.
 *
 * A work-group goes through many rows, always at the same columns, and adds up what they give to dweight and dbias; at last
 * it puts these sums into a slot. Whether it holds a row's columns in registers or goes through memory is what KEEP and
 * GATHER say: a header for each way.
 *
 * Macros (src/spec.h): NORM, GROUP_SIZE, GROUPS, X_DTYPE, Z_DTYPE, DY_DTYPE, WEIGHT_DTYPE, BIAS_DTYPE, DX_DTYPE, DZ_DTYPE,
 * Y_DTYPE, DWEIGHT_DTYPE, DBIAS_DTYPE, RESIDUAL_DTYPE, DRESIDUAL_OUT_DTYPE, DRESIDUAL_DTYPE, S_GIVEN, Y_GIVEN, ROW_SCALE,
 * DROPOUT, ACTIVATION, ACCUMULATE, GATE, GATE_FIRST, WEIGHT_OFFSET, LOCKED, VEC, LANES, SEGMENTS, KEEP, UNROLL, WEIGHTS,
 * REDUCE, STORES, ISA, TILE, GATHER, COLUMN_LANES, FETCH, PREFETCH, ROUNDS, SPAN, CHUNKS, SUMS, ELEMENT_ALIGNED. */

#include "norm_backward.h"
#include "norm_backward_columns.h"
#include "norm_backward_share.h"
#include "parameter.h"
#include "slots.h"
#include "team.h"

#if KEEP == KEEP_REGISTERS || GATHER == GATHER_REGISTERS || GATHER == GATHER_SPLIT || GATHER == GATHER_COLUMNS
#include "norm_backward_registers.h"
#else
#include "norm_backward_memory.h"
#endif

#define BLOCKS (GROUPS / SPAN * TILES) /* work-groups that share a row */

#if Y_GIVEN /* a launch over no rows has no tensors */
#define POISON (rows > 0 && fault[fault_at] ? (real)NAN : (real)0)
#else
#define POISON 0
#endif

#if READS_MEAN
#define HAS_MEAN 1
#else
#define HAS_MEAN 0
#endif
#if NEEDS_MEANS && SPLIT && SUMS == SUMS_BEFORE
#define HAS_SUMS 1
#else
#define HAS_SUMS 0
#endif
#if LOCKED || SUMS == SUMS_EXCHANGED
#define HAS_LOCKS 1
#else
#define HAS_LOCKS 0
#endif

/* A line for each tensor, which would be taken for calls within calls. */
/* clang-format off */
#define PARAMETERS                                                                                           \
    const global STORAGE(X_DTYPE) * x, const ulong x_at,                                                     \
    OPTIONAL(PRESENT(Z_DTYPE), const global STORAGE(Z_DTYPE) *, z)                                           \
    const global STORAGE(DY_DTYPE) * dy, const ulong dy_at,                                                  \
    OPTIONAL(PRESENT(WEIGHT_DTYPE), const global STORAGE(WEIGHT_DTYPE) *restrict, weight)                    \
    OPTIONAL(PRESENT(BIAS_DTYPE), const global STORAGE(BIAS_DTYPE) *restrict, bias)                          \
    OPTIONAL(HAS_MEAN, const global real *restrict, mean)                                                    \
    const global real *restrict rstd, const ulong rstd_at,                                                   \
    OPTIONAL(HAS_SUMS, const global real *restrict, sums)                                                    \
    OPTIONAL(PRESENT(DX_DTYPE), global STORAGE(DX_DTYPE) *, dx)                                              \
    OPTIONAL(PRESENT(DZ_DTYPE), global STORAGE(DZ_DTYPE) *, dz)                                              \
    OPTIONAL(PRESENT(Y_DTYPE), global STORAGE(Y_DTYPE) *, y)                                                 \
    OPTIONAL(DWEIGHT, global STORAGE(DWEIGHT_DTYPE) *, dweight)                                              \
    OPTIONAL(DBIAS, global STORAGE(DBIAS_DTYPE) *, dbias)                                                    \
    OPTIONAL(HAS_LOCKS, volatile global uint *, locks)                                                       \
    OPTIONAL(PRESENT(RESIDUAL_DTYPE), const global STORAGE(RESIDUAL_DTYPE) *, residual)                      \
    OPTIONAL(ROW_SCALE, const global real *restrict, row_scale)                                              \
    OPTIONAL(PRESENT(DRESIDUAL_OUT_DTYPE), const global STORAGE(DRESIDUAL_OUT_DTYPE) *, dresidual_out)       \
    OPTIONAL(PRESENT(DRESIDUAL_DTYPE), global STORAGE(DRESIDUAL_DTYPE) *, dresidual)                         \
    OPTIONAL(Y_GIVEN, const global uint *restrict, fault)                                                    \
    const ulong rows, OPTIONAL_NUMBER(HAS_SLOTS, ulong, slots)                                               \
    const ulong x_stride, OPTIONAL_NUMBER(PRESENT(Z_DTYPE), ulong, z_stride)                                 \
    const ulong dy_stride, OPTIONAL_NUMBER(PRESENT(DX_DTYPE), ulong, dx_stride)                              \
    OPTIONAL_NUMBER(PRESENT(DZ_DTYPE), ulong, dz_stride)                                                     \
    OPTIONAL_NUMBER(PRESENT(Y_DTYPE), ulong, y_stride)                                                       \
    OPTIONAL_NUMBER(PRESENT(RESIDUAL_DTYPE), ulong, residual_stride)                                         \
    OPTIONAL_NUMBER(PRESENT(DRESIDUAL_OUT_DTYPE), ulong, dresidual_out_stride)                               \
    OPTIONAL_NUMBER(PRESENT(DRESIDUAL_DTYPE), ulong, dresidual_stride)                                       \
    OPTIONAL_NUMBER(WEIGHT_OFFSET, real, weight_offset)                                                      \
    OPTIONAL_NUMBER(DROPOUT, real, kept_scale)                                                               \
    OPTIONAL_NUMBER(DROPOUT, uint, threshold)                                                                \
    const ulong share_rows SEED_PARAMETERS
/* clang-format on */

#define CALL(aligned)                                                                                                  \
    {                                                                                                                  \
        x + x_at, OPTIONAL_AT(PRESENT(Z_DTYPE), z), dy + dy_at, OPTIONAL_AT(PRESENT(WEIGHT_DTYPE), weight),            \
            OPTIONAL_AT(PRESENT(BIAS_DTYPE), bias), OPTIONAL_AT(HAS_MEAN, mean), rstd + rstd_at,                       \
            OPTIONAL_AT(HAS_SUMS, sums), OPTIONAL_AT(PRESENT(DX_DTYPE), dx), OPTIONAL_AT(PRESENT(DZ_DTYPE), dz),       \
            OPTIONAL_AT(PRESENT(Y_DTYPE), y), OPTIONAL_AT(PRESENT(RESIDUAL_DTYPE), residual),                          \
            OPTIONAL_AT(ROW_SCALE, row_scale), OPTIONAL_AT(PRESENT(DRESIDUAL_OUT_DTYPE), dresidual_out),               \
            OPTIONAL_AT(PRESENT(DRESIDUAL_DTYPE), dresidual), rows, x_stride, NUMBER_OR_0(PRESENT(Z_DTYPE), z_stride), \
            dy_stride, NUMBER_OR_0(PRESENT(DX_DTYPE), dx_stride), NUMBER_OR_0(PRESENT(DZ_DTYPE), dz_stride),           \
            NUMBER_OR_0(PRESENT(Y_DTYPE), y_stride), NUMBER_OR_0(PRESENT(RESIDUAL_DTYPE), residual_stride),            \
            NUMBER_OR_0(PRESENT(DRESIDUAL_OUT_DTYPE), dresidual_out_stride),                                           \
            NUMBER_OR_0(PRESENT(DRESIDUAL_DTYPE), dresidual_stride), NUMBER_OR_0(WEIGHT_OFFSET, weight_offset),        \
            NUMBER_OR_0(DROPOUT, kept_scale), DICE, POISON, aligned                                                    \
    }

#define WALK_SHARE                                                                                                         \
    walk_share(&call, share_rows, NUMBER_OR_0(HAS_SLOTS, slots), OPTIONAL_AT(DWEIGHT, dweight), OPTIONAL_AT(DBIAS, dbias), \
               OPTIONAL_AT(HAS_LOCKS, locks), scratch, space, letters, &told)

/* Words of the locks, before the letters of teams. */
#define LOCK_WORDS(slots) (LOCKED ? (BLOCKS * (slots) + 15) / 16 * 16 : 0)

/* What the work-items of a work-group share. */
#define LOCAL_MEMORY                  \
    local real scratch[2 * SCRATCH];  \
    local realv space[SPACE];         \
    local real letters[LETTER_SPACE]; \
    local uint told;

/* share_rows: of a work-group or, with ROUNDS, of all of them in so many rounds; slots: work-groups share them in turn. */
INLINED void walk_share(const struct call *call, const ulong share_rows, const ulong slots,
                        global STORAGE(DWEIGHT_DTYPE) * dweight, global STORAGE(DBIAS_DTYPE) * dbias,
                        volatile global uint *locks, local real *scratch, local realv *space, local real *letters,
                        local uint *told) {
    if (call->rows == 0)
        return;
    const ulong work_group = WORK_GROUP;
    const bool has_rows = work_group >= COLUMN_GROUPS;
    take_columns(call, work_group, dweight, dbias, space);
    volatile global uint *mail = locks + LOCK_WORDS(slots);
    const ulong place = SUMS == SUMS_EXCHANGED ? take_place(mail, told) : has_rows ? work_group - COLUMN_GROUPS : 0;
    struct team team = team_of(mail, place, letters);
    const ulong block = place % BLOCKS;
    const ulong walker = place / BLOCKS;
    const ulong neighbours = ROUNDS ? (ulong)ROUNDS * SEGMENTS : share_rows;
    const ulong first = has_rows ? walker * neighbours : call->rows;
    const ulong end = ROUNDS ? call->rows : min(first + share_rows, call->rows);
    const ulong group = block / TILES * SPAN;
    const struct share share = {first, end, share_rows - neighbours, group, (uint)(block % TILES)};
    const ulong slot_index = HAS_SLOTS ? walker % slots : 0;
    const ulong column = slot_index * GROUPS * GROUP_SIZE + group * GROUP_SIZE;
    struct slot slot = {(global real *)dweight + column, (global real *)dbias + column, false, call->aligned};
    walk(call, &share, &slot, locks + block * slots + slot_index, scratch, space, told, &team);
    if (COLUMN_GROUPS > 0)
        last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void norm_backward(PARAMETERS) {
    LOCAL_MEMORY
    const struct call call = CALL(!ELEMENT_ALIGNED);
    WALK_SHARE;
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void norm_backward_any(PARAMETERS) {
    LOCAL_MEMORY
    const struct call call = CALL(false);
    WALK_SHARE;
}
#endif

#if HAS_LOCKS
/* Before any work-group comes to a slot, or posts a letter. work: words. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_backward_clear(global uint *locks, const ulong locks_at, const ulong work) {
    for (ulong i = get_global_id(0); i < work; i += get_global_size(0))
        locks[locks_at + i] = 0;
}
#endif
