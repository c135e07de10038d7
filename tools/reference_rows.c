#include "reference_rows.h"

#include <math.h>

#include "reference.h"

/* ---------------------------------------------------------------------------------------------------------- softmax */

/* e^(x − largest). A kernel may take it in factors, each of which loses what its own difference was rounded by. */
static struct estimate power_of(const struct arithmetic *arithmetic, double x, double largest) {
    if (x == -INFINITY && largest < INFINITY)
        return estimate_exact(0);
    const double value = exp(x - largest);
    const double units = FUNCTION_UNITS + (value > 0 ? 4 * (largest - x) : 0);
    return (struct estimate){value, isnan(value) ? 0 : units * arithmetic->unit * value + arithmetic->tiny};
}

void reference_softmax(const struct tensor *x, uint64_t first, uint64_t cols, struct estimate *out) {
    const struct arithmetic arithmetic = arithmetic_of(x->element->dtype);
    double largest = -INFINITY;
    for (uint64_t i = 0; i < cols; i++)
        largest = fmax(largest, reference_value(x, first + i).value);
    struct estimate_sum sum = {0};
    for (uint64_t i = 0; i < cols; i++) {
        out[i] = power_of(&arithmetic, reference_value(x, first + i).value, largest);
        estimate_sum_add(&sum, out[i]);
    }
    if (sum.value == 0) /* every entry is masked */
        return;
    const double total = (double)sum.value;
    const double share = (double)(sum.slack / sum.value) + error_over_segment(&arithmetic, cols) +
                         (FUNCTION_UNITS + 1) * arithmetic.unit; /* of the sum and of its inverse */
    for (uint64_t i = 0; i < cols; i++) {
        const bool masked = out[i].value == 0 && out[i].slack == 0;
        const double value = out[i].value / total;
        const double slack = out[i].slack / total + share * value + arithmetic.tiny;
        out[i] = (struct estimate){value, masked || isnan(slack) ? 0 : slack};
    }
}

void reference_softmax_backward(const struct tensor *y, const struct tensor *dy, uint64_t first, uint64_t cols,
                                struct estimate *out) {
    const struct arithmetic arithmetic = arithmetic_of(y->element->dtype);
    struct estimate_sum sum = {0};
    for (uint64_t i = 0; i < cols; i++)
        estimate_sum_add(&sum,
                         estimate_multiply(&arithmetic, reference_value(y, first + i), reference_value(dy, first + i)));
    const struct estimate total = estimate_sum_over(&sum, 1, error_over_segment(&arithmetic, cols));
    for (uint64_t i = 0; i < cols; i++)
        out[i] = estimate_multiply(&arithmetic, reference_value(y, first + i),
                                   estimate_subtract(&arithmetic, reference_value(dy, first + i), total));
}

/* ------------------------------------------------------------------------------------------------------------- gelu */

static const double pi = 3.14159265358979323846;

/* A factor of x, and its derivative times x. */
struct curve {
    struct estimate factor, product;
};

/* Φ(x) and x · Φ′(x): both have e^(−x²/2) as a factor, which loses what x²/2 was rounded by. */
static struct curve curve_of_erf(const struct arithmetic *arithmetic, double x) {
    const double below = (double)(0.5L * erfcl(-x / sqrtl(2)));
    const double product = isinf(x) ? 0 : x * exp(-x * x / 2) / sqrt(2 * pi);
    const double lost = isinf(x) ? 0 : 2 * x * x;
    const double tail = (double)(0.5L * erfcl(fabsl((long double)x) / sqrtl(2)));
    const double tiny = isinf(x) ? 0 : arithmetic->tiny * (1 + fabs(x));
    /* OpenCL allows the erfc of f64 16 units in the last place. */
    const double function = 6 * FUNCTION_UNITS;
    return (struct curve){
        {below, arithmetic->unit * (function * below + lost * tail) + tiny},
        {product, arithmetic->unit * (function + lost) * fabs(product) + tiny},
    };
}

/* sigmoid(v) and x · sigmoid′(v) · v′ for v = 2 √(2/π) (x + 0.044715 x³), which is itself rounded. */
static struct curve curve_of_tanh(const struct arithmetic *arithmetic, double x) {
    if (isinf(x))
        return (struct curve){{x > 0, 0}, {0, 0}};
    const double v = 2 * sqrt(2 / pi) * (x + 0.044715 * x * x * x);
    const double slope = 2 * sqrt(2 / pi) * (1 + 3 * 0.044715 * x * x);
    const double large = 1 / (1 + exp(-v)), rest = 1 / (1 + exp(v));
    const double product = x * slope * large * rest;
    const double lost = rest > 0 && large > 0 ? 8 * fabs(v) : 0;
    const double tiny = arithmetic->tiny * (1 + fabs(x * slope));
    return (struct curve){
        {large, arithmetic->unit * (2 * FUNCTION_UNITS + lost * rest) * large + tiny},
        {product, arithmetic->unit * (3 * FUNCTION_UNITS + lost) * fabs(product) + tiny},
    };
}

static struct curve curve_of(const struct arithmetic *arithmetic, clnorm_gelu_form form, double x) {
    return form == CLNORM_GELU_TANH ? curve_of_tanh(arithmetic, x) : curve_of_erf(arithmetic, x);
}

struct estimate reference_gelu(clnorm_gelu_form form, const struct tensor *x, uint64_t index) {
    const struct arithmetic arithmetic = arithmetic_of(x->element->dtype);
    const struct estimate at = reference_value(x, index);
    if (at.value == -INFINITY)
        return estimate_exact(-0.0);
    return estimate_multiply(&arithmetic, at, curve_of(&arithmetic, form, at.value).factor);
}

struct estimate reference_gelu_backward(clnorm_gelu_form form, const struct tensor *x, const struct tensor *dy,
                                        uint64_t index) {
    const struct arithmetic arithmetic = arithmetic_of(x->element->dtype);
    const struct curve curve = curve_of(&arithmetic, form, reference_value(x, index).value);
    return estimate_multiply(&arithmetic, reference_value(dy, index),
                             estimate_add(&arithmetic, curve.factor, curve.product));
}
