/* The forward norms' output in 8 bits, compared with what y should be. */
#ifndef TEST_NORM_QUANTIZED_CHECK_H
#define TEST_NORM_QUANTIZED_CHECK_H

#include "codes_check.h"
#include "norm_run.h"

/* The tensor of a descriptor that says what y's scales are: y, or y_t where there is no y. */
const clnorm_tensor *norm_codes_of(const clnorm_norm_desc *desc);

/* Checks the codes and scales of count columns of a row, from the first one on, which are whole groups; and adds them to
 * the magnitude of all of y. y: what they stand for; error: how far each may be off. Prints what is wrong. */
bool norm_quantized_check(const struct norm_run *run, uint64_t row, uint64_t first, uint64_t count, const double *y,
                          const double *error, struct magnitude *all);

/* Checks the one scale that all of y has, where it is measured. */
bool norm_quantized_check_whole(const struct norm_run *run, struct magnitude all);

#endif
