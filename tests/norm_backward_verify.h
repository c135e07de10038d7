/* The gradients of a run, compared with what they should be. */
#ifndef TEST_NORM_BACKWARD_VERIFY_H
#define TEST_NORM_BACKWARD_VERIFY_H

#include "norm_backward_run.h"

/* Compares outputs in host memory with the reference, to a tolerance that dtypes, shape, config and magnitudes yield. */
bool norm_backward_run_check(const struct norm_backward_run *run);

#endif
