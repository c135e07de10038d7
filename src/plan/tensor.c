#include "plan/tensor.h"

#include <inttypes.h>

#include "base/status.h"

clnorm_status cln_tensor_matrix(struct cln_tensor *tensor, const char *name, uint64_t rows, uint64_t cols, uint64_t stride,
                                clnorm_dtype dtype, uint32_t vec) {
    if (!dtype)
        return CLNORM_SUCCESS;
    const uint64_t size = clnorm_dtype_size(dtype);
    uint64_t elements = 0, bytes;
    if (rows && (__builtin_mul_overflow(rows - 1, stride, &elements) || __builtin_add_overflow(elements, cols, &elements)))
        elements = UINT64_MAX;
    if (__builtin_mul_overflow(elements, size, &bytes) || bytes > INT64_MAX)
        return cln_fail(CLNORM_OVERFLOW,
                        "%s has %" PRIu64 " rows of stride %" PRIu64 " and %" PRIu64
                        " bytes an element: expected less than 2^63 bytes",
                        name, rows, stride, size);
    *tensor = (struct cln_tensor){size, bytes, vec * size, stride * size, false, false};
    return CLNORM_SUCCESS;
}

clnorm_status cln_tensor_vector(struct cln_tensor *tensor, const char *name, uint64_t elements, uint64_t size,
                                uint32_t vec) {
    uint64_t bytes;
    if (__builtin_mul_overflow(elements, size, &bytes) || bytes > INT64_MAX)
        return cln_fail(CLNORM_OVERFLOW, "%s has %" PRIu64 " elements of %" PRIu64 " bytes: expected less than 2^63 bytes",
                        name, elements, size);
    *tensor = (struct cln_tensor){size, bytes, vec * size, 0, false, false};
    return CLNORM_SUCCESS;
}
