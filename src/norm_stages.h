/* The forward of the norms, between the descriptor and the kernels. */
#ifndef CLN_NORM_STAGES_H
#define CLN_NORM_STAGES_H

#include "config.h"
#include "plan.h"

/* Bytes of the arithmetic type. */
static inline uint64_t cln_norm_real_size(const clnorm_norm_desc *p) {
    return p->x_dtype == CLNORM_F64 ? sizeof(cl_double) : sizeof(cl_float);
}

/* Each takes a descriptor that is validated, with no default left in it. */
struct cln_workload cln_norm_workload(const clnorm_norm_desc *p);

/* Adds every stage, and the workspace that they need, to a plan that has its config and tensors. There are rows. */
clnorm_status cln_norm_add_stages(clnorm_plan *plan, const clnorm_norm_desc *p);

#endif
