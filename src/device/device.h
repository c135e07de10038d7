/* The list of all OpenCL devices. */
#ifndef CLN_DEVICE_H
#define CLN_DEVICE_H

#include "base/struct_size.h"
#include "clnorm/clnorm.h"
#include "device/device_facts.h"

/* Every device, best first, in a new allocation that free() takes; NULL and a count of 0 when there is none. A platform
 * or device that cannot be read is left out; where no device can be read, that failure is returned. *left_out: the first
 * thing that was left out, with a code of CL_SUCCESS for none. */
clnorm_status cln_device_all(clnorm_device_info **infos, size_t *count, struct cln_unread *left_out);

/* The struct of a clnorm_device_info that is an output. */
extern const struct cln_struct cln_device_info_struct;

#endif
