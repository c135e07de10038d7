#include "fp8_tensor.h"

#include <math.h>

void fp8_fill(struct tensor *x, bool special) {
    struct random random = {x->rows + 7 * x->cols};
    const unsigned most = x->dtype == CLNORM_F8_E4M3 ? 0x7e : 0x7b;
    unsigned char *codes = tensor_elements(x);
    for (uint64_t row = 0; row < x->rows; row++)
        for (uint64_t column = 0; column < x->cols; column++) {
            unsigned code = (unsigned)(random_below(&random, most + 1) | random_below(&random, 2) << 7);
            if (special && row % 4 == 1)
                code = column % 2 ? 0x80 : 0;
            if (special && row % 4 == 2 && column == x->cols / 2)
                code = 0xff;
            if (special && row % 4 == 3 && column == 1)
                code = 0x7c;
            codes[row * x->stride + column] = (unsigned char)code;
        }
}

void fp8_fill_scales(struct tensor *x_scale) {
    struct random random = {x_scale->cols};
    for (uint64_t i = 0; i < x_scale->rows * x_scale->cols; i++)
        ref_store(x_scale->dtype, tensor_elements(x_scale), i, exp2(6 * random_uniform(&random) - 8));
}

struct scales fp8_scales_of(const clnorm_tensor *tensor, uint64_t rows, uint64_t cols) {
    switch (tensor->scaling) {
    case CLNORM_SCALING_TENSOR:
        return (struct scales){1, 1};
    case CLNORM_SCALING_ROW:
        return (struct scales){rows, 1};
    case CLNORM_SCALING_GROUP:
        return (struct scales){rows, (cols + tensor->scale_group - 1) / tensor->scale_group};
    default:
        return (struct scales){0, 0};
    }
}

struct ref_tensor fp8_reference(const struct tensor *x, const struct tensor *x_scale, uint64_t group_size) {
    return (struct ref_tensor){.elements = tensor_elements(x),
                               .dtype = x->dtype,
                               .stride = x->stride,
                               .scales = tensor_elements(x_scale),
                               .scale_dtype = x_scale->dtype,
                               .scaling = CLNORM_SCALING_GROUP,
                               .scale_group = group_size,
                               .scale_stride = x_scale->stride};
}
