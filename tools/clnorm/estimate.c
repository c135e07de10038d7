#include "estimate.h"

#include <math.h>

/* Each sum's error is a random walk of at most n / 16 steps, with a margin. A kernel may take the mean of differences to
 * one element; the error of that, in units of the largest element, is the one of ref_arithmetic_of(). */
struct ref_arithmetic estimate_arithmetic(clnorm_dtype x, uint64_t n) {
    struct ref_arithmetic arithmetic = ref_arithmetic_of(x);
    arithmetic.statistics = arithmetic.sum = 4 + sqrt((double)n) / 4;
    return arithmetic;
}

/* A random walk of at most n steps, most of which are off by less than half a unit. */
double error_over_rows(const struct ref_arithmetic *arithmetic, uint64_t n) {
    return (4 + sqrt((double)n)) * arithmetic->unit;
}
