/* The sums of dn, and dx, of a segment of channels first, or of a piece of it, that LANES work-items hold in registers. A
 * piece is PIECE_CHANNELS neighbouring channels of a group, or one of CHUNKS of a single channel. All pieces are equally
 * large. A set of CHANNEL_LANES neighbouring lanes takes a channel at a time. The including file defines a struct call with
 * the members of GROUP_NORM_BACKWARD_ARGS. */
#ifndef GROUP_NORM_SEGMENT_DX_H
#define GROUP_NORM_SEGMENT_DX_H

#include "norm/group_norm_backward.h"

#define PIECES (CHANNELS_OF_GROUP / PIECE_CHANNELS * CHUNKS) /* of a segment */
#define SETS (LANES / CHANNEL_LANES)
#define ROUNDS (PIECE_CHANNELS / SETS + (PIECE_CHANNELS % SETS != 0))          /* channels of a set */
#define HELD_OF_CHANNEL (CHUNK / CHANNEL_LANES + (CHUNK % CHANNEL_LANES != 0)) /* vectors of a lane */

/* The place of a lane in a piece. */
struct place {
    ulong group, sample; /* group: of all samples */
    ulong channel;       /* the piece's first one */
    ulong chunk;         /* of the channel */
    uint set, lane;      /* the lane within its set */
    bool active;         /* false past the last piece */
};

static inline struct place place_of(const ulong index, const bool active) {
    const ulong group = index / PIECES, sample = group / GROUPS, piece = index % PIECES;
    const uint lane = (uint)get_local_id(0) % LANES;
    const struct place place = {group,
                                sample,
                                (group - sample * GROUPS) * CHANNELS_OF_GROUP + piece / CHUNKS * PIECE_CHANNELS,
                                piece % CHUNKS,
                                lane / CHANNEL_LANES,
                                lane % CHANNEL_LANES,
                                active};
    return place;
}

/* Whether the set has a channel in a round, and this lane a k-th vector of it. */
static inline bool has_channel(const struct place *place, const uint round) {
    return place->active && (round * SETS + SETS <= PIECE_CHANNELS || round * SETS + place->set < PIECE_CHANNELS);
}

static inline bool has_vector(const struct place *place, const uint round, const uint k) {
    return has_channel(place, round) && ((k + 1) * CHANNEL_LANES <= CHUNK || place->lane + k * CHANNEL_LANES < CHUNK);
}

/* The set's channel in a round; the piece's last one where it has none. */
static inline ulong channel_of(const struct place *place, const uint round) {
    const uint channel = round * SETS + place->set;
    return place->channel + (round * SETS + SETS <= PIECE_CHANNELS ? channel : min(channel, (uint)PIECE_CHANNELS - 1));
}

/* The first element of a vector in the sample. */
static inline ulong element_of(const struct place *place, const uint round, const uint k) {
    const ulong vector = place->chunk * CHUNK + place->lane + k * CHANNEL_LANES;
    return channel_of(place, round) * SPATIAL + vector * VEC;
}

/* The vectors of a lane: as loaded, and dn where an activation makes it costly. Lanes that hold a piece, while they hold
 * another one, have no registers for it, unless it can take the place of dy. */
#define DN_IS_BESIDE (ACTIVATION && !EXCHANGES)
#define DN_IS_DY (ACTIVATION && EXCHANGES && IS_REAL(DY_DTYPE))

struct held {
    struct packed_pair pair[ROUNDS][HELD_OF_CHANNEL];
    realv dn[DN_IS_BESIDE ? ROUNDS : 1][DN_IS_BESIDE ? HELD_OF_CHANNEL : 1];
};

/* Called where a vector has been added. */
static inline void forget_wide(struct packed_pair *packed) {
    if (sizeof(packed->x) < sizeof(realv))
        forget((uint *)&packed->x, sizeof(packed->x) / sizeof(uint));
#if !DN_IS_BESIDE && !DN_IS_DY
    if (sizeof(packed->dy) < sizeof(realv))
        forget((uint *)&packed->dy, sizeof(packed->dy) / sizeof(uint));
#endif
}

static inline void keep_dn(struct held *held, const uint round, const uint k, const realv dn) {
#if DN_IS_BESIDE
    held->dn[round][k] = dn;
#elif DN_IS_DY
    held->pair[round][k].dy = dn;
#endif
    (void)held, (void)round, (void)k, (void)dn;
}

static inline realv kept_dn(const struct channels *channels, const struct held *held, const uint round, const uint k,
                            const realv centre) {
#if DN_IS_BESIDE
    return held->dn[round][k];
#elif DN_IS_DY
    return held->pair[round][k].dy;
#else
    return dn_of(channels, centre, WIDEN(DY_DTYPE)(held->pair[round][k].dy));
#endif
}

INLINED void load_held(const struct call *call, const struct place *place, struct held *held) {
#pragma unroll
    for (uint round = 0; round < ROUNDS; round++)
#pragma unroll
        for (uint k = 0; k < HELD_OF_CHANNEL; k++)
            if (has_vector(place, round, k))
                LOAD_PAIR(&held->pair[round][k], call, place->sample, element_of(place, round, k), VEC);
    begin_loads();
}

/* The group of a piece, or the first one if there is none. */
static inline ulong group_there(const struct place *place) {
    return place->active ? place->group : 0;
}

/* The sums of a set's channel: of dn, and of dn · x̂. */
INLINED void sum_channel(const struct call *call, const struct place *place, const uint round, struct held *held,
                         struct lanes *lanes, real sums[2]) {
    const struct channels channels = CHANNELS_AT(call, group_there(place), channel_of(place, round));
    struct channel_sums own;
    channel_sums_start(&own);
#pragma unroll
    for (uint k = 0; k < HELD_OF_CHANNEL; k++)
        if (has_vector(place, round, k)) {
            const struct point point = point_of(&channels, &held->pair[round][k]);
            channel_sums_take(&own, point.centre, point.dn);
            keep_dn(held, round, k, point.dn);
            forget_wide(&held->pair[round][k]);
            if ((k + 1) % RUN_VECTORS == 0)
                channel_sums_end_run(&own);
        }
    channel_sums_end_run(&own);
    sums[0] = own.of_dn;
    sums[1] = own.of_product * call->rstd[group_there(place)];
    fold_neighbours(lanes, sums, 2, CHANNEL_LANES, FOLD_SUM);
}

static inline void write_sums(const struct call *call, const struct place *place, const uint round, const real sums[2]) {
#if HAS_SUMS
    if (has_channel(place, round) && place->lane == 0)
        put_part(call->parts, part_of(place->sample, channel_of(place, round), place->chunk), sums[0], sums[1]);
    join_lanes();
#else
    (void)call, (void)place, (void)round, (void)sums;
#endif
}

/* Computes the sums of the piece's channels, each times its weight. writes: also writes those of channels. Every work-item
 * of the work-group calls it. */
INLINED void sum_held(const struct call *call, const struct place *place, struct held *held, const bool writes,
                      struct lanes *lanes, real total[2]) {
    total[0] = total[1] = 0;
#pragma unroll
    for (uint round = 0; round < ROUNDS; round++) {
        real sums[2];
        sum_channel(call, place, round, held, lanes, sums);
        if (writes)
            write_sums(call, place, round, sums);
        if (has_channel(place, round) && place->lane == 0) {
            const real weight = WEIGHT_OF(call, channel_of(place, round));
            total[0] += weight * sums[0];
            total[1] += weight * sums[1];
        }
    }
    sum_lanes(lanes, total, 2);
}

/* sums: of the group. */
INLINED void write_held(const struct call *call, const struct place *place, struct held *held, const real sums[2]) {
    const real scale = call->rstd[group_there(place)] / (real)GROUP_SIZE;
    const realv slopes[2] = {scale * sums[0], scale * sums[1]};
#pragma unroll
    for (uint round = 0; round < ROUNDS; round++) {
        const struct channels channels = CHANNELS_AT(call, group_there(place), channel_of(place, round));
#pragma unroll
        for (uint k = 0; k < HELD_OF_CHANNEL; k++)
            if (has_vector(place, round, k)) {
                const realv centre = X_OF(&channels, held->pair[round][k].x) - channels.mean;
                const realv dn = kept_dn(&channels, held, round, k, centre);
                PUT_DS(call, place->sample, element_of(place, round, k), dx_of(&channels, slopes, centre, dn), VEC);
            }
    }
}

#endif
