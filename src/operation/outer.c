#include "operation/outer.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"

bool cln_outer_given(const clnorm_tensor *tensor) {
    for (int i = 0; i < CLNORM_OUTER_DIMS; i++)
        if (tensor->outer[i].size || tensor->outer[i].stride)
            return true;
    return false;
}

clnorm_status cln_outer_refuse(const char *name, const clnorm_tensor *tensor, const char *why) {
    for (int i = 0; i < CLNORM_OUTER_DIMS; i++)
        if (tensor->outer[i].size || tensor->outer[i].stride)
            return cln_fail(CLNORM_INVALID_SHAPE, "desc.%s.outer[%d] is %" PRIu64 " of stride %" PRIu64 ": expected 0%s",
                            name, i, tensor->outer[i].size, tensor->outer[i].stride, why);
    return CLNORM_SUCCESS;
}

static clnorm_status check_sizes(const char *name, const clnorm_tensor *tensor, uint64_t rows) {
    uint64_t product = 1;
    bool overflow = false;
    for (int i = 0; i < CLNORM_OUTER_DIMS; i++)
        if (tensor->outer[i].size)
            overflow |= __builtin_mul_overflow(product, tensor->outer[i].size, &product);
    if (!overflow && product == rows)
        return CLNORM_SUCCESS;
    return cln_fail(CLNORM_INVALID_SHAPE,
                    "desc.%s.outer has sizes %" PRIu64 ", %" PRIu64 ", %" PRIu64 ": expected desc.rows, %" PRIu64
                    ", as the product of those that are not 0",
                    name, tensor->outer[0].size, tensor->outer[1].size, tensor->outer[2].size, rows);
}

/* The dimension with the smallest stride among those not taken yet; -1: none is left. Sizes below 2 do not count. */
static int next_by_stride(const clnorm_tensor *tensor, const bool taken[CLNORM_OUTER_DIMS]) {
    int next = -1;
    for (int i = 0; i < CLNORM_OUTER_DIMS; i++)
        if (!taken[i] && tensor->outer[i].size > 1 && (next < 0 || tensor->outer[i].stride < tensor->outer[next].stride))
            next = i;
    return next;
}

/* Each dimension's stride, from the smallest on, is at least the extent of the dimensions before it. */
static clnorm_status check_apart(const char *name, const clnorm_tensor *tensor, uint64_t cols) {
    bool taken[CLNORM_OUTER_DIMS] = {false};
    uint64_t extent = cols;
    for (int i; (i = next_by_stride(tensor, taken)) >= 0; taken[i] = true) {
        const clnorm_dim *const dim = &tensor->outer[i];
        if (dim->stride < extent)
            return cln_fail(CLNORM_INVALID_SHAPE,
                            "desc.%s.outer[%d].stride is %" PRIu64 ": expected at least %" PRIu64
                            ", since an output's rows may not overlap",
                            name, i, dim->stride, extent);
        uint64_t before_last;
        if (__builtin_mul_overflow(dim->size - 1, dim->stride, &before_last) ||
            __builtin_add_overflow(extent, before_last, &extent))
            extent = UINT64_MAX; /* the tensor is refused later, for its size */
    }
    return CLNORM_SUCCESS;
}

clnorm_status cln_outer_check(const char *name, const clnorm_tensor *tensor, uint64_t rows, uint64_t cols, bool output) {
    for (int i = 0; i < CLNORM_OUTER_DIMS; i++)
        if (rows && !tensor->outer[i].size && tensor->outer[i].stride)
            return cln_fail(CLNORM_INVALID_SHAPE,
                            "desc.%s.outer[%d].size is 0, its stride %" PRIu64 ": expected a stride of 0 without a size",
                            name, i, tensor->outer[i].stride);
    if (!cln_outer_given(tensor))
        return CLNORM_SUCCESS;
    if (tensor->stride)
        return cln_fail(CLNORM_INVALID_SHAPE,
                        "desc.%s.stride is %" PRIu64 ": expected 0 with desc.%s.outer, whose dimensions have strides", name,
                        tensor->stride, name);
    const clnorm_status status = rows ? check_sizes(name, tensor, rows) : CLNORM_SUCCESS;
    return status || !output || !rows ? status : check_apart(name, tensor, cols);
}

/* Whether two dimensions merge into one: the slower one's stride is the extent of the faster one. */
static bool are_contiguous(const clnorm_dim *slow, const clnorm_dim *fast) {
    uint64_t span;
    return !__builtin_mul_overflow(fast->size, fast->stride, &span) && slow->stride == span;
}

void cln_outer_collapse(clnorm_tensor *tensor, uint64_t rows, uint64_t cols) {
    clnorm_dim merged[CLNORM_OUTER_DIMS] = {{0, 0}}; /* the fastest first */
    int count = 0;
    for (int i = CLNORM_OUTER_DIMS - 1; i >= 0 && rows > 1; i--) {
        const clnorm_dim *const dim = &tensor->outer[i];
        if (dim->size < 2)
            continue;
        if (count && are_contiguous(dim, &merged[count - 1]))
            merged[count - 1].size *= dim->size;
        else
            merged[count++] = *dim;
    }
    tensor->stride = count ? merged[0].stride : cols;
    memset(tensor->outer, 0, sizeof tensor->outer);
    for (int i = 0; count > 1 && i < count; i++)
        tensor->outer[CLNORM_OUTER_DIMS - 1 - i] = merged[i];
}

uint64_t cln_outer_strides(const clnorm_tensor *tensor) {
    uint64_t strides = tensor->stride;
    for (int i = 0; i < CLNORM_OUTER_DIMS; i++)
        strides |= tensor->outer[i].stride;
    return strides;
}
