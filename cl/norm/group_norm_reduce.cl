/* What the chunks of group norm come to, with the VEC that the chunks have: the statistics of a group from moments, slopes
 * of its dx from sums, and dweight and dbias, sums over the samples. Of each LANES work-items make one number, or two. */

#include "norm/group_moments.h"
#include "norm/group_norm.h"
#include "norm/kept_sum.h"

#if MEASURES
#include "quantize/quantize.h"
#endif

/* The first number of a work-item, and the one after its work-group's; those of a work-item are SEGMENTS apart. */
static inline ulong first_of(const ulong iterations) {
    return get_group_id(0) * iterations * SEGMENTS + get_local_id(0) / LANES;
}

#if MEASURES

/* work: scales of y. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_scales(PARAMETERS(GROUP_NORM_SCALES_ARGS)) {
    local real scratch[2 * SCRATCH];
    struct lanes lanes = {.scratch = scratch};
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong first = first_of(iterations);
    for (ulong i = 0; i < iterations; i++) {
        const ulong index = first + i * SEGMENTS;
        const global float *own = magnitudes + magnitudes_at + index * terms;
        float amax = 0;
        for (ulong term = index < work ? lane : terms; term < terms; term += LANES)
            amax = fmax(amax, own[term]);
        amax = largest_over_lanes(&lanes, amax);
        if (index < work && lane == 0)
            STORE1(SCALE_DTYPE)(y_scale + y_scale_at + index, ROUND(SCALE_DTYPE)(scale_of(amax, FP8_LARGEST(Y_DTYPE))));
    }
    last_barrier();
}

#else

/* A group's chunks, an entry each: with a channel's beside each other, or with the channels of one chunk. */
#define ENTRIES ((ulong)CHANNELS_OF_GROUP * CHUNKS)

struct entry {
    ulong at; /* of its first number */
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

#if !PRESENT(DY_DTYPE)

#define MERGED 32 /* entries that are merged one after the other: chains of roundings stay short */

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

/* work: groups of samples. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_merge(PARAMETERS(GROUP_NORM_MERGE_ARGS)) {
    local real scratch[2 * SCRATCH];
    struct lanes lanes = {.scratch = scratch};
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong first = first_of(iterations);
    for (ulong i = 0; i < iterations; i++) {
        const ulong group = first + i * SEGMENTS;
        const bool active = group < work;
        const real origin = active ? parts[parts_at + entry_of(group, 0).at] : 0;
        const struct spread own = own_entries(parts + parts_at, group, active ? lane : ENTRIES, origin);
        const struct spread all = spread_over_lanes(own, (real)GROUP_SIZE, &lanes);
        if (active && lane == 0) {
            mean[mean_at + group] = origin + all.mean;
            rstd[rstd_at + group] = rstd_of(all.squares, eps);
        }
    }
    last_barrier();
}

#else

/* work: groups of samples. Of each the two numbers of dx = rstd · weight · dn − slopes[0] − slopes[1] · x̂. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_slopes(PARAMETERS(GROUP_NORM_SLOPES_ARGS)) {
    local real scratch[2 * SCRATCH];
    struct lanes lanes = {.scratch = scratch};
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong first = first_of(iterations);
#if PRESENT(WEIGHT_DTYPE)
    weight += weight_at;
#endif
    for (ulong i = 0; i < iterations; i++) {
        const ulong group = first + i * SEGMENTS;
        const bool active = group < work;
        struct kept_sum of_wdn = {0, 0}, of_product = {0, 0};
        for (ulong index = active ? lane : ENTRIES; index < ENTRIES; index += LANES) {
            const struct entry entry = entry_of(group, index);
#if PRESENT(WEIGHT_DTYPE)
            const real own = LOAD_ONE(WEIGHT_DTYPE, weight + entry.channel);
#else
            const real own = 1;
#endif
            if (chunk_count(entry.chunk) == 0)
                continue;
            kept_sum_add(&of_wdn, own * parts[parts_at + entry.at]);
            kept_sum_add(&of_product, own * parts[parts_at + entry.at + PART_STEP]);
        }
        real sums[2] = {of_wdn.sum, of_product.sum};
        sum_lanes(&lanes, sums, 2);
        if (active && lane == 0) {
            const real scale = rstd[rstd_at + group];
            slopes[slopes_at + 2 * group] = scale * (sums[0] / (real)GROUP_SIZE);
            slopes[slopes_at + 2 * group + 1] = scale * (sums[1] / (real)GROUP_SIZE);
        }
    }
    last_barrier();
}

#if PRESENT(DWEIGHT_DTYPE) || PRESENT(DBIAS_DTYPE)
/* work: channels. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_dweight(PARAMETERS(GROUP_NORM_DWEIGHT_ARGS)) {
    local real scratch[2 * SCRATCH];
    struct lanes lanes = {.scratch = scratch};
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong first = first_of(iterations);
    for (ulong i = 0; i < iterations; i++) {
        const ulong channel = first + i * SEGMENTS, terms = channel < work ? rows * CHUNKS : 0;
        struct kept_sum of_dn = {0, 0}, of_product = {0, 0};
        for (ulong index = lane; index < terms; index += LANES) {
            const ulong chunk = index % CHUNKS, at = part_of(index / CHUNKS, channel, chunk);
            if (chunk_count(chunk) == 0)
                continue;
            kept_sum_add(&of_dn, parts[parts_at + at]);
            kept_sum_add(&of_product, parts[parts_at + at + PART_STEP]);
        }
        real sums[2] = {of_dn.sum, of_product.sum};
        sum_lanes(&lanes, sums, 2);
        if (channel < work && lane == 0) {
#if PRESENT(DBIAS_DTYPE)
            PUT1(DBIAS_DTYPE)(dbias + dbias_at + channel, sums[0], ACCUMULATE);
#endif
#if PRESENT(DWEIGHT_DTYPE)
            PUT1(DWEIGHT_DTYPE)(dweight + dweight_at + channel, sums[1], ACCUMULATE);
#endif
        }
    }
    last_barrier();
}
#endif

#endif

#endif
