#include "scaling.h"

#include <inttypes.h>

#include "arithmetic.h"
#include "status.h"

clnorm_status cln_scaling_check(clnorm_scaling scaling, uint64_t rows, uint64_t cols, uint64_t group_size) {
    if (scaling != CLNORM_SCALING_TENSOR && scaling != CLNORM_SCALING_ROW && scaling != CLNORM_SCALING_GROUP)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.scaling is %d: expected a clnorm_scaling", (int)scaling);
    if (!cols)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.cols is 0: expected 1 or more");
    if (scaling != CLNORM_SCALING_GROUP && group_size)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.group_size is %" PRIu64 ": expected 0 without CLNORM_SCALING_GROUP",
                        group_size);
    if (scaling == CLNORM_SCALING_GROUP && !group_size)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.group_size is 0: expected 1 or more with CLNORM_SCALING_GROUP");
    uint64_t scales;
    if (__builtin_mul_overflow(rows, cln_divide_up(cols, group_size ? group_size : cols), &scales))
        return cln_fail(CLNORM_OVERFLOW, "desc.rows is %" PRIu64 ", groups %" PRIu64 ": expected a product below 2^63",
                        rows, cln_divide_up(cols, group_size));
    return CLNORM_SUCCESS;
}

uint64_t cln_scaling_count(clnorm_scaling scaling, uint64_t rows, uint64_t cols, uint64_t group_size) {
    switch (scaling) {
    case CLNORM_SCALING_ROW:
        return rows;
    case CLNORM_SCALING_GROUP:
        return rows * cln_divide_up(cols, group_size);
    default:
        return rows ? 1 : 0;
    }
}
