/* Sums over the parts of group_norm_sums: over a group's chunks, or of a channel over samples. */
#ifndef GROUP_NORM_SHARES_H
#define GROUP_NORM_SHARES_H

#include "norm/group_norm_entries.h"
#include "norm/kept_sum.h"

/* This lane's share of two sums. */
struct shares {
    struct kept_sum of_dn, of_product;
};

/* Adds the sums of an entry that exist. */
static inline void take_entry(struct shares *shares, const global real *part, const ulong chunk, const real weight) {
    if (chunk_count(chunk) == 0)
        return;
    kept_sum_add(&shares->of_dn, weight * part[0]);
    kept_sum_add(&shares->of_product, weight * part[PART_STEP]);
}

/* Adds this lane's share of a channel's sums over samples. */
static inline void take_channel(struct shares *shares, const global real *parts, const ulong rows, const ulong channel,
                                const uint lane) {
    for (ulong index = lane; index < rows * CHUNKS; index += LANES)
        take_entry(shares, parts + part_of(index / CHUNKS, channel, index % CHUNKS), index % CHUNKS, 1);
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
