/* The plans of the one-call forms: the latest few, by descriptor. */
#ifndef CLN_PLAN_STORE_H
#define CLN_PLAN_STORE_H

#include "clnorm/clnorm.h"

struct cln_plan_store;

clnorm_status cln_plan_store_create(struct cln_plan_store **store);

/* NULL is allowed. */
void cln_plan_store_destroy(struct cln_plan_store *store);

typedef clnorm_status (*cln_plan_maker)(clnorm_context *context, const void *desc, clnorm_plan **plan);

/* Enqueues with the plan that maker makes of desc (size bytes, no padding that varies), making it when it is not there. */
clnorm_status cln_plan_store_enqueue(clnorm_context *context, cln_plan_maker maker, const void *desc, size_t size,
                                     cl_command_queue queue, const clnorm_args *args, cl_uint num_wait,
                                     const cl_event *wait_list, cl_event *event);

#endif
