/* GELU: x · Φ(x), and its tanh form. Hendrycks, Gimpel 2016, arXiv:1606.08415. */
#ifndef REFERENCE_GELU_H
#define REFERENCE_GELU_H

#include "clnorm/gelu.h"
#include "reference/arithmetic.h"

/* gelu(x), and dy · gelu′(x). */
struct ref_value ref_gelu(const struct ref_arithmetic *arithmetic, clnorm_gelu_form form, double x);
struct ref_value ref_gelu_backward(const struct ref_arithmetic *arithmetic, clnorm_gelu_form form, double x, double dy);

#endif
