/* What is left to do with a plan once its tensors are made. */
#ifndef TEST_PLAN_RUN_H
#define TEST_PLAN_RUN_H

#include "fixture.h"

/* The workspace that a plan asks for, none where it asks for none. Its elements are NaNs, which no result survives that has
 * read one before it was written; so are lock words no lock's. */
struct tensor plan_workspace(const clnorm_plan *plan);

/* Enqueues a plan, waits, and destroys it. */
clnorm_status plan_run(const struct fixture *fixture, clnorm_plan *plan, const clnorm_args *args);

#endif
