#include "reference_fused.h"

#include <math.h>

/* Philox 4x32-10: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3". */
static void philox(uint32_t words[4], uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        const uint64_t a = UINT64_C(0xd2511f53) * words[0], b = UINT64_C(0xcd9e8d57) * words[2];
        words[0] = (uint32_t)(b >> 32) ^ words[1] ^ key0;
        words[1] = (uint32_t)b;
        words[2] = (uint32_t)(a >> 32) ^ words[3] ^ key1;
        words[3] = (uint32_t)a;
        key0 += 0x9e3779b9;
        key1 += 0xbb67ae85;
    }
}

bool reference_kept(clnorm_seed seed, double dropout, uint64_t row, uint64_t column) {
    uint32_t words[4] = {(uint32_t)(column / 8), (uint32_t)row, (uint32_t)seed.offset, (uint32_t)(seed.offset >> 32)};
    philox(words, (uint32_t)seed.seed, (uint32_t)(seed.seed >> 32));
    const uint32_t word = words[column % 8 / 2], exchanged = word << 16 | word >> 16;
    return (column % 2 ? exchanged : word) >= floor(dropout * 0x1p32);
}

struct estimate reference_branch(const struct arithmetic *arithmetic, const struct norm_inputs *inputs, double dropout,
                                 struct estimate v, uint64_t row, uint64_t column) {
    if (dropout > 0 && !reference_kept(inputs->seed, dropout, row, column))
        return estimate_exact(0);
    if (dropout > 0) {
        const double scale = 1 / (1 - dropout);
        v = estimate_multiply(arithmetic, v, (struct estimate){scale, 2 * arithmetic->unit * scale});
    }
    return inputs->row_scale ? estimate_multiply(arithmetic, v, reference_value(inputs->row_scale, row)) : v;
}

/* activation(n) is n · f(a) for a function a of n: f is the normal distribution function, and a is n, or the logistic one.
 */
struct curve {
    double value, slope; /* of f(a(n)) by n */
};

static struct curve curve_at(clnorm_activation activation, double n) {
    static const double pi = 3.14159265358979323846;
    if (activation == CLNORM_ACTIVATION_GELU)
        return (struct curve){0.5 * erfc(-n / sqrt(2)), exp(-n * n / 2) / sqrt(2 * pi)};
    const double scale = 2 * sqrt(2 / pi);
    const bool tanh_form = activation == CLNORM_ACTIVATION_GELU_TANH;
    const double a = tanh_form ? scale * (n + 0.044715 * n * n * n) : n;
    const double a_slope = tanh_form ? scale * (1 + 3 * 0.044715 * n * n) : 1;
    const double value = 1 / (1 + exp(-a));
    return (struct curve){value, isinf(a) ? 0 : value / (1 + exp(a)) * a_slope};
}

/* Relative error of f: exponentials of numbers that were rounded a few times. */
static double curve_error(const struct arithmetic *arithmetic, double n) {
    return (3 * FUNCTION_UNITS + 4 * fmin(fabs(n), 16)) * arithmetic->unit;
}

/* No activation's first derivative is more than 1.13, and no second one more than 0.8. */
struct estimate reference_activation(const struct arithmetic *arithmetic, clnorm_activation activation, struct estimate n) {
    if (!activation)
        return n;
    if (n.value == -INFINITY)
        return estimate_exact(0);
    const double slack = 1.13 * n.slack + curve_error(arithmetic, n.value) * fabs(n.value) + arithmetic->tiny;
    return (struct estimate){n.value * curve_at(activation, n.value).value, isfinite(n.value) ? slack : 0};
}

struct estimate reference_activation_slope(const struct arithmetic *arithmetic, clnorm_activation activation,
                                           struct estimate n) {
    if (!activation)
        return estimate_exact(1);
    if (isinf(n.value))
        return estimate_exact(n.value > 0);
    const struct curve curve = curve_at(activation, n.value);
    const double slack = 0.8 * n.slack + curve_error(arithmetic, n.value) * (1 + fabs(n.value)) + arithmetic->tiny;
    return (struct estimate){curve.value + n.value * curve.slope, isfinite(n.value) ? slack : 0};
}
