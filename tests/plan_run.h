/* Runs a plan whose tensors are made. */
#ifndef TEST_PLAN_RUN_H
#define TEST_PLAN_RUN_H

#include "fixture.h"

/* A plan's workspace; absent where the plan needs none. Its elements are NaNs: a kernel that reads one before it is
 * written writes NaNs, and they are no valid lock words. */
struct tensor plan_workspace(const clnorm_plan *plan);

/* Enqueues a plan, waits, and destroys it. Some plans are warmed up before. A warm-up compiles the aligned and the
 * unaligned form of each kernel, of which most tests run one: for each plan it would take half of some tests' time. */
clnorm_status plan_run(const struct fixture *fixture, clnorm_plan *plan, const clnorm_args *args);

#endif
