/* The totals of a row, or of one of its chunks. */
#ifndef SOFTMAX_TOTALS_H
#define SOFTMAX_TOTALS_H

#include "softmax/softmax.h"

/* The largest element, and the sum of exponentials of differences from origin_of(largest). Those of an empty chunk are -∞
 * and 0. */
struct totals {
    real largest, sum;
};

/* A chunk's sum, relative to the largest element of the row. Without contraction, for the same bits in every kernel. */
static inline real moved(const real sum, const real largest_of_chunk, const real largest) {
#pragma OPENCL FP_CONTRACT OFF
    return sum * first_element(exponential_of_minus((realv)(origin_of(largest) - largest_of_chunk)));
}

#endif
