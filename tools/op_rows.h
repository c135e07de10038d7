/* What softmax and gelu have in common, forward and backward: inputs of one shape, and an output of that shape. */
#ifndef OP_ROWS_H
#define OP_ROWS_H

#include "operation.h"

/* What every descriptor takes from a job and its options. */
struct rows_request {
    clnorm_dtype output; /* by default that of the first input */
    clnorm_config config;
};

/* Gives the output its element. */
bool rows_describe(struct job *job, const struct operation_options *options, struct rows_request *request,
                   struct fault *fault);

#endif
