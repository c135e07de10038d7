/* What a plan requires of a tensor, from its shape. */
#ifndef CLN_TENSOR_H
#define CLN_TENSOR_H

#include "plan/plan.h"

/* Elements from the first of rows of cols elements to the end of the last; UINT64_MAX for 2^64 and more. dims: the
 * dimensions of the rows, in any order; a size of 0 ends them. */
uint64_t cln_tensor_extent(const clnorm_dim dims[CLNORM_OUTER_DIMS], uint64_t cols);

/* A [rows, cols] tensor, stride elements from row to row, accessed in vectors of vec elements; dtype none: it is absent.
 * name: the tensor's, for the message of CLNORM_OVERFLOW. */
clnorm_status cln_tensor_matrix(struct cln_tensor *tensor, const char *name, uint64_t rows, uint64_t cols, uint64_t stride,
                                clnorm_dtype dtype, uint32_t vec);

/* The same with the rows of a descriptor's tensor whose defaults are filled in. */
clnorm_status cln_tensor_rows(struct cln_tensor *tensor, const char *name, uint64_t rows, uint64_t cols,
                              const clnorm_tensor *given, uint32_t vec);

/* A vector: contiguous elements of size bytes. vec 0: accessed one by one. */
clnorm_status cln_tensor_vector(struct cln_tensor *tensor, const char *name, uint64_t elements, uint64_t size,
                                uint32_t vec);

#endif
