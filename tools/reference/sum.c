#include "reference/sum.h"

#include <math.h>

void ref_sum_add(struct ref_sum *sum, double term) {
    const double high = sum->high + term;
    if (isfinite(high))
        sum->low += fabs(sum->high) >= fabs(term) ? (sum->high - high) + term : (term - high) + sum->high;
    sum->high = high;
}

void ref_sum_add_product(struct ref_sum *sum, double a, double b) {
    const double product = a * b;
    ref_sum_add(sum, product);
    if (isfinite(product))
        ref_sum_add(sum, fma(a, b, -product));
}

double ref_sum_value(const struct ref_sum *sum) {
    return sum->high + sum->low;
}

/* The sum over a divisor, rounded once. */
static double sum_over(const struct ref_sum *sum, double divisor) {
    const double quotient = ref_sum_value(sum) / divisor;
    if (!isfinite(quotient))
        return quotient;
    return quotient + (fma(-quotient, divisor, sum->high) + sum->low) / divisor;
}

double ref_mean(const double *values, uint64_t n) {
    struct ref_sum sum = {0};
    for (uint64_t i = 0; i < n; i++)
        ref_sum_add(&sum, values[i]);
    return sum_over(&sum, (double)n);
}

double ref_mean_product(const double *a, const double *b, uint64_t n) {
    struct ref_sum sum = {0};
    for (uint64_t i = 0; i < n; i++)
        ref_sum_add_product(&sum, a[i], b[i]);
    return sum_over(&sum, (double)n);
}
