#include "reference/softmax.h"

#include <math.h>

#include "reference/row.h"
#include "reference/sum.h"

/* e^(x − largest) of an element. A kernel rounds the difference, and may compute it in parts. */
static struct ref_value power_of(const struct ref_arithmetic *arithmetic, double x, double largest) {
    const double value = x == -INFINITY ? 0 : exp(x - largest);
    const double lost = value > 0 ? 4 * (largest - x) : 0;
    return (struct ref_value){value, value * (arithmetic->function + lost) * arithmetic->unit};
}

void ref_softmax(const struct ref_arithmetic *arithmetic, const double *x, uint64_t n, struct ref_value *y) {
    double largest = -INFINITY;
    for (uint64_t i = 0; i < n; i++)
        largest = fmax(largest, x[i]);
    struct ref_sum sum = {0};
    struct ref_sum error = {0};
    for (uint64_t i = 0; i < n; i++) {
        y[i] = power_of(arithmetic, x[i], largest);
        ref_sum_add(&sum, y[i].value);
        ref_sum_add(&error, y[i].error);
    }
    const double total = ref_sum_value(&sum);
    if (total == 0) /* a row of −∞ */
        return;
    const double share =
        ref_sum_value(&error) / total + (arithmetic->sum + arithmetic->function) * arithmetic->unit; /* of the sum */
    for (uint64_t i = 0; i < n; i++) {
        const double dropped = x[i] == -INFINITY ? 0 : 2 * arithmetic->tiny;
        y[i] = (struct ref_value){y[i].value / total, (y[i].value * share + y[i].error) / total + dropped};
    }
}

void ref_softmax_backward(const struct ref_arithmetic *arithmetic, const double *y, const double *dy, uint64_t n,
                          struct ref_value *dx) {
    struct ref_sum sum = {0};
    struct ref_sum magnitude = {0};
    for (uint64_t i = 0; i < n; i++) {
        ref_sum_add_product(&sum, y[i], dy[i]);
        ref_sum_add(&magnitude, fabs(y[i] * dy[i]));
    }
    const double error =
        ref_sum_value(&magnitude) * (arithmetic->sum + 1) * arithmetic->unit + (double)n * arithmetic->tiny;
    for (uint64_t i = 0; i < n; i++) {
        const double difference = dy[i] - ref_sum_value(&sum);
        const double value = y[i] * difference;
        dx[i] = (struct ref_value){value, fabs(y[i]) * (error + arithmetic->unit * fabs(difference)) +
                                              arithmetic->unit * fabs(value) + arithmetic->tiny};
    }
}

bool ref_softmax_forward_row(const struct ref_row *row) {
    ref_softmax(&row->arithmetic, row->input[0], row->cols, row->output[0]);
    return true;
}

bool ref_softmax_backward_row(const struct ref_row *row) {
    ref_softmax_backward(&row->arithmetic, row->input[0], row->input[1], row->cols, row->output[0]);
    return true;
}
