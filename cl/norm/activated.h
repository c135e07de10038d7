/* activation(n) and its derivative, for the build's ACTIVATION. */
#ifndef ACTIVATED_H
#define ACTIVATED_H

#include "common/exponential.h"

#if ACTIVATION
#include "norm/activation.h"
#endif

static inline realv activated(const realv n) {
#if ACTIVATION == ACTIVATION_GELU
    return gelu(n);
#elif ACTIVATION == ACTIVATION_GELU_TANH
    return gelu_tanh(n);
#elif ACTIVATION == ACTIVATION_SILU
    return silu(n);
#else
    return n;
#endif
}

#if ACTIVATION
static inline realv activation_slope(const realv n) {
#if ACTIVATION == ACTIVATION_GELU
    return gelu_slope(n);
#elif ACTIVATION == ACTIVATION_GELU_TANH
    return gelu_tanh_slope(n);
#else
    return silu_slope(n);
#endif
}
#endif

#endif
