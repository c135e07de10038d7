/* The cases of `clnorm check`, run in a process of their own: where a driver ends the process, it ends that one alone, and
 * which case it was is known. */
#ifndef CHECK_WORKER_H
#define CHECK_WORKER_H

#include <sys/types.h>

#include "check_try.h"

enum check_event_kind {
    CHECK_OPENED, /* device is ready */
    CHECK_BEGINS, /* a case */
    CHECK_ENDS,   /* it has an outcome, and where that is OUTCOME_WRONG a fault */
    CHECK_DONE,   /* the last case ended */
    CHECK_FAILED  /* there is no device; fault says why */
};

/* What the process tells. */
struct check_event {
    enum check_event_kind kind;
    int index;
    enum outcome outcome;
    struct fault fault;
    clnorm_device_info device; /* its handles are those of the other process */
};

struct check_worker {
    pid_t process;
    int events; /* to read from */
};

/* Starts the cases first, first + every, ... This process must not have touched OpenCL. */
bool check_worker_start(struct check_worker *worker, const char *selector, int first, int every, struct fault *fault);

/* Waits for the next event. false: the process has ended. */
bool check_worker_next(const struct check_worker *worker, struct check_event *event);

enum { ENDING_TEXT = 64 };

/* Waits for the end of the process. ending: "" where it ended as it should, else how, "signal 6". */
void check_worker_end(struct check_worker *worker, char ending[ENDING_TEXT]);

#endif
