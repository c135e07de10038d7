/* Checks of a forward norm's 8-bit output. */
#ifndef TEST_NORM_QUANTIZED_CHECK_H
#define TEST_NORM_QUANTIZED_CHECK_H

#include "codes_check.h"
#include "norm_run.h"

/* The tensor of a descriptor that describes y's scales: y, or y_t where y is absent. */
const clnorm_tensor *norm_codes_of(const clnorm_norm_desc *desc);

/* Checks the codes and scales of count columns of a row, whole groups from column first on; prints the first error.
 * Extends all, the magnitude of the whole tensor, by them. y: [count] expected values; error: [count] their tolerances. */
bool norm_quantized_check(const struct norm_run *run, uint64_t row, uint64_t first, uint64_t count, const double *y,
                          const double *error, struct magnitude *all);

/* Checks the measured scale of a whole tensor; true for other scales. */
bool norm_quantized_check_whole(const struct norm_run *run, struct magnitude all);

#endif
