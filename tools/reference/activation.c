#include "reference/activation.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

double ref_sigmoid(double v) {
    return 1 / (1 + exp(-v));
}

/* sigmoid′(v) = sigmoid(v) · sigmoid(−v) */
static double sigmoid_slope(double v) {
    return ref_sigmoid(v) * ref_sigmoid(-v);
}

double ref_gate(clnorm_gate gate, double z) {
    switch (gate) {
    case CLNORM_GATE_SILU:
        return z * ref_sigmoid(z);
    case CLNORM_GATE_SIGMOID:
        return ref_sigmoid(z);
    default:
        return 1;
    }
}

double ref_gate_slope(clnorm_gate gate, double z) {
    switch (gate) {
    case CLNORM_GATE_SILU:
        return ref_sigmoid(z) + z * sigmoid_slope(z);
    case CLNORM_GATE_SIGMOID:
        return sigmoid_slope(z);
    default:
        return 0;
    }
}

double ref_tanh_argument(double n) {
    return 2 * sqrt(2 / pi) * (n + 0.044715 * n * n * n);
}

double ref_tanh_argument_slope(double n) {
    return 2 * sqrt(2 / pi) * (1 + 3 * 0.044715 * n * n);
}

struct ref_factor ref_activation_factor(clnorm_activation activation, double n) {
    switch (activation) {
    case CLNORM_ACTIVATION_GELU: /* Φ(n) = erfc(−n / √2) / 2, Φ′(n) = e^(−n²/2) / √(2π) */
        return (struct ref_factor){(double)(erfcl(-n / sqrtl(2)) / 2), exp(-n * n / 2) / sqrt(2 * pi)};
    case CLNORM_ACTIVATION_GELU_TANH: /* (1 + tanh(v / 2)) / 2 = sigmoid(v) */
        return (struct ref_factor){ref_sigmoid(ref_tanh_argument(n)),
                                   sigmoid_slope(ref_tanh_argument(n)) * ref_tanh_argument_slope(n)};
    default:
        return (struct ref_factor){ref_sigmoid(n), sigmoid_slope(n)};
    }
}

double ref_activation(clnorm_activation activation, double n) {
    if (!activation)
        return n;
    return n == -INFINITY ? -0.0 : n * ref_activation_factor(activation, n).value;
}

double ref_activation_slope(clnorm_activation activation, double n) {
    if (!activation)
        return 1;
    if (isinf(n))
        return n > 0;
    const struct ref_factor factor = ref_activation_factor(activation, n);
    return factor.value + n * factor.slope;
}
