#include "reference/arithmetic.h"

#include <float.h>
#include <math.h>

#include "reference/format.h"

struct ref_arithmetic ref_arithmetic_of(clnorm_dtype dtype) {
    if (dtype == CLNORM_F64) /* OpenCL allows its erfc 16 units in the last place */
        return (struct ref_arithmetic){.unit = 0x1p-53, .tiny = DBL_MIN, .function = 48, .shift = 4};
    return (struct ref_arithmetic){.unit = 0x1p-24, .tiny = FLT_MIN, .function = 16, .shift = 4};
}

double ref_product_error(const struct ref_arithmetic *arithmetic, struct ref_value a, struct ref_value b) {
    return fabs(a.value) * b.error + fabs(b.value) * a.error + a.error * b.error +
           2 * arithmetic->unit * fabs(a.value * b.value) + arithmetic->tiny;
}

bool ref_within(clnorm_dtype dtype, double result, struct ref_value expected) {
    if (isnan(expected.value))
        return isnan(result);
    if (isinf(expected.value))
        return result == expected.value;
    return result >= ref_round(dtype, expected.value - expected.error) &&
           result <= ref_round(dtype, expected.value + expected.error);
}
