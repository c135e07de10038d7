/* Reads what clnorm_device_info holds of one device. */
#ifndef CLN_DEVICE_FACTS_H
#define CLN_DEVICE_FACTS_H

#include "clnorm/clnorm.h"

/* What stands for an allocation of our own that failed; OpenCL's codes are negative. */
enum { CLN_NO_MEMORY = 1 };

/* What could not be read, and the OpenCL code or CLN_NO_MEMORY of it; CL_SUCCESS: nothing is missing. */
struct cln_unread {
    cl_int code;
    const char *what;
};

/* Fills in the facts of a device; platform, device and their indices are there already. An optional fact that cannot be
 * read is zero. Fails without leaving a detail: of many devices, one may be bad. */
struct cln_unread cln_device_read(clnorm_device_info *info);

#endif
