/* The launch of group norm whose work-groups exchange parts: see cl/norm/group_norm_tickets.h. */
#ifndef CLN_GROUP_NORM_EXCHANGE_H
#define CLN_GROUP_NORM_EXCHANGE_H

#include "operation/group_norm.h"

/* Appends the tickets' words to the workspace. The parts follow them. */
clnorm_status cln_group_norm_tickets(uint64_t *size, struct cln_binding *tickets);

/* Adds the launch, behind one that empties the words. kernel: its arguments are without ahead, tickets and parts. */
clnorm_status cln_group_norm_add_exchange(clnorm_plan *plan, const struct cln_spec *spec,
                                          const struct cln_group_norm_kernel *kernel, struct cln_binding tickets,
                                          struct cln_binding parts);

#endif
