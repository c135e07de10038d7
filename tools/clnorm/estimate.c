#include "estimate.h"

#include <math.h>

/* A random walk of n / 16 steps or fewer in each sum, with a margin. A mean may be one of differences to an element: its
 * error in units of the largest element is that of ref_arithmetic_of(). */
struct ref_arithmetic estimate_arithmetic(clnorm_dtype x, uint64_t n) {
    struct ref_arithmetic arithmetic = ref_arithmetic_of(x);
    arithmetic.statistics = arithmetic.sum = 4 + sqrt((double)n) / 4;
    return arithmetic;
}

/* Of n steps at most, each of which is off by less than half a unit as a rule. */
double error_over_rows(const struct ref_arithmetic *arithmetic, uint64_t n) {
    return (4 + sqrt((double)n)) * arithmetic->unit;
}
