/* What the one-call forms have in common, and descriptors: they begin with their own size. */
#ifndef CLN_ONE_CALL_H
#define CLN_ONE_CALL_H

#include "plan_store.h"

struct cln_descriptor {
    const char *init; /* what a descriptor starts from */
    size_t size;      /* bytes */
    /* Those between fields, or behind the last one, which say nothing: from gap up to gap_end. Alike: none. */
    size_t gap, gap_end;
};

/* Bytes that no descriptor exceeds. */
enum { CLN_DESCRIPTOR_MOST = 512 };

/* Whether desc can be read as one of the kind. */
clnorm_status cln_descriptor_check(const struct cln_descriptor *kind, const void *desc);

/* Enqueues with the plan that maker makes of desc, from the context's store. */
clnorm_status cln_one_call(clnorm_context *context, const struct cln_descriptor *kind, cln_plan_maker maker,
                           const void *desc, cl_command_queue queue, const clnorm_args *args, cl_uint num_wait,
                           const cl_event *wait_list, cl_event *event);

#endif
