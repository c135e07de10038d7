/* The gradients of a normalisation, in double, written to be read. */
#ifndef TEST_REFERENCE_BACKWARD_H
#define TEST_REFERENCE_BACKWARD_H

#include "reference.h"

/* A descriptor with every default filled in: strides, group_size, dtypes of z and dy, reduction. With y_given, x's dtype
 * and stride are y's, as are the elements that stand for x here. */
clnorm_norm_backward_desc ref_norm_backward_complete(const clnorm_norm_backward_desc *desc);

/* The forward normalisation whose gradients a complete descriptor asks for. */
clnorm_norm_desc ref_norm_forward_of(const clnorm_norm_backward_desc *desc);

/* The operands of a backward normalisation in host memory. */
struct ref_norm_backward {
    clnorm_norm_backward_desc desc; /* complete */
    const void *x, *weight, *bias, *z, *dy, *mean, *rstd, *residual, *row_scale,
        *dresidual_out; /* element 0; NULL: absent */
    clnorm_seed seed;
};

/* Its forward's operands. */
struct ref_norm ref_forward_operands(const struct ref_norm_backward *norm);

/* The gradients of a segment and everything on the way to them; arrays have group_size elements, and none is rounded to the
 * dtype of an output. */
struct ref_gradients {
    struct ref_segment forward; /* with the mean and rstd that are given, where they are; y is n or n · act(z) */
    double *x;
    double *dy;
    double *slope; /* act′(z); 0 without a gate */
    double *xhat;
    double *n;
    double *active; /* activation(n) */
    double *active_slope;
    double *dn;
    double *wdn;
    double c1, c2;
    double *ds;     /* dresidual too */
    double *factor; /* of ds in dx */
    double *dx;
    double *dz;
};

/* Room for segments of group_size elements; exits the process when there is no memory for it. */
struct ref_gradients ref_gradients_make(uint64_t group_size);
void ref_gradients_free(struct ref_gradients *gradients);

/* Computes the segment of a row and a group. Its terms of dweight and dbias are dn · xhat and dn. */
void ref_norm_backward_segment(const struct ref_norm_backward *norm, uint64_t row, uint64_t group,
                               struct ref_gradients *gradients);

#endif
