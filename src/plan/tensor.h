/* What an argument has to be like, from its shape. */
#ifndef CLN_TENSOR_H
#define CLN_TENSOR_H

#include "plan/plan.h"

/* Elements from the first of rows of cols elements to the end of the last; UINT64_MAX for 2^64 and more. dims: of the rows,
 * in any order; what follows a size of 0 does not count. */
uint64_t cln_tensor_extent(const clnorm_dim dims[CLNORM_OUTER_DIMS], uint64_t cols);

/* A [rows, cols] tensor, stride elements from row to row, read in accesses of vec elements; dtype none: it is absent.
 * name: for a failure, CLNORM_OVERFLOW. */
clnorm_status cln_tensor_matrix(struct cln_tensor *tensor, const char *name, uint64_t rows, uint64_t cols, uint64_t stride,
                                clnorm_dtype dtype, uint32_t vec);

/* The same with rows of the descriptor's tensor, complete. */
clnorm_status cln_tensor_rows(struct cln_tensor *tensor, const char *name, uint64_t rows, uint64_t cols,
                              const clnorm_tensor *given, uint32_t vec);

/* elements of size bytes one after the other; vec 0: accessed one by one. */
clnorm_status cln_tensor_vector(struct cln_tensor *tensor, const char *name, uint64_t elements, uint64_t size,
                                uint32_t vec);

#endif
