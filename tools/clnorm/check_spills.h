/* Which kernels of a grid of widths need more registers than there are, where the driver's compiler tells. */
#ifndef CHECK_SPILLS_H
#define CHECK_SPILLS_H

#include "bench_request.h"

/* request: operations, dtypes and the sweep's widths and bytes count; those that are not given are the usual ones. jobs:
 * processes that build. Prints a line for each kernel that spills and each point that has no plan or cannot be built, and
 * then how many there were. Fails where a kernel spills or a build fails. */
bool check_spills(const struct bench_request *request, int jobs, struct fault *fault);

#endif
