/* Numbers computed in double, and how far a kernel's arithmetic may be from them. */
#ifndef ESTIMATE_H
#define ESTIMATE_H

#include <stdint.h>

#include "clnorm/clnorm.h"

/* The arithmetic that a kernel computes in. */
struct arithmetic {
    double unit; /* largest relative error of one operation */
    double tiny; /* a device may take smaller numbers for 0 */
};

/* Of a kernel whose x has this type. */
struct arithmetic arithmetic_of(clnorm_dtype dtype);

enum { FUNCTION_UNITS = 8 }; /* units of error that a device may put into exp, a division or a reciprocal square root */

/* A value and its slack: what rounding in the kernel's arithmetic can do to it, before the result is stored. A slack is
 * never NaN: NaN comes from infinities, whose results are exact. */
struct estimate {
    double value, slack;
};

struct estimate estimate_exact(double value);
struct estimate estimate_add(const struct arithmetic *arithmetic, struct estimate a, struct estimate b);
struct estimate estimate_subtract(const struct arithmetic *arithmetic, struct estimate a, struct estimate b);
struct estimate estimate_multiply(const struct arithmetic *arithmetic, struct estimate a, struct estimate b);

/* For a b whose slack is small beside it. */
struct estimate estimate_divide(const struct arithmetic *arithmetic, struct estimate a, struct estimate b);

/* act(z) and its derivative. */
struct estimate estimate_gate(const struct arithmetic *arithmetic, clnorm_gate gate, double z);
struct estimate estimate_gate_slope(const struct arithmetic *arithmetic, clnorm_gate gate, double z);

/* A sum of many estimates. */
struct estimate_sum {
    long double value, magnitude, slack;
};

void estimate_sum_add(struct estimate_sum *sum, struct estimate term);

/* The sum over divisor. error: the largest relative error of adding up numbers of one sign. */
struct estimate estimate_sum_over(const struct estimate_sum *sum, double divisor, double error);

/* The relative error of a sum over the n elements of a segment, which are added in lanes and vectors, and of one over n
 * rows, some of which are added one after the other. */
double error_over_segment(const struct arithmetic *arithmetic, uint64_t n);
double error_over_rows(const struct arithmetic *arithmetic, uint64_t n);

#endif
