/* Softmax and GELU in double, with how far a kernel's arithmetic may be from each element before it is rounded to the
 * output's dtype. */
#ifndef TEST_REFERENCE_ROWS_H
#define TEST_REFERENCE_ROWS_H

#include "clnorm/clnorm.h"

/* A value and the error that it may have. */
struct ref_value {
    double value, error;
};

/* What the errors follow from. */
struct ref_arithmetic {
    double unit;     /* half a step at 1 */
    double tiny;     /* what a device without denormals may drop */
    double function; /* error of an exponential, an error function or a quotient, in units */
    double sum;      /* error of a sum over a row, in units of the sum of magnitudes */
};

/* sum is left for the caller: it depends on how the row is shared out. */
struct ref_arithmetic ref_arithmetic_of(clnorm_dtype dtype);

struct ref_value ref_gelu(const struct ref_arithmetic *arithmetic, clnorm_gelu_form form, double x);
struct ref_value ref_gelu_backward(const struct ref_arithmetic *arithmetic, clnorm_gelu_form form, double x, double dy);

/* A row of softmax: y and its errors, and of its backward; arrays of n elements. */
void ref_softmax(const struct ref_arithmetic *arithmetic, const double *x, uint64_t n, struct ref_value *y);
void ref_softmax_backward(const struct ref_arithmetic *arithmetic, const double *y, const double *dy, uint64_t n,
                          struct ref_value *dx);

#endif
