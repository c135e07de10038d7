/* Scales, and numbers divided by them: what all ways of quantising agree on. See clnorm_quantize_desc for the formulas. */
#ifndef QUANTIZE_H
#define QUANTIZE_H

#include "fp8.h"

static inline float round_f32(const float v) {
    return v;
}

static inline float round_bf16(const float v) {
    const uint bits = as_uint(v);
    return as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

/* A finite number as the dtype has it. */
#define ROUND(dtype) JOIN(round_, dtype)

/* Correctly rounded, where / may be off by 2.5 units: NVIDIA's compiler takes its word for it. */
static inline float divide1(const float a, const float b) {
#if ISA == ISA_PTX
    float quotient;
    __asm__("div.rn.f32 %0, %1, %2;" : "=f"(quotient) : "f"(a), "f"(b));
    return quotient;
#else
    return a / b;
#endif
}

static inline floatv divide(const floatv a, const float b) {
#if ISA == ISA_PTX
    floatv quotient;
    const float *from = (const float *)&a;
    float *to = (float *)&quotient;
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        to[i] = divide1(from[i], b);
    return quotient;
#else
    return a / b;
#endif
}

/* The scale of numbers whose largest finite magnitude is amax: never 0, finite. */
static inline float scale_of(const float amax, const float largest) {
    return divide1(amax + 1e-10f, largest);
}

#endif
