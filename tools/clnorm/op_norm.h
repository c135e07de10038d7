/* Functions that the norms share, forward and backward. */
#ifndef OP_NORM_H
#define OP_NORM_H

#include "operation.h"
#include "reference/reference.h"

/* Reads --gate, which needs z, and without which z is refused. */
bool norm_read_gate(const struct job *job, const struct operation_options *options, clnorm_gate *gate, struct fault *fault);

bool norm_read_activation(const struct operation_options *options, clnorm_activation *activation, struct fault *fault);

/* Reads --dropout, and --seed into the job. */
bool norm_read_dropout(struct job *job, const struct operation_options *options, double *dropout, struct fault *fault);

/* Requires both mean and rstd or neither, of operations that read both. */
bool norm_check_statistics(const struct job *job, struct fault *fault);

/* The bytes of a tensor that the job has, else NULL. */
const void *norm_bytes(const struct job *job, const char *role);

/* Gives the reference the job's tensors and seed. */
void norm_lend(const struct job *job, struct ref_norm *norm);

/* Puts --reduction and --slots into a descriptor. */
bool norm_read_reduction(const struct operation_options *options, clnorm_norm_backward_desc *desc, struct fault *fault);

#endif
