/* Sums over the parts of group_norm_sums: over a group's chunks, or of a channel over samples. */
#ifndef GROUP_NORM_SHARES_H
#define GROUP_NORM_SHARES_H

#include "norm/compensated_sum.h"
#include "norm/group_norm_entries.h"

/* This lane's share of two sums. */
struct shares {
    struct compensated_sum of_dn, of_product;
};

/* The sums of an entry; zeros where it is not there. The memory always is, so that loads need not wait for the question. */
struct pair {
    real dn, product;
};

static inline struct pair pair_of(const part_t part, const bool is_there, const real weight) {
    const struct pair pair = {is_there ? weight * part.x : 0, is_there ? weight * part.y : 0};
    return pair;
}

/* Pairs that a lane loads before it uses the first one: of a channel, and of a group. */
#define PAIRS (LANES == 1 ? 1 : 4)
#define PAIRS_OF_GROUP (MOST_ENTRIES > (PAIRS - 1) * LANES ? PAIRS : (uint)((MOST_ENTRIES - 1) / LANES + 1))

static inline void take_pairs(struct shares *shares, const struct pair pair[PAIRS], const uint count) {
#pragma unroll
    for (uint k = 0; k < count; k++) {
        compensated_sum_add(&shares->of_dn, pair[k].dn);
        compensated_sum_add(&shares->of_product, pair[k].product);
    }
}

/* Adds this lane's share of a channel's sums over samples. */
static inline void take_channel(struct shares *shares, const global real *parts, const ulong rows, const ulong channel,
                                const uint lane) {
    const ulong entries = rows * ROW_PARTS;
    for (ulong first = lane; first < entries; first += PAIRS * LANES) {
        struct pair pair[PAIRS];
#pragma unroll
        for (uint k = 0; k < PAIRS; k++) {
            const ulong index = first + k * LANES, own = min(index, entries - 1);
            pair[k] = pair_of(part_at(parts, part_of(own / ROW_PARTS, channel, own % ROW_PARTS)),
                              index < entries && chunk_count(own % CHUNKS) > 0, 1);
        }
        take_pairs(shares, pair, PAIRS);
    }
}

/* Adds this lane's share of the weighted sums of a group. weight: not read where the build has none. */
static inline void take_group(struct shares *shares, const global real *parts, const global STORAGE(WEIGHT_DTYPE) * weight,
                              const ulong group, const uint lane) {
    for (index_t first = lane; first < MOST_ENTRIES; first += PAIRS_OF_GROUP * LANES) {
        struct pair pair[PAIRS];
#pragma unroll
        for (uint k = 0; k < PAIRS_OF_GROUP; k++) {
            const index_t index = first + k * LANES, own = min(index, MOST_ENTRIES - 1);
#if PRESENT(WEIGHT_DTYPE)
            const ulong channel = group % GROUPS * CHANNELS_OF_GROUP + own / (index_t)ROW_PARTS;
            const real factor = LOAD1(WEIGHT_DTYPE)(weight + channel);
#else
            const real factor = 1;
#endif
            pair[k] = pair_of(part_at(parts, first_part_of(group) + own),
                              index < MOST_ENTRIES && chunk_count(own % (index_t)CHUNKS) > 0, factor);
        }
        take_pairs(shares, pair, PAIRS_OF_GROUP);
    }
    (void)weight;
}

/* Writes a channel's sums. */
#if PRESENT(DBIAS_DTYPE)
#define PUT_DBIAS(dbias, channel, sums) PUT1(DBIAS_DTYPE)((dbias) + (channel), (sums)[0], ACCUMULATE)
#else
#define PUT_DBIAS(dbias, channel, sums)
#endif
#if PRESENT(DWEIGHT_DTYPE)
#define PUT_DWEIGHT(dweight, channel, sums) PUT1(DWEIGHT_DTYPE)((dweight) + (channel), (sums)[1], ACCUMULATE)
#else
#define PUT_DWEIGHT(dweight, channel, sums)
#endif

#endif
