#include "estimate.h"

#include <math.h>

struct arithmetic arithmetic_of(clnorm_dtype dtype) {
    return dtype == CLNORM_F64 ? (struct arithmetic){0x1p-53, 0x1p-1022} : (struct arithmetic){0x1p-24, 0x1p-126};
}

static struct estimate make(double value, double slack) {
    return (struct estimate){value, isnan(slack) ? 0 : slack};
}

struct estimate estimate_exact(double value) {
    return (struct estimate){value, 0};
}

struct estimate estimate_add(const struct arithmetic *arithmetic, struct estimate a, struct estimate b) {
    const double value = a.value + b.value;
    return make(value, a.slack + b.slack + arithmetic->unit * fabs(value) + arithmetic->tiny);
}

struct estimate estimate_subtract(const struct arithmetic *arithmetic, struct estimate a, struct estimate b) {
    return estimate_add(arithmetic, a, (struct estimate){-b.value, b.slack});
}

struct estimate estimate_multiply(const struct arithmetic *arithmetic, struct estimate a, struct estimate b) {
    const double value = a.value * b.value;
    return make(value, fabs(a.value) * b.slack + fabs(b.value) * a.slack + a.slack * b.slack +
                           arithmetic->unit * fabs(value) + arithmetic->tiny);
}

struct estimate estimate_divide(const struct arithmetic *arithmetic, struct estimate a, struct estimate b) {
    const double value = a.value / b.value;
    return make(value, (a.slack + fabs(value) * b.slack) / fabs(b.value) + FUNCTION_UNITS * arithmetic->unit * fabs(value) +
                           arithmetic->tiny);
}

/* exp, a sum and a division */
static struct estimate estimate_sigmoid(const struct arithmetic *arithmetic, double z) {
    const double sigmoid = 1 / (1 + exp(-z));
    return make(sigmoid, (2 * FUNCTION_UNITS - 2) * arithmetic->unit * sigmoid + arithmetic->tiny);
}

struct estimate estimate_gate(const struct arithmetic *arithmetic, clnorm_gate gate, double z) {
    const struct estimate sigmoid = estimate_sigmoid(arithmetic, z);
    return gate == CLNORM_GATE_SILU ? estimate_multiply(arithmetic, estimate_exact(z), sigmoid) : sigmoid;
}

struct estimate estimate_gate_slope(const struct arithmetic *arithmetic, clnorm_gate gate, double z) {
    const struct estimate one = estimate_exact(1);
    const struct estimate sigmoid = estimate_sigmoid(arithmetic, z);
    struct estimate factor = estimate_subtract(arithmetic, one, sigmoid);
    if (gate == CLNORM_GATE_SILU)
        factor = estimate_add(arithmetic, one, estimate_multiply(arithmetic, estimate_exact(z), factor));
    return estimate_multiply(arithmetic, sigmoid, factor);
}

void estimate_sum_add(struct estimate_sum *sum, struct estimate term) {
    sum->value += term.value;
    sum->magnitude += fabs(term.value);
    sum->slack += term.slack;
}

struct estimate estimate_sum_over(const struct estimate_sum *sum, double divisor, double error) {
    return make((double)(sum->value / divisor), (double)((error * sum->magnitude + sum->slack) / divisor));
}

/* A random walk of n / 16 steps or fewer in each; with a margin. */
double error_over_segment(const struct arithmetic *arithmetic, uint64_t n) {
    return (4 + sqrt((double)n) / 4) * arithmetic->unit;
}

/* Of n steps at most, each of which is off by less than half a unit as a rule. */
double error_over_rows(const struct arithmetic *arithmetic, uint64_t n) {
    return (4 + sqrt((double)n)) * arithmetic->unit;
}
