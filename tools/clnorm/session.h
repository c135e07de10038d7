/* A device with its context and queue, and a job's tensors on it. */
#ifndef SESSION_H
#define SESSION_H

#include "operation.h"

struct session {
    clnorm_device_info device;
    cl_context cl;
    cl_command_queue queue; /* in-order */
    clnorm_context *context;
};

/* selector: NULL for CLNORM_DEVICE, or the best device. properties: of the queue. options: of clnorm_context_create, may be
 * NULL. On failure the session is closed. */
bool session_open(struct session *session, const char *selector, cl_command_queue_properties properties,
                  const clnorm_context_options *options, struct fault *fault);

/* Also closes a session that is 0. */
void session_close(struct session *session);

struct launch {
    cl_mem mem[ROLES]; /* by role; NULL: absent */
    cl_mem workspace;
    cl_mem fault; /* args.fault of an operation that has one; NULL: absent */
    clnorm_plan *plan;
    clnorm_args args;
    cl_uint kernels;            /* kernels that one enqueue launches */
    bool in_place;              /* an output lies over an input */
    double plan_us, warm_up_us; /* times of the plan's creation and of its warm-up */
};

/* Creates the plan, warms it up, and creates a buffer without contents for every tensor of the job. The launch borrows the
 * job's seed. On failure the launch is freed. */
bool launch_prepare(struct launch *launch, const struct session *session, const struct job *job, struct fault *fault);

/* Replaces the plan after a change of the job's forced knobs, and of nothing else. The buffers stay. After a failure there
 * is no plan, and another config may be tried. */
bool launch_replan(struct launch *launch, const struct session *session, const struct job *job, struct fault *fault);

/* Replaces a role's buffer by another one of the same size, which it retains. */
void launch_take(struct launch *launch, const struct job *job, int role, cl_mem mem);

/* Lets outputs lie over inputs of the same dtype: y over x, dx over x or dy, and so on, but no dx that may not. Each run
 * then takes the results of the one before. */
void launch_in_place(struct launch *launch, const struct job *job);

/* Also frees a launch that is 0. */
void launch_free(struct launch *launch);

/* Writes every tensor's bytes, of inputs and outputs, to the device. */
bool launch_upload(const struct launch *launch, const struct session *session, const struct job *job, struct fault *fault);

/* Reads the outputs' bytes. */
bool launch_download(const struct launch *launch, const struct session *session, struct job *job, struct fault *fault);

/* Runs once and waits, on a queue with CL_QUEUE_PROFILING_ENABLE. *us: the time on the device from the start of the first
 * kernel to the end of the last. */
bool launch_run(const struct launch *launch, const struct session *session, double *us, struct fault *fault);

/* Waits for the queue. *us: the time from the end of `from` to the end of `event`, both profiled; from NULL: the time of
 * `event` alone. Where the driver's clock does not advance, as rusticl's, *us is the host's time since `start`. */
bool finish_and_time(cl_command_queue queue, double start, cl_event from, cl_event event, double *us, struct fault *fault);

#endif
