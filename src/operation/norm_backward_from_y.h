/* A backward that reads y in x's place. */
#ifndef CLN_NORM_BACKWARD_FROM_Y_H
#define CLN_NORM_BACKWARD_FROM_Y_H

#include "plan/plan.h"

/* With y_given, puts y in x's place and fills in the bounds; refuses what does not go with it. desc may hold anything. */
clnorm_status cln_backward_take_y(clnorm_norm_backward_desc *desc);

/* Adds the stage that counts columns at which y is not exact enough, before the others. p: validated. */
clnorm_status cln_backward_add_check(clnorm_plan *plan, const clnorm_norm_backward_desc *p);

#endif
