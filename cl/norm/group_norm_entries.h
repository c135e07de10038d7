/* The chunks of a group, and its statistics from their moments. */
#ifndef GROUP_NORM_ENTRIES_H
#define GROUP_NORM_ENTRIES_H

#include "common/waiting.h"
#include "norm/group_moments.h"
#include "norm/group_norm.h"

/* The parts of a group are its entries: of each of its rows, ROW_PARTS. */
#if MERGES_GROUPS
#define MOST_ROWS (BLOCK % CHANNELS_OF_GROUP == 0 ? 1 : (CHANNELS_OF_GROUP + BLOCK - 2) / BLOCK + 1)
#else
#define MOST_ROWS CHANNELS_OF_GROUP
#endif
#define MOST_ENTRIES ((index_t)MOST_ROWS * (index_t)ROW_PARTS) /* of a group: exactly as many without MERGES_GROUPS */

/* The first row of a group of a sample, and the number of its rows. */
static inline ulong first_row_of(const ulong group) {
    const ulong first = group * CHANNELS_OF_GROUP;
#if MERGES_GROUPS
    return group + first / BLOCK;
#else
    return first;
#endif
}

static inline index_t rows_of(const ulong group) {
#if MERGES_GROUPS
    if (MOST_ROWS > 1)
        return (index_t)(((group + 1) * CHANNELS_OF_GROUP - 1) / BLOCK - group * CHANNELS_OF_GROUP / BLOCK + 1);
#endif
    (void)group;
    return MOST_ROWS;
}

/* The channels of a group's row. */
static inline ulong channels_of_row(const ulong group, const index_t row) {
#if MERGES_GROUPS
    const ulong first = group * CHANNELS_OF_GROUP, block = first / BLOCK + row;
    return min((block + 1) * BLOCK, first + CHANNELS_OF_GROUP) - max(block * BLOCK, first);
#else
    (void)group, (void)row;
    return 1;
#endif
}

/* The index of a group's first part. group: of all samples. */
static inline ulong first_part_of(const ulong group) {
    return part_of(group / GROUPS, first_row_of(group % GROUPS), 0);
}

#if EXCHANGES
#define LOOKS (ROW_SPLIT == ROW_SPLIT_EXCHANGE ? MOST_LOOKS : 0)

/* Whether a share of a group's parts has arrived, as soon as it has, or else after LOOKS looks: from the first one, every
 * step-th. */
static inline bool have_arrived(const global real *parts, const ulong group, const uint first, const uint step) {
    const index_t entries = rows_of(group % GROUPS) * (index_t)ROW_PARTS;
    bool all = true;
    for (index_t i = first; i < entries && all; i += step) {
        all = chunk_count(i % (index_t)CHUNKS) == 0;
        for (uint looks = 0; looks < LOOKS && !all; looks++) {
            const uint2 message = message_at(parts, first_part_of(group) + i);
            all = message.x != 0 && message.y != 0;
        }
    }
    return all;
}
#endif

#define ADDED 32 /* entries that are added up in one chain, which keeps rounding errors small */

/* Of an entry: count · (mean − pivot) or, if squared, squares + count · (mean − pivot)². */
static inline real term_of(const global real *parts, const ulong group, const index_t index, const real pivot,
                           const bool squared) {
    const part_t part = part_at(parts, first_part_of(group) + index);
    const ulong positions = chunk_count(index % (index_t)CHUNKS);
    const real count = (real)(positions * channels_of_row(group % GROUPS, index / (index_t)ROW_PARTS)),
               delta = part.x - pivot;
    return positions == 0 ? 0 : squared ? part.y + delta * delta * count : delta * count;
}

/* A share of the sum of a group's terms: from the first one, every step-th. */
static inline real sum_terms(const global real *parts, const ulong group, const uint first, const uint step,
                             const real pivot, const bool squared) {
    const index_t entries = rows_of(group % GROUPS) * (index_t)ROW_PARTS;
    const uint at_once = min((index_t)AT_ONCE, (MOST_ENTRIES - 1) / step + 1);
    real all = 0;
    for (index_t begin = first; begin < entries; begin += ADDED * step) {
        real few = 0;
        for (uint i = 0; i < ADDED && begin + i * step < entries; i += at_once) {
            real term[AT_ONCE];
#pragma unroll
            for (uint k = 0; k < AT_ONCE; k++) /* all are loaded before the first is used */
                if (k < at_once)
                    term[k] = term_of(parts, group, min(begin + (i + k) * step, entries - 1), pivot, squared);
#pragma unroll
            for (uint k = 0; k < AT_ONCE; k++)
                if (k < at_once)
                    few += begin + (i + k) * step < entries ? term[k] : 0;
        }
        all += few;
    }
    return all;
}

/* The statistics of a group. Every work-item of the work-group calls it. */
INLINED struct statistics merge_entries(const global real *parts, const ulong group, const uint lane, const real eps,
                                        struct lanes *lanes) {
    const real origin = part_at(parts, first_part_of(group)).x;
    const real sum = sum_over_lanes(lanes, sum_terms(parts, group, lane, LANES, origin, false));
    const real mean = origin + sum * ((real)1 / (real)GROUP_SIZE);
    const real squares = sum_over_lanes(lanes, sum_terms(parts, group, lane, LANES, mean, true));
    const struct statistics statistics = {mean, rstd_of(squares, eps)};
    return statistics;
}

#endif
