/* The rules for a complete config on a device and shape; only a forced knob can break them. The message names the first
 * broken rule: "desc.config.keep is local: expected …". */
#ifndef CLN_CHECK_H
#define CLN_CHECK_H

#include "config/config.h"

clnorm_status cln_check_forward(const clnorm_device_info *device, const struct cln_workload *work,
                                const struct cln_config *c);
clnorm_status cln_check_backward(const clnorm_device_info *device, const struct cln_workload *work,
                                 const struct cln_config *c);
clnorm_status cln_check_group(const clnorm_device_info *device, const struct cln_workload *work,
                              const struct cln_config *c);
clnorm_status cln_check_elements(const clnorm_device_info *device, const struct cln_workload *work,
                                 const struct cln_config *c);

/* Rules of both directions: the size of a work-group, the instructions, whether the rows suit vectors of c->vec, and how
 * lanes add up. */
clnorm_status cln_check_items(const clnorm_device_info *device, const struct cln_config *c);
clnorm_status cln_check_isa(const clnorm_device_info *device, const struct cln_config *c);
clnorm_status cln_check_vec(const clnorm_device_info *device, const struct cln_workload *work, const struct cln_config *c);
clnorm_status cln_check_reduce(const clnorm_device_info *device, const struct cln_config *c);

/* Rules of work-groups that exchange sums: a GPU without memory fences could read inputs that others have overwritten.
 * Simulators, which are devices of other kinds, run one work-item at a time. */
clnorm_status cln_check_fences(const clnorm_device_info *device, const struct cln_config *c);

/* The rule for vectors with a rotation, forward and backward: a vector is rotated as a whole or not at all. */
clnorm_status cln_check_rope_vec(const struct cln_workload *work, const struct cln_config *c);

#endif
