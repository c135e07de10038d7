/* The statistics of x in the backward of group norm, where they are not given: the forward's kernels compute them. */
#ifndef CLN_GROUP_NORM_STATISTICS_H
#define CLN_GROUP_NORM_STATISTICS_H

#include "operation/group_norm.h"

/* The spec of those kernels for the backward's config, without the macros of the backward's tensors. */
struct cln_spec cln_group_norm_statistics_spec(const clnorm_plan *plan, const struct cln_group_norm *norm);

#endif
