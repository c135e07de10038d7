/* The forward norms' output in 8 bits, compared with what y should be. */
#ifndef TEST_NORM_QUANTIZED_CHECK_H
#define TEST_NORM_QUANTIZED_CHECK_H

#include "norm_case.h"

/* The shape of y's scales, [rows, cols] of them; rows 0 where none are written. */
struct scales {
    uint64_t rows, cols;
};

struct scales norm_scales_of(const clnorm_norm_desc *desc);

/* Checks the codes and scales of count columns of a row, from the first one on, which are whole groups. y: what they
 * stand for; error: how far each may be off. Prints what is wrong. */
bool norm_quantized_check(const struct norm_run *run, uint64_t row, uint64_t first, uint64_t count, const double *y,
                          const double *error);

#endif
