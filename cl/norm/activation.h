/* Activations and their slopes (derivatives), for any x. Where an activation has reached its asymptote, values are
 * exact, at infinities too: -0 or x, with a slope of 0 or 1.
 *
 * gelu(x) = x · Φ(x), with Φ the distribution function of the standard normal, and its tanh form: Hendrycks, Gimpel 2016,
 * arXiv:1606.08415. silu(x) = x · sigmoid(x), from the same paper. */
#ifndef ACTIVATION_H
#define ACTIVATION_H

#include "common/exponential.h"

/* At this |x| every activation here has reached its asymptote, and its product with a factor of 0 is no NaN. */
#if IS_DOUBLE(X_DTYPE)
#define FAR 1000.0
#else
#define FAR LARGEST_EXPONENT
#endif

/* Φ(x) and Φ′(x). */
struct normal {
    realv below, density;
};

#if IS_DOUBLE(X_DTYPE)

static inline struct normal normal_at(const realv x) {
    const struct normal normal = {0.5 * erfc(x * -0.70710678118654752440), bell(x) * 0.39894228040143267794};
    return normal;
}

static inline realv gelu(const realv x) {
    const realv near = at_least(x, -FAR);
    return near * normal_at(near).below;
}

#else

/* Φ(-|x|) / e^(-x²/2) = t · P(t) with t = 1 / (1 + 0.21 |x|): a minimax fit of relative error 1.3e-8, so that the tail is
 * about as accurate as e^(-x²/2). */
static inline realv tail_over_bell(const realv x) {
    const realv t = quick_reciprocal(fabs(x) * 0.21f + 1.0f);
    realv p = t * -0.0721113086f + 0.285835445f;
    p = p * t - 0.334996939f;
    p = p * t + 0.354985356f;
    p = p * t - 0.0979294553f;
    p = p * t + 0.126661345f;
    p = p * t + 0.068706654f;
    p = p * t + 0.0851420239f;
    p = p * t + 0.083706893f;
    return p * t;
}

static inline struct normal normal_at(const realv x) {
    const realv power = bell(x);
    const realv tail = power * tail_over_bell(x);
    const struct normal normal = {x < (real)0 ? tail : 1.0f - tail, power * 0.39894228f};
    return normal;
}

/* x · Φ(x) = max(x, 0) - |x| · Φ(-|x|). The first term is -0 for a negative x, and x itself for a zero, so that the sign
 * stays: fmax may return either zero. */
static inline realv gelu(const realv x) {
    const realv share = fmin(fabs(x), FAR) * bell(x);
#if ISA == ISA_PTX || defined(POCL_DEVICE_ADDRESS_BITS)
    return at_least(x, -0.0f) - share * tail_over_bell(x);
#else /* rusticl 22.3 computes a first term of -0 instead of +0 where x comes from a branch */
    const uintv y = AS_UINTV(at_least(x, -0.0f) - share * tail_over_bell(x));
    return AS_FLOATV((y & 0x7fffffffu) | (AS_UINTV(x) & 0x80000000u));
#endif
}

#endif

static inline realv gelu_slope(const realv x) {
    const realv near = between(x, -FAR, FAR);
    const struct normal normal = normal_at(near);
    return normal.below + near * normal.density;
}

/* x · sigmoid(v), where v is an odd function of x. */
static inline realv sigmoid_unit(const realv x, const realv v) {
    return ratio(x, (real)1 + exponential_of_minus(v));
}

/* Its derivative. slope: the derivative of v. No factor of sigmoid(v) · (1 - sigmoid(v)) is computed as a difference. */
static inline realv sigmoid_unit_slope(const realv x, const realv v, const realv slope) {
    const realv power = exponential_of_minus(fabs(v));
    const realv large = ratio((real)1, (real)1 + power);
    const realv small = power * large;
    return (v < (real)0 ? small : large) + x * slope * (large * small);
}

/* ½ x (1 + tanh(√(2/π) (x + 0.044715 x³))), since ½ (1 + tanh(u)) = sigmoid(2 u). */
#define TANH_LINEAR REAL(1.5957691216057307117) /* 2 √(2/π) */
#define TANH_CUBIC REAL(0.071354816272600246)   /* 0.044715 of that */

static inline realv gelu_tanh(const realv x) {
    const realv near = at_least(x, -FAR);
    return sigmoid_unit(near, near * (near * near * TANH_CUBIC + TANH_LINEAR));
}

static inline realv gelu_tanh_slope(const realv x) {
    const realv near = between(x, -FAR, FAR);
    const realv square = near * near;
    return sigmoid_unit_slope(near, near * (square * TANH_CUBIC + TANH_LINEAR),
                              square * ((real)3 * TANH_CUBIC) + TANH_LINEAR);
}

static inline realv silu(const realv x) {
    const realv near = at_least(x, -FAR);
    return sigmoid_unit(near, near);
}

#if APPROXIMATE

/* silu′(x) = s · (1 + x · p · s), with p = e^-x and s = 1 / (1 + p). At x = -127 ln 2, p is still finite, and s is 0, as
 * results below 2^-126 are. */
static inline realv silu_slope(const realv x) {
    const realv near = between(x, -88.0296919f, FAR);
    const realv power = exponential_of_minus(near), share = quick_reciprocal((real)1 + power);
    return share * ((real)1 + near * (power * share));
}

#else

/* silu′(-|x|) = small · (1 - |x| · large), where small and large are sigmoid(-|x|) and sigmoid(|x|); silu′(|x|) is 1
 * less that. */
static inline realv silu_slope(const realv x) {
    const realv power = exponential_of_minus(fabs(x)), large = ratio((real)1, (real)1 + power);
    const realv below = power * large * ((real)1 - fmin(fabs(x), FAR) * large);
    return x < (real)0 ? below : (real)1 - below;
}

#endif

#endif
