/* One backward normalisation on the device, with everything about it compared with the reference. */
#ifndef TEST_NORM_BACKWARD_CASE_H
#define TEST_NORM_BACKWARD_CASE_H

#include "knob.h"
#include "norm_backward_run.h"
#include "norm_backward_verify.h"

/* A descriptor of a shape with defaults, that asks for dx. */
clnorm_norm_backward_desc norm_backward_desc_of(clnorm_norm norm, uint64_t rows, uint64_t cols);

/* The same with a weight and a bias, and all outputs in dtype, but for dz. */
clnorm_norm_backward_desc norm_backward_full_desc(clnorm_norm norm, uint64_t rows, uint64_t cols, clnorm_dtype dtype);

/* Whether the device has what the lock of a slot needs: CLNORM_REDUCTION_LOCKED is not refused as unsupported. */
bool norm_backward_locks(const struct fixture *fixture);

/* All of it. Prints the case when something is wrong with it. */
bool norm_backward_case_passes(const struct fixture *fixture, const struct norm_backward_case *backward_case);

void norm_backward_case_print(const struct norm_backward_case *backward_case);

/* Takes back what a config forces and the shape does not allow. */
void norm_backward_settle(const struct fixture *fixture, clnorm_norm_backward_desc *desc);

#endif
