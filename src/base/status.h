/* How a function fails: it returns what one of these returns, after leaving the sentence for clnorm_error_detail. */
#ifndef CLN_STATUS_H
#define CLN_STATUS_H

#include "clnorm/clnorm.h"

/* Records the detail of a failure that is the library's own finding, and returns status. */
__attribute__((format(printf, 2, 3))) clnorm_status cln_fail(clnorm_status status, const char *format, ...);

/* The same for a failure in which OpenCL had a part: code is what it returned. */
__attribute__((format(printf, 3, 4))) clnorm_status cln_fail_code(clnorm_status status, cl_int code, const char *format,
                                                                  ...);

/* Records that an OpenCL call failed with code, and returns the status that stands for it. */
clnorm_status cln_fail_opencl(cl_int code, const char *call);

/* The record of a thread's last failure. A call that succeeds in spite of a failure within it keeps and restores it. */
struct cln_failure {
    char detail[4096]; /* a sentence and the head of a build log */
    cl_int code;
};

void cln_failure_keep(struct cln_failure *kept);
void cln_failure_restore(const struct cln_failure *kept);

/* "CL_INVALID_VALUE" for -30; "unknown OpenCL code" for a number that is none. */
const char *cln_opencl_code_name(cl_int code);

#endif
