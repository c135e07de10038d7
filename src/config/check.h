/* What has to hold of a whole config on a device and shape; only a forced knob can break it. The first rule that is broken
 * is named: "desc.config.keep is local: expected …". */
#ifndef CLN_CHECK_H
#define CLN_CHECK_H

#include "config/config.h"

clnorm_status cln_check_forward(const clnorm_device_info *device, const struct cln_workload *work,
                                const struct cln_config *c);
clnorm_status cln_check_backward(const clnorm_device_info *device, const struct cln_workload *work,
                                 const struct cln_config *c);
clnorm_status cln_check_elements(const clnorm_device_info *device, const struct cln_workload *work,
                                 const struct cln_config *c);

/* Of the forward's rules and the backward's: how lanes add up. */
clnorm_status cln_check_reduce(const clnorm_device_info *device, const struct cln_config *c);

/* Likewise: a vector is rotated as a whole or not at all. */
clnorm_status cln_check_rope_vec(const struct cln_workload *work, const struct cln_config *c);

#endif
