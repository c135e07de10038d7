/* Normalisation in double, with the sums in long double, and how far a kernel's result may be from it. Tensors have no
 * gaps; a segment is the group_size elements from column first of a row. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "estimate.h"
#include "tensor_file.h"

struct norm_inputs {
    const struct tensor *x, *weight, *bias, *z, *residual, *row_scale; /* NULL: absent */
    clnorm_seed seed;
};

struct norm_segment {
    struct estimate mean, rstd;
    struct estimate *y; /* [group_size], the caller's */
    struct estimate *s; /* [group_size], the caller's; NULL: not wanted */
};

void reference_segment(const clnorm_norm_desc *desc, const struct norm_inputs *inputs, uint64_t row, uint64_t first,
                       struct norm_segment *segment);

struct norm_backward_inputs {
    struct norm_inputs forward;                            /* with y_given, y is in x's place */
    const struct tensor *dy, *mean, *rstd, *dresidual_out; /* all but dy: NULL where they are not given */
};

/* What one segment gives, [group_size] each, the caller's. */
struct norm_gradients {
    struct estimate *dx, *dz, *y, *dresidual;
    struct estimate *dweight, *dbias; /* this row's part of the sums */
};

void reference_backward_segment(const clnorm_norm_backward_desc *desc, const struct norm_backward_inputs *inputs,
                                uint64_t row, uint64_t first, const struct norm_gradients *gradients);

/* What both are made of. */

/* Puts s, what is normalised, into segment->y, and takes its mean and rstd. */
void reference_statistics(const clnorm_norm_desc *desc, const struct norm_inputs *inputs, uint64_t row, uint64_t first,
                          struct norm_segment *segment);

/* x̂ of s. */
struct estimate reference_hat(const struct arithmetic *arithmetic, const struct norm_segment *segment, struct estimate s);

/* weight_offset + weight of a column; 1 without a weight. */
struct estimate reference_scale(const struct arithmetic *arithmetic, const struct norm_inputs *inputs, double weight_offset,
                                uint64_t column);

/* An element of a tensor. */
struct estimate reference_value(const struct tensor *tensor, uint64_t index);

#endif
