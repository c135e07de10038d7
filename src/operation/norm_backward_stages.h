/* The kernels of the backward of the norms. */
#ifndef CLN_NORM_BACKWARD_STAGES_H
#define CLN_NORM_BACKWARD_STAGES_H

#include "operation/norm_backward_layout.h"

/* A member of the operation's record: prepares the plan, and adds the stages of the inputs and the outputs. */
clnorm_status cln_backward_add_stages(clnorm_plan *plan, const void *desc, const struct cln_workload *work);

/* Lays out the workspace, and completes the plan's tensors. */
clnorm_status cln_backward_prepare(clnorm_plan *plan, const cln_backward_problem *p, const struct cln_workload *work,
                                   struct cln_backward_layout *layout);

/* Adds norm_backward_sums.cl over the chunks of all segments. It writes layout's sums. */
clnorm_status cln_backward_add_sums(clnorm_plan *plan, const cln_backward_problem *p,
                                    const struct cln_backward_layout *layout);

/* Adds the kernels over all rows, and those that dweight and dbias need before and after them. */
clnorm_status cln_backward_add_outputs(clnorm_plan *plan, const cln_backward_problem *p,
                                       const struct cln_backward_layout *layout);

/* The macros of a kernel of norm_backward*.cl. */
struct cln_spec cln_backward_spec(const cln_backward_problem *p, const clnorm_device_info *device,
                                  const struct cln_config *c, const struct cln_backward_layout *layout);

#endif
