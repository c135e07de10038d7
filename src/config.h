/* From a problem and a device to a config: the one place that decides how kernels run. */
#ifndef CLN_CONFIG_H
#define CLN_CONFIG_H

#include "clnorm/clnorm.h"

/* What the choice depends on. */
struct cln_workload {
    uint64_t rows, groups, group_size;
    uint64_t alignment; /* elements: the largest power of two that divides group_size and every row stride */
    uint64_t x_size;    /* bytes of an element of x, the tensor that is read most */
    uint64_t held_size; /* bytes of an element of s while its statistics are taken */
    clnorm_norm norm;
    uint64_t real_size; /* bytes of the arithmetic type: 4, or 8 for f64 */
};

/* Fills every field of config: a forced one is checked against device and shape, the others are chosen. */
clnorm_status cln_config_choose(const clnorm_device_info *device, const struct cln_workload *work,
                                const clnorm_config *forced, clnorm_config *config);

/* Whether vectors are accessed at any element's address (CPUs, which lose nothing by it) rather than, wherever the
 * addresses allow it, at their own size's alignment. */
bool cln_config_element_aligned(const clnorm_device_info *device, const clnorm_config *config);

#endif
