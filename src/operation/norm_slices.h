/* Shared by the norms of slices of columns. */
#ifndef CLN_NORM_SLICES_H
#define CLN_NORM_SLICES_H

#include "clnorm/norm_slices.h"
#include "operation/operations.h"

/* The count of numbers in a segment's moments, and in its sums. */
enum { CLN_MOMENTS_NUMBERS = 3, CLN_SUMS_NUMBERS = 2 };

/* "--norm layer" */
extern const struct cln_enum_option cln_norm_enum;

#endif
