/* A backward that reads y in x's place. */
#ifndef CLN_NORM_BACKWARD_FROM_Y_H
#define CLN_NORM_BACKWARD_FROM_Y_H

#include "plan/plan.h"

/* With y_given, puts y in x's place, fills in the bounds, and refuses options that exclude it. desc is not validated. */
clnorm_status cln_backward_take_y(clnorm_norm_backward_desc *desc);

/* Adds the stage that counts the columns in which y is not exact enough. It comes before the others. p: validated. */
clnorm_status cln_backward_add_check(clnorm_plan *plan, const clnorm_norm_backward_desc *p);

#endif
