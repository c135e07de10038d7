/* Scales, and division by them, for all kernels that quantise. See clnorm_quantize_desc for the formulas. */
#ifndef QUANTIZE_H
#define QUANTIZE_H

#include "common/fp8.h"

static inline float round_f32(const float v) {
    return v;
}

static inline float round_bf16(const float v) {
    const uint bits = as_uint(v);
    return as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

/* A finite number, rounded to the dtype. */
#define ROUND(dtype) JOIN(round_, dtype)

/* Quotients are correctly rounded, so that all devices yield the same codes. On CPUs / rounds correctly. Elsewhere its
 * error may be 2.5 units in the last place, and is on NVIDIA. */
#if ON_CPU

static inline float divide1(const float a, const float b) {
    return a / b;
}

static inline floatv divide(const floatv a, const float b) {
    return a / b;
}

#else

/* Whether 1 / b does not overflow or underflow in quotient(), nor the remainder where the code is not 0. */
static inline bool divides_well(const float b) {
    return fabs(b) > 0x1p-60f && fabs(b) < 0x1p60f;
}

/* 1 / b with an error of little more than half a unit in the last place. */
static inline float inverse_of(const float b) {
    const float inverse = 1 / b;
    return fma(fma(-b, inverse, 1.0f), inverse, inverse);
}

/* Markstein's division: the first estimate, with an error below two units in the last place, is corrected by its remainder.
 * The next one has an error below one unit and an exact remainder, so that the last one is correctly rounded. Tiny and huge
 * estimates are not corrected: their codes are 0 or the largest. */
static inline float quotient(const float a, const float b, const float inverse) {
    const float estimate = a * inverse;
    const float nearer = fma(fma(-estimate, b, a), inverse, estimate);
    const float exact = fma(fma(-nearer, b, a), inverse, nearer);
    return fabs(estimate) > 0x1p-60f && fabs(estimate) < 0x1p100f ? exact : estimate;
}

/* Division by a b that does not divide well. */
static inline float divide_at_length(const float a, const float b) {
#if ISA == ISA_PTX
    float quotient;
    __asm__("div.rn.f32 %0, %1, %2;" : "=f"(quotient) : "f"(a), "f"(b));
    return quotient;
#else
    return a / b;
#endif
}

static inline float divide1(const float a, const float b) {
    return divides_well(b) ? quotient(a, b, inverse_of(b)) : divide_at_length(a, b);
}

static inline floatv divide(const floatv a, const float b) {
    floatv quotients;
    const float *from = (const float *)&a;
    float *to = (float *)&quotients;
    if (divides_well(b)) {
        const float inverse = inverse_of(b);
#pragma unroll
        for (uint i = 0; i < VEC; i++)
            to[i] = quotient(from[i], b, inverse);
    } else {
#pragma unroll
        for (uint i = 0; i < VEC; i++)
            to[i] = divide_at_length(from[i], b);
    }
    return quotients;
}

/* Whether two vectors have the same codes. */
static inline bool same_codes(const BYTES a, const BYTES b) {
#if VEC >= 8
    return all(a == b);
#else
    return a == b;
#endif
}

#endif

/* The scale of numbers whose largest finite magnitude is amax: never 0, finite. */
static inline float scale_of(const float amax, const float largest) {
    return divide1(amax + 1e-10f, largest);
}

/* The codes of a / b. */
#if ON_CPU
#define DEFINE_DIVIDED(dtype)                                                  \
    static inline BYTES JOIN(divided_, dtype)(const floatv a, const float b) { \
        return NARROW(dtype)(divide(a, b));                                    \
    }
#else
/* a · inverse_of(b) differs from a / b by less than two units in the last place, 2^-22 of it. These factors make it a lower
 * and an upper bound of a / b. If both bounds have the same code, so has a / b. */
#define LOWER_FACTOR (1 - 0x1p-21f)
#define UPPER_FACTOR (1 + 0x1p-21f)
#define DEFINE_DIVIDED(dtype)                                                                  \
    static inline BYTES JOIN(divided_, dtype)(const floatv a, const float b) {                 \
        const float inverse = inverse_of(b);                                                   \
        const BYTES codes = NARROW(dtype)(a * (inverse * LOWER_FACTOR));                       \
        if (divides_well(b) && same_codes(codes, NARROW(dtype)(a * (inverse * UPPER_FACTOR)))) \
            return codes;                                                                      \
        return NARROW(dtype)(divide(a, b));                                                    \
    }
#endif
DEFINE_DIVIDED(f8e4m3)
DEFINE_DIVIDED(f8e5m2)

#define DIVIDED(dtype) JOIN(divided_, dtype)

#endif
