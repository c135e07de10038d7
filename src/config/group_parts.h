/* How work-groups of group norm's chunks get the sums of whole groups from the parts of chunks: cl/norm/group_norm.h. */
#ifndef CLN_GROUP_PARTS_H
#define CLN_GROUP_PARTS_H

#include "config/config.h"

/* Channels last: the elements of a block, whose phases a work-group merges; 0: it merges none. */
uint64_t cln_group_block(const struct cln_workload *work, const struct cln_config *c);

/* The rows of parts of a group of so many channels, at most. block: of merged phases, or 0. */
uint64_t cln_group_part_rows(uint64_t channels_of_group, uint64_t block);

/* Whether the work-groups that write outputs add up parts themselves, which saves a launch. */
bool cln_group_merges(const struct cln_workload *work, const struct cln_config *c);

/* Whether the work-groups of one launch can exchange the sums of parts, or of pieces that they hold: see
 * cl/norm/group_norm_tickets.h and cl/common/exchange.h. */
bool cln_group_can_exchange(const struct cln_workload *work, const struct cln_config *c);

/* Whether a device gains by an exchange: the inputs of several groups lie in its L2 cache until they are read again, but
 * not those of all groups. */
bool cln_group_gains_by_exchange(const clnorm_device_info *device, const struct cln_workload *work,
                                 const struct cln_config *c);

/* The work-groups of such a launch, and the pieces by which its sums run ahead of its outputs. */
uint64_t cln_group_exchangers(const clnorm_device_info *device, const struct cln_workload *work,
                              const struct cln_config *c);
uint64_t cln_group_ahead(const clnorm_device_info *device, const struct cln_workload *work, const struct cln_config *c);

#endif
