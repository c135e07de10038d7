/* Group norm with channels last whose work-groups exchange the moments of chunks of slices, or in the backward their sums.
 * See cl/norm/group_norm_last_exchange.cl and cl/norm/group_norm_last_backward_exchange.cl. */
#ifndef CLN_GROUP_PIECES_H
#define CLN_GROUP_PIECES_H

#include "config/candidates.h"

/* Fills in what a config of such work needs, if registers hold the chunks, and it is forced or takes less time than two
 * passes. vec: of a lane. The choice must not depend on the number of samples, because the order of sums depends on the
 * choice; only more than 2^30 chunks have two passes. */
void cln_group_choose_pieces(const struct cln_choice *choice, uint64_t vec, struct cln_config *c);

#endif
