#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference_philox.h"

/* ------------------------------------------------------------------------------------------------- element types */

/* A binary floating-point format: 1.mantissa × 2^exponent. */
struct format {
    int mantissa_bits;
    int min_exponent; /* of normal numbers */
    double largest;
};

static const struct format f16_format = {10, -14, 65504.0};
static const struct format bf16_format = {7, -126, 0x1.fep127};

/* Nearest multiple of the format's step at this value, ties to even. */
static double round_to(struct format format, double value) {
    if (value == 0 || !isfinite(value))
        return value;
    int exponent;
    (void)frexp(value, &exponent); /* |value| in [2^(exponent − 1), 2^exponent) */
    const int leading = exponent - 1 > format.min_exponent ? exponent - 1 : format.min_exponent;
    const int step = leading - format.mantissa_bits;
    const double rounded = ldexp(nearbyint(ldexp(value, -step)), step);
    return fabs(rounded) > format.largest ? copysign(INFINITY, value) : rounded;
}

double ref_round(clnorm_dtype dtype, double value) {
    switch (dtype) {
    case CLNORM_F32:
        return (double)(float)value;
    case CLNORM_F16:
        return round_to(f16_format, value);
    case CLNORM_BF16:
        return round_to(bf16_format, value);
    default:
        return value;
    }
}

/* value is one that the format has. */
static uint16_t f16_bits(double value) {
    const unsigned sign = signbit(value) ? 0x8000U : 0U;
    const double magnitude = fabs(value);
    if (isnan(value))
        return (uint16_t)(sign | 0x7e00U);
    if (isinf(value))
        return (uint16_t)(sign | 0x7c00U);
    if (magnitude < 0x1p-14) /* steps of 2^-24 */
        return (uint16_t)(sign | (unsigned)(magnitude * 0x1p24));
    int exponent;
    const double fraction = frexp(magnitude, &exponent); /* [0.5, 1) */
    const unsigned mantissa = (unsigned)(fraction * 0x1p11) & 0x3ffU;
    return (uint16_t)(sign | (unsigned)(exponent + 14) << 10 | mantissa);
}

static double f16_value(uint16_t bits) {
    const int exponent = bits >> 10 & 0x1f;
    const int mantissa = bits & 0x3ff;
    double magnitude;
    if (exponent == 0x1f)
        magnitude = mantissa != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(mantissa, -24);
    else
        magnitude = ldexp(mantissa + 0x400, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static uint16_t bf16_bits(double value) {
    if (isnan(value))
        return 0x7fc0;
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static double bf16_value(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float single;
    memcpy(&single, &wide, sizeof single);
    return single;
}

double ref_load(clnorm_dtype dtype, const void *elements, uint64_t index) {
    const size_t size = clnorm_dtype_size(dtype);
    const unsigned char *element = (const unsigned char *)elements + index * size;
    union {
        float f32;
        double f64;
        uint16_t bits;
    } raw;
    memcpy(&raw, element, size);
    switch (dtype) {
    case CLNORM_F32:
        return raw.f32;
    case CLNORM_F16:
        return f16_value(raw.bits);
    case CLNORM_BF16:
        return bf16_value(raw.bits);
    default:
        return raw.f64;
    }
}

void ref_store(clnorm_dtype dtype, void *elements, uint64_t index, double value) {
    const size_t size = clnorm_dtype_size(dtype);
    unsigned char *element = (unsigned char *)elements + index * size;
    const double rounded = ref_round(dtype, value);
    union {
        float f32;
        double f64;
        uint16_t bits;
    } raw;
    switch (dtype) {
    case CLNORM_F32:
        raw.f32 = (float)rounded;
        break;
    case CLNORM_F16:
        raw.bits = f16_bits(rounded);
        break;
    case CLNORM_BF16:
        raw.bits = bf16_bits(rounded);
        break;
    default:
        raw.f64 = rounded;
    }
    memcpy(element, &raw, size);
}

/* ------------------------------------------------------------------------------------------------- normalisation */

clnorm_norm_desc ref_norm_complete(const clnorm_norm_desc *desc) {
    clnorm_norm_desc complete = *desc;
    complete.group_size = desc->group_size ? desc->group_size : desc->cols;
    complete.x_stride = desc->x_stride ? desc->x_stride : desc->cols;
    complete.y_stride = desc->y_stride ? desc->y_stride : desc->cols;
    complete.z_stride = desc->z_stride ? desc->z_stride : desc->cols;
    complete.residual_stride = desc->residual_stride ? desc->residual_stride : desc->cols;
    complete.residual_out_stride = desc->residual_out_stride ? desc->residual_out_stride : desc->cols;
    complete.y_dtype = desc->y_dtype ? desc->y_dtype : desc->x_dtype;
    complete.z_dtype = desc->z_dtype ? desc->z_dtype : desc->x_dtype;
    return complete;
}

struct ref_segment ref_segment_make(uint64_t group_size) {
    double *room = calloc(group_size, 9 * sizeof(double));
    if (room == NULL) {
        fprintf(stderr, "no memory for a reference segment of %llu elements\n", (unsigned long long)group_size);
        exit(1);
    }
    const struct ref_segment segment = {
        .s = room,
        .act = room + group_size,
        .centre = room + 2 * group_size,
        .scale = room + 3 * group_size,
        .bias = room + 4 * group_size,
        .y = room + 5 * group_size,
        .z = room + 6 * group_size,
        .part = room + 7 * group_size,
        .n = room + 8 * group_size,
    };
    return segment;
}

void ref_segment_free(struct ref_segment *segment) {
    free(segment->s);
    *segment = (struct ref_segment){0};
}

static double activate(clnorm_gate gate, double z) {
    const double sigmoid = 1 / (1 + exp(-z));
    switch (gate) {
    case CLNORM_GATE_SILU:
        return z * sigmoid;
    case CLNORM_GATE_SIGMOID:
        return sigmoid;
    default:
        return 1;
    }
}

bool ref_kept(clnorm_seed seed, double probability, uint64_t row, uint64_t column) {
    const uint32_t counter[4] = {(uint32_t)(column / 8), (uint32_t)row, (uint32_t)seed.offset,
                                 (uint32_t)(seed.offset >> 32)};
    const uint32_t key[2] = {(uint32_t)seed.seed, (uint32_t)(seed.seed >> 32)};
    uint32_t words[4];
    ref_philox(counter, key, words);
    const uint32_t even = words[column % 8 / 2];
    const uint32_t own = column % 2 ? even << 16 | even >> 16 : even;
    return own >= floor(probability * 4294967296.0);
}

/* row_scale · dropout(x) */
static double part_of(const struct ref_norm *norm, uint64_t row, uint64_t column) {
    const clnorm_norm_desc *desc = &norm->desc;
    const clnorm_dtype real = desc->x_dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    const double x = ref_load(desc->x_dtype, norm->x, row * desc->x_stride + column);
    const double scale = norm->row_scale ? ref_load(real, norm->row_scale, row) : 1;
    if (desc->dropout == 0)
        return scale * x;
    return ref_kept(norm->seed, desc->dropout, row, column) ? scale * x / (1 - desc->dropout) : 0;
}

static double residual_of(const struct ref_norm *norm, uint64_t row, uint64_t column) {
    const clnorm_norm_desc *desc = &norm->desc;
    return norm->residual ? ref_load(desc->residual_dtype, norm->residual, row * desc->residual_stride + column) : 0;
}

static double activation_of(clnorm_activation activation, double n) {
    switch (activation) {
    case CLNORM_ACTIVATION_GELU:
        return n * erfc(-n / sqrt(2)) / 2;
    case CLNORM_ACTIVATION_GELU_TANH: /* (1 + tanh(a)) / 2 = 1 / (1 + exp(−2a)) */
        return n / (1 + exp(-2 * sqrt(2 / acos(-1)) * (n + 0.044715 * n * n * n)));
    case CLNORM_ACTIVATION_SILU:
        return n / (1 + exp(-n));
    default:
        return n;
    }
}

static double mean_of(const double *values, uint64_t n) {
    long double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += values[i];
    return (double)(sum / n);
}

static double mean_square_of(const double *values, uint64_t n) {
    long double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += (long double)values[i] * values[i];
    return (double)(sum / n);
}

void ref_norm_segment(const struct ref_norm *norm, uint64_t row, uint64_t group, struct ref_segment *segment) {
    const clnorm_norm_desc *desc = &norm->desc;
    const uint64_t n = desc->group_size;
    const uint64_t column = group * n;
    for (uint64_t i = 0; i < n; i++) {
        const double weight = norm->weight ? ref_load(desc->weight_dtype, norm->weight, column + i) : 1;
        segment->z[i] = desc->gate ? ref_load(desc->z_dtype, norm->z, row * desc->z_stride + column + i) : 0;
        segment->act[i] = activate(desc->gate, segment->z[i]);
        segment->part[i] = part_of(norm, row, column + i);
        segment->s[i] = residual_of(norm, row, column + i) + segment->part[i] * (desc->gate_first ? segment->act[i] : 1);
        segment->scale[i] = norm->weight ? desc->weight_offset + weight : 1;
        segment->bias[i] = norm->bias ? ref_load(desc->bias_dtype, norm->bias, column + i) : 0;
    }
    segment->mean = desc->norm == CLNORM_LAYER_NORM ? mean_of(segment->s, n) : 0;
    for (uint64_t i = 0; i < n; i++)
        segment->centre[i] = segment->s[i] - segment->mean;
    segment->variance = mean_square_of(segment->centre, n);
    segment->rstd = 1 / sqrt(segment->variance + desc->eps);
    for (uint64_t i = 0; i < n; i++) {
        segment->n[i] = segment->centre[i] * segment->rstd * segment->scale[i] + segment->bias[i];
        segment->y[i] = activation_of(desc->activation, segment->n[i]) * (desc->gate_first ? 1 : segment->act[i]);
    }
}
