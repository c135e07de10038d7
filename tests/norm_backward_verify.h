/* The results of a backward norm, compared with the reference. */
#ifndef TEST_NORM_BACKWARD_VERIFY_H
#define TEST_NORM_BACKWARD_VERIFY_H

#include "norm_backward_run.h"

/* Compares outputs in host memory with the reference, within tolerances that follow from dtypes, shape, config and
 * magnitudes. */
bool norm_backward_run_check(const struct norm_backward_run *run);

#endif
