/* --outer: outer dimensions of a job's tensors. In host memory rows are dense, as in files; on the device they lie as the
 * option says, with NaNs between them. */
#ifndef OUTER_H
#define OUTER_H

#include "operation.h"

/* The option's text and argument in --help. */
#define OUTER_HELP "Sizes and strides of a tensor's rows on the device, slowest first"
#define OUTER_WORD "ROLE=SIZE:STRIDE,...;..."

/* Reads options->outer into job->outer: "x=10:192,3:64;y=30:128", sizes and strides of a tensor's rows. The tensors' shapes
 * are known. */
bool outer_read(struct job *job, const struct operation_options *options, struct fault *fault);

/* Lays every tensor of x's shape out as a third of a packed [rows / heads, 3, heads, cols]. heads of 0: none. */
bool outer_pack(struct job *job, long long heads, struct fault *fault);

/* Creates the plan of the job's descriptor with the outer dimensions in it. */
clnorm_status outer_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan);

/* Bytes of a role's tensor on the device. */
uint64_t outer_bytes(const struct job *job, int role);

/* Whether a role's tensor is laid out otherwise on the device than on the host. */
bool outer_has(const struct job *job, int role);

/* An image of such a tensor's memory on the device, made from its rows on the host; the caller frees it. Refuses rows that
 * share memory and differ. */
unsigned char *outer_image(const struct job *job, int role, struct fault *fault);

/* Copies an output's rows from an image of the device's memory to host memory. Fails where bytes between the rows were
 * written. */
bool outer_gather(const struct job *job, int role, const unsigned char *image, unsigned char *to, struct fault *fault);

/* Gives rows that share memory on the device the values of the last of them. */
bool outer_fold(const struct job *job, int role, unsigned char *bytes, struct fault *fault);

#endif
