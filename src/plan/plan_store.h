/* The plans of the one-call forms that were used last, by descriptor. */
#ifndef CLN_PLAN_STORE_H
#define CLN_PLAN_STORE_H

#include "clnorm/clnorm.h"

struct cln_plan_store;

clnorm_status cln_plan_store_create(struct cln_plan_store **store);

/* NULL is allowed. */
void cln_plan_store_destroy(struct cln_plan_store *store);

/* The descriptor that a plan is made from and looked up by. */
struct cln_plan_source {
    clnorm_status (*make)(clnorm_context *context, const void *kind, const void *desc, clnorm_plan **plan);
    const void *kind; /* of the descriptor, compared by its address */
    const void *desc; /* compared byte by byte */
    size_t size;      /* of desc: bytes */
};

/* Enqueues with the plan of a source, which is made where the store has none. */
clnorm_status cln_plan_store_enqueue(clnorm_context *context, const struct cln_plan_source *source, cl_command_queue queue,
                                     const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list, cl_event *event);

#endif
