#include "dtype.h"

struct dtype {
    size_t size;
    const char *name;
};

static const struct dtype dtypes[] = {
    [CLNORM_DTYPE_NONE] = {0, "none"}, [CLNORM_F32] = {4, "f32"}, [CLNORM_F16] = {2, "f16"},
    [CLNORM_BF16] = {2, "bf16"},       [CLNORM_F64] = {8, "f64"},
};

/* A number that is no dtype is looked upon as none. */
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

bool cln_dtype_valid(clnorm_dtype dtype) {
    return look_up(dtype)->size != 0;
}
