/* The gradients of group norm with channels last, where a work-group holds its slices in registers: it reads x and dy
 * once. See clnorm_group_norm_backward_desc. */

#include "norm/group_norm_backward.h"
#include "norm/group_norm_slice.h"
#include "norm/kept_sum.h"

/* The arguments of a launch. work: SEGMENTS for each slice of each bundle. */
struct call {
    MEMBERS(GROUP_NORM_LAST_BACKWARD_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

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

/* The vectors of a lane: as loaded, and dn where an activation makes it costly. */
struct held {
    struct packed_pair pair[HELD_OF_LANE];
    realv dn[ACTIVATION ? HELD_OF_LANE : 1];
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

/* Computes the sums of this lane's channels over its positions. */
INLINED void sum_lane(const struct place *place, const struct channels *channels, struct held *held,
                      const struct board *board) {
    struct channel_sums own;
    channel_sums_start(&own);
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k)) {
            const struct point point = point_of(channels, &held->pair[k]);
            channel_sums_take(&own, point.centre, point.dn);
            if (ACTIVATION)
                held->dn[k] = point.dn;
            if ((k + 1) % RUN_VECTORS == 0)
                channel_sums_end_run(&own);
        }
    channel_sums_end_run(&own);
    if (place->active) {
        VSTORE(own.of_dn, (board->lanes + place->lane * VEC));
        VSTORE((own.of_product * channels->rstd), (board->lanes + (STEP * SLICE_CHANNELS + place->lane * VEC)));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* The steps to which the sums of later ones are added. */
#define FIRST_STEPS (STEP > 32 ? 32 : STEP)

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

/* Writes the sums of the slice's channels over the samples of a bundle, as a part of each channel. of_lanes: of the first
 * segment. */
INLINED void put_sums(const struct call *call, const ulong bundle, const struct place *place, const local real *of_lanes) {
#if HAS_SUMS
    const uint count = (uint)min((ulong)SEGMENTS, call->rows - bundle * SEGMENTS);
    for (uint first = 0; first < SLICE_CHANNELS; first += GROUP_ITEMS) {
        const uint i = first + (uint)get_local_id(0);
        if (i >= SLICE_CHANNELS)
            continue;
        struct kept_sum of_dn = {0, 0}, of_product = {0, 0};
        for (uint segment = 0; segment < count; segment++) {
            const local real *const own = of_lanes + segment * 2 * STEP * SLICE_CHANNELS + i;
            kept_sum_add(&of_dn, own[0]);
            kept_sum_add(&of_product, own[STEP * SLICE_CHANNELS]);
        }
        put_part(call->parts, part_of(bundle, place->channel + i, 0), of_dn.sum, of_product.sum);
    }
#endif
    (void)call, (void)bundle, (void)place, (void)of_lanes;
}

/* Computes the slopes of the slice's groups. */
INLINED void take_slopes(const struct call *call, const struct place *place, const struct board *board) {
    for (uint first = 0; first < 2 * SPAN; first += LANES) {
        const uint i = first + place->lane;
        if (i >= 2 * SPAN)
            continue;
        const ulong group = place->sample * GROUPS + place->channel / CHANNELS_OF_GROUP + i % SPAN;
        const local real *channels = board->channels + i / SPAN * SLICE_CHANNELS + i % SPAN * CHANNELS_OF_GROUP;
        struct kept_sum kept = {0, 0};
        for (uint channel = 0; channel < CHANNELS_OF_GROUP; channel++)
            kept_sum_add(&kept, channels[channel]);
        board->slopes[i] = call->rstd[group] / (real)GROUP_SIZE * kept.sum;
    }
    read_barrier();
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
            const realv dn = ACTIVATION ? held->dn[k] : WIDEN(DY_DTYPE)(held->pair[k].dy);
            PUT_DS(call, place->sample, element_of(place, k), dx_of(channels, slopes, centre, dn), VEC);
        }
}

/* Takes a slice of a bundle: each segment has that of a sample. Past the last sample a segment has that one, and writes
 * nothing. index: of the slice among those of all bundles. */
INLINED void take_slice(const struct call *call, const ulong index, const struct board *board, const local real *of_lanes) {
    const ulong bundle = index / SLICES, sample = bundle * SEGMENTS + own_segment();
    const struct place place = place_of(min(sample, call->rows - 1), index % SLICES, sample < call->rows);
    struct held held;
    load_slice(call, &place, &held);
    const struct channels channels = channels_of(call, &place);
    sum_lane(&place, &channels, &held, board);
    sum_channels(call, &place, board);
    take_slopes(call, &place, board);
    write_slice(call, &place, &channels, &held, board);
    put_sums(call, bundle, &place, of_lanes);
}

/* This work-group's slices. */
INLINED void take_share(const struct call *call, const struct board *board, const local real *of_lanes) {
    const ulong first = get_group_id(0) * call->iterations;
    for (ulong i = 0; i < call->iterations && (first + i) * SEGMENTS < call->work; i++) {
        take_slice(call, first + i, board, of_lanes);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#define LOCAL_MEMORY                                           \
    local real of_lanes[SEGMENTS * 2 * STEP * SLICE_CHANNELS]; \
    local real of_channels[SEGMENTS * 2 * SLICE_CHANNELS];     \
    local real slopes[SEGMENTS * 2 * SPAN];                    \
    const struct board board = board_of(of_lanes, of_channels, slopes);

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_last_backward(PARAMETERS(GROUP_NORM_LAST_BACKWARD_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_LAST_BACKWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, &board, of_lanes);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_last_backward_unaligned(PARAMETERS(GROUP_NORM_LAST_BACKWARD_ARGS)) {
    LOCAL_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_LAST_BACKWARD_ARGS), .aligned = false};
    take_share(&call, &board, of_lanes);
}
#endif
