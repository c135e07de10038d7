/* Sums over ROWS rows at a time. A lane has the same columns of all these rows, and loads and widens their weights
 * once. */
#ifndef FP8_RMS_NORM_COOPERATIVE_H
#define FP8_RMS_NORM_COOPERATIVE_H

#include "quantize/magnitude.h"

#include "norm/fp8_rms_norm.h"

/* A vector of each row, as loaded. */
struct taken {
    BYTES x[ROWS];
    float x_scale[ROWS];
};

static inline struct taken take(const struct call *call, const ulong *row, const ulong column) {
    struct taken taken;
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        taken.x[r] = load_codes(call, row[r], column, LOAD_PLAIN);
        taken.x_scale[r] = scale_of_x(call, row[r], column);
    }
    return taken;
}

static inline float sum_of_squares(const floatv v) {
    const float *element = (const float *)&v;
    float sum = 0;
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        sum += element[i] * element[i];
    return sum;
}

/* One comparison for each element. Infinities count here: they are rare, and their rows are read again. */
static inline void add_vectors(const struct call *call, const struct taken *taken, const ulong column, struct sums *sums) {
    const floatv weight = weight_at(call, column);
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        const floatv codes = WIDEN(X_DTYPE)(taken->x[r]);
        const float scale = taken->x_scale[r];
        sums->squares[r] += sum_of_squares(codes) * scale * scale;
        if (!COMPATIBLE)
            sums->largest[r] = fmax(sums->largest[r], largest_element(fabs(weighted(codes, weight))) * fabs(scale));
    }
}

/* The sums of this lane's part. The next vectors are under way while it adds up. */
static inline struct sums sums_of(const struct call *call, const ulong *row) {
    struct sums sums;
#pragma unroll
    for (uint r = 0; r < ROWS; r++)
        sums.squares[r] = sums.largest[r] = 0;
    const ulong begin = (uint)get_local_id(0) % LANES * VEC;
    struct taken next;
    if (begin < call->cols)
        next = take(call, row, begin);
#pragma unroll 1
    for (ulong column = begin; column < call->cols; column += STEP) {
        const struct taken taken = next;
        if (column + STEP < call->cols)
            next = take(call, row, column + STEP);
        add_vectors(call, &taken, column, &sums);
    }
    return sums;
}

#endif
