/* Runs the cases of `clnorm check` in a child process. A driver that ends its process does not end the tool, which knows
 * the case that was running. */
#ifndef CHECK_WORKER_H
#define CHECK_WORKER_H

#include <sys/types.h>

#include "check_try.h"

enum check_event_kind {
    CHECK_OPENED, /* the device is ready, and the first case begins */
    CHECK_ENDS,   /* a case has an outcome, and with OUTCOME_WRONG a fault; the next one begins */
    CHECK_FAILED  /* there is no device; fault has the reason */
};

/* A message from the process. */
struct check_event {
    enum check_event_kind kind;
    int index;
    enum outcome outcome;
    struct fault fault;
    clnorm_device_info device; /* its handles are valid in the child only */
};

struct check_worker {
    pid_t process;
    int events; /* to read from */
};

/* Starts the cases first, first + every, ... The calling process must not have called OpenCL. */
bool check_worker_start(struct check_worker *worker, const char *selector, int first, int every, struct fault *fault);

/* Waits for the next event. false: the process has ended. */
bool check_worker_next(const struct check_worker *worker, struct check_event *event);

enum { ENDING_TEXT = 64 };

/* Waits for the end of the process. ending: "" after exit code 0, else as in "signal 6". */
void check_worker_end(struct check_worker *worker, char ending[ENDING_TEXT]);

#endif
