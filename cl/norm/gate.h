/* The gate's factor act(z), and its derivative. */
#ifndef GATE_H
#define GATE_H

#include "common/exponential.h"

static inline realv sigmoid_of(const realv z) {
    return ratio((real)1, (real)1 + exponential_of_minus(z));
}

static inline realv gate_factor(const realv z) {
    const realv sigmoid = sigmoid_of(z);
#if GATE == GATE_SILU
    return z * sigmoid;
#else
    return sigmoid;
#endif
}

static inline realv gate_slope(const realv z) {
    const realv sigmoid = sigmoid_of(z);
#if GATE == GATE_SILU
    return sigmoid * ((real)1 + z * ((real)1 - sigmoid));
#else
    return sigmoid * ((real)1 - sigmoid);
#endif
}

#endif
