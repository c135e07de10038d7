/* How far the gradients of a normalisation may be off, from the roundings on the way to them: of dtypes, cols, rows, config
 * and magnitudes. */
#ifndef TEST_NORM_BACKWARD_ERROR_H
#define TEST_NORM_BACKWARD_ERROR_H

#include "fixture.h"
#include "reference_backward.h"

/* What roundings depend on beside the numbers themselves. */
struct rounding {
    const clnorm_norm_backward_desc *desc; /* complete */
    clnorm_config config;                  /* the plan's */
    enum input input;                      /* what x is filled with */
};

/* The most that results of a segment may be off, before they are rounded to their dtype; arrays have group_size elements.
 */
struct gradient_errors {
    double *xhat, *n, *dn, *wdn; /* on the way */
    double *dx, *dz, *y, *dresidual;
    double *dweight, *dbias; /* of the row's term */
};

/* Exits the process when there is no memory for them. */
struct gradient_errors gradient_errors_make(uint64_t group_size);
void gradient_errors_free(struct gradient_errors *errors);

void gradient_errors_of(const struct rounding *rounding, const struct ref_gradients *gradients,
                        struct gradient_errors *errors);

/* The most that a sum over rows may be off by its additions, for terms whose magnitudes add up to that. */
double row_sum_error(const struct rounding *rounding, double magnitude);

/* Whether a stored result is a rounding of something within error of what is expected. */
bool within_error(clnorm_dtype dtype, double result, double expected, double error);

#endif
