/* Softmax and gelu in double, and how far a kernel's result may be from it. Tensors have no gaps. */
#ifndef REFERENCE_ROWS_H
#define REFERENCE_ROWS_H

#include "estimate.h"
#include "tensor_file.h"

/* The row of cols elements from first on; out: [cols]. */
void reference_softmax(const struct tensor *x, uint64_t first, uint64_t cols, struct estimate *out);
void reference_softmax_backward(const struct tensor *y, const struct tensor *dy, uint64_t first, uint64_t cols,
                                struct estimate *out);

/* One element. */
struct estimate reference_gelu(clnorm_gelu_form form, const struct tensor *x, uint64_t index);
struct estimate reference_gelu_backward(clnorm_gelu_form form, const struct tensor *x, const struct tensor *dy,
                                        uint64_t index);

#endif
