/* What an argument has to be like, from its shape. */
#ifndef CLN_TENSOR_H
#define CLN_TENSOR_H

#include "plan/plan.h"

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
