/* The parts of a kernel that follow from its config: macros, and the work-groups of its launch. */
#ifndef CLN_LAUNCH_H
#define CLN_LAUNCH_H

#include "config/config.h"
#include "plan/plan.h"

/* Sets the macros that follow from the config and the device alone. Those of row_split, run_length and local_vectors also
 * depend on the tensors. */
void cln_launch_spec(const clnorm_device_info *device, const struct cln_config *config, struct cln_spec *spec);

/* The blocks of work that a work-group takes one after the other: as many as wished, or so many that there are at most
 * most_groups work-groups, but no more than there are blocks. */
uint64_t cln_launch_iterations(uint64_t wish, uint64_t blocks, uint64_t most_groups);

/* Work-groups that loop over segments, config.segments at a time. */
struct cln_launch {
    cl_ulong iterations;
    size_t groups, items;
};

struct cln_launch cln_launch_of(const struct cln_config *config, uint64_t segments);

/* The same with at most so many work-groups, which make more iterations. */
struct cln_launch cln_launch_within(const struct cln_config *config, uint64_t segments, uint64_t most_groups);

#endif
