/* Layer norm (Ba, Kiros, Hinton 2016, arXiv:1607.06450) and RMS norm (Zhang, Sennrich 2019, arXiv:1910.07467), forward,
 * with the formulas of clnorm_norm_desc. */
#ifndef REFERENCE_NORM_H
#define REFERENCE_NORM_H

#include "clnorm/norm.h"
#include "reference/rope.h"
#include "reference/tensor.h"

struct ref_norm {
    clnorm_norm norm;
    uint64_t rows, cols, group_size;
    struct ref_tensor x, z, residual;    /* [rows, cols] */
    struct ref_tensor weight, bias;      /* [weight_rows, cols] */
    struct ref_tensor row_scale;         /* [rows] */
    uint64_t weight_rows, weight_repeat; /* weight_rows 0: one row, for all */
    const unsigned char *mask;           /* [rows, cols]: 1 is kept, 0 dropped; NULL: drawn with the seed */
    clnorm_seed seed;
    clnorm_gate gate;
    bool gate_first;
    clnorm_activation activation;
    double eps, weight_offset, dropout;
    struct ref_rope rope; /* not with an activation, nor with a gate that is not first */
};

/* The row of weight and bias that a row takes: (row / weight_repeat) mod weight_rows. */
uint64_t ref_norm_weight_row(const struct ref_norm *norm, uint64_t row);

/* Whether dropout keeps an element. */
bool ref_norm_keeps(const struct ref_norm *norm, uint64_t row, uint64_t column);

/* A segment with all intermediate results of its y; arrays have group_size elements. */
struct ref_segment {
    double *part;   /* row_scale · dropout(x) */
    double *s;      /* residual + part, or x · act(z) with gate_first */
    double *z;      /* 0 without a gate */
    double *act;    /* act(z); 1 without a gate */
    double *centre; /* s − mean; s for RMS norm */
    double *scale;  /* weight_offset + weight; 1 without a weight */
    double *bias;   /* 0 without a bias */
    double *n;      /* before activation, gate and rotation */
    double *cos;    /* of a rotation: y = n · cos + n of the partner · sin; 1 and 0 without one */
    double *sin;
    double *y;   /* not rounded to y's dtype */
    double mean; /* 0 for RMS norm */
    double variance;
    double rstd;
};

/* Memory for segments of group_size elements; the arrays are NULL where there is not enough. */
struct ref_segment ref_segment_make(uint64_t group_size);
void ref_segment_free(struct ref_segment *segment);

/* Computes the segment of a row and a group. */
void ref_norm_segment(const struct ref_norm *norm, uint64_t row, uint64_t group, struct ref_segment *segment);

#endif
