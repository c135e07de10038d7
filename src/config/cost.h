/* The estimated time of a config, in nanoseconds, limited by the bandwidth of the device's memory and by latencies. The
 * constants of cost_*.c were fitted to 4,000 configs measured on an H200 and 3,600 on an H100; facts.c scales them to other
 * devices. */
#ifndef CLN_COST_H
#define CLN_COST_H

#include "config/candidates.h"

double cln_forward_cost(const struct cln_choice *choice, const struct cln_config *c);
double cln_backward_cost(const struct cln_choice *choice, const struct cln_config *c);

/* Whether a config's registers would spill, of which the costs know nothing. */
bool cln_spills(const struct cln_facts *facts, const struct cln_workload *work, const struct cln_config *c);

/* The work-groups of a forward or of softmax that the device runs at once. */
uint64_t cln_forward_at_once(const clnorm_device_info *device, const struct cln_workload *work, const struct cln_config *c);

/* Whether the registers of a work-group fit without spills. */
bool cln_registers_fit(const struct cln_facts *facts, uint64_t items, uint64_t item_registers);

/* Work-groups that a compute unit runs at once, at least 1. */
uint64_t cln_resident_groups(const struct cln_facts *facts, uint64_t items, uint64_t item_registers, uint64_t local_bytes);

/* Nanoseconds of a sum over lanes. */
double cln_reduction_ns(const struct cln_facts *facts, uint64_t lanes);

/* Rows whose lanes run in step, at least 1. */
double cln_rows_in_step(const struct cln_facts *facts, const struct cln_config *c);

/* The time under two limits: somewhat more than the larger one. With more sharpness the smaller one counts less. */
double cln_both_limits(double a, double b, double sharpness);

#endif
