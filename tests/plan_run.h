/* Runs a plan whose tensors are made. */
#ifndef TEST_PLAN_RUN_H
#define TEST_PLAN_RUN_H

#include "fixture.h"

/* A plan's workspace; absent where the plan needs none. Its elements are NaNs: a kernel that reads one before it is
 * written writes NaNs, and they are no valid lock words. */
struct tensor plan_workspace(const clnorm_plan *plan);

/* Warms a plan up, enqueues it, waits, and destroys it. */
clnorm_status plan_run(const struct fixture *fixture, clnorm_plan *plan, const clnorm_args *args);

#endif
