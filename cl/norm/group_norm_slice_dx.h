/* The sums of dn, and dx, of a slice of channels last, or of a chunk of it, that work-items hold in registers. The
 * including file defines a struct call with the members of GROUP_NORM_BACKWARD_READ and GROUP_NORM_BACKWARD_WRITE. */
#ifndef GROUP_NORM_SLICE_DX_H
#define GROUP_NORM_SLICE_DX_H

#include "norm/compensated_sum.h"
#include "norm/group_norm_backward.h"
#include "norm/group_norm_slice.h"

/* The local memory of a segment. Each part has the sums of dn, and those of dn · x̂ behind them. */
struct board {
    local real *lanes;    /* [2, STEP, SLICE_CHANNELS], of each lane */
    local real *channels; /* [2, SLICE_CHANNELS], times the channel's weight */
    local real *slopes;   /* [2, SPAN] */
};

/* This segment's part of the arrays of a work-group. */
static inline struct board board_of(local real *lanes, local real *channels, local real *slopes) {
    const uint segment = own_segment();
    const struct board board = {lanes + segment * 2 * STEP * SLICE_CHANNELS, channels + segment * 2 * SLICE_CHANNELS,
                                slopes + segment * 2 * SPAN};
    return board;
}

/* The vectors of a lane: as loaded, and dn where an activation makes it costly. Lanes that hold a chunk have no registers
 * for it, unless it can take the place of dy. */
#define DN_IS_BESIDE (ACTIVATION && CHUNKS == 1)
#define DN_IS_DY (ACTIVATION && CHUNKS > 1 && IS_REAL(DY_DTYPE))

struct held {
    struct packed_pair pair[HELD_OF_LANE];
    realv dn[DN_IS_BESIDE ? HELD_OF_LANE : 1];
};

INLINED void load_slice(const struct call *call, const struct place *place, struct held *held) {
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k))
            LOAD_PAIR(&held->pair[k], call, place->sample, element_of(place, k), VEC);
    begin_loads();
}

/* The numbers of this lane's channels. */
static inline struct channels channels_of(const struct call *call, const struct place *place) {
    const ulong channel = place->active ? place->channel + place->vector * VEC : 0, first = place->sample * GROUPS;
    const realv rstd = of_groups(call->rstd + first, channel, VEC, 1);
    const struct channels channels = {of_groups(call->mean + first, channel, VEC, 1), rstd,
                                      rstd * WEIGHTS_OF(call, channel, VEC),
                                      BIASES_OF(call, channel, VEC) X_SCALE_MEMBER(call, place->sample)};
    return channels;
}

static inline void keep_dn(struct held *held, const uint k, const realv dn) {
#if DN_IS_BESIDE
    held->dn[k] = dn;
#elif DN_IS_DY
    held->pair[k].dy = dn;
#endif
    (void)held, (void)k, (void)dn;
}

static inline realv kept_dn(const struct channels *channels, const struct held *held, const uint k, const realv centre) {
#if DN_IS_BESIDE
    return held->dn[k];
#elif DN_IS_DY
    return held->pair[k].dy;
#else
    return dn_of(channels, centre, WIDEN(DY_DTYPE)(held->pair[k].dy));
#endif
}

/* Computes the sums of this lane's channels over its positions. */
INLINED void sum_held(const struct place *place, const struct channels *channels, struct held *held,
                      struct channel_sums *own) {
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k)) {
            const struct point point = point_of(channels, &held->pair[k]);
            channel_sums_take(own, point.centre, point.dn);
            keep_dn(held, k, point.dn);
            if ((k + 1) % RUN_VECTORS == 0)
                channel_sums_end_run(own);
        }
}

/* Shows them to the other lanes. */
INLINED void put_lane(const struct place *place, const struct channels *channels, struct channel_sums *own,
                      const struct board *board) {
    channel_sums_end_run(own);
    if (place->active) {
        VSTORE(own->of_dn, (board->lanes + place->lane * VEC));
        VSTORE((own->of_product * channels->rstd), (board->lanes + (STEP * SLICE_CHANNELS + place->lane * VEC)));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* The steps to which the sums of later ones are added. */
#define MOST_FIRST_STEPS (CHUNKS > 1 ? 8 : 32)
#define FIRST_STEPS (STEP > MOST_FIRST_STEPS ? MOST_FIRST_STEPS : STEP)

/* A slice of few channels has many steps, for few lanes to add up. Here and below every lane has equally many rounds, some
 * of them idle: PoCL 3.1 computes wrong sums where the lengths of loops differ. */
INLINED void add_later_steps(const struct place *place, const struct board *board) {
    if (STEP == FIRST_STEPS)
        return;
    for (uint first = 0; first < 2 * FIRST_STEPS * SLICE_CHANNELS; first += LANES) {
        const uint i = first + place->lane;
        if (i >= 2 * FIRST_STEPS * SLICE_CHANNELS)
            continue;
        const uint of_sum = i % (FIRST_STEPS * SLICE_CHANNELS);
        local real *const own = board->lanes + i / (FIRST_STEPS * SLICE_CHANNELS) * STEP * SLICE_CHANNELS + of_sum;
        for (uint step = FIRST_STEPS; step < STEP - of_sum / SLICE_CHANNELS; step += FIRST_STEPS)
            *own += own[step * SLICE_CHANNELS];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Computes the sums of the slice's channels. They take the place of the first step's sums. */
INLINED void sum_channels(const struct call *call, const struct place *place, const struct board *board) {
    add_later_steps(place, board);
    for (uint first = 0; first < SLICE_CHANNELS; first += LANES) {
        const uint i = first + place->lane;
        if (i >= SLICE_CHANNELS)
            continue;
        const real weight = WEIGHT_OF(call, place->channel + i);
        real sums[2] = {0, 0};
        for (uint step = 0; step < FIRST_STEPS; step++) {
            sums[0] += board->lanes[step * SLICE_CHANNELS + i];
            sums[1] += board->lanes[(STEP + step) * SLICE_CHANNELS + i];
        }
        board->lanes[i] = sums[0];
        board->lanes[STEP * SLICE_CHANNELS + i] = sums[1];
        board->channels[i] = weight * sums[0];
        board->channels[SLICE_CHANNELS + i] = weight * sums[1];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* A sum of a group, over the slice's channels: the i-th of [2, SPAN]. */
static inline real sum_of_group(const struct board *board, const uint i) {
    const local real *channels = board->channels + i / SPAN * SLICE_CHANNELS + i % SPAN * CHANNELS_OF_GROUP;
    struct compensated_sum sum = {0, 0};
    for (uint channel = 0; channel < CHANNELS_OF_GROUP; channel++)
        compensated_sum_add(&sum, channels[channel]);
    return sum.sum;
}

/* What makes a group's slope of that sum over all positions. */
static inline real scale_of(const struct call *call, const struct place *place, const uint i) {
    return call->rstd[place->sample * GROUPS + place->channel / CHANNELS_OF_GROUP + i % SPAN] / (real)GROUP_SIZE;
}

INLINED void write_slice(const struct call *call, const struct place *place, const struct channels *channels,
                         const struct held *held, const struct board *board) {
    if (!place->writes)
        return;
    const realv slopes[2] = {of_lane(board->slopes, place), of_lane(board->slopes + SPAN, place)};
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k)) {
            const realv centre = X_OF(channels, held->pair[k].x) - channels->mean;
            const realv dn = kept_dn(channels, held, k, centre);
            PUT_DS(call, place->sample, element_of(place, k), dx_of(channels, slopes, centre, dn), VEC);
        }
}

#define SLICE_MEMORY                                           \
    local real of_lanes[SEGMENTS * 2 * STEP * SLICE_CHANNELS]; \
    local real of_channels[SEGMENTS * 2 * SLICE_CHANNELS];     \
    local real slopes[SEGMENTS * 2 * SPAN];                    \
    const struct board board = board_of(of_lanes, of_channels, slopes);

#endif
