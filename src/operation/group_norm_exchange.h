/* The launches of group norm whose work-groups exchange sums: parts of chunks of channels first, see
 * cl/norm/group_norm_tickets.h, or moments or sums of pieces, see
 * cl/common/exchange.h. */
#ifndef CLN_GROUP_NORM_EXCHANGE_H
#define CLN_GROUP_NORM_EXCHANGE_H

#include "operation/group_norm.h"

/* Appends the tickets' words to the workspace. The parts follow them. */
clnorm_status cln_group_norm_tickets(clnorm_plan *plan, struct cln_binding *tickets);

/* Adds the launch, behind one that clears the words. stage: its arguments are without ahead, tickets and parts. */
clnorm_status cln_group_norm_add_exchange(clnorm_plan *plan, const struct cln_spec *spec,
                                          const struct cln_group_norm_stage *stage, struct cln_binding tickets,
                                          struct cln_binding parts);

/* Appends the words of tickets and of the messages of so many pieces. clears: they are to be cleared before a launch, see
 * cl/common/cleared_message.h; else see cl/common/message.h. */
clnorm_status cln_group_norm_words(clnorm_plan *plan, const struct cln_spec *spec, uint64_t pieces, bool clears,
                                   struct cln_binding *words);

/* Adds the launch over pieces, behind one that clears the words if they are to be cleared. stage: its arguments are
 * without words. */
clnorm_status cln_group_norm_add_pieces(clnorm_plan *plan, const struct cln_spec *spec,
                                        const struct cln_group_norm_stage *stage, struct cln_binding words);

#endif
