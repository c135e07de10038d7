/* A row of y and dy is read once, and held in its lanes' registers. */
#ifndef SOFTMAX_BACKWARD_REGISTERS_H
#define SOFTMAX_BACKWARD_REGISTERS_H

#include "softmax/softmax_backward.h"

static inline bool has_vector(const struct row *row, const uint i) {
    return row->active && (EVEN || is_vector(row->lane + i * LANES, row->lead));
}

INLINED void take_row(const struct call *call, const struct row *row, struct lanes *lanes) {
    struct point held[HELD];
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (has_vector(row, i))
            load_point(call, row, row->lane + i * LANES, LOAD_PLAIN, &held[i]);
    realv products = 0;
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (has_vector(row, i))
            products += product_of(row, row->lane + i * LANES, &held[i]);
    const real sum = sum_over_lanes(lanes, sum_elements(products));
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (has_vector(row, i))
            put_dx(call, row, row->lane + i * LANES, &held[i], sum);
}

#endif
