/* Calls of OpenCL that a test can make fail, and objects that it counts. A test program has these functions in itself, so
 * that its library calls them in place of the loader's, which they call in turn: any loader will do. */
#ifndef TEST_FAULT_CALLS_H
#define TEST_FAULT_CALLS_H

#include "clnorm/clnorm.h"

struct fault_calls {
    long fail_at;       /* which of the calls from now on fails, 1 being the next; 0: none */
    cl_int code;        /* what it returns */
    const char *failed; /* the name of the call that failed; NULL: none has */
    long references;    /* objects made and references added, less references released */
};

extern struct fault_calls fault_calls;

#endif
