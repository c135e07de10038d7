/* The shapes that the tensors of a job have. */
#ifndef JOB_SHAPE_H
#define JOB_SHAPE_H

#include "operation.h"

/* Scales of a row of x. */
uint64_t job_groups_of_x(const struct job *job);

/* Sets the shape that a role has in a job whose rows, columns and groups are known. */
void job_shape_of_role(const struct job *job, enum role_shape shape, struct tensor *tensor);

/* Whether input i has a shape that its role allows. */
bool job_check_shape(const struct job *job, int i, struct fault *fault);

#endif
