/* --rope, its tables rope_cos and rope_sin of [positions, rope_dims / 2], and the tensor position. */
#ifndef ROPE_H
#define ROPE_H

#include "operation.h"

/* Reads job->rope from the options and the tables, whose shapes are checked later. The job's groups are known. */
bool rope_read(struct job *job, const struct operation_options *options, struct fault *fault);

/* Checks the positions, and puts them into the job as 32-bit numbers. */
bool rope_check_positions(struct job *job, int role, struct fault *fault);

/* Sets job->rope for generated tables and positions, with x of rows × cols in groups. */
void rope_make(struct job *job, const struct operation_options *options, uint64_t rows, uint64_t cols, uint64_t groups);

/* Writes `count` positions for generated tables. */
void rope_fill_positions(const struct job *job, unsigned char *bytes, uint64_t count);

/* Puts the job's rotation into a descriptor. */
void rope_describe(const struct job *job, clnorm_norm_desc *desc);
void rope_describe_backward(const struct job *job, clnorm_norm_backward_desc *desc);

/* Gives the reference the job's tables and positions. */
void rope_lend(const struct job *job, struct ref_rope *rope);

#endif
