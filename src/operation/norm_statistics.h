/* Statistics by the forward kernels, for a backward without given ones. */
#ifndef CLN_NORM_STATISTICS_H
#define CLN_NORM_STATISTICS_H

#include "plan/plan.h"

/* Adds a stage that writes mean (layer norm only) and rstd of x, [groups, rows] each, to these parts of the workspace.
 * backward: validated, with all defaults filled in. */
clnorm_status cln_norm_add_statistics(clnorm_plan *plan, const clnorm_norm_backward_desc *backward, struct cln_binding mean,
                                      struct cln_binding rstd);

#endif
