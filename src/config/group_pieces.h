/* Group norm whose work-groups hold pieces of groups, and exchange their moments, or in the backward their sums. See
 * cl/norm/group_norm_pieces.cl, and with channels last group_norm_last_exchange.cl. A choice must not depend on the number
 * of samples, because the order of sums depends on it; only more than 2^30 pieces have two passes. */
#ifndef CLN_GROUP_PIECES_H
#define CLN_GROUP_PIECES_H

#include "config/candidates.h"

/* Channels last: fills in what a config of such work needs, if registers hold chunks of slices, and it is forced or fast.
 * vec: the widest vectors, which become narrower to divide a group's channels. */
void cln_group_choose_slice_pieces(const struct cln_choice *choice, uint64_t vec, struct cln_config *c);

/* Channels first: the same, for segments that no work-group holds, if nothing is forced. */
void cln_group_choose_segment_pieces(const struct cln_choice *choice, struct cln_config *c);

#endif
