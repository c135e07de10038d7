/* A device made ready, and a job's tensors on it. */
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

/* Takes a half-opened one. */
void session_close(struct session *session);

struct launch {
    cl_mem mem[ROLES]; /* by role; NULL: absent */
    cl_mem workspace;
    cl_mem fault; /* args.fault of an operation that has one; NULL: absent */
    clnorm_plan *plan;
    clnorm_args args;
    cl_uint kernels;            /* launches that one enqueue makes */
    double plan_us, warm_up_us; /* what it took to make the plan, and to warm it up */
};

/* Buffers for every tensor of the job, without contents, and the plan, warmed up; the launch borrows the job's seed. On
 * failure the launch is freed. */
bool launch_prepare(struct launch *launch, const struct session *session, const struct job *job, struct fault *fault);

/* The same buffers with another plan of the job, whose forced knobs alone have changed. On failure there is no plan, and
 * the launch can be given another. */
bool launch_replan(struct launch *launch, const struct session *session, const struct job *job, struct fault *fault);

/* Puts another buffer of the same size, which it retains, in the place of a role's own. */
void launch_take(struct launch *launch, const struct job *job, int role, cl_mem mem);

/* Takes a half-made one. */
void launch_free(struct launch *launch);

/* Writes every tensor's bytes, of inputs and outputs, to the device. */
bool launch_upload(const struct launch *launch, const struct session *session, const struct job *job, struct fault *fault);

/* Reads the outputs' bytes. */
bool launch_download(const struct launch *launch, const struct session *session, struct job *job, struct fault *fault);

/* Runs once and waits, on a queue with CL_QUEUE_PROFILING_ENABLE. *us: the time on the device from the start of the first
 * kernel to the end of the last. */
bool launch_run(const struct launch *launch, const struct session *session, double *us, struct fault *fault);

/* Waits for the queue. *us: the time between two profiled events' ends, or of one event when from is NULL; where the
 * driver's clock stands still, as rusticl's does, the time since start on the host's. */
bool finish_and_time(cl_command_queue queue, double start, cl_event from, cl_event event, double *us, struct fault *fault);

#endif
