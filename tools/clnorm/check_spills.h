/* Lists the kernels of a grid of widths whose registers spill, where the driver's compiler reports it. */
#ifndef CHECK_SPILLS_H
#define CHECK_SPILLS_H

#include "bench_request.h"

/* Uses the request's operations, dtypes, and widths and bytes of the sweep, or the usual ones. jobs: processes that build.
 * Prints a line for each kernel that spills and for each point that has no plan or cannot be built, then their numbers.
 * Fails where a kernel spills or a build fails. */
bool check_spills(const struct bench_request *request, int jobs, struct fault *fault);

#endif
