/* The results of a sliced norm in host memory, compared with the reference of whole rows. */
#ifndef TEST_NORM_SLICES_VERIFY_H
#define TEST_NORM_SLICES_VERIFY_H

#include "norm_slices_case.h"

/* Whether every result lies within the fused norm's tolerance; prints the first one that does not. */
bool slices_run_is_right(const struct slices_run *run);

#endif
