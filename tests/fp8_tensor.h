/* Tensors of 8 bits and their scales. */
#ifndef TEST_FP8_TENSOR_H
#define TEST_FP8_TENSOR_H

#include "fixture.h"
#include "reference/reference.h"

/* Codes of numbers; special: a row of zeros, and rows with the codes of a NaN and, where there is one, an infinity. */
void fp8_fill(struct tensor *x, bool special);

/* From 2^-8 to 2^-2. */
void fp8_fill_scales(struct tensor *x_scale);

/* The shape of the scales of an 8-bit tensor, [rows, cols] of them; 0 of a tensor without. */
struct scales {
    uint64_t rows, cols;
};

struct scales fp8_scales_of(const clnorm_tensor *tensor, uint64_t rows, uint64_t cols);

/* x · x_scale, with a scale for each group_size columns. */
struct ref_tensor fp8_reference(const struct tensor *x, const struct tensor *x_scale, uint64_t group_size);

#endif
