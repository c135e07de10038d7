/* The gradients of group norm with channels first, where a group of a sample fits in the registers of LANES work-items:
 * they read x and dy once. A set of CHANNEL_LANES neighbouring lanes takes a channel at a time. See
 * clnorm_group_norm_backward_desc. */

#include "norm/group_norm_backward.h"

/* The arguments of a launch. work: groups of samples. */
struct call {
    MEMBERS(GROUP_NORM_BACKWARD_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#define SETS (LANES / CHANNEL_LANES)
#define ROUNDS (CHANNELS_OF_GROUP / SETS + (CHANNELS_OF_GROUP % SETS != 0))                /* channels of a set */
#define HELD_OF_CHANNEL (ROW_VECTORS / CHANNEL_LANES + (ROW_VECTORS % CHANNEL_LANES != 0)) /* vectors of a lane */

/* The place of a lane in a segment. */
struct place {
    ulong index, sample;
    ulong channel;  /* the segment's first one */
    uint set, lane; /* the lane within its set */
    bool active;    /* false past the last segment */
};

static inline struct place place_of(const ulong index, const bool active) {
    const ulong sample = index / GROUPS;
    const uint lane = (uint)get_local_id(0) % LANES;
    const struct place place = {
        index, sample, (index - sample * GROUPS) * CHANNELS_OF_GROUP, lane / CHANNEL_LANES, lane % CHANNEL_LANES, active};
    return place;
}

/* Whether the set has a channel in a round, and this lane a k-th vector of it. */
static inline bool has_channel(const struct place *place, const uint round) {
    return place->active && (round * SETS + SETS <= CHANNELS_OF_GROUP || round * SETS + place->set < CHANNELS_OF_GROUP);
}

static inline bool has_vector(const struct place *place, const uint round, const uint k) {
    return has_channel(place, round) &&
           ((k + 1) * CHANNEL_LANES <= ROW_VECTORS || place->lane + k * CHANNEL_LANES < ROW_VECTORS);
}

/* The set's channel in a round; the segment's last one where it has none. */
static inline ulong channel_of(const struct place *place, const uint round) {
    const uint channel = round * SETS + place->set;
    return place->channel +
           (round * SETS + SETS <= CHANNELS_OF_GROUP ? channel : min(channel, (uint)CHANNELS_OF_GROUP - 1));
}

/* The first element of a vector in the sample. */
static inline ulong element_of(const struct place *place, const uint round, const uint k) {
    return channel_of(place, round) * SPATIAL + (place->lane + k * CHANNEL_LANES) * VEC;
}

/* The vectors of a lane: as loaded, and dn where an activation makes it costly. */
struct held {
    struct packed_pair pair[ROUNDS][HELD_OF_CHANNEL];
    realv dn[ACTIVATION ? ROUNDS : 1][ACTIVATION ? HELD_OF_CHANNEL : 1];
};

/* Called where a vector has been added. */
static inline void forget_wide(struct packed_pair *packed) {
    if (sizeof(packed->x) < sizeof(realv))
        forget((uint *)&packed->x, sizeof(packed->x) / sizeof(uint));
#if !ACTIVATION
    if (sizeof(packed->dy) < sizeof(realv))
        forget((uint *)&packed->dy, sizeof(packed->dy) / sizeof(uint));
#endif
}

INLINED void load_segment(const struct call *call, const struct place *place, struct held *held) {
#pragma unroll
    for (uint round = 0; round < ROUNDS; round++)
#pragma unroll
        for (uint k = 0; k < HELD_OF_CHANNEL; k++)
            if (has_vector(place, round, k))
                LOAD_PAIR(&held->pair[round][k], call, place->sample, element_of(place, round, k), VEC);
    begin_loads();
}

/* The sums of a set's channel: of dn, and of dn · x̂. */
INLINED void sum_channel(const struct call *call, const struct place *place, const uint round, struct held *held,
                         struct lanes *lanes, real sums[2]) {
    const ulong index = place->active ? place->index : 0;
    const struct channels channels = CHANNELS_AT(call, index, channel_of(place, round));
    struct channel_sums own;
    channel_sums_start(&own);
#pragma unroll
    for (uint k = 0; k < HELD_OF_CHANNEL; k++)
        if (has_vector(place, round, k)) {
            const struct point point = point_of(&channels, &held->pair[round][k]);
            channel_sums_take(&own, point.centre, point.dn);
            if (ACTIVATION)
                held->dn[round][k] = point.dn;
            forget_wide(&held->pair[round][k]);
            if ((k + 1) % RUN_VECTORS == 0)
                channel_sums_end_run(&own);
        }
    channel_sums_end_run(&own);
    sums[0] = own.of_dn;
    sums[1] = own.of_product * call->rstd[index];
    fold_neighbours(lanes, sums, 2, CHANNEL_LANES, FOLD_SUM);
}

static inline void write_sums(const struct call *call, const struct place *place, const uint round, const real sums[2]) {
#if HAS_SUMS
    if (has_channel(place, round) && place->lane == 0) {
        put_part(call->parts, part_of(place->sample, channel_of(place, round), 0), sums[0], sums[1]);
    }
    join_lanes();
#else
    (void)call, (void)place, (void)round, (void)sums;
#endif
}

/* Computes the slopes of dx. */
INLINED void sum_segment(const struct call *call, const struct place *place, struct held *held, struct lanes *lanes,
                         realv slopes[2]) {
    real total[2] = {0, 0};
#pragma unroll
    for (uint round = 0; round < ROUNDS; round++) {
        real sums[2];
        sum_channel(call, place, round, held, lanes, sums);
        write_sums(call, place, round, sums);
        if (has_channel(place, round) && place->lane == 0) {
            const real weight = WEIGHT_OF(call, channel_of(place, round));
            total[0] += weight * sums[0];
            total[1] += weight * sums[1];
        }
    }
    sum_lanes(lanes, total, 2);
    const real scale = call->rstd[place->active ? place->index : 0] / (real)GROUP_SIZE;
    slopes[0] = scale * total[0];
    slopes[1] = scale * total[1];
}

INLINED void write_segment(const struct call *call, const struct place *place, struct held *held, const realv slopes[2]) {
#pragma unroll
    for (uint round = 0; round < ROUNDS; round++) {
        const struct channels channels = CHANNELS_AT(call, place->active ? place->index : 0, channel_of(place, round));
#pragma unroll
        for (uint k = 0; k < HELD_OF_CHANNEL; k++)
            if (has_vector(place, round, k)) {
                const realv centre = X_OF(&channels, held->pair[round][k].x) - channels.mean;
                const realv dn = ACTIVATION ? held->dn[round][k] : WIDEN(DY_DTYPE)(held->pair[round][k].dy);
                PUT_DS(call, place->sample, element_of(place, round, k), dx_of(&channels, slopes, centre, dn), VEC);
            }
    }
}

INLINED void take_segment(const struct call *call, const struct place *place, struct lanes *lanes) {
    struct held held;
    realv slopes[2];
    load_segment(call, place, &held);
    sum_segment(call, place, &held, lanes, slopes);
    write_segment(call, place, &held, slopes);
}

#include "norm/group_norm_segments.h"

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_backward_held(PARAMETERS(GROUP_NORM_BACKWARD_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(GROUP_NORM_BACKWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_backward_held_unaligned(PARAMETERS(GROUP_NORM_BACKWARD_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(GROUP_NORM_BACKWARD_ARGS), .aligned = false};
    take_share(&call, scratch);
}
#endif
