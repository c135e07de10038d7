/* The devices that there are. */
#ifndef CLN_DEVICE_H
#define CLN_DEVICE_H

#include "base/struct_size.h"
#include "clnorm/clnorm.h"
#include "device/device_facts.h"

/* Every device, best first, in a new allocation that free() takes; NULL and a count of 0 when there is none. A platform or
 * a device that cannot be read is left out, unless nothing else is left to tell: then its failure is returned.
 * *left_out: the first thing that was; its code is CL_SUCCESS where nothing was. */
clnorm_status cln_device_all(clnorm_device_info **infos, size_t *count, struct cln_unread *left_out);

/* Of a clnorm_device_info that is filled in. */
extern const struct cln_struct cln_device_info_struct;

#endif
