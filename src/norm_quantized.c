#include "norm_quantized.h"

#include <float.h>
#include <inttypes.h>

#include "arithmetic.h"
#include "dtype.h"
#include "scaling.h"
#include "status.h"
#include "tensor.h"

static clnorm_status check_absent(const clnorm_norm_desc *p) {
    const char *const dtype = clnorm_dtype_name(p->y_dtype);
    if (p->y_scaling)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.y_scaling is %d: expected 0 with a y_dtype of %s", (int)p->y_scaling,
                        dtype);
    if (p->y_group_size)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.y_group_size is %" PRIu64 ": expected 0 with a y_dtype of %s",
                        p->y_group_size, dtype);
    if (p->y_scale != 0)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.y_scale is %g: expected 0 with a y_dtype of %s", p->y_scale, dtype);
    return CLNORM_SUCCESS;
}

static clnorm_status check_scale(const clnorm_norm_desc *p) {
    const bool given = p->y_scaling == CLNORM_SCALING_TENSOR;
    if (given && !(p->y_scale >= FLT_MIN && p->y_scale <= FLT_MAX))
        return cln_fail(
            CLNORM_INVALID_VALUE,
            "desc.y_scale is %g: expected a number from %g to %g with CLNORM_SCALING_TENSOR, that y is divided by",
            p->y_scale, (double)FLT_MIN, (double)FLT_MAX);
    if (!given && p->y_scale != 0)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.y_scale is %g: expected 0 without CLNORM_SCALING_TENSOR", p->y_scale);
    return CLNORM_SUCCESS;
}

/* A work-group has a segment to itself, and what shares a scale must be in one. */
static clnorm_status check_segments(const clnorm_norm_desc *p) {
    if (p->y_scaling == CLNORM_SCALING_ROW && p->group_size != p->cols)
        return cln_fail(CLNORM_UNSUPPORTED,
                        "desc.group_size is %" PRIu64 ": expected cols, %" PRIu64
                        ", with a y_scaling of CLNORM_SCALING_ROW",
                        p->group_size, p->cols);
    if (p->y_scaling == CLNORM_SCALING_GROUP && p->group_size != p->cols && p->group_size % p->y_group_size)
        return cln_fail(CLNORM_UNSUPPORTED,
                        "desc.y_group_size is %" PRIu64 ": expected a divisor of group_size, %" PRIu64
                        ", where that is not cols",
                        p->y_group_size, p->group_size);
    return CLNORM_SUCCESS;
}

static clnorm_status check_group(const clnorm_norm_desc *p) {
    const uint64_t size = p->y_group_size;
    if (p->y_scaling != CLNORM_SCALING_GROUP)
        return size ? cln_fail(CLNORM_INVALID_SHAPE,
                               "desc.y_group_size is %" PRIu64 ": expected 0 without CLNORM_SCALING_GROUP", size)
                    : CLNORM_SUCCESS;
    if (!cln_power_of_two(size) || size < 16 || size > 128)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.y_group_size is %" PRIu64 ": expected 16, 32, 64 or 128", size);
    return CLNORM_SUCCESS;
}

clnorm_status cln_norm_quantized_check(const clnorm_norm_desc *p) {
    if (!cln_dtype_fp8(p->y_dtype))
        return check_absent(p);
    if (p->x_dtype == CLNORM_F64)
        return cln_fail(CLNORM_UNSUPPORTED, "desc.y_dtype is %s: expected f64, as desc.x_dtype is",
                        clnorm_dtype_name(p->y_dtype));
    if (p->y_scaling != CLNORM_SCALING_TENSOR && p->y_scaling != CLNORM_SCALING_ROW && p->y_scaling != CLNORM_SCALING_GROUP)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.y_scaling is %d: expected a clnorm_scaling with a y_dtype of %s",
                        (int)p->y_scaling, clnorm_dtype_name(p->y_dtype));
    clnorm_status status = check_scale(p);
    if (!status)
        status = check_group(p);
    return status ? status : check_segments(p);
}

clnorm_status cln_norm_quantized_describe(const clnorm_norm_desc *p, struct cln_tensor *y_scale) {
    if (p->y_scaling != CLNORM_SCALING_ROW && p->y_scaling != CLNORM_SCALING_GROUP)
        return CLNORM_SUCCESS;
    const uint64_t scales = cln_scaling_count(p->y_scaling, p->rows, p->cols, p->y_group_size);
    return cln_tensor_vector(y_scale, "y_scale", scales, sizeof(cl_float), 0);
}
