#include "codes_check.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "reference/reference.h"

/* Relative error of an addition and two divisions in float. */
static const double rounding = 0x1p-22;

void magnitude_add(struct magnitude *magnitude, double y, double error) {
    if (!isfinite(y))
        return;
    magnitude->low = fmax(magnitude->low, fabs(y) - error);
    magnitude->high = fmax(magnitude->high, fabs(y) + error);
}

double codes_value(clnorm_dtype codes, double y, double scale, double roundings) {
    const double quotient = y / scale;
    const double slack = isfinite(quotient) ? roundings * rounding * fabs(quotient) : 0;
    return ref_code_value(codes, ref_code(codes, quotient + slack));
}

bool codes_scale_is_right(clnorm_dtype codes, const char *name, const struct tensor *scales, uint64_t place,
                          struct magnitude magnitude) {
    const double largest = ref_largest(codes);
    const double scale = ref_load(scales->dtype, tensor_elements(scales), place);
    const double low = ref_round(scales->dtype, (magnitude.low + 1e-10) / largest * (1 - rounding));
    const double high = ref_round(scales->dtype, (magnitude.high + 1e-10) / largest * (1 + rounding));
    if (scale >= low && scale <= high)
        return true;
    print_error("%s[%" PRIu64 "] is %.9g, but should be from %.9g to %.9g\n", name, place, scale, low, high);
    return false;
}
