/* The rows and chunks into which group norm's samples are divided. See cln_config_row_positions and
 * cln_config_channel_chunks, too. */
#ifndef CLN_GROUP_LAYOUT_H
#define CLN_GROUP_LAYOUT_H

#include "config/config.h"

/* Contiguous elements that vectors divide: a row of channels last, the positions of a channel, or all positions of a
 * segment's channels where several lanes take the whole segment, or in the forward hold pieces of it. lanes: whether there
 * are several. */
uint64_t cln_group_row(const struct cln_workload *work, const struct cln_config *c, bool lanes);

/* Channels last: the rows of a sample. */
uint64_t cln_group_rows(const struct cln_workload *work, const struct cln_config *c);

/* Whether a chunk may begin anywhere within a vector: with channels first, where several lanes take it. See share_of in
 * cl/norm/group_norm.h. */
bool cln_group_begins_anywhere(const struct cln_workload *work, const struct cln_config *c, bool lanes);

/* The elements of which vec is a divisor where vectors are not loaded at any address. */
uint64_t cln_group_divided_by_vec(const struct cln_workload *work, const struct cln_config *c, bool lanes);

#endif
