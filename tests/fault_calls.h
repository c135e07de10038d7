/* OpenCL calls that a test can make fail, a count of references to objects, and the kernels that were enqueued. The test
 * program defines these functions, so that the static library in it calls them in place of the loader's; they call the
 * loader's in turn. */
#ifndef TEST_FAULT_CALLS_H
#define TEST_FAULT_CALLS_H

#include "clnorm/clnorm.h"

enum { FAULT_LAUNCHES = 16, FAULT_AWAITED = 2 };

/* A kernel that was enqueued. */
struct fault_launch {
    size_t first; /* its first work-item */
    cl_uint num_wait;
    cl_event awaited[FAULT_AWAITED]; /* the first ones of the wait list */
    cl_event event;                  /* its own, perhaps released since; NULL: not requested */
};

struct fault_calls {
    long fail_at;       /* number of the call that fails, 1 for the next one; 0: none */
    cl_int code;        /* its result */
    const char *failed; /* name of the call that failed; NULL: none */
    long references;    /* objects made and references added, less references released */
    unsigned launches;  /* kernels enqueued since the test set it to 0 */
    struct fault_launch launch[FAULT_LAUNCHES];
};

extern struct fault_calls fault_calls;

#endif
