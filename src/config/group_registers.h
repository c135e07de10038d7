/* What a work-group of group norm holds in a GPU's registers, to read it once: a slice of channels last, or in the backward
 * a segment of channels first. cln_config_slice_groups and cln_config_channel_lanes tell whether it does. */
#ifndef CLN_GROUP_REGISTERS_H
#define CLN_GROUP_REGISTERS_H

#include "config/config.h"

/* The groups of a slice: the fewest whose channels are whole sectors of a GPU's memory and at least a line of its cache;
 * 0: none are. */
uint64_t cln_slice_span(const struct cln_workload *work);

/* Bytes of local memory of a work-group of group_norm_last.cl or group_norm_last_backward.cl. */
uint64_t cln_slice_bytes(const struct cln_workload *work, const struct cln_config *c);

/* Backward, channels first: registers of a lane for x and dn of its share of a segment, where a set of channel_lanes lanes
 * takes a channel at a time. */
uint64_t cln_held_registers(const struct cln_workload *work, const struct cln_config *c, uint64_t channel_lanes);

#endif
