#include "rowwise.h"

#include <inttypes.h>

#include "arithmetic.h"
#include "dtype.h"
#include "status.h"
#include "tensor.h"

static clnorm_status check_dtypes(const struct cln_rowwise *rows) {
    for (unsigned i = 0; i < rows->tensors; i++) {
        const struct cln_rowwise_tensor *const tensor = &rows->tensor[i];
        if (!cln_dtype_valid(tensor->dtype) && !(i > 0 && tensor->dtype == CLNORM_DTYPE_NONE))
            return cln_fail(CLNORM_INVALID_ENUM, "desc.%s_dtype is %d: expected %sa clnorm_dtype", tensor->name,
                            (int)tensor->dtype, i > 0 ? "CLNORM_DTYPE_NONE or " : "");
    }
    return CLNORM_SUCCESS;
}

static void complete(struct cln_rowwise *rows) {
    for (unsigned i = 0; i < rows->tensors; i++) {
        struct cln_rowwise_tensor *const tensor = &rows->tensor[i];
        tensor->stride = cln_or_else(tensor->stride, rows->cols);
        if (!tensor->dtype)
            tensor->dtype = rows->tensor[0].dtype;
    }
}

static clnorm_status check_shape(const struct cln_rowwise *rows) {
    if (!rows->cols)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.cols is 0: expected 1 or more");
    for (unsigned i = 0; i < rows->tensors; i++)
        if (rows->tensor[i].stride < rows->cols)
            return cln_fail(CLNORM_INVALID_SHAPE, "desc.%s_stride is %" PRIu64 ": expected at least cols, %" PRIu64,
                            rows->tensor[i].name, rows->tensor[i].stride, rows->cols);
    return CLNORM_SUCCESS;
}

static clnorm_status check_double(const clnorm_device_info *device, const struct cln_rowwise *rows) {
    const struct cln_rowwise_tensor *const first = &rows->tensor[0];
    for (unsigned i = 1; i < rows->tensors; i++)
        if ((rows->tensor[i].dtype == CLNORM_F64) != (first->dtype == CLNORM_F64))
            return cln_fail(CLNORM_UNSUPPORTED,
                            "desc has f64 beside other dtypes (%s %s, %s %s): expected f64 for all of them or none",
                            first->name, clnorm_dtype_name(first->dtype), rows->tensor[i].name,
                            clnorm_dtype_name(rows->tensor[i].dtype));
    if (first->dtype == CLNORM_F64 && !device->fp64)
        return cln_fail(CLNORM_UNSUPPORTED, "desc.%s_dtype is f64: the device %s has no double precision", first->name,
                        device->name);
    return CLNORM_SUCCESS;
}

clnorm_status cln_rowwise_describe(const struct cln_rowwise *rows, uint32_t vec, struct cln_tensor tensor[CLN_ROLES]) {
    clnorm_status status = CLNORM_SUCCESS;
    for (unsigned i = 0; i < rows->tensors && !status; i++) {
        const struct cln_rowwise_tensor *const own = &rows->tensor[i];
        status = cln_tensor_matrix(&tensor[own->role], own->name, rows->rows, rows->cols, own->stride, own->dtype, vec);
    }
    return status;
}

clnorm_status cln_rowwise_validate(const clnorm_device_info *device, struct cln_rowwise *rows) {
    clnorm_status status = check_dtypes(rows);
    if (status)
        return status;
    complete(rows);
    struct cln_tensor unused[CLN_ROLES];
    if ((status = check_shape(rows)) || (status = check_double(device, rows)))
        return status;
    return cln_rowwise_describe(rows, 1, unused);
}

uint64_t cln_rowwise_real_size(const struct cln_rowwise *rows) {
    return rows->tensor[0].dtype == CLNORM_F64 ? sizeof(cl_double) : sizeof(cl_float);
}

uint64_t cln_rowwise_strides(const struct cln_rowwise *rows) {
    uint64_t strides = 0;
    for (unsigned i = 0; i < rows->tensors; i++)
        strides |= rows->tensor[i].stride;
    return strides;
}

bool cln_rowwise_contiguous(const struct cln_rowwise *rows) {
    for (unsigned i = 0; i < rows->tensors; i++)
        if (rows->tensor[i].stride != rows->cols)
            return false;
    return true;
}
