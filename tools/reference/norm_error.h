/* Error bounds of a kernel's norm and gradients, derived from the roundings of their computation. */
#ifndef REFERENCE_NORM_ERROR_H
#define REFERENCE_NORM_ERROR_H

#include "reference/arithmetic.h"
#include "reference/norm_backward.h"

/* A segment of the forward, and the errors of its statistics. Where the variance is not finite these are 0: the results are
 * infinities and NaNs, which no rounding changes. */
struct ref_norm_error {
    const struct ref_norm *norm;
    const struct ref_arithmetic *arithmetic;
    const struct ref_segment *segment;
    double mean, variance, rstd;
};

struct ref_norm_error ref_norm_error_of(const struct ref_norm *norm, const struct ref_arithmetic *arithmetic,
                                        const struct ref_segment *segment);

/* The errors of s and y of element i of the segment. */
double ref_s_error(const struct ref_norm_error *error, uint64_t i);
double ref_y_error(const struct ref_norm_error *error, uint64_t i);

/* The error bounds of a segment's gradients; arrays have group_size elements. */
struct ref_gradient_errors {
    double *xhat, *n, *dn, *wdn; /* intermediate results */
    double *dx, *dz, *y, *dresidual;
    double *dweight, *dbias; /* of the row's terms */
};

/* The arrays are NULL where there is not enough memory. */
struct ref_gradient_errors ref_gradient_errors_make(uint64_t group_size);
void ref_gradient_errors_free(struct ref_gradient_errors *errors);

void ref_gradient_errors_of(const struct ref_norm_backward *norm, const struct ref_arithmetic *arithmetic,
                            const struct ref_gradients *gradients, struct ref_gradient_errors *errors);

/* A sum over rows, and the terms of its error bound. */
struct ref_row_sum {
    struct ref_sum sum;
    struct ref_sum magnitude, error; /* of the terms */
};

void ref_row_sum_add(struct ref_row_sum *sum, double term, double error);

/* Adds a segment's terms of dweight and dbias to the sums of its columns, [group_size] each. */
void ref_add_row(const struct ref_gradients *gradients, const struct ref_gradient_errors *errors, uint64_t group_size,
                 struct ref_row_sum *dweight, struct ref_row_sum *dbias);

#endif
