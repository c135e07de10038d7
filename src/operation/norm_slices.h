/* Shared by the norms of slices of columns. */
#ifndef CLN_NORM_SLICES_H
#define CLN_NORM_SLICES_H

#include "clnorm/norm_slices.h"
#include "operation/operations.h"

/* The count of numbers in a segment's moments, and in its sums. */
enum { CLN_MOMENTS_NUMBERS = 3, CLN_SUMS_NUMBERS = 2 };

/* "--norm layer" */
extern const struct cln_enum_option cln_norm_enum;

/* A cln_choose_fn for kernels that read a segment once, or again from memory. */
clnorm_status cln_norm_choose_slice(const clnorm_device_info *device, const struct cln_workload *work,
                                    const struct cln_config *forced, struct cln_config *config);

#endif
