/* Normalisation in double, with the sums in long double, and how far a kernel's result may be from it. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "clnorm/clnorm.h"
#include "tensor_file.h"

struct norm_inputs {
    const struct tensor *x, *weight, *bias, *z; /* NULL: absent */
};

/* A value and its slack: what rounding in the kernel's arithmetic can do to it, before the result is stored. */
struct estimate {
    double value, slack;
};

struct norm_segment {
    struct estimate mean, rstd;
    struct estimate *y; /* [group_size], the caller's */
};

/* The segment of group_size elements from column first of a row, in tensors without gaps. */
void reference_segment(const clnorm_norm_desc *desc, const struct norm_inputs *inputs, uint64_t row, uint64_t first,
                       struct norm_segment *segment);

#endif
