/* Failures. A function fails by returning the result of cln_fail or its like, which record the detail for
 * clnorm_error_detail. */
#ifndef CLN_STATUS_H
#define CLN_STATUS_H

#include "clnorm/clnorm.h"

/* Records the detail of a failure that the library found itself, and returns status. */
__attribute__((format(printf, 2, 3))) clnorm_status cln_fail(clnorm_status status, const char *format, ...);

/* The same for a failure that OpenCL reported with code. */
__attribute__((format(printf, 3, 4))) clnorm_status cln_fail_code(clnorm_status status, cl_int code, const char *format,
                                                                  ...);

/* Records that an OpenCL call failed with code, and returns the status for that code. */
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
