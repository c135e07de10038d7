/* The kernels of the backward of the norms. */
#ifndef CLN_NORM_BACKWARD_STAGES_H
#define CLN_NORM_BACKWARD_STAGES_H

#include "operation/operation.h"

/* A member of the operation's record. */
clnorm_status cln_backward_add_stages(clnorm_plan *plan, const void *desc, const struct cln_workload *work);

#endif
