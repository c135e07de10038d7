#include "reference_rows.h"

#include <float.h>
#include <math.h>

static const double pi = 3.14159265358979323846;

struct ref_arithmetic ref_arithmetic_of(clnorm_dtype dtype) {
    if (dtype == CLNORM_F64) /* OpenCL allows its erfc 16 units in the last place */
        return (struct ref_arithmetic){.unit = 0x1p-53, .tiny = DBL_MIN, .function = 48};
    return (struct ref_arithmetic){.unit = 0x1p-24, .tiny = FLT_MIN, .function = 16};
}

/* ½ (1 + tanh(v / 2)), and its error where v has a relative error of four units. */
static struct ref_value sigmoid(const struct ref_arithmetic *arithmetic, double v) {
    const double value = 1 / (1 + exp(-v));
    const double rest = 1 / (1 + exp(v));
    const double own = value > 0 ? 8 * fabs(v) * rest : 0;
    return (struct ref_value){value, (arithmetic->function + own) * arithmetic->unit * value + arithmetic->tiny};
}

/* The argument of that sigmoid in the tanh form, and its derivative. */
static double tanh_argument(double x) {
    return 2 * sqrt(2 / pi) * (x + 0.044715 * x * x * x);
}

static double tanh_slope(double x) {
    return 2 * sqrt(2 / pi) * (1 + 3 * 0.044715 * x * x);
}

/* The distribution function of the standard normal; e^(-x²/2), a factor of it, is off by what x²/2 was rounded by. */
static struct ref_value normal(const struct ref_arithmetic *arithmetic, double x) {
    const double value = (double)(0.5L * erfcl(-x / sqrtl(2)));
    const double tail = (double)(0.5L * erfcl(fabsl((long double)x) / sqrtl(2)));
    const double own = tail > 0 ? 2 * x * x * tail : 0;
    return (struct ref_value){value,
                              arithmetic->unit * (arithmetic->function * value + own) + arithmetic->tiny * (1 + fabs(x))};
}

struct ref_value ref_gelu(const struct ref_arithmetic *arithmetic, clnorm_gelu_form form, double x) {
    if (isinf(x))
        return (struct ref_value){x > 0 ? x : -0.0, 0};
    const struct ref_value factor =
        form == CLNORM_GELU_TANH ? sigmoid(arithmetic, tanh_argument(x)) : normal(arithmetic, x);
    const double value = x * factor.value;
    return (struct ref_value){value, fabs(x) * factor.error + arithmetic->unit * fabs(value) + arithmetic->tiny};
}

/* gelu′(x): a factor of x and x times that factor's own derivative. */
static struct ref_value slope_of(const struct ref_arithmetic *arithmetic, clnorm_gelu_form form, double x) {
    if (isinf(x))
        return (struct ref_value){x > 0, 0};
    struct ref_value factor;
    double product;
    double steepness; /* relative error of the derivative beyond that of a function, in units */
    if (form == CLNORM_GELU_TANH) {
        const double v = tanh_argument(x);
        factor = sigmoid(arithmetic, v);
        product = x * tanh_slope(x) / ((1 + exp(-v)) * (1 + exp(v)));
        steepness = 8 + 8 * fabs(v);
    } else {
        factor = normal(arithmetic, x);
        product = x * exp(-x * x / 2) / sqrt(2 * pi);
        steepness = 8 + 2 * x * x;
    }
    const double dropped = arithmetic->tiny * (1 + fabs(x * tanh_slope(x)));
    const double error =
        product == 0 ? dropped : arithmetic->unit * (arithmetic->function + steepness) * fabs(product) + dropped;
    return (struct ref_value){factor.value + product, factor.error + error};
}

struct ref_value ref_gelu_backward(const struct ref_arithmetic *arithmetic, clnorm_gelu_form form, double x, double dy) {
    const struct ref_value slope = slope_of(arithmetic, form, x);
    const double value = dy * slope.value;
    return (struct ref_value){value, fabs(dy) * slope.error + arithmetic->unit * fabs(value) + arithmetic->tiny};
}

/* e^(x − max) of an entry, where the difference was rounded and, in parts, more than once. */
static struct ref_value power_of(const struct ref_arithmetic *arithmetic, double x, double largest) {
    const double value = x == -INFINITY ? 0 : exp(x - largest);
    const double own = value > 0 ? 4 * (largest - x) : 0;
    return (struct ref_value){value, value * (arithmetic->function + own) * arithmetic->unit};
}

void ref_softmax(const struct ref_arithmetic *arithmetic, const double *x, uint64_t n, struct ref_value *y) {
    double largest = -INFINITY;
    bool any_nan = false;
    for (uint64_t i = 0; i < n; i++) {
        largest = fmax(largest, x[i]);
        any_nan = any_nan || isnan(x[i]);
    }
    long double sum = 0;
    long double error = 0;
    for (uint64_t i = 0; i < n; i++) {
        const struct ref_value power = power_of(arithmetic, x[i], largest);
        sum += power.value;
        error += power.error;
    }
    const double share = sum > 0 ? (double)(error / sum) + (arithmetic->sum + arithmetic->function) * arithmetic->unit : 0;
    for (uint64_t i = 0; i < n; i++) {
        const struct ref_value power = power_of(arithmetic, x[i], largest);
        const double value = any_nan || largest == INFINITY ? NAN : sum > 0 ? (double)(power.value / sum) : 0;
        const double dropped = x[i] == -INFINITY ? 0 : 2 * arithmetic->tiny;
        y[i] = (struct ref_value){value, value * share + (sum > 0 ? (double)(power.error / sum) : 0) + dropped};
    }
}

void ref_softmax_backward(const struct ref_arithmetic *arithmetic, const double *y, const double *dy, uint64_t n,
                          struct ref_value *dx) {
    long double sum = 0;
    long double magnitude = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum += (long double)y[i] * dy[i];
        magnitude += fabsl((long double)y[i] * dy[i]);
    }
    const double error = (double)magnitude * (arithmetic->sum + 1) * arithmetic->unit + (double)n * arithmetic->tiny;
    for (uint64_t i = 0; i < n; i++) {
        const double difference = dy[i] - (double)sum;
        const double value = y[i] * difference;
        dx[i] = (struct ref_value){value, fabs(y[i]) * (error + arithmetic->unit * fabs(difference)) +
                                              arithmetic->unit * fabs(value) + arithmetic->tiny};
    }
}
