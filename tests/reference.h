/* What the kernels should compute, in double, written to be read rather than to be fast; and conversions of element types
 * that share nothing with the library's. */
#ifndef TEST_REFERENCE_H
#define TEST_REFERENCE_H

#include "clnorm/clnorm.h"

/* The element at an index, and what an element becomes when a value is stored there, rounded to nearest even. */
double ref_load(clnorm_dtype dtype, const void *elements, uint64_t index);
void ref_store(clnorm_dtype dtype, void *elements, uint64_t index, double value);

/* The value that a store would keep. NaN stays NaN; past the largest finite value by half a step it is an infinity. */
double ref_round(clnorm_dtype dtype, double value);

/* A descriptor with every default filled in: strides, group_size, dtypes of y and z. */
clnorm_norm_desc ref_norm_complete(const clnorm_norm_desc *desc);

/* The operands of a forward normalisation in host memory. */
struct ref_norm {
    clnorm_norm_desc desc;                                    /* complete */
    const void *x, *weight, *bias, *z, *residual, *row_scale; /* element 0; NULL: absent */
    clnorm_seed seed;
};

/* Whether dropout keeps an element. */
bool ref_kept(clnorm_seed seed, double probability, uint64_t row, uint64_t column);

/* A segment and everything on the way to its y; arrays have group_size elements. */
struct ref_segment {
    double *part;   /* row_scale · dropout(x) */
    double *s;      /* residual + part, or x · act(z) with gate_first */
    double *z;      /* 0 without a gate */
    double *act;    /* act(z); 1 without a gate */
    double *centre; /* s − mean; s for RMS norm */
    double *scale;  /* weight_offset + weight; 1 without a weight */
    double *bias;   /* 0 without a bias */
    double *n;      /* before activation and gate */
    double *y;      /* not rounded to y's dtype */
    double mean;    /* 0 for RMS norm */
    double variance;
    double rstd;
};

/* Room for segments of group_size elements; exits the process when there is no memory for it. */
struct ref_segment ref_segment_make(uint64_t group_size);
void ref_segment_free(struct ref_segment *segment);

/* Computes the segment of a row and a group. */
void ref_norm_segment(const struct ref_norm *norm, uint64_t row, uint64_t group, struct ref_segment *segment);

#endif
