/* What a config takes of a device: vectors of a lane, registers, local memory. */
#ifndef CLN_RESOURCES_H
#define CLN_RESOURCES_H

#include "config/config.h"

/* A lane holds at most so much of what it unrolls: more would make builds long. */
enum { CLN_MOST_HELD_BYTES = 1024, CLN_MOST_ELEMENTS = 64 };

/* Forward and softmax: vectors of a segment that one lane has, at most, and their bytes while they are held. */
uint64_t cln_vectors_per_lane(const struct cln_workload *work, const struct cln_config *c);
uint64_t cln_held_bytes(const struct cln_workload *work, const struct cln_config *c);

/* Forward and softmax: bytes of local memory for the sums over lanes. */
uint64_t cln_scratch_bytes(const struct cln_workload *work, const struct cln_config *c);

/* Backward: columns of its tile that a lane has, at most. */
uint64_t cln_elements_per_lane(const struct cln_config *c);

/* Backward: whether each lane has the same columns of every row, known when the kernel is built. */
bool cln_unrolls_columns(const struct cln_config *c);

/* Backward: bytes of local memory. span: groups that a work-group takes in turn. */
uint64_t cln_backward_local_bytes(const struct cln_workload *work, const struct cln_config *c, uint64_t span);

/* Registers of 4 bytes that a work-item needs, so that none spills: estimated from what the kernel holds at once. */
uint64_t cln_forward_registers(const struct cln_workload *work, const struct cln_config *c);
uint64_t cln_backward_least_registers(const struct cln_workload *work, const struct cln_config *c);

/* Registers that a compiler takes for a work-item where nothing limits it: how many work-groups a compute unit has room for
 * depends on them. */
uint64_t cln_backward_registers(const struct cln_workload *work, const struct cln_config *c);

#endif
