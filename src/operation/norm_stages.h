/* The forward norms: workload, config and stages. */
#ifndef CLN_NORM_STAGES_H
#define CLN_NORM_STAGES_H

#include "operation/operation.h"

/* Norms of l2_norm.c, beside those of clnorm_norm: a segment is divided by its length, where RMS norm divides it by the
 * root of its mean square. In all else they are RMS norms. */
enum { CLN_L2_NORM = CLNORM_RMS_NORM + 1, CLN_FLOORED_L2_NORM /* eps is the least length */ };

/* The argument that keeps a segment's scale: rstd, or of L2 norm the length, its reciprocal. */
enum cln_role cln_role_of_rstd(clnorm_norm norm);

/* The macros that tell the norm. */
void cln_norm_spec_norm(clnorm_norm norm, struct cln_spec *spec);

/* Members of the operation's record. */
struct cln_workload cln_norm_workload(const struct cln_operation *operation, const void *desc);
clnorm_status cln_norm_choose(const clnorm_device_info *device, const struct cln_workload *work,
                              const struct cln_config *forced, struct cln_config *config);
clnorm_status cln_norm_add_stages(clnorm_plan *plan, const void *desc, const struct cln_workload *work);

/* The macros of a kernel over segments, or their chunks, which each work-group takes in so many iterations. y has no
 * measured scale. */
struct cln_spec cln_norm_spec(const clnorm_plan *plan, const clnorm_norm_desc *p, const struct cln_workload *work,
                              uint64_t iterations);

#endif
