/* The results of a backward norm, compared with the reference. */
#ifndef TEST_NORM_BACKWARD_VERIFY_H
#define TEST_NORM_BACKWARD_VERIFY_H

#include "norm_backward_run.h"

/* Compares outputs in host memory with the reference, within tolerances that follow from dtypes, shape, config and
 * magnitudes. */
bool norm_backward_run_check(const struct norm_backward_run *run);

/* The same for several runs of one case. The reference, which takes most of the time, is computed once. */
bool norm_backward_runs_check(const struct norm_backward_run *runs, size_t count);

#endif
