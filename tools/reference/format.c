#include "reference/format.h"

#include <math.h>
#include <string.h>

/* A sign, exponent bits, mantissa bits. The exponent's bias is that of IEEE 754, 2^(exponent bits − 1) − 1. */
struct format {
    int exponent_bits, mantissa_bits;
    bool finite;    /* E4M3: no infinities, and all ones but the sign is the only NaN */
    bool saturates; /* larger magnitudes become the largest finite number */
};

static struct format format_of(clnorm_dtype dtype) {
    static const struct format formats[] = {
        [CLNORM_DTYPE_NONE] = {8, 23, false, false}, /* no tensor has it */
        [CLNORM_F32] = {8, 23, false, false},        [CLNORM_F16] = {5, 10, false, false},
        [CLNORM_BF16] = {8, 7, false, false},        [CLNORM_F64] = {11, 52, false, false},
        [CLNORM_F8_E4M3] = {4, 3, true, true},       [CLNORM_F8_E5M2] = {5, 2, false, true},
    };
    return formats[dtype];
}

/* 2^exponent. Loads and stores are most of the reference's time, and ldexp was most of theirs. */
static double power_of_two(int exponent) {
    if (exponent < -1022 || exponent > 1023)
        return ldexp(1, exponent);
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static int bias_of(struct format format) {
    return (1 << (format.exponent_bits - 1)) - 1;
}

static uint64_t sign_bit(struct format format) {
    return UINT64_C(1) << (format.exponent_bits + format.mantissa_bits);
}

static uint64_t leading_bit(struct format format) {
    return UINT64_C(1) << format.mantissa_bits;
}

static size_t size_of(struct format format) {
    return (size_t)(1 + format.exponent_bits + format.mantissa_bits) / 8;
}

static double value_of(struct format format, uint64_t bits) {
    const uint64_t ones = sign_bit(format) - 1;
    const int exponent = (int)((bits & ones) >> format.mantissa_bits);
    const uint64_t mantissa = bits & (leading_bit(format) - 1);
    const int denormal = 1 - bias_of(format) - format.mantissa_bits; /* 2^denormal is the step of denormals */
    double magnitude;
    if (format.finite ? (bits & ones) == ones : exponent == (1 << format.exponent_bits) - 1)
        magnitude = format.finite || mantissa ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = (double)mantissa * power_of_two(denormal);
    else
        magnitude = (double)(mantissa + leading_bit(format)) * power_of_two(exponent - 1 + denormal);
    return bits & sign_bit(format) ? -magnitude : magnitude;
}

/* The exponent of the step from a finite value to the next one. */
static int step_of(struct format format, double value) {
    const int lowest = 1 - bias_of(format);
    int exponent;
    (void)frexp(value, &exponent); /* |value| is in [2^(exponent − 1), 2^exponent), or 0 */
    return (value != 0 && exponent - 1 > lowest ? exponent - 1 : lowest) - format.mantissa_bits;
}

/* The bits of a value that the format represents. */
static uint64_t bits_of(struct format format, double value) {
    const uint64_t sign = signbit(value) ? sign_bit(format) : 0;
    const uint64_t ones = sign_bit(format) - 1;
    if (isnan(value))
        return ones;
    if (isinf(value))
        return sign | (ones ^ (leading_bit(format) - 1));
    const int step = step_of(format, value);
    const int denormal = 1 - bias_of(format) - format.mantissa_bits;
    const uint64_t significand = (uint64_t)(fabs(value) * power_of_two(-step)); /* with the leading 1 of a normal number */
    return sign | (((uint64_t)(step - denormal) << format.mantissa_bits) + significand);
}

double ref_largest(clnorm_dtype dtype) {
    const struct format format = format_of(dtype);
    const double significand = 2 - ldexp(format.finite ? 2 : 1, -format.mantissa_bits);
    return ldexp(significand, bias_of(format) + format.finite);
}

double ref_epsilon(clnorm_dtype dtype) {
    return ldexp(1, -1 - format_of(dtype).mantissa_bits);
}

/* Applies the range of a dtype to a multiple of the step, which may be beyond it. */
static double bounded(clnorm_dtype dtype, double value) {
    const double bound = format_of(dtype).saturates ? ref_largest(dtype) : INFINITY;
    return fabs(value) > ref_largest(dtype) ? copysign(bound, value) : value;
}

double ref_round(clnorm_dtype dtype, double value) {
    if (dtype == CLNORM_F64 || value == 0 || isnan(value))
        return value;
    if (dtype == CLNORM_F32)
        return (double)(float)value;
    if (isinf(value))
        return bounded(dtype, value);
    const int step = step_of(format_of(dtype), value);
    return bounded(dtype, nearbyint(value * power_of_two(-step)) * power_of_two(step));
}

double ref_round_stochastic(clnorm_dtype dtype, double value, uint32_t random) {
    if (value == 0 || !isfinite(value))
        return ref_round(dtype, value);
    const int bits = 23 - format_of(dtype).mantissa_bits;
    const int step = step_of(format_of(dtype), value);
    const double steps = ldexp(fabs(value), -step);
    const double distance = floor(ldexp(steps - floor(steps), bits));
    const bool up = distance + (double)(random >> (32 - bits)) >= ldexp(1, bits);
    return bounded(dtype, copysign(ldexp(floor(steps) + up, step), value));
}

double ref_load(clnorm_dtype dtype, const void *elements, uint64_t index) {
    const size_t size = size_of(format_of(dtype));
    const unsigned char *const at = (const unsigned char *)elements + index * size;
    float single;
    double value;
    uint64_t bits = 0;
    switch (dtype) {
    case CLNORM_F32:
        memcpy(&single, at, size);
        return (double)single;
    case CLNORM_F64:
        memcpy(&value, at, size);
        return value;
    default:
        memcpy(&bits, at, size);
        return value_of(format_of(dtype), bits);
    }
}

void ref_store(clnorm_dtype dtype, void *elements, uint64_t index, double value) {
    const size_t size = size_of(format_of(dtype));
    unsigned char *const at = (unsigned char *)elements + index * size;
    const float single = (float)value;
    uint64_t bits;
    switch (dtype) {
    case CLNORM_F32:
        memcpy(at, &single, size);
        break;
    case CLNORM_F64:
        memcpy(at, &value, size);
        break;
    default:
        bits = bits_of(format_of(dtype), ref_round(dtype, value));
        memcpy(at, &bits, size);
    }
}

double ref_code_value(clnorm_dtype dtype, unsigned code) {
    return value_of(format_of(dtype), code);
}

unsigned ref_code(clnorm_dtype dtype, double value) {
    return (unsigned)bits_of(format_of(dtype), ref_round(dtype, value));
}
