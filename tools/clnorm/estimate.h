/* Error bounds for kernels whose config is unknown. */
#ifndef ESTIMATE_H
#define ESTIMATE_H

#include "reference/arithmetic.h"

enum { FUNCTION_UNITS = 8 }; /* units of error that a device may put into exp, a division or a reciprocal square root */

/* The arithmetic of a kernel whose x has this dtype, and whose sums are of n elements, added in lanes and vectors. */
struct ref_arithmetic estimate_arithmetic(clnorm_dtype x, uint64_t n);

/* The relative error of a sum over n rows of numbers of one sign, some of which are added serially. */
double error_over_rows(const struct ref_arithmetic *arithmetic, uint64_t n);

#endif
