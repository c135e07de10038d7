/* Error bounds of a kernel's arithmetic, against the reference. */
#ifndef REFERENCE_ARITHMETIC_H
#define REFERENCE_ARITHMETIC_H

#include "clnorm/base.h"

/* A value and the error that a kernel's may have, before it is rounded to the output's dtype. */
struct ref_value {
    double value, error;
};

/* The terms of error bounds. How a kernel splits a row decides the roundings of its sums, so the caller gives them: the
 * error of a sum in units of the sum of magnitudes. */
struct ref_arithmetic {
    double unit;       /* half a step at 1 */
    double tiny;       /* the largest number that a device without denormals may flush to 0 */
    double function;   /* error of an exponential, an error function or a quotient, in units */
    double statistics; /* roundings of the sums of mean and rstd */
    double shift;      /* error of a mean in units of the largest element: sums may be of differences to an element */
    double sum;        /* roundings of other sums over a row or a segment */
};

/* The arithmetic of kernels whose x has this dtype. Their functions are as exact as OpenCL requires; statistics and sum are
 * 0, and shift is 4. */
struct ref_arithmetic ref_arithmetic_of(clnorm_dtype dtype);

/* The error of a · b with two roundings of its own, from the errors of its factors. */
double ref_product_error(const struct ref_arithmetic *arithmetic, struct ref_value a, struct ref_value b);

/* Whether a stored result is the rounding of a value within the error of the expected one. Where that is not finite, the
 * result must be the same. */
bool ref_within(clnorm_dtype dtype, double result, struct ref_value expected);

#endif
