/* The chunks of a group, and its statistics from their moments. */
#ifndef GROUP_NORM_ENTRIES_H
#define GROUP_NORM_ENTRIES_H

#include "norm/group_moments.h"
#include "norm/group_norm.h"

/* The chunks of a group's channels are its entries. Neighbours are the chunks of a channel, or the channels of a
 * chunk. */
#define ENTRIES ((index_t)CHANNELS_OF_GROUP * (index_t)CHUNKS)

struct entry {
    ulong at; /* the place of its first number */
    ulong channel, chunk;
};

static inline struct entry entry_of(const ulong group, const index_t index) {
    const ulong sample = group / GROUPS, first = group % GROUPS * CHANNELS_OF_GROUP;
    struct entry entry;
    entry.channel = first + (IS_FIRST ? index / (index_t)CHUNKS : index % (index_t)CHANNELS_OF_GROUP);
    entry.chunk = IS_FIRST ? index % (index_t)CHUNKS : index / (index_t)CHANNELS_OF_GROUP;
    entry.at = part_of(sample, entry.channel, entry.chunk);
    return entry;
}

#define ADDED 32 /* entries that are added up in one chain, which keeps rounding errors small */

/* Of an entry: count · (mean − pivot) or, if squared, squares + count · (mean − pivot)². Past the last entry it is 0. */
static inline real term_of(const global real *parts, const ulong group, const index_t index, const real pivot,
                           const bool squared) {
    const struct entry entry = entry_of(group, min(index, ENTRIES - 1));
    const real mean = parts[entry.at], squares = squared ? parts[entry.at + PART_STEP] : 0;
    const real count = (real)chunk_count(entry.chunk), delta = mean - pivot;
    return index < ENTRIES && count > 0 ? squares + delta * count * (squared ? delta : 1) : 0;
}

/* A lane's share of the sum of a group's terms. */
static inline real sum_terms(const global real *parts, const ulong group, const uint lane, const real pivot,
                             const bool squared) {
    real all = 0;
    for (index_t first = lane; first < ENTRIES; first += ADDED * LANES) {
        real few = 0;
        for (uint i = 0; i < ADDED && first + i * LANES < ENTRIES; i += AT_ONCE) {
            real term[AT_ONCE];
#pragma unroll
            for (uint k = 0; k < AT_ONCE; k++)
                term[k] = term_of(parts, group, first + (i + k) * LANES, pivot, squared);
#pragma unroll
            for (uint k = 0; k < AT_ONCE; k++)
                few += term[k];
        }
        all += few;
    }
    return all;
}

/* The statistics of a group. Every work-item of the work-group calls it. */
INLINED struct statistics merge_entries(const global real *parts, const ulong group, const uint lane, const real eps,
                                        struct lanes *lanes) {
    const real origin = parts[entry_of(group, 0).at];
    const real sum = sum_over_lanes(lanes, sum_terms(parts, group, lane, origin, false));
    const real mean = origin + sum * ((real)1 / (real)GROUP_SIZE);
    const real squares = sum_over_lanes(lanes, sum_terms(parts, group, lane, mean, true));
    const struct statistics statistics = {mean, rstd_of(squares, eps)};
    return statistics;
}

#endif
