/* The operands of every operation: matrices in host memory, read as double. */
#ifndef REFERENCE_TENSOR_H
#define REFERENCE_TENSOR_H

#include "clnorm/tensor.h"

/* Element (row, column) is at index row · stride + column, unless the rows have outer dimensions. A vector is a matrix of
 * one row. With scaling, of 8-bit dtypes, what is read is code · scale, rounded to float as in the library's arithmetic. */
struct ref_tensor {
    const void *elements; /* NULL: absent */
    clnorm_dtype dtype;
    uint64_t stride; /* elements */
    const void *scales;
    clnorm_dtype scale_dtype;
    clnorm_scaling scaling; /* 0: no scales */
    uint64_t scale_group;   /* columns, with CLNORM_SCALING_GROUP */
    uint64_t scale_stride;  /* scales of a row, with CLNORM_SCALING_GROUP */
    /* Of rows, as in clnorm_tensor. */
    clnorm_dim outer[CLNORM_OUTER_DIMS];
};

/* Index of a row's first element. */
uint64_t ref_row_index(const struct ref_tensor *tensor, uint64_t row);

double ref_at(const struct ref_tensor *tensor, uint64_t row, uint64_t column);

/* The same; otherwise where the tensor is absent. */
double ref_at_or(const struct ref_tensor *tensor, uint64_t row, uint64_t column, double otherwise);

/* Where the scale of an element is among the scales. */
uint64_t ref_scale_index(const struct ref_tensor *tensor, uint64_t row, uint64_t column);

/* Doubles in rows without gaps. */
struct ref_tensor ref_doubles(const double *elements, uint64_t cols);

/* Memory for count arrays of n doubles one after another, all 0; NULL when there is none. free() it. */
double *ref_arrays(uint64_t n, uint64_t count);

#endif
