/* What is done in one pass with the norm: what it is the norm of, and what comes after it. */
#ifndef REFERENCE_FUSED_H
#define REFERENCE_FUSED_H

#include "reference.h"

/* Whether dropout keeps an element: see clnorm_norm_desc. */
bool reference_kept(clnorm_seed seed, double dropout, uint64_t row, uint64_t column);

/* row_scale · dropout(v) at an element. */
struct estimate reference_branch(const struct arithmetic *arithmetic, const struct norm_inputs *inputs, double dropout,
                                 struct estimate v, uint64_t row, uint64_t column);

/* activation(n) and its derivative. */
struct estimate reference_activation(const struct arithmetic *arithmetic, clnorm_activation activation, struct estimate n);
struct estimate reference_activation_slope(const struct arithmetic *arithmetic, clnorm_activation activation,
                                           struct estimate n);

#endif
