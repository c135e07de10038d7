/* The operands of every operation: matrices in host memory, read as double. */
#ifndef REFERENCE_TENSOR_H
#define REFERENCE_TENSOR_H

#include "clnorm/tensor.h"

/* Element (row, column) is at index row · stride + column, unless the rows have outer dimensions. A vector is a matrix of
 * one row. With scaling, an 8-bit element is read as code · scale, rounded to float as in the library's arithmetic. */
struct ref_tensor {
    const void *elements; /* NULL: absent */
    clnorm_dtype dtype;
    uint64_t stride; /* elements */
    const void *scales;
    clnorm_dtype scale_dtype;
    clnorm_scaling scaling;              /* 0: no scales */
    uint64_t scale_group;                /* columns, with CLNORM_SCALING_GROUP */
    uint64_t scale_stride;               /* scales of a row, with CLNORM_SCALING_GROUP */
    clnorm_dim outer[CLNORM_OUTER_DIMS]; /* of the rows, as in clnorm_tensor */
};

/* The index of a row's first element. */
uint64_t ref_row_index(const struct ref_tensor *tensor, uint64_t row);

double ref_at(const struct ref_tensor *tensor, uint64_t row, uint64_t column);

/* The same; otherwise where the tensor is absent. */
double ref_at_or(const struct ref_tensor *tensor, uint64_t row, uint64_t column, double otherwise);

/* The index of an element's scale. */
uint64_t ref_scale_index(const struct ref_tensor *tensor, uint64_t row, uint64_t column);

/* Doubles in rows without gaps. */
struct ref_tensor ref_doubles(const double *elements, uint64_t cols);

/* Memory for `count` consecutive arrays of n doubles, all 0; the caller frees it. NULL: out of memory. */
double *ref_arrays(uint64_t n, uint64_t count);

#endif
