/* The first pass of RMS norm on an 8-bit x: rstd and the scale of each row, and the largest |y| of each work-group. LANES
 * work-items share ROWS rows, and a work-group takes SEGMENTS times ROWS rows at a time.
 *
 * Macros (src/program/spec.h): X_DTYPE, X_SCALE_DTYPE, WEIGHT_DTYPE, Q_DTYPE (of y), SCALE_DTYPE (none: no scale is
 * written), GROUP_SIZE, COMPATIBLE, ROWS (1 or 2; 1 with LANES 1), VEC, LANES, SEGMENTS, REDUCE, STORES, ISA, FP8_ISA,
 * ELEMENT_ALIGNED. */

#include "common/arguments.h"
#include "norm/fp8_rms_norm_args.h"
#include "quantize/magnitude.h"
#include "quantize/quantize.h"

struct call {
    MEMBERS(FP8_RMS_NORM_ROWS_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

#include "norm/fp8_rms_norm.h"

#define STEP (LANES * VEC)

/* The sums over a lane's part of each row. */
struct sums {
    float squares[ROWS];
    float largest[ROWS]; /* |x · weight| */
};

#if LANES == 1
#include "norm/fp8_rms_norm_serial.h"
#else
#include "norm/fp8_rms_norm_cooperative.h"
#endif

/* The largest finite |x · weight · rstd| of a lane's part of a row, with the roundings of each step. */
static inline float largest_again(const struct call *call, const ulong row, const float rstd) {
    largest largest = 0;
#if LANES > 1 && COMPATIBLE
#pragma unroll 4
#endif
    for (ulong column = (uint)get_local_id(0) % LANES * VEC; column < call->cols; column += STEP) {
        const floatv x = WIDEN(X_DTYPE)(load_codes(call, row, column, LOAD_PLAIN));
        largest = larger_of(largest, y_step_by_step(x, scale_of_x(call, row, column), rstd, weight_at(call, column)));
    }
    return largest_of(largest);
}

/* The largest |y| of each row, from its rstd. Every lane gets the same. */
INLINED void take_largest(const struct call *call, const ulong *row, const float *rstd, struct sums *sums,
                          struct lanes *lanes) {
    float *amax = sums->largest;
#pragma unroll
    for (uint r = 0; r < ROWS; r++)
        if (COMPATIBLE)
            amax[r] = largest_again(call, row[r], rstd[r]);
        else if (LANES > 1 && amax[r] == INFINITY)
            amax[r] = largest_again(call, row[r], 1);
    fold_lanes(lanes, amax, ROWS, FOLD_LARGEST);
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        const float product = COMPATIBLE ? amax[r] : amax[r] * rstd[r];
        amax[r] = isfinite(product) ? product : 0; /* NaNs and infinities do not count */
    }
}

/* Past the last row, the last row is taken again and not written. */
INLINED float take_rows(const struct call *call, const ulong first, struct lanes *lanes) {
    ulong row[ROWS];
#pragma unroll
    for (uint r = 0; r < ROWS; r++)
        row[r] = min(first + r, call->work - 1);
    struct sums sums = sums_of(call, row);
    sum_lanes(lanes, sums.squares, ROWS);
    float rstd[ROWS];
#pragma unroll
    for (uint r = 0; r < ROWS; r++)
        rstd[r] = divide1(1, sqrt(divide1(sums.squares[r], (float)call->cols) + call->eps));
    take_largest(call, row, rstd, &sums, lanes);
    float amax = 0;
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        amax = fmax(amax, sums.largest[r]);
        if (get_local_id(0) % LANES != 0 || first + r >= call->work)
            continue;
        call->rstd[row[r]] = rstd[r];
#if PRESENT(SCALE_DTYPE)
        STORE1(SCALE_DTYPE)(call->row_scale + row[r], ROUND(SCALE_DTYPE)(scale_of(sums.largest[r], FP8_LARGEST(Q_DTYPE))));
#endif
    }
    return amax;
}

/* This work-group's rows. */
INLINED void take_share(const struct call *call, local float *scratch) {
    struct lanes lanes = {.scratch = scratch};
    float amax = 0;
    for (ulong turn = 0; turn < call->iterations; turn++) {
        const ulong first = (get_group_id(0) * call->iterations + turn) * (SEGMENTS * ROWS);
        if (first >= call->work)
            break; /* the whole work-group */
        amax = fmax(amax, take_rows(call, first + get_local_id(0) / LANES * ROWS, &lanes));
    }
    amax = largest_over_segments(scratch, amax);
    if (call->work > 0 && get_local_id(0) == 0)
        call->largest[get_group_id(0)] = amax;
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void fp8_rms_norm_rows(PARAMETERS(FP8_RMS_NORM_ROWS_ARGS)) {
    local float scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(FP8_RMS_NORM_ROWS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same numbers. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
fp8_rms_norm_rows_unaligned(PARAMETERS(FP8_RMS_NORM_ROWS_ARGS)) {
    local float scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(FP8_RMS_NORM_ROWS_ARGS), .aligned = false};
    take_share(&call, scratch);
}
#endif
