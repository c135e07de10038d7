/* Tensors of 8 bits and their scales. */
#ifndef TEST_FP8_TENSOR_H
#define TEST_FP8_TENSOR_H

#include "fixture.h"
#include "reference/reference.h"

/* Fills x with random codes of finite numbers. special: of every four rows, one has zeros, one a NaN, and one the code
 * 0x7c, which is infinity in e5m2. */
void fp8_fill(struct tensor *x, bool special);

/* Fills scales with numbers from 2^-8 to 2^-2. */
void fp8_fill_scales(struct tensor *x_scale);

/* Shape of an 8-bit tensor's scales; 0 x 0 without scales. */
struct scales {
    uint64_t rows, cols;
};

struct scales fp8_scales_of(const clnorm_tensor *tensor, uint64_t rows, uint64_t cols);

/* x · x_scale for the reference, with a scale for each group_size columns. */
struct ref_tensor fp8_reference(const struct tensor *x, const struct tensor *x_scale, uint64_t group_size);

#endif
