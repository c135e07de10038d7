/* --outer: a job's tensors with outer dimensions of their rows. In host memory they are dense, as files have them; on the
 * device their rows lie as the option says, with NaNs between them. */
#ifndef OUTER_H
#define OUTER_H

#include "operation.h"

/* What --help says of the option. */
#define OUTER_HELP "Lay rows out by these dimensions, slowest first"
#define OUTER_WORD "ROLE=SIZE:STRIDE,...;..."

/* Reads options->outer into job->outer: "x=10:192,3:64;y=30:128", sizes and strides of a tensor's rows. The tensors' shapes
 * are known. */
bool outer_read(struct job *job, const struct operation_options *options, struct fault *fault);

/* Lays every tensor of x's shape out as a third of a packed [rows / heads, 3, heads, cols]. heads of 0: none. */
bool outer_pack(struct job *job, long long heads, struct fault *fault);

/* Makes a plan of the job's descriptor with the dimensions in it. */
clnorm_status outer_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan);

/* Bytes that a role's tensor takes up on the device. */
uint64_t outer_bytes(const struct job *job, int role);

/* Whether a role's tensor is laid out otherwise on the device than on the host. */
bool outer_has(const struct job *job, int role);

/* The bytes of such a tensor on the device, from those on the host; free() it. Where rows lie over each other, and differ,
 * that is refused. */
unsigned char *outer_image(const struct job *job, int role, struct fault *fault);

/* An output's rows from an image of what is on the device to host memory. Where bytes between rows have changed, that is a
 * failure. */
bool outer_gather(const struct job *job, int role, const unsigned char *image, unsigned char *to, struct fault *fault);

/* Gives rows that would lie over each other the values of the last of them. */
bool outer_fold(const struct job *job, int role, unsigned char *bytes, struct fault *fault);

#endif
