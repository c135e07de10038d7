/* Softmax of a row: y = e^(x − max x) / Σ e^(x − max x), and dx = y · (dy − Σ y · dy). A row of −∞ gives zeros; NaN and +∞
 * give NaN. Bridle 1990, "Probabilistic interpretation of feedforward classification network outputs". */
#ifndef REFERENCE_SOFTMAX_H
#define REFERENCE_SOFTMAX_H

#include "reference/arithmetic.h"

/* A row of n elements. */
void ref_softmax(const struct ref_arithmetic *arithmetic, const double *x, uint64_t n, struct ref_value *y);
void ref_softmax_backward(const struct ref_arithmetic *arithmetic, const double *y, const double *dy, uint64_t n,
                          struct ref_value *dx);

#endif
