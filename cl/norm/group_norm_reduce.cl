/* Reductions over the chunks of group norm: the statistics of a group from moments, the slopes of its dx from sums, the
 * sums over samples, of batches or of all, which are dweight and dbias, and the scales of y. LANES work-items compute one
 * result. VEC is that of the chunks' kernels. */

#include "norm/group_moments.h"
#include "norm/group_norm.h"
#include "norm/group_norm_shares.h"

#if MEASURES
#include "quantize/quantize.h"
#endif

/* The first result of a work-item. Its next ones are SEGMENTS apart. */
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

#include "norm/group_norm_entries.h"

#if !PRESENT(DY_DTYPE)

/* work: groups of samples. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_merge(PARAMETERS(GROUP_NORM_MERGE_ARGS)) {
    local real scratch[2 * SCRATCH];
    struct lanes lanes = {.scratch = scratch};
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong first = first_of(iterations);
    for (ulong i = 0; i < iterations && work > 0; i++) { /* with work 0 nothing is read */
        const ulong group = first + i * SEGMENTS;
        const bool active = group < work;
        const struct statistics statistics = merge_entries(parts + parts_at, min(group, work - 1), lane, eps, &lanes);
        if (active && lane == 0) {
            mean[mean_at + group] = statistics.mean;
            rstd[rstd_at + group] = statistics.rstd;
        }
    }
    last_barrier();
}

#else

#if PRESENT(WEIGHT_DTYPE)
#define SLOPES_WEIGHT (weight + weight_at)
#else
#define SLOPES_WEIGHT 0
#endif

/* work: groups of samples, then channels whose sums are requested. A group's slopes are the two numbers of dx = rstd ·
 * weight · dn − slopes[0] − slopes[1] · x̂. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_slopes(PARAMETERS(GROUP_NORM_SLOPES_ARGS)) {
    local real scratch[2 * SCRATCH];
    struct lanes lanes = {.scratch = scratch};
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong first = first_of(iterations), groups = min(rows * GROUPS, work); /* with work 0 nothing is read */
    for (ulong i = 0; i < iterations; i++) {
        const ulong index = first + i * SEGMENTS;
        const bool of_group = index < groups, of_channel = !of_group && index < work;
        struct shares shares = {{0, 0}, {0, 0}};
        if (of_group)
            take_group(&shares, parts + parts_at, SLOPES_WEIGHT, index, lane);
        if (of_channel)
            take_channel(&shares, parts + parts_at, rows, index - groups, lane);
        real sums[2] = {shares.of_dn.sum, shares.of_product.sum};
        sum_lanes(&lanes, sums, 2);
        if (of_group && lane == 0) {
            const real scale = rstd[rstd_at + index];
            slopes[slopes_at + 2 * index] = scale * (sums[0] / (real)GROUP_SIZE);
            slopes[slopes_at + 2 * index + 1] = scale * (sums[1] / (real)GROUP_SIZE);
        }
        if (of_channel && lane == 0) {
            PUT_DBIAS(dbias + dbias_at, index - groups, sums);
            PUT_DWEIGHT(dweight + dweight_at, index - groups, sums);
        }
    }
    last_barrier();
}

/* The sums of a channel over samples, if it is there. Every work-item of the work-group calls it. */
INLINED void sum_channel(const global real *parts, const ulong rows, const ulong channel, const bool is_there,
                         const uint lane, struct lanes *lanes, real sums[2]) {
    struct shares shares = {{0, 0}, {0, 0}};
    if (is_there)
        take_channel(&shares, parts, rows, channel, lane);
    sums[0] = shares.of_dn.sum;
    sums[1] = shares.of_product.sum;
    sum_lanes(lanes, sums, 2);
}

/* The sums over batches of samples. work: the channels of each batch; a sum has its index. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_batches(PARAMETERS(GROUP_NORM_BATCHES_ARGS)) {
    local real scratch[2 * SCRATCH];
    struct lanes lanes = {.scratch = scratch};
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong first = first_of(iterations);
    for (ulong i = 0; i < iterations; i++) {
        const ulong index = first + i * SEGMENTS, sample = index / CHANNELS * samples;
        real total[2];
        sum_channel(parts + parts_at + 2 * part_of(sample, 0, 0), min(samples, rows - sample), index % CHANNELS,
                    index < work, lane, &lanes, total);
        if (index < work && lane == 0)
            put_part(sums + sums_at, index, total[0], total[1]);
    }
    last_barrier();
}

/* The sums over samples alone. work: channels. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_dweight(PARAMETERS(GROUP_NORM_DWEIGHT_ARGS)) {
    local real scratch[2 * SCRATCH];
    struct lanes lanes = {.scratch = scratch};
    const uint lane = (uint)get_local_id(0) % LANES;
    const ulong first = first_of(iterations);
    for (ulong i = 0; i < iterations; i++) {
        const ulong channel = first + i * SEGMENTS;
        real sums[2];
        sum_channel(parts + parts_at, rows, channel, channel < work, lane, &lanes, sums);
        if (channel < work && lane == 0) {
            PUT_DBIAS(dbias + dbias_at, channel, sums);
            PUT_DWEIGHT(dweight + dweight_at, channel, sums);
        }
    }
    last_barrier();
}

#endif

#endif
