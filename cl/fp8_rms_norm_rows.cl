/* The first pass of RMS norm on 8-bit x: rstd, the largest |y| and the scale of each row. LANES work-items a row, SEGMENTS
 * rows in a work-group at a time.
 *
 * Macros (src/spec.h): X_DTYPE, X_SCALE_DTYPE, WEIGHT_DTYPE, Q_DTYPE (of y), SCALE_DTYPE (none: no scale is written),
 * GROUP_SIZE, COMPATIBLE, VEC, LANES, SEGMENTS, REDUCE, STORES, ISA, FP8_ISA, ELEMENT_ALIGNED. */

#include "magnitude.h"

#include "fp8_rms_norm.h"

#define STEP (LANES * VEC)
#define CHAINS 4 /* sums that no addition of another waits for, and vectors under way at once */

/* Of a lane's part of a row. */
struct sums {
    floatv squares[CHAINS];
    floatv largest; /* |x · weight| */
};

static inline void add_vector(const struct call *call, const ulong row, const ulong column, const uint chain,
                              struct sums *sums) {
    const floatv x = code_values(call, row, column, LOAD_FIRST) * scale_of_x(call, row, column);
    sums->squares[chain] += x * x;
    if (!COMPATIBLE)
        sums->largest = larger_magnitudes(sums->largest, weighted(call, x, column));
}

static inline struct sums sums_of(const struct call *call, const ulong row, const ulong begin, const ulong end) {
    struct sums sums;
    sums.largest = 0;
#pragma unroll
    for (uint k = 0; k < CHAINS; k++)
        sums.squares[k] = 0;
    ulong column = begin;
    for (; column + (CHAINS - 1) * STEP < end; column += CHAINS * STEP) {
#pragma unroll
        for (uint k = 0; k < CHAINS; k++)
            add_vector(call, row, column + k * STEP, k, &sums);
    }
    for (; column < end; column += STEP)
        add_vector(call, row, column, 0, &sums);
#pragma unroll
    for (uint k = 1; k < CHAINS; k++)
        sums.squares[0] += sums.squares[k];
    return sums;
}

INLINED void take_row(const struct call *call, const ulong row, const float eps, struct lanes *lanes, global float *rstd,
                      global float *largest, global STORAGE(SCALE_DTYPE) * scale) {
    const bool active = row < call->rows;
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong end = active ? call->cols : 0;
    struct sums sums = sums_of(call, row, lane * VEC, end);
    const float mean = divide1(sum_over_lanes(lanes, sum_elements(sums.squares[0])), (float)call->cols);
    const float own_rstd = divide1(1, sqrt(mean + eps));
#if COMPATIBLE
    for (ulong column = lane * VEC; column < end; column += STEP)
        sums.largest = larger_magnitudes(sums.largest, y_step_by_step(call, row, column, own_rstd, LOAD_LAST));
    const float amax = largest_over_lanes(lanes, largest_element(sums.largest));
#else
    const float product = largest_over_lanes(lanes, largest_element(sums.largest)) * own_rstd;
    const float amax = isfinite(product) ? product : 0; /* as everywhere, NaNs and infinities do not count */
#endif
    if (!active || lane != 0)
        return;
    rstd[row] = own_rstd;
    largest[row] = amax;
#if PRESENT(SCALE_DTYPE)
    STORE1(SCALE_DTYPE)(scale + row, ROUND(SCALE_DTYPE)(scale_of(amax, FP8_LARGEST(Q_DTYPE))));
#endif
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
    for (ulong turn = 0; turn < rounds; turn++) {
        const ulong first = (get_group_id(0) * rounds + turn) * SEGMENTS;
        if (first >= call->rows)
            return; /* the whole work-group */
        take_row(call, first + get_local_id(0) / LANES, eps, &lanes, rstd, largest, scale);
    }
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
