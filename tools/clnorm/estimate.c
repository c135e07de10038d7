#include "estimate.h"

#include <math.h>

/* A random walk of n / 16 steps or fewer in each; with a margin. */
struct ref_arithmetic estimate_arithmetic(clnorm_dtype x, uint64_t n) {
    struct ref_arithmetic arithmetic = ref_arithmetic_of(x);
    arithmetic.statistics = arithmetic.sum = 4 + sqrt((double)n) / 4;
    arithmetic.shift = 0; /* within the margin */
    return arithmetic;
}

/* Of n steps at most, each of which is off by less than half a unit as a rule. */
double error_over_rows(const struct ref_arithmetic *arithmetic, uint64_t n) {
    return (4 + sqrt((double)n)) * arithmetic->unit;
}
