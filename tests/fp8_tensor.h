/* Tensors of 8 bits with a scale for each group_size columns. */
#ifndef TEST_FP8_TENSOR_H
#define TEST_FP8_TENSOR_H

#include "fixture.h"

/* Codes of numbers; special: a row of zeros, and rows with the codes of a NaN and, where there is one, an infinity. */
void fp8_fill(struct tensor *x, bool special);

/* From 2^-8 to 2^-2. */
void fp8_fill_scales(struct tensor *x_scale);

/* x · x_scale, as floats multiply. */
float fp8_scaled(const struct tensor *x, const struct tensor *x_scale, uint64_t group_size, uint64_t row, uint64_t column);

#endif
