/* The gate's factor act(z), and its derivative. */
#ifndef GATE_H
#define GATE_H

#include "common/enums.h"
#include "common/vector.h"

static inline realv sigmoid_of(const realv z) {
#if ISA == ISA_PTX && !IS_DOUBLE(X_DTYPE) /* ex2.approx and rcp.approx: 2 and 1 units in the last place */
    return native_recip((real)1 + native_exp(-z));
#else
    return (real)1 / ((real)1 + exp(-z));
#endif
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
