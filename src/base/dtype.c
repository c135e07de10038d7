#include "base/dtype.h"

#include <float.h>

#include "base/status.h"

struct dtype {
    size_t size;
    const char *name;
};

static const struct dtype dtypes[] = {
    [CLNORM_DTYPE_NONE] = {0, "none"}, [CLNORM_F32] = {4, "f32"}, [CLNORM_F16] = {2, "f16"},
    [CLNORM_BF16] = {2, "bf16"},       [CLNORM_F64] = {8, "f64"}, [CLNORM_F8_E4M3] = {1, "f8e4m3"},
    [CLNORM_F8_E5M2] = {1, "f8e5m2"},
};

/* A number that is no dtype is treated as CLNORM_DTYPE_NONE. */
static const struct dtype *look_up(clnorm_dtype dtype) {
    const size_t index = (size_t)dtype;
    return &dtypes[index < sizeof dtypes / sizeof dtypes[0] ? index : CLNORM_DTYPE_NONE];
}

size_t clnorm_dtype_size(clnorm_dtype dtype) {
    return look_up(dtype)->size;
}

const char *clnorm_dtype_name(clnorm_dtype dtype) {
    return look_up(dtype)->name;
}

bool cln_dtype_real(clnorm_dtype dtype) {
    return look_up(dtype)->size > 1;
}

bool cln_dtype_fp8(clnorm_dtype dtype) {
    return dtype == CLNORM_F8_E4M3 || dtype == CLNORM_F8_E5M2;
}

clnorm_status cln_dtype_refuse(const char *field, clnorm_dtype dtype, const char *expected) {
    if (look_up(dtype)->size)
        return cln_fail(CLNORM_UNSUPPORTED, "desc.%s is %s: expected %s", field, clnorm_dtype_name(dtype), expected);
    return cln_fail(CLNORM_INVALID_ENUM, "desc.%s is %d: expected %s", field, (int)dtype, expected);
}

uint64_t cln_dtype_real_size(clnorm_dtype x) {
    return x == CLNORM_F64 ? sizeof(cl_double) : sizeof(cl_float);
}

double cln_dtype_largest(clnorm_dtype x) {
    return x == CLNORM_F64 ? DBL_MAX : (double)FLT_MAX;
}
