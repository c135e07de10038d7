/* The time that a config is estimated to take, in nanoseconds: the device's memory and its latency limit it both. The
 * constants of cost_*.c were fitted to 4,000 configs measured on an H200; facts.c scales them to other devices. */
#ifndef CLN_COST_H
#define CLN_COST_H

#include "config/candidates.h"

/* Past any time where registers would spill: such a config is taken only where forced knobs leave no other. */
double cln_forward_cost(const struct cln_choice *choice, const struct cln_config *c);
double cln_backward_cost(const struct cln_choice *choice, const struct cln_config *c);

/* Whether the work-group's registers fit, so that none spills. */
bool cln_registers_fit(const struct cln_facts *facts, uint64_t items, uint64_t item_registers);

/* Work-groups that a compute unit runs at once, 1 at least. */
uint64_t cln_resident_groups(const struct cln_facts *facts, uint64_t items, uint64_t item_registers, uint64_t local_bytes);

/* Nanoseconds until lanes have added up a number. */
double cln_reduction_ns(const struct cln_facts *facts, uint64_t lanes);

/* Of two limits on a time: somewhat more than the larger. sharpness: how soon the smaller one stops to count. */
double cln_both_limits(double a, double b, double sharpness);

#endif
