/* e^-x and quotients of vectors, for any x: NaN stays NaN, and x/∞ is a zero with the sign of x. */
#ifndef EXPONENTIAL_H
#define EXPONENTIAL_H

#include "common/enums.h"
#include "common/vector.h"

/* ex2.approx and rcp.approx: 2 and 1 units in the last place. */
#define APPROXIMATE (ISA == ISA_PTX && !IS_DOUBLE(X_DTYPE))

/* At this x, e^x is infinite in f32. */
#define LARGEST_EXPONENT 88.8f

/* A literal in the precision of the arithmetic. */
#if IS_DOUBLE(X_DTYPE)
#define REAL(digits) digits
#else
#define REAL(digits) digits##f
#endif

/* v, limited by the bound. */
static inline realv at_least(const realv v, const real bound) {
    return v < bound ? (realv)bound : v;
}

static inline realv at_most(const realv v, const real bound) {
    return v > bound ? (realv)bound : v;
}

/* v, limited by both bounds. NaN stays NaN. */
static inline realv between(const realv v, const real least, const real most) {
#if APPROXIMATE /* one instruction per bound; a comparison and a selection are two */
    realv bounded;
    const float *from = (const float *)&v;
    float *to = (float *)&bounded;
#pragma unroll
    for (uint i = 0; i < VEC; i++) {
        __asm__("max.NaN.f32 %0, %1, %2;" : "=f"(to[i]) : "f"(from[i]), "f"(least));
        __asm__("min.NaN.f32 %0, %1, %2;" : "=f"(to[i]) : "f"(to[i]), "f"(most));
    }
    return bounded;
#else
    return at_most(at_least(v, least), most);
#endif
}

/* 1 / v. A reciprocal below 2^-126 may be 0 instead. */
static inline realv quick_reciprocal(const realv v) {
#if APPROXIMATE
    realv quotient;
    const float *from = (const float *)&v;
    float *to = (float *)&quotient;
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        __asm__("rcp.approx.ftz.f32 %0, %1;" : "=f"(to[i]) : "f"(from[i]));
    return quotient;
#else
    return (real)1 / v;
#endif
}

/* v / divisor, for a divisor of 1 and up. */
static inline realv ratio(const realv v, const realv divisor) {
#if APPROXIMATE
    return v * quick_reciprocal(divisor);
#else
    return v / divisor;
#endif
}

#if IS_DOUBLE(X_DTYPE)

static inline realv exponential_of_minus(const realv x) {
    return exp(-x);
}

#elif APPROXIMATE

/* 2^x. Results below 2^-126 are flushed to 0, which halves the number of instructions. */
static inline realv power_of_two(const realv x) {
    realv power;
    const float *from = (const float *)&x;
    float *to = (float *)&power;
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(to[i]) : "f"(from[i]));
    return power;
}

static inline realv exponential_of_minus(const realv x) {
    return power_of_two(x * -1.44269504f);
}

#else

/* Without contraction: a sum of exponentials has the same bits in every kernel. */
static inline realv rounded_product(const realv a, const realv b) {
#pragma OPENCL FP_CONTRACT OFF
    return a * b;
}

/* 2^n · e^r with -x = n · ln 2 + r, |r| <= ln 2 / 2, in a few instructions that any vector unit has. e^r is a minimax
 * polynomial of relative error 2.6e-9; the result is within 2 units in the last place. Results below 2^-126.5 are 0, and
 * those from 2^127.5 on are infinite. The negation of x is part of the products, where it takes no instruction. */
static inline realv exponential_of_minus(const realv x) {
    const realv bounded = between(x, -LARGEST_EXPONENT, 88.1f);
    const realv shift = 12582912.0f; /* 1.5 · 2^23: rounds a sum to an integer, which its low bits hold */
    const realv shifted = shift - bounded * 1.44269504f;
    const realv n = shifted - shift;
    const realv r = -bounded - n * 0.693359375f + n * 2.12194440e-4f; /* ln 2 in two parts, the first one of 10 bits */
    realv power = r * 0.00140612759f + 0.00837902073f;
    power = power * r + 0.0416647755f;
    power = power * r + 0.166663647f;
    power = power * r + 0.50000006f;
    power = power * r + 1.0f;
    power = power * r + 1.0f;
    return rounded_product(power, AS_FLOATV((AS_UINTV(shifted) << 23) + 0x3f800000u));
}

#endif

/* e^(-x²/2). Its error in units in the last place grows with the exponent. */
static inline realv bell(const realv x) {
#if APPROXIMATE
    return power_of_two(x * (x * -0.72134752f));
#else
    return exponential_of_minus(REAL(0.5) * x * x);
#endif
}

#endif
