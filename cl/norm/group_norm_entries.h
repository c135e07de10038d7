/* The chunks of a group, and its statistics from their moments. */
#ifndef GROUP_NORM_ENTRIES_H
#define GROUP_NORM_ENTRIES_H

#include "norm/group_moments.h"
#include "norm/group_norm.h"

/* The chunks of a group's channels are its entries. Neighbours are the chunks of a channel, or the channels of a
 * chunk. */
#define ENTRIES ((ulong)CHANNELS_OF_GROUP * CHUNKS)

struct entry {
    ulong at; /* the place of its first number */
    ulong channel, chunk;
};

static inline struct entry entry_of(const ulong group, const ulong index) {
    const ulong sample = group / GROUPS, first = group % GROUPS * CHANNELS_OF_GROUP;
    struct entry entry;
    entry.channel = first + (IS_FIRST ? index / CHUNKS : index % CHANNELS_OF_GROUP);
    entry.chunk = IS_FIRST ? index % CHUNKS : index / CHANNELS_OF_GROUP;
    entry.at = part_of(sample, entry.channel, entry.chunk);
    return entry;
}

#define MERGED 32 /* entries that are merged in one chain, which keeps rounding errors small */

static inline struct spread own_entries(const global real *parts, const ulong group, const ulong first, const real origin) {
    struct spread all = {0, 0, 0};
    for (ulong index = first; index < ENTRIES;) {
        struct spread few = {0, 0, 0};
        for (uint i = 0; i < MERGED && index < ENTRIES; i++, index += LANES) {
            const struct entry entry = entry_of(group, index);
            const struct spread one = {parts[entry.at] - origin, parts[entry.at + PART_STEP],
                                       (real)chunk_count(entry.chunk)};
            spread_merge(&few, one);
        }
        spread_merge(&all, few);
    }
    return all;
}

#endif
