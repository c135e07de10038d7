/* Reads the facts of one device. */
#ifndef CLN_DEVICE_FACTS_H
#define CLN_DEVICE_FACTS_H

#include "clnorm/clnorm.h"

/* The code of a failed allocation of our own. OpenCL's codes are negative. */
enum { CLN_NO_MEMORY = 1 };

/* A fact that could not be read, and why. */
struct cln_unread {
    cl_int code;      /* of OpenCL, or CLN_NO_MEMORY; CL_SUCCESS: every fact was read */
    const char *what; /* "the device's name" */
};

/* Fills in the facts of a device, whose platform, device and indices are set. An optional fact that cannot be read is
 * zero. A failure leaves no error detail, as one bad device among many is not an error. */
struct cln_unread cln_device_read(clnorm_device_info *info);

#endif
