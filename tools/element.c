#include "element.h"

#include <math.h>
#include <string.h>

/* F4 and F6 pack several elements in a byte. */
static const struct element elements[] = {
    {"F64", "<f8", CLNORM_F64, 64},
    {"F32", "<f4", CLNORM_F32, 32},
    {"F16", "<f2", CLNORM_F16, 16},
    {"BF16", NULL, CLNORM_BF16, 16},
    {"F8_E4M3", NULL, CLNORM_F8_E4M3, 8},
    {"F8_E5M2", NULL, CLNORM_F8_E5M2, 8},
    {"F8_E8M0", NULL, CLNORM_DTYPE_NONE, 8},
    {"F8_E4M3FNUZ", NULL, CLNORM_DTYPE_NONE, 8},
    {"F8_E5M2FNUZ", NULL, CLNORM_DTYPE_NONE, 8},
    {"F6_E2M3", NULL, CLNORM_DTYPE_NONE, 6},
    {"F6_E3M2", NULL, CLNORM_DTYPE_NONE, 6},
    {"F4", NULL, CLNORM_DTYPE_NONE, 4},
    {"C64", "<c8", CLNORM_DTYPE_NONE, 64},
    {"I64", "<i8", CLNORM_DTYPE_NONE, 64},
    {"I32", "<i4", CLNORM_DTYPE_NONE, 32},
    {"I16", "<i2", CLNORM_DTYPE_NONE, 16},
    {"I8", "|i1", CLNORM_DTYPE_NONE, 8},
    {"U64", "<u8", CLNORM_DTYPE_NONE, 64},
    {"U32", "<u4", CLNORM_DTYPE_NONE, 32},
    {"U16", "<u2", CLNORM_DTYPE_NONE, 16},
    {"U8", "|u1", CLNORM_DTYPE_NONE, 8},
    {"BOOL", "|b1", CLNORM_DTYPE_NONE, 8},
};
enum { ELEMENTS = sizeof elements / sizeof *elements };

const struct element *element_by_name(const char *name) {
    for (int i = 0; i < ELEMENTS; i++)
        if (!strcmp(elements[i].name, name))
            return &elements[i];
    return NULL;
}

const struct element *element_by_npy(const char *descr) {
    for (int i = 0; i < ELEMENTS; i++)
        if (elements[i].npy && !strcmp(elements[i].npy, descr))
            return &elements[i];
    return NULL;
}

const struct element *element_by_dtype(clnorm_dtype dtype) {
    for (int i = 0; i < ELEMENTS; i++)
        if (dtype != CLNORM_DTYPE_NONE && elements[i].dtype == dtype)
            return &elements[i];
    return NULL;
}

/* A binary floating-point format: bits of the significand with the hidden one, and the exponents of its smallest and
 * largest normal numbers. */
struct format {
    int precision, lowest, highest;
};

static struct format format_of(clnorm_dtype dtype) {
    switch (dtype) {
    case CLNORM_F64:
        return (struct format){53, -1022, 1023};
    case CLNORM_F16:
        return (struct format){11, -14, 15};
    case CLNORM_BF16:
        return (struct format){8, -126, 127};
    case CLNORM_F8_E4M3:
        return (struct format){4, -6, 8};
    case CLNORM_F8_E5M2:
        return (struct format){3, -14, 15};
    default:
        return (struct format){24, -126, 127};
    }
}

double element_epsilon(const struct element *element) {
    return ldexp(1, -format_of(element->dtype).precision);
}

double element_largest(const struct element *element) {
    const struct format format = format_of(element->dtype);
    const double all_ones = ldexp(2 - ldexp(1, 1 - format.precision), format.highest);
    return element->dtype == CLNORM_F8_E4M3 ? 448 : all_ones; /* that has a NaN where the next one would be */
}

double element_round(const struct element *element, double value) {
    if (element->bits == 8)
        value = isnan(value) ? value : fmin(fmax(value, -element_largest(element)), element_largest(element));
    if (element->dtype == CLNORM_F64 || value == 0 || !isfinite(value))
        return value;
    if (element->dtype == CLNORM_F32)
        return (double)(float)value;
    const struct format format = format_of(element->dtype);
    int exponent;
    (void)frexp(value, &exponent); /* 2^(exponent − 1) ≤ |value| */
    const int normal = exponent - 1 > format.lowest ? exponent - 1 : format.lowest;
    const int quantum = normal - (format.precision - 1);
    const double rounded = ldexp(nearbyint(ldexp(value, -quantum)), quantum);
    return fabs(rounded) < ldexp(1, format.highest + 1) ? rounded : copysign(INFINITY, value);
}

/* An 8-bit code, whose format has as many bits of exponent as are left. */
static double code_value(clnorm_dtype dtype, unsigned code) {
    const struct format format = format_of(dtype);
    const int bits = format.precision - 1;
    const unsigned magnitude = code & 0x7f;
    const int exponent = (int)(magnitude >> bits);
    const int fraction = (int)(magnitude & ((1U << bits) - 1));
    double value = exponent ? ldexp(fraction + (1 << bits), exponent - 1 + format.lowest - bits)
                            : ldexp(fraction, format.lowest - bits);
    if (dtype == CLNORM_F8_E4M3 ? magnitude == 0x7f : magnitude > 0x7c)
        value = NAN;
    else if (dtype == CLNORM_F8_E5M2 && magnitude == 0x7c)
        value = INFINITY;
    return code & 0x80 ? -value : value;
}

/* value is one that the format has: the code that stands for it. */
static unsigned char code_of(clnorm_dtype dtype, double value) {
    unsigned code = 0;
    while (code < 0x7f && code_value(dtype, code) != fabs(value))
        code++; /* NaN equals none of them */
    return (unsigned char)(isnan(value) || !signbit(value) ? code : code | 0x80);
}

static double half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    double magnitude;
    if (exponent == 31)
        magnitude = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(fraction, -24);
    else
        magnitude = ldexp(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

/* value is one that binary16 has. */
static uint16_t half_bits(double value) {
    const unsigned sign = signbit(value) ? 0x8000 : 0;
    const double magnitude = fabs(value);
    unsigned bits;
    if (isnan(value)) {
        bits = 0x7e00;
    } else if (isinf(value)) {
        bits = 0x7c00;
    } else if (magnitude < ldexp(1, -14)) {
        bits = (unsigned)ldexp(magnitude, 24);
    } else {
        int exponent;
        const double fraction = frexp(magnitude, &exponent); /* [0.5, 1) */
        bits = (unsigned)(exponent + 14) << 10 | ((unsigned)ldexp(fraction, 11) & 1023);
    }
    return (uint16_t)(sign | bits);
}

double element_load(const struct element *element, const void *data, uint64_t index) {
    const unsigned char *const at = (const unsigned char *)data + index * (element->bits / 8);
    if (element->dtype == CLNORM_F64) {
        double value;
        memcpy(&value, at, sizeof value);
        return value;
    }
    if (element->dtype == CLNORM_F32) {
        float value;
        memcpy(&value, at, sizeof value);
        return (double)value;
    }
    if (element->bits == 8)
        return code_value(element->dtype, *at);
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    if (element->dtype == CLNORM_F16)
        return half_value(bits);
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

void element_store(const struct element *element, void *data, uint64_t index, double value) {
    unsigned char *const at = (unsigned char *)data + index * (element->bits / 8);
    const double rounded = element_round(element, value);
    if (element->dtype == CLNORM_F64) {
        memcpy(at, &rounded, sizeof rounded);
        return;
    }
    if (element->bits == 8) {
        *at = code_of(element->dtype, rounded);
        return;
    }
    const float narrow = (float)rounded;
    if (element->dtype == CLNORM_F32) {
        memcpy(at, &narrow, sizeof narrow);
        return;
    }
    uint32_t wide;
    memcpy(&wide, &narrow, sizeof wide);
    const uint16_t bits = element->dtype == CLNORM_F16 ? half_bits(rounded) : (uint16_t)(wide >> 16);
    memcpy(at, &bits, sizeof bits);
}
