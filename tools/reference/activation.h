/* Functions of one number that norms are fused with, and their derivatives. */
#ifndef REFERENCE_ACTIVATION_H
#define REFERENCE_ACTIVATION_H

#include "clnorm/norm.h"

/* The logistic function 1 / (1 + e^(−v)). */
double ref_sigmoid(double v);

/* act(z): 1 without a gate, sigmoid(z), z · sigmoid(z); and act′(z). */
double ref_gate(clnorm_gate gate, double z);
double ref_gate_slope(clnorm_gate gate, double z);

/* A function n · f(n), taken apart: f(n) and f′(n). activation is not CLNORM_ACTIVATION_NONE. */
struct ref_factor {
    double value, slope;
};

/* GELU: f is Φ, the distribution function of the standard normal (Hendrycks, Gimpel 2016, arXiv:1606.08415), or in the
 * tanh form (1 + tanh(√(2/π) (n + 0.044715 n³))) / 2. SiLU: sigmoid. */
struct ref_factor ref_activation_factor(clnorm_activation activation, double n);

/* activation(n), n itself without one; and activation′(n). */
double ref_activation(clnorm_activation activation, double n);
double ref_activation_slope(clnorm_activation activation, double n);

/* 2 √(2/π) (n + 0.044715 n³), of which the tanh form is n · sigmoid; and its derivative. */
double ref_tanh_argument(double n);
double ref_tanh_argument_slope(double n);

#endif
