#include "reference/gelu.h"

#include <math.h>

#include "reference/activation.h"
#include "reference/row.h"

static clnorm_activation activation_of(clnorm_gelu_form form) {
    return form == CLNORM_GELU_TANH ? CLNORM_ACTIVATION_GELU_TANH : CLNORM_ACTIVATION_GELU;
}

/* The factor f of x. Its error includes that of its argument: in sigmoid(v) v has a relative error of four units, and in
 * Φ(x) the factor e^(−x²/2) has a rounded x²/2. */
static struct ref_value factor_of(const struct ref_arithmetic *arithmetic, clnorm_gelu_form form, double x) {
    const double value = ref_activation_factor(activation_of(form), x).value;
    if (form == CLNORM_GELU_TANH) {
        const double rest = ref_activation_factor(activation_of(form), -x).value;
        const double lost = value > 0 ? 8 * fabs(ref_tanh_argument(x)) * rest : 0;
        return (struct ref_value){value, (arithmetic->function + lost) * arithmetic->unit * value + arithmetic->tiny};
    }
    const double tail = ref_activation_factor(activation_of(form), -fabs(x)).value;
    const double lost = tail > 0 ? 2 * x * x * tail : 0;
    return (struct ref_value){value,
                              arithmetic->unit * (arithmetic->function * value + lost) + arithmetic->tiny * (1 + fabs(x))};
}

/* x · f′(x). Its relative error is that of a function, and a part that grows with the argument. */
static struct ref_value product_of(const struct ref_arithmetic *arithmetic, clnorm_gelu_form form, double x) {
    const double value = x * ref_activation_factor(activation_of(form), x).slope;
    const double steepness = form == CLNORM_GELU_TANH ? 8 + 8 * fabs(ref_tanh_argument(x)) : 8 + 2 * x * x;
    const double dropped = arithmetic->tiny * (1 + fabs(x * ref_tanh_argument_slope(x)));
    const double error = value == 0 ? 0 : arithmetic->unit * (arithmetic->function + steepness) * fabs(value);
    return (struct ref_value){value, error + dropped};
}

struct ref_value ref_gelu(const struct ref_arithmetic *arithmetic, clnorm_gelu_form form, double x) {
    if (isinf(x))
        return (struct ref_value){x > 0 ? x : -0.0, 0};
    const struct ref_value factor = factor_of(arithmetic, form, x);
    const double value = x * factor.value;
    return (struct ref_value){value, fabs(x) * factor.error + arithmetic->unit * fabs(value) + arithmetic->tiny};
}

struct ref_value ref_gelu_backward(const struct ref_arithmetic *arithmetic, clnorm_gelu_form form, double x, double dy) {
    const struct ref_value none = {0, 0};
    const struct ref_value factor = isinf(x) ? (struct ref_value){x > 0, 0} : factor_of(arithmetic, form, x);
    const struct ref_value product = isinf(x) ? none : product_of(arithmetic, form, x);
    const double value = dy * (factor.value + product.value);
    return (struct ref_value){value, fabs(dy) * (factor.error + product.error) + arithmetic->unit * fabs(value) +
                                         arithmetic->tiny};
}

/* The erf form has the larger error: OpenCL allows its erfc 16 units in the last place. */
static struct ref_arithmetic arithmetic_of(const struct ref_row *row, clnorm_gelu_form form) {
    struct ref_arithmetic arithmetic = row->arithmetic;
    arithmetic.function *= form == CLNORM_GELU_ERF ? 6 : 2;
    return arithmetic;
}

bool ref_gelu_forward_row(const struct ref_row *row) {
    const clnorm_gelu_desc *const desc = row->desc;
    const struct ref_arithmetic arithmetic = arithmetic_of(row, desc->form);
    for (uint64_t i = 0; i < row->cols; i++)
        row->output[0][i] = ref_gelu(&arithmetic, desc->form, row->input[0][i]);
    return true;
}

bool ref_gelu_backward_row(const struct ref_row *row) {
    const clnorm_gelu_backward_desc *const desc = row->desc;
    const struct ref_arithmetic arithmetic = arithmetic_of(row, desc->form);
    for (uint64_t i = 0; i < row->cols; i++)
        row->output[0][i] = ref_gelu_backward(&arithmetic, desc->form, row->input[0][i], row->input[1][i]);
    return true;
}
