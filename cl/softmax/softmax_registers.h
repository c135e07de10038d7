/* A row is read once, and held in its lanes' registers: first x, then the exponentials. */
#ifndef SOFTMAX_REGISTERS_H
#define SOFTMAX_REGISTERS_H

#include "softmax/softmax.h"

static inline bool has_vector(const struct row *row, const uint i) {
    return row->active && (EVEN || is_vector(row->lane + i * LANES, row->lead));
}

INLINED void take_row(const struct call *call, const struct row *row, struct lanes *lanes) {
    realv held[HELD];
    realv largest = -(realv)INFINITY;
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        held[i] = has_vector(row, i) ? load_x(call, row, row->lane + i * LANES, LOAD_PLAIN) : -(realv)INFINITY;
#pragma unroll
    for (uint i = 0; i < HELD; i++) {
        if (has_vector(row, i))
            held[i] = masked(row, row->lane + i * LANES, held[i]);
        largest = larger(largest, held[i]);
    }
    const real origin = origin_of(largest_over_lanes(lanes, largest_element(largest)));
    realv sum = 0;
#pragma unroll
    for (uint i = 0; i < HELD; i++) {
        held[i] = exponential_of_minus(origin - held[i]);
        sum += held[i];
    }
    const real scale = scale_of(sum_over_lanes(lanes, sum_elements(sum)));
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (has_vector(row, i))
            store_y(call, row, row->lane + i * LANES, held[i] * scale);
}

#endif
