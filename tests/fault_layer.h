/* An OpenCL layer (CL/cl_layer.h) that makes a call fail, and counts objects. A test is run with OPENCL_LAYERS naming the
 * layer's library, and finds its controls by dlsym. */
#ifndef TEST_FAULT_LAYER_H
#define TEST_FAULT_LAYER_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

struct fault_layer {
    long fail_at;       /* which of the calls from now on fails, 1 being the next; 0: none */
    cl_int code;        /* what it returns */
    const char *failed; /* the name of the call that failed; NULL: none has */
    long calls;         /* calls that could have failed */
    long references;    /* objects made and references added, less references released */
};

#define FAULT_LAYER_SYMBOL "fault_layer"

#endif
