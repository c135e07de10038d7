/* What work-items of group norm hold in a GPU's registers, to read it once: a slice of channels last, or a segment of
 * channels first. cln_config_slice_groups, and in the backward cln_channel_piece, tell whether it does. */
#ifndef CLN_GROUP_REGISTERS_H
#define CLN_GROUP_REGISTERS_H

#include "config/config.h"

/* The groups of a whole slice with wide rows: the fewest whose channels are whole vectors, whole sectors of a GPU's memory
 * and at least a line of its cache, or all groups; 0: they are too many. Where CLN_HOLDERS lanes would hold many elements
 * each, cln_config_slice_groups has fewer groups. */
uint64_t cln_slice_span(const struct cln_workload *work, uint64_t vec);

/* The groups of a piece of a slice with wide or with narrow rows, and the most positions that the lanes of a work-group
 * hold in each of two such pieces; 0: they hold none. */
uint64_t cln_piece_span(const struct cln_workload *work, const struct cln_config *c, bool wide);
uint64_t cln_piece_positions(const struct cln_workload *work, const struct cln_config *c, bool wide);

/* Whether pieces take less time than a whole slice: its rows are narrower, and its lanes hold many elements each. */
bool cln_slice_is_slow(const struct cln_workload *work, const struct cln_config *c);

/* cln_most_registers of work-groups that exchange the numbers of pieces; 0, too, where they hold none. */
uint64_t cln_group_most_registers(const struct cln_workload *work, const struct cln_config *c);

/* Bytes of local memory of a work-group of the kernels of slices, cl/norm/group_norm_last*.cl. */
uint64_t cln_slice_bytes(const struct cln_workload *work, const struct cln_config *c);

/* The same of any kernel of channels last, for slices or for the phases of a work-group. Channels first: 0. */
uint64_t cln_last_bytes(const struct cln_workload *work, const struct cln_config *c);

/* Forward, channels first: elements of a segment that so many lanes hold, as in cl/norm/group_norm.cl. With ptx,
 * CLN_HOLDERS lanes hold the most. */
enum { CLN_HOLDERS = 256 };
uint64_t cln_held_elements(const struct cln_workload *work, const struct cln_config *c, uint64_t lanes);

/* A work-group that exchanges sums receives at most so many pairs of them, as many as are fast to receive. */
enum { CLN_MOST_RECEIVED = 512 };

/* Channels first: whether the lanes of a work-group hold each of two pieces of a segment, whose moments or sums work-groups
 * exchange. All pieces are equally large. Without it they read x again from the L2 cache. */
bool cln_group_holds_pieces(const struct cln_workload *work, const struct cln_config *c);

/* Backward: a piece is some whole channels, or one of so many chunks of a channel. A set of lanes takes a channel at a
 * time. */
struct cln_channel_piece {
    uint64_t channels, chunks, lanes;
};

/* The piece that the lanes of a work-group hold: with a single chunk, a whole segment. lanes: 0 if they hold none. */
struct cln_channel_piece cln_channel_piece(const struct cln_workload *work, const struct cln_config *c);

/* Registers of a lane for its share of it. */
uint64_t cln_piece_registers(const struct cln_workload *work, const struct cln_config *c,
                             const struct cln_channel_piece *piece);

#endif
