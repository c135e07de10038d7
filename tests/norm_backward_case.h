/* One backward norm on the device, compared with the reference. */
#ifndef TEST_NORM_BACKWARD_CASE_H
#define TEST_NORM_BACKWARD_CASE_H

#include "knob.h"
#include "norm_backward_run.h"
#include "norm_backward_verify.h"

/* A descriptor of a shape with defaults, and dx as its output. */
clnorm_norm_backward_desc norm_backward_desc_of(clnorm_norm norm, uint64_t rows, uint64_t cols);

/* The same with a weight, a bias and every output except dz; all tensors that it sets have dtype. */
clnorm_norm_backward_desc norm_backward_full_desc(clnorm_norm norm, uint64_t rows, uint64_t cols, clnorm_dtype dtype);

/* Whether the device supports CLNORM_REDUCTION_LOCKED. */
bool norm_backward_locks(const struct fixture *fixture);

/* Runs and checks a case; prints one that fails. */
bool norm_backward_case_passes(const struct fixture *fixture, const struct norm_backward_case *backward_case);

void norm_backward_case_print(const struct norm_backward_case *backward_case);

/* Removes forced knobs that the shape does not allow. */
void norm_backward_settle(const struct fixture *fixture, clnorm_norm_backward_desc *desc);

#endif
