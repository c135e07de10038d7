/* Sums over a row that one work-item takes: a sum and a largest value for each position in a vector. */
#ifndef FP8_RMS_NORM_SERIAL_H
#define FP8_RMS_NORM_SERIAL_H

#include "quantize/magnitude.h"

#include "norm/fp8_rms_norm.h"

#define CHAINS 4 /* independent sums, and vectors under way at once */

struct places {
    floatv squares[CHAINS];
    floatv largest;
};

static inline void add_vector(const struct call *call, const ulong row, const ulong column, const uint chain,
                              struct places *places) {
    const floatv x = WIDEN(X_DTYPE)(load_codes(call, row, column, LOAD_PLAIN)) * scale_of_x(call, row, column);
    places->squares[chain] += x * x;
    if (!COMPATIBLE)
        places->largest = larger_of(places->largest, weighted(x, weight_at(call, column)));
}

static inline struct sums sums_of(const struct call *call, const ulong *row) {
    struct places places;
    places.largest = 0;
#pragma unroll
    for (uint k = 0; k < CHAINS; k++)
        places.squares[k] = 0;
    ulong column = 0;
    for (; column + (CHAINS - 1) * VEC < call->cols; column += CHAINS * VEC) {
#pragma unroll
        for (uint k = 0; k < CHAINS; k++)
            add_vector(call, row[0], column + k * VEC, k, &places);
    }
    for (; column < call->cols; column += VEC)
        add_vector(call, row[0], column, 0, &places);
#pragma unroll
    for (uint k = 1; k < CHAINS; k++)
        places.squares[0] += places.squares[k];
    return (struct sums){{sum_elements(places.squares[0])}, {largest_element(places.largest)}};
}

#endif
