#include "plan/tensor.h"

#include <inttypes.h>

#include "base/arithmetic.h"
#include "base/status.h"

uint64_t cln_tensor_extent(const clnorm_dim dims[CLNORM_OUTER_DIMS], uint64_t cols) {
    uint64_t extent = cols;
    for (int i = 0; i < CLNORM_OUTER_DIMS && dims[i].size; i++) {
        uint64_t before_last;
        if (__builtin_mul_overflow(dims[i].size - 1, dims[i].stride, &before_last) ||
            __builtin_add_overflow(extent, before_last, &extent))
            return UINT64_MAX;
    }
    return extent;
}

static uint64_t largest_stride(const clnorm_dim dims[CLNORM_OUTER_DIMS]) {
    uint64_t largest = 0;
    for (int i = 0; i < CLNORM_OUTER_DIMS && dims[i].size; i++)
        largest = cln_larger(largest, dims[i].stride);
    return largest;
}

/* dims: the dimensions of its rows, the fastest first, with strides in elements. */
static clnorm_status make(struct cln_tensor *tensor, const char *name, uint64_t rows, uint64_t cols,
                          const clnorm_dim dims[CLNORM_OUTER_DIMS], clnorm_dtype dtype, uint32_t vec) {
    const uint64_t size = clnorm_dtype_size(dtype);
    const uint64_t elements = rows ? cln_tensor_extent(dims, cols) : 0;
    uint64_t bytes;
    if (__builtin_mul_overflow(elements, size, &bytes) || bytes > INT64_MAX)
        return cln_fail(CLNORM_OVERFLOW,
                        "%s has %" PRIu64 " rows of stride %" PRIu64 " and %" PRIu64
                        " bytes an element: expected less than 2^63 bytes",
                        name, rows, largest_stride(dims), size);
    *tensor = (struct cln_tensor){
        .element = size, .span = bytes, .vector = vec * size, .stride = dims[0].stride * size, .row = cols * size};
    for (int i = 0; i < CLNORM_OUTER_DIMS && dims[i].size; i++)
        tensor->dims[i] = (clnorm_dim){dims[i].size, dims[i].stride * size};
    return CLNORM_SUCCESS;
}

clnorm_status cln_tensor_matrix(struct cln_tensor *tensor, const char *name, uint64_t rows, uint64_t cols, uint64_t stride,
                                clnorm_dtype dtype, uint32_t vec) {
    const clnorm_dim dims[CLNORM_OUTER_DIMS] = {{rows, stride}};
    return dtype ? make(tensor, name, rows, cols, dims, dtype, vec) : CLNORM_SUCCESS;
}

clnorm_status cln_tensor_rows(struct cln_tensor *tensor, const char *name, uint64_t rows, uint64_t cols,
                              const clnorm_tensor *given, uint32_t vec) {
    clnorm_dim dims[CLNORM_OUTER_DIMS] = {{0, 0}};
    int count = 0;
    for (int i = CLNORM_OUTER_DIMS - 1; i >= 0; i--)
        if (given->outer[i].size)
            dims[count++] = given->outer[i];
    return count ? make(tensor, name, rows, cols, dims, given->dtype, vec)
                 : cln_tensor_matrix(tensor, name, rows, cols, given->stride, given->dtype, vec);
}

clnorm_status cln_tensor_vector(struct cln_tensor *tensor, const char *name, uint64_t elements, uint64_t size,
                                uint32_t vec) {
    uint64_t bytes;
    if (__builtin_mul_overflow(elements, size, &bytes) || bytes > INT64_MAX)
        return cln_fail(CLNORM_OVERFLOW, "%s has %" PRIu64 " elements of %" PRIu64 " bytes: expected less than 2^63 bytes",
                        name, elements, size);
    *tensor = (struct cln_tensor){.element = size, .span = bytes, .vector = vec * size};
    return CLNORM_SUCCESS;
}
