/* The first pass of RMS norm on 8-bit x: rstd and the scale of each row, and the largest |y| of each work-group. LANES
 * work-items share ROWS rows, SEGMENTS times that in a work-group at a time.
 *
 * Macros (src/spec.h): X_DTYPE, X_SCALE_DTYPE, WEIGHT_DTYPE, Q_DTYPE (of y), SCALE_DTYPE (none: no scale is written),
 * GROUP_SIZE, COMPATIBLE, ROWS (1 or 2), VEC, LANES, SEGMENTS, REDUCE, STORES, ISA, FP8_ISA, ELEMENT_ALIGNED. */

#include "magnitude.h"

#include "fp8_rms_norm.h"

#define STEP (LANES * VEC)

/* Of a lane's part of each row. */
struct sums {
    float squares[ROWS];
    float largest[ROWS]; /* |x · weight| */
};

#if LANES == 1
#include "fp8_rms_norm_alone.h"
#else
#include "fp8_rms_norm_together.h"
#endif

/* The largest |x · weight · rstd| of a lane's part of a row, step by step, without infinities. */
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

/* The largest |y| of each row, from its rstd; the same in each lane. */
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
        amax[r] = isfinite(product) ? product : 0; /* as everywhere, NaNs and infinities do not count */
    }
}

/* Beyond the last row it is that row again, and is not written. */
INLINED float take_rows(const struct call *call, const ulong first, const float eps, struct lanes *lanes,
                        global float *rstd, global STORAGE(SCALE_DTYPE) * scale) {
    ulong row[ROWS];
#pragma unroll
    for (uint r = 0; r < ROWS; r++)
        row[r] = min(first + r, call->rows - 1);
    struct sums sums = sums_of(call, row);
    sum_lanes(lanes, sums.squares, ROWS);
    float own_rstd[ROWS];
#pragma unroll
    for (uint r = 0; r < ROWS; r++)
        own_rstd[r] = divide1(1, sqrt(divide1(sums.squares[r], (float)call->cols) + eps));
    take_largest(call, row, own_rstd, &sums, lanes);
    float amax = 0;
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        amax = fmax(amax, sums.largest[r]);
        if (get_local_id(0) % LANES != 0 || first + r >= call->rows)
            continue;
        rstd[row[r]] = own_rstd[r];
#if PRESENT(SCALE_DTYPE)
        STORE1(SCALE_DTYPE)(scale + row[r], ROUND(SCALE_DTYPE)(scale_of(sums.largest[r], FP8_LARGEST(Q_DTYPE))));
#endif
    }
    return amax;
}

#define PARAMETERS                                                                                                        \
    const global uchar *x, const ulong x_at, const global STORAGE(X_SCALE_DTYPE) * x_scale, const ulong x_scale_at,       \
        const global STORAGE(WEIGHT_DTYPE) * weight, const ulong weight_at, global float *rstd, const ulong rstd_at,      \
        global float *largest, const ulong largest_at, global STORAGE(SCALE_DTYPE) * row_scale, const ulong row_scale_at, \
        const ulong work, const ulong rounds, const ulong cols, const ulong x_stride, const float eps

#define CALL(aligned) \
    { x + x_at, x_scale + x_scale_at, weight + weight_at, 0, 0, 0, work, cols, x_stride, 0, 0, 0, 0, aligned }

/* This work-group's rows. */
INLINED void take_share(const struct call *call, const ulong rounds, const float eps, global float *rstd,
                        global float *largest, global STORAGE(SCALE_DTYPE) * scale, local float *scratch) {
    struct lanes lanes = {scratch, 0};
    float amax = 0;
    for (ulong turn = 0; turn < rounds; turn++) {
        const ulong first = (get_group_id(0) * rounds + turn) * (SEGMENTS * ROWS);
        if (first >= call->rows)
            break; /* the whole work-group */
        amax = fmax(amax, take_rows(call, first + get_local_id(0) / LANES * ROWS, eps, &lanes, rstd, scale));
    }
    amax = largest_over_segments(scratch, amax);
    if (call->rows > 0 && get_local_id(0) == 0)
        largest[get_group_id(0)] = amax;
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void fp8_rms_norm_rows(PARAMETERS) {
    local float scratch[2 * SCRATCH];
    const struct call call = CALL(!ELEMENT_ALIGNED);
    take_share(&call, rounds, eps, rstd + rstd_at, largest + largest_at, row_scale + row_scale_at, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same numbers. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void fp8_rms_norm_rows_any(PARAMETERS) {
    local float scratch[2 * SCRATCH];
    const struct call call = CALL(false);
    take_share(&call, rounds, eps, rstd + rstd_at, largest + largest_at, row_scale + row_scale_at, scratch);
}
#endif
