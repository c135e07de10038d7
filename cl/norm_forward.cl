/* Layer and RMS normalisation, forward: see clnorm_norm_desc for the formulas.
 *
 * A work-group owns (row, group) segments, SEGMENTS of them at a time, LANES work-items each. Where a segment is while its
 * statistics are taken is what KEEP says: a header for each way.
 *
 * Macros (src/spec.h): NORM, GROUP_SIZE, GROUPS, X_DTYPE, Y_DTYPE, Z_DTYPE, WEIGHT_DTYPE, BIAS_DTYPE, GATE, GATE_FIRST,
 * WEIGHT_OFFSET, RESIDUAL_DTYPE, RESIDUAL_OUT_DTYPE, ROW_SCALE, DROPOUT, SAVE_MASK, ACTIVATION, SAVE_MEAN, SAVE_RSTD,
 * SCALING, Y_GROUP, VEC, LANES, SEGMENTS, KEEP, UNROLL, WEIGHTS, REDUCE, STORES, ISA, FP8_ISA, LOOP, ELEMENT_ALIGNED. */

#include "norm_statistics.h"

#if MEASURED
#include "norm_quantized.h"
#endif

#if KEEP == KEEP_REGISTERS
#include "norm_registers.h"
#else
#include "norm_reread.h"
#endif

/* This work-group's segments. rounds: how often it goes on to its next ones. */
INLINED void normalise_share(const struct call *call, const ulong rounds, local real *scratch) {
    struct lanes lanes = {scratch, 0};
    const ulong turns = LOOP ? rounds : 1; /* without a loop, compilers fetch weights after x, not before it */
    const ulong first = get_group_id(0) * turns * SEGMENTS;
    for (ulong turn = 0; turn < turns; turn++) {
        const ulong index = first + turn * SEGMENTS;
        if (index >= call->work)
            return; /* the whole work-group */
        const struct segment segment = segment_at(call, index + get_local_id(0) / LANES);
        normalise(call, &segment, &lanes);
    }
}

#define PARAMETERS                                                                                                       \
    const global STORAGE(X_DTYPE) * x, const ulong x_offset, const global STORAGE(WEIGHT_DTYPE) *restrict weight,        \
        const ulong weight_at, const global STORAGE(BIAS_DTYPE) *restrict bias, const ulong bias_at,                     \
        const global STORAGE(Z_DTYPE) * z, const ulong z_offset, global STORAGE(Y_DTYPE) * y, const ulong y_offset,      \
        global real *restrict mean, const ulong mean_at, global real *restrict rstd, const ulong rstd_at,                \
        const global STORAGE(RESIDUAL_DTYPE) * residual, const ulong residual_at, const global real *restrict row_scale, \
        const ulong row_scale_at, global STORAGE(RESIDUAL_OUT_DTYPE) * residual_out, const ulong residual_out_at,        \
        global uchar *restrict mask, const ulong mask_at, global float *restrict y_scale, const ulong y_scale_at,        \
        const ulong work, const ulong rows, const ulong rounds, const ulong x_stride, const ulong y_stride,              \
        const ulong z_stride, const ulong residual_stride, const ulong residual_out_stride, const real eps,              \
        const real weight_offset, const real kept_scale, const uint threshold, const float y_given SEED_PARAMETERS

#define CALL(aligned)                                                                                                     \
    {                                                                                                                     \
        x + x_offset, weight + weight_at, bias + bias_at, z + z_offset, y + y_offset, mean + mean_at, rstd + rstd_at,     \
            residual + residual_at, row_scale + row_scale_at, residual_out + residual_out_at, mask + mask_at, work, rows, \
            x_stride, y_stride, z_stride, residual_stride, residual_out_stride, eps, weight_offset, kept_scale, DICE,     \
            y_scale + y_scale_at, y_given, aligned                                                                        \
    }

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void norm_forward(PARAMETERS) {
    local real scratch[2 * SCRATCH];
    const struct call call = CALL(!ELEMENT_ALIGNED);
    normalise_share(&call, rounds, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void norm_forward_any(PARAMETERS) {
    local real scratch[2 * SCRATCH];
    const struct call call = CALL(false);
    normalise_share(&call, rounds, scratch);
}
#endif
