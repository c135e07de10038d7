/* A job's shape, descriptor and outputs, from its inputs and the options. */
#ifndef JOB_DESCRIBE_H
#define JOB_DESCRIBE_H

#include "operation.h"

/* Checks the inputs, fills the descriptor, and gives each wanted output its element and shape, but no bytes. */
bool job_describe(struct job *job, const struct operation_options *options, struct fault *fault);

#endif
