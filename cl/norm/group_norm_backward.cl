/* The gradients of group norm with channels first, a group of a sample at a time: LANES work-items read x and dy for the
 * sums of its channels, and again for dx, from a cache if they fit there. See clnorm_group_norm_backward_desc. */

#include "norm/compensated_sum.h"
#include "norm/group_norm_backward.h"

/* The arguments of a launch. work: groups of samples. */
struct call {
    MEMBERS(GROUP_NORM_BACKWARD_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

/* dn is kept between the sums and dx where an activation makes it costly, and a single lane has a small segment, as on
 * CPUs. */
#define KEPT_ELEMENTS 32768
#define KEEPS_DN (ACTIVATION && LANES == 1 && GROUP_SIZE <= KEPT_ELEMENTS)
#if KEEPS_DN
#define KEPT_VECTORS (CHANNELS_OF_GROUP * ROW_VECTORS)
#else
#define KEPT_VECTORS 1
#endif

/* The place of a segment. */
struct place {
    ulong index, sample;
    ulong channel; /* its first one */
    uint lane;
    bool active; /* false past the last segment */
};

static inline struct place place_of(const ulong index, const bool active) {
    const ulong sample = index / GROUPS;
    const struct place place = {index, sample, (index - sample * GROUPS) * CHANNELS_OF_GROUP, (uint)get_local_id(0) % LANES,
                                active};
    return place;
}

static inline void write_sums(const struct call *call, const struct place *place, const ulong channel, const real sums[2]) {
#if HAS_SUMS
    if (place->active && place->lane == 0) {
        put_part(call->parts, part_of(place->sample, channel, 0), sums[0], sums[1]);
    }
    join_lanes();
#else
    (void)call, (void)place, (void)channel, (void)sums;
#endif
}

/* The sums of a channel over its lanes: of dn, and of dn · x̂. kept: dn of its vectors. */
INLINED void sum_channel(const struct call *call, const struct place *place, const ulong channel, struct lanes *lanes,
                         realv *kept, real sums[2]) {
    sums[0] = sums[1] = 0;
    if (place->active) {
        const struct channels channels = CHANNELS_AT(call, place->index, channel);
        struct channel_sums own;
        channel_sums_start(&own);
        for (ulong run = place->lane; run < ROW_VECTORS; run += RUN_VECTORS * LANES) {
            for (ulong vector = run; vector < min((ulong)ROW_VECTORS, run + RUN_VECTORS * LANES); vector += LANES) {
                const ulong at = channel * SPATIAL + place_in_row(vector), count = elements_in_row(vector);
                const realv centre = X_OF(&channels, LOAD_OF(call, X_DTYPE, x, place->sample, at, count)) - channels.mean;
                const realv dn = dn_of(&channels, centre, LOAD_DY(call, place->sample, at, count));
                const uint taken = OVERLAPS && vector == VECTORS_APART ? VEC - SPATIAL % VEC : 0; /* by the vector before */
                channel_sums_take(&own, centre, OVERLAPS ? fill_before(dn, taken, 0) : dn);
#if KEEPS_DN
                kept[vector] = dn;
#endif
            }
            channel_sums_end_run(&own);
        }
        sums[0] = own.of_dn;
        sums[1] = own.of_product * call->rstd[place->index];
    }
    sum_lanes(lanes, sums, 2);
    (void)kept;
}

/* Computes the slopes of dx. */
INLINED void sum_segment(const struct call *call, const struct place *place, struct lanes *lanes, realv *kept,
                         realv slopes[2]) {
    struct compensated_sum of_wdn = {0, 0}, of_product = {0, 0};
    for (ulong i = 0; i < CHANNELS_OF_GROUP; i++) {
        const ulong channel = place->channel + i;
        real sums[2];
        sum_channel(call, place, channel, lanes, kept + (KEEPS_DN ? i * ROW_VECTORS : 0), sums);
        const real weight = place->active ? WEIGHT_OF(call, channel) : 0;
        compensated_sum_add(&of_wdn, weight * sums[0]);
        compensated_sum_add(&of_product, weight * sums[1]);
        write_sums(call, place, channel, sums);
    }
    const real scale = place->active ? call->rstd[place->index] : 0;
    slopes[0] = scale * (of_wdn.sum / (real)GROUP_SIZE);
    slopes[1] = scale * (of_product.sum / (real)GROUP_SIZE);
}

/* The gradient of a vector of s. at: element of the sample. kept: dn, if it is kept. */
static inline realv ds_at(const struct call *call, const struct place *place, const struct channels *channels,
                          const ulong at, const ulong count, const realv *kept, const realv slopes[2]) {
    const realv centre = X_OF(channels, LOAD_OF(call, X_DTYPE, x, place->sample, at, count)) - channels->mean;
    const realv dn = KEEPS_DN ? *kept : dn_of(channels, centre, LOAD_DY(call, place->sample, at, count));
    return ALL_OF_S(call, place->sample, at, dx_of(channels, slopes, centre, dn), count);
}

static inline void write_channel(const struct call *call, const struct place *place, const ulong channel, const realv *kept,
                                 const realv slopes[2]) {
    const struct channels channels = CHANNELS_AT(call, place->index, channel);
    const ulong first = channel * SPATIAL, end = first + place_in_row(VECTORS_APART);
    realv last = 0; /* is computed before a dx over x or dy is written */
    if (OVERLAPS)
        last = ds_at(call, place, &channels, end, VEC, kept + (KEEPS_DN ? VECTORS_APART : 0), slopes);
    for (ulong vector = place->lane; vector < VECTORS_APART; vector += LANES) {
        const ulong at = first + vector * VEC, count = elements_in_row(vector);
        const realv ds = ds_at(call, place, &channels, at, count, kept + (KEEPS_DN ? vector : 0), slopes);
        PUT_ALL(call, place->sample, at, ds, count);
    }
    if (OVERLAPS)
        PUT_ALL(call, place->sample, end, last, VEC);
}

INLINED void take_segment(const struct call *call, const ulong index, const bool active, struct lanes *lanes) {
    const struct place own_place = place_of(index, active), *const place = &own_place;
    realv slopes[2], kept[KEPT_VECTORS];
    sum_segment(call, place, lanes, kept, slopes);
    for (ulong j = 0; j < (place->active ? CHANNELS_OF_GROUP : 0); j++)
        write_channel(call, place, place->channel + j, kept + (KEEPS_DN ? j * ROW_VECTORS : 0), slopes);
}

#include "common/take_share.h"

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_backward(PARAMETERS(GROUP_NORM_BACKWARD_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(GROUP_NORM_BACKWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_backward_unaligned(PARAMETERS(GROUP_NORM_BACKWARD_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(GROUP_NORM_BACKWARD_ARGS), .aligned = false};
    take_share(&call, scratch);
}
#endif
