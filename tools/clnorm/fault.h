/* A failure of the tool: a line that main prints, and the exit code that it returns. */
#ifndef FAULT_H
#define FAULT_H

#include <stdbool.h>

#include "clnorm/clnorm.h"

enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1, /* it ran and failed: build, device, verification */
    EXIT_REQUEST = 2 /* the request is wrong: a word, a tensor, a file */
};

struct fault {
    int code;
    char text[3072]; /* one line: control characters, which file contents may have, stand as '?' */
};

/* Records a failure; returns false, for `return fault_set(…)`. */
__attribute__((format(printf, 3, 4))) bool fault_set(struct fault *fault, int code, const char *format, ...);

/* Records a failure of the library, with the exit code of its status. what: "device", "plan", … */
bool fault_library(struct fault *fault, clnorm_status status, const char *what);

/* Records the failure of an OpenCL call. */
bool fault_opencl(struct fault *fault, cl_int code, const char *call, const char *what);

#endif
