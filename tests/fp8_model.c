#include "fp8_model.h"

#include <math.h>

#include "reference.h"

struct format {
    int exponent_bits, mantissa_bits, bias;
    unsigned largest; /* its code */
    bool infinities;  /* the highest exponent is that of infinities and NaNs alone, as in IEEE 754 */
};

static struct format format_of(clnorm_dtype dtype) {
    return dtype == CLNORM_F8_E4M3 ? (struct format){4, 3, 7, 0x7e, false} : (struct format){5, 2, 15, 0x7b, true};
}

double fp8_value(clnorm_dtype dtype, unsigned code) {
    const struct format format = format_of(dtype);
    const unsigned magnitude = code & 0x7f;
    const int exponent = (int)(magnitude >> format.mantissa_bits);
    const int mantissa = (int)(magnitude & ((1U << format.mantissa_bits) - 1));
    double value;
    if (magnitude > format.largest)
        value = format.infinities && mantissa == 0 ? INFINITY : NAN;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - format.bias - format.mantissa_bits);
    else
        value = ldexp(mantissa + (1 << format.mantissa_bits), exponent - format.bias - format.mantissa_bits);
    return code & 0x80 ? -value : value;
}

double fp8_largest(clnorm_dtype dtype) {
    return fp8_value(dtype, format_of(dtype).largest);
}

/* The largest code whose value is at most a magnitude. */
static unsigned code_below(clnorm_dtype dtype, double magnitude) {
    unsigned code = format_of(dtype).largest;
    while (fp8_value(dtype, code) > magnitude)
        code--;
    return code;
}

unsigned fp8_code(clnorm_dtype dtype, double value) {
    if (isnan(value))
        return 0x7f;
    const unsigned sign = signbit(value) ? 0x80 : 0;
    const unsigned below = code_below(dtype, fabs(value));
    if (below == format_of(dtype).largest)
        return sign | below;
    const double to_below = fabs(value) - fp8_value(dtype, below);
    const double to_above = fp8_value(dtype, below + 1) - fabs(value);
    const bool up = to_above < to_below || (to_above == to_below && below % 2 == 1);
    return sign | (below + up);
}

unsigned fp8_code_stochastic(clnorm_dtype dtype, double value, uint32_t random) {
    if (isnan(value))
        return 0x7f;
    const struct format format = format_of(dtype);
    const unsigned sign = signbit(value) ? 0x80 : 0;
    const unsigned below = code_below(dtype, fabs(value));
    if (below == format.largest)
        return sign | below;
    const int bits = 23 - format.mantissa_bits;
    const double step = fp8_value(dtype, below + 1) - fp8_value(dtype, below);
    const double distance = floor(ldexp((fabs(value) - fp8_value(dtype, below)) / step, bits));
    const bool up = distance + (double)(random >> (32 - bits)) >= ldexp(1, bits);
    return sign | (below + up);
}

float fp8_scale(clnorm_dtype dtype, clnorm_dtype scale_dtype, float amax) {
    const float sum = amax + 1e-10F;
    const float scale = sum / (float)fp8_largest(dtype);
    return (float)ref_round(scale_dtype, (double)scale);
}
