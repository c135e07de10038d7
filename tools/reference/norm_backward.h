/* The gradients of layer norm and RMS norm, with the formulas of clnorm_norm_backward_desc. They follow from the forward's
 * by the chain rule. */
#ifndef REFERENCE_NORM_BACKWARD_H
#define REFERENCE_NORM_BACKWARD_H

#include "reference/norm.h"
#include "reference/sum.h"

struct ref_norm_backward {
    struct ref_norm forward;
    struct ref_tensor dy, dresidual_out; /* [rows, cols] */
    struct ref_tensor mean, rstd;        /* [groups, rows]; absent: computed */
    double rstd_error;                   /* the relative error of a given rstd */
    bool s_given;                        /* forward.x is s; dropout and row_scale affect dx only */
    bool y_given;                        /* forward.x is y, of a norm without gate and activation */
};

/* The forward whose gradients are taken. */
struct ref_norm ref_norm_forward(const struct ref_norm_backward *norm);

/* The gradients of a segment with all intermediate results; arrays have group_size elements, and none is rounded to the
 * dtype of an output. */
struct ref_gradients {
    struct ref_segment forward; /* with the given mean and rstd; y is activation(n), times act(z) without gate_first */
    double *x;
    double *dy;     /* before the forward's rotation */
    double *turned; /* the sum of the magnitudes of the two products in a rotated dy; 0 without a rotation */
    double *slope;  /* act′(z); 0 without a gate */
    double *xhat;
    double *n;
    double *active; /* activation(n) */
    double *active_slope;
    double *dn;
    double *wdn;
    double c1, c2;
    double *ds;     /* dresidual too */
    double *factor; /* dx = ds · factor */
    double *dx;
    double *dz;
};

/* Memory for segments of group_size elements; the arrays are NULL where there is not enough. */
struct ref_gradients ref_gradients_make(uint64_t group_size);
void ref_gradients_free(struct ref_gradients *gradients);

/* Computes the segment of a row and a group. Its terms of dweight and dbias are dn · xhat and dn. */
void ref_norm_backward_segment(const struct ref_norm_backward *norm, uint64_t row, uint64_t group,
                               struct ref_gradients *gradients);

#endif
