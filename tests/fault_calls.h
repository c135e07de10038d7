/* OpenCL calls that a test can make fail, and a count of references to objects. The test program defines these functions,
 * so that the static library in it calls them in place of the loader's; they call the loader's in turn. */
#ifndef TEST_FAULT_CALLS_H
#define TEST_FAULT_CALLS_H

#include "clnorm/clnorm.h"

struct fault_calls {
    long fail_at;       /* number of the call that fails, 1 for the next one; 0: none */
    cl_int code;        /* its result */
    const char *failed; /* name of the call that failed; NULL: none */
    long references;    /* objects made and references added, less references released */
};

extern struct fault_calls fault_calls;

#endif
