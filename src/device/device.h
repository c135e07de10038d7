/* The list of all OpenCL devices. */
#ifndef CLN_DEVICE_H
#define CLN_DEVICE_H

#include "base/struct_size.h"
#include "clnorm/clnorm.h"
#include "device/device_facts.h"

/* Lists every device, best first, in a new allocation that the caller frees; NULL and a count of 0 when there is none. A
 * platform or device that cannot be read is left out. *left_out: the first one, with a code of CL_SUCCESS for none. Fails
 * where no device is left, with that first failure, and where memory is out. */
clnorm_status cln_device_all(clnorm_device_info **infos, size_t *count, struct cln_unread *left_out);

/* The whole device that a sub-device is a part of, at any depth; a whole device itself. */
cl_device_id cln_device_whole(cl_device_id device);

/* The struct of a clnorm_device_info that is an output. */
extern const struct cln_struct cln_device_info_struct;

#endif
