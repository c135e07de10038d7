/* How far a kernel's arithmetic may be from the numbers of the reference. */
#ifndef REFERENCE_ARITHMETIC_H
#define REFERENCE_ARITHMETIC_H

#include "clnorm/base.h"

/* A value and the error that a kernel's may have, before it is rounded to the output's dtype. */
struct ref_value {
    double value, error;
};

/* What errors follow from. A kernel's sums depend on how it shares a row out, so the caller counts their roundings: the
 * error of a sum in units of the sum of magnitudes. */
struct ref_arithmetic {
    double unit;       /* half a step at 1 */
    double tiny;       /* what a device without denormals may drop */
    double function;   /* error of an exponential, an error function or a quotient, in units */
    double statistics; /* roundings of the sums that mean and rstd are made of */
    double shift;      /* error of a mean in units of the largest element: sums may be of differences to an element */
    double sum;        /* roundings of other sums over a row or a segment */
};

/* Of kernels whose x has this dtype. Their functions are as exact as OpenCL requires; both kinds of sums are 0, and shift
 * is 4. */
struct ref_arithmetic ref_arithmetic_of(clnorm_dtype dtype);

/* The error of a · b with two roundings of its own, from the errors of its factors. */
double ref_product_error(const struct ref_arithmetic *arithmetic, struct ref_value a, struct ref_value b);

/* Whether a stored result is a rounding of something within error of what is expected. Where that is not finite, the
 * result is the same. */
bool ref_within(clnorm_dtype dtype, double result, struct ref_value expected);

#endif
