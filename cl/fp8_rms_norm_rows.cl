/* The first pass of RMS norm on 8-bit x: rstd and the scale of each row, and the largest |y| of each work-group. LANES
 * work-items a row, SEGMENTS rows in a work-group at a time.
 *
 * Macros (src/spec.h): X_DTYPE, X_SCALE_DTYPE, WEIGHT_DTYPE, Q_DTYPE (of y), SCALE_DTYPE (none: no scale is written),
 * GROUP_SIZE, COMPATIBLE, VEC, LANES, SEGMENTS, REDUCE, STORES, ISA, FP8_ISA, ELEMENT_ALIGNED. */

#include "magnitude.h"

#include "fp8_rms_norm.h"

#define STEP (LANES * VEC)
#define CHAINS 4 /* sums that no addition of another waits for, and vectors under way at once */

/* Of a lane's part of a row. As for largest: a lane alone has a sum for each place in a vector. */
#if LANES == 1
typedef floatv squares;
#define SUM_OF_PLACES sum_elements
#else
typedef float squares;
#define SUM_OF_PLACES

static inline float sum_of_squares(const floatv v) {
    const float *element = (const float *)&v;
    float sum = 0;
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        sum += element[i] * element[i];
    return sum;
}
#endif

struct sums {
    squares squares[CHAINS];
    largest largest; /* |x · weight|; where lanes are many, infinities count, for they hardly ever are */
};

/* One vector as it is loaded. */
struct taken {
    BYTES x;
    float x_scale;
};

static inline struct taken take(const struct call *call, const ulong row, const ulong column) {
    return (struct taken){load_codes(call, row, column, LOAD_FIRST), scale_of_x(call, row, column)};
}

static inline void add_vector(const struct call *call, const struct taken *taken, const ulong column, const uint chain,
                              struct sums *sums) {
    const floatv codes = WIDEN(X_DTYPE)(taken->x);
#if LANES == 1
    const floatv x = codes * taken->x_scale;
    sums->squares[chain] += x * x;
    if (!COMPATIBLE)
        sums->largest = larger_of(sums->largest, weighted(x, weight_at(call, column)));
#else
    sums->squares[chain] += sum_of_squares(codes) * taken->x_scale * taken->x_scale;
    if (!COMPATIBLE) {
        const floatv products = weighted(codes, weight_at(call, column));
        sums->largest = fmax(sums->largest, largest_element(fabs(products)) * fabs(taken->x_scale));
    }
#endif
}

static inline struct sums sums_of(const struct call *call, const ulong row, const ulong begin, const ulong end) {
    struct sums sums;
    sums.largest = 0;
#pragma unroll
    for (uint k = 0; k < CHAINS; k++)
        sums.squares[k] = 0;
    ulong column = begin;
    for (; column + (CHAINS - 1) * STEP < end; column += CHAINS * STEP) {
        struct taken taken[CHAINS];
#pragma unroll
        for (uint k = 0; k < CHAINS; k++)
            taken[k] = take(call, row, column + k * STEP);
        begin_loads();
#pragma unroll
        for (uint k = 0; k < CHAINS; k++)
            add_vector(call, &taken[k], column + k * STEP, k, &sums);
    }
    for (; column < end; column += STEP) {
        const struct taken taken = take(call, row, column);
        add_vector(call, &taken, column, 0, &sums);
    }
#pragma unroll
    for (uint k = 1; k < CHAINS; k++)
        sums.squares[0] += sums.squares[k];
    return sums;
}

/* The largest |x · weight · rstd| of a lane's part of a row, step by step, without infinities. */
static inline float largest_again(const struct call *call, const ulong row, const ulong begin, const ulong end,
                                  const float rstd) {
    largest largest = 0;
#if LANES > 1 && COMPATIBLE
#pragma unroll 4
#endif
    for (ulong column = begin; column < end; column += STEP) {
        const floatv x = WIDEN(X_DTYPE)(load_codes(call, row, column, LOAD_LAST));
        largest = larger_of(largest, y_step_by_step(x, scale_of_x(call, row, column), rstd, weight_at(call, column)));
    }
    return largest_of(largest);
}

INLINED float take_row(const struct call *call, const ulong row, const float eps, struct lanes *lanes, global float *rstd,
                       global STORAGE(SCALE_DTYPE) * scale) {
    const bool active = row < call->rows;
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong end = active ? call->cols : 0;
    struct sums sums = sums_of(call, row, lane * VEC, end);
    const float mean = divide1(sum_over_lanes(lanes, SUM_OF_PLACES(sums.squares[0])), (float)call->cols);
    const float own_rstd = divide1(1, sqrt(mean + eps));
#if COMPATIBLE
    const float amax = largest_over_lanes(lanes, largest_again(call, row, lane * VEC, end, own_rstd));
#else
    if (LANES > 1 && largest_of(sums.largest) == INFINITY)
        sums.largest = largest_again(call, row, lane * VEC, end, 1);
    const float product = largest_over_lanes(lanes, largest_of(sums.largest)) * own_rstd;
    const float amax = isfinite(product) ? product : 0; /* as everywhere, NaNs and infinities do not count */
#endif
    if (active && lane == 0) {
        rstd[row] = own_rstd;
#if PRESENT(SCALE_DTYPE)
        STORE1(SCALE_DTYPE)(scale + row, ROUND(SCALE_DTYPE)(scale_of(amax, FP8_LARGEST(Q_DTYPE))));
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
        const ulong first = (get_group_id(0) * rounds + turn) * SEGMENTS;
        if (first >= call->rows)
            break; /* the whole work-group */
        amax = fmax(amax, take_row(call, first + get_local_id(0) / LANES, eps, &lanes, rstd, scale));
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
