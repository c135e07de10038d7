/* How far a kernel's norm and its gradients may be from the reference, from the roundings on the way to them. */
#ifndef REFERENCE_NORM_ERROR_H
#define REFERENCE_NORM_ERROR_H

#include "reference/arithmetic.h"
#include "reference/norm_backward.h"

/* A segment of the forward, and the errors of its statistics. Where the variance is not finite these are 0: the results
 * follow from the formulas without a rounding. */
struct ref_norm_error {
    const struct ref_norm *norm;
    const struct ref_arithmetic *arithmetic;
    const struct ref_segment *segment;
    double mean, variance, rstd;
};

struct ref_norm_error ref_norm_error_of(const struct ref_norm *norm, const struct ref_arithmetic *arithmetic,
                                        const struct ref_segment *segment);

/* Of an element of the segment. */
double ref_s_error(const struct ref_norm_error *error, uint64_t i);
double ref_y_error(const struct ref_norm_error *error, uint64_t i);

/* The most that gradients of a segment may be off; arrays have group_size elements. */
struct ref_gradient_errors {
    double *xhat, *n, *dn, *wdn; /* on the way */
    double *dx, *dz, *y, *dresidual;
    double *dweight, *dbias; /* of the row's terms */
};

/* The arrays are NULL when there is no memory for them. */
struct ref_gradient_errors ref_gradient_errors_make(uint64_t group_size);
void ref_gradient_errors_free(struct ref_gradient_errors *errors);

void ref_gradient_errors_of(const struct ref_norm_backward *norm, const struct ref_arithmetic *arithmetic,
                            const struct ref_gradients *gradients, struct ref_gradient_errors *errors);

/* A sum over rows, and what its error is made of. */
struct ref_row_sum {
    struct ref_sum sum;
    struct ref_sum magnitude, error; /* of the terms */
};

void ref_row_sum_add(struct ref_row_sum *sum, double term, double error);

/* Adds a segment's terms of dweight and dbias to the sums of its columns, [group_size] each. */
void ref_add_row(const struct ref_gradients *gradients, const struct ref_gradient_errors *errors, uint64_t group_size,
                 struct ref_row_sum *dweight, struct ref_row_sum *dbias);

#endif
