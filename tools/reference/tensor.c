#include "reference/tensor.h"

#include <stdbool.h>
#include <stdlib.h>

#include "reference/format.h"

uint64_t ref_scale_index(const struct ref_tensor *tensor, uint64_t row, uint64_t column) {
    switch (tensor->scaling) {
    case CLNORM_SCALING_ROW:
        return row;
    case CLNORM_SCALING_GROUP:
        return row * tensor->scale_stride + column / tensor->scale_group;
    default:
        return 0;
    }
}

uint64_t ref_row_index(const struct ref_tensor *tensor, uint64_t row) {
    uint64_t index = 0;
    bool outer = false;
    for (int i = CLNORM_OUTER_DIMS - 1; i >= 0; i--) {
        const clnorm_dim *const dim = &tensor->outer[i];
        if (!dim->size)
            continue;
        index += row % dim->size * dim->stride;
        row /= dim->size;
        outer = true;
    }
    return outer ? index : row * tensor->stride;
}

double ref_at(const struct ref_tensor *tensor, uint64_t row, uint64_t column) {
    const double value = ref_load(tensor->dtype, tensor->elements, ref_row_index(tensor, row) + column);
    if (!tensor->scaling)
        return value;
    return (double)(float)(value * ref_load(tensor->scale_dtype, tensor->scales, ref_scale_index(tensor, row, column)));
}

double ref_at_or(const struct ref_tensor *tensor, uint64_t row, uint64_t column, double otherwise) {
    return tensor->elements ? ref_at(tensor, row, column) : otherwise;
}

struct ref_tensor ref_doubles(const double *elements, uint64_t cols) {
    return (struct ref_tensor){.elements = elements, .dtype = CLNORM_F64, .stride = cols};
}

double *ref_arrays(uint64_t n, uint64_t count) {
    return n > SIZE_MAX / sizeof(double) / count ? NULL : calloc((size_t)(n * count), sizeof(double));
}
