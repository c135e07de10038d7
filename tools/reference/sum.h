/* Compensated sums in double, for any number of terms: Neumaier 1974, "Rundungsfehleranalyse einiger Verfahren zur
 * Summation endlicher Summen". */
#ifndef REFERENCE_SUM_H
#define REFERENCE_SUM_H

#include <stdint.h>

struct ref_sum {
    double high, low; /* low: the rounding errors of high */
};

void ref_sum_add(struct ref_sum *sum, double term);

/* Adds a · b without rounding it. */
void ref_sum_add_product(struct ref_sum *sum, double a, double b);

double ref_sum_value(const struct ref_sum *sum);

/* Σ values / n, and Σ a · b / n. */
double ref_mean(const double *values, uint64_t n);
double ref_mean_product(const double *a, const double *b, uint64_t n);

#endif
