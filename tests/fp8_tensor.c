#include "fp8_tensor.h"

#include <math.h>

#include "fp8_model.h"
#include "reference.h"

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

float fp8_scaled(const struct tensor *x, const struct tensor *x_scale, uint64_t group_size, uint64_t row, uint64_t column) {
    const unsigned char *codes = tensor_elements(x);
    const float value = (float)fp8_value(x->dtype, codes[row * x->stride + column]);
    return value * (float)ref_load(x_scale->dtype, tensor_elements(x_scale), row * x_scale->stride + column / group_size);
}
