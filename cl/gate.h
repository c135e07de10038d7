/* act(z), the gate's factor. */
#ifndef GATE_H
#define GATE_H

#include "enums.h"
#include "vector.h"

static inline realv gate_factor(const realv z) {
    const realv sigmoid = (real)1 / ((real)1 + exp(-z));
#if GATE == GATE_SILU
    return z * sigmoid;
#else
    return sigmoid;
#endif
}

#endif
