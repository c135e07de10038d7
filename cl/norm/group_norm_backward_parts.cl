/* The gradients of group norm by chunks, with either layout: the sums of each channel, and, once group_norm_slopes has
 * added them up over groups, dx. */

#include "norm/group_norm_backward.h"

/* The arguments of the launches. work: units. */
struct sums_call {
    MEMBERS(GROUP_NORM_SUMS_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

struct dx_call {
    MEMBERS(GROUP_NORM_DX_ARGS)
    bool aligned;
};

#if !IS_FIRST
#define IS_THERE(j) (unit->vector + (j)*LANES < ROW_VECTORS)
#define CHANNEL(j) ((unit->vector + (ulong)(j)*LANES) * VEC)
#define COUNT(j) elements_of(unit->vector + (j)*LANES)

/* Of the channels side by side of a held vector: their groups' numbers. */
static inline struct channels channels_at(const global real *mean, const global real *rstd, const struct unit *unit,
                                          const uint j) {
    const ulong first = unit->sample * GROUPS;
    const struct channels channels = {of_groups(mean + first, CHANNEL(j), COUNT(j), 1),
                                      of_groups(rstd + first, CHANNEL(j), COUNT(j), 1), 1, 0};
    return channels;
}
#endif

/* ------------------------------------------------------------------------------------------------------------ sums */

#if IS_FIRST

INLINED void take_sums(const struct sums_call *call, const struct unit *unit, struct lanes *lanes) {
    real sums[2] = {0, 0};
    if (unit->active) {
        const ulong group = unit->sample * GROUPS + unit->channel / CHANNELS_OF_GROUP;
        const struct channels channels = CHANNELS_AT(call, group, unit->channel);
        const ulong end = chunk_begin(unit->chunk + 1);
        struct channel_sums own;
        channel_sums_start(&own);
        for (ulong vector = chunk_begin(unit->chunk) + unit->lane; vector < end; vector += LANES) {
            const ulong at = unit->channel * SPATIAL + vector * VEC, count = elements_of(vector);
            const realv centre = LOAD_X(call, unit->sample, at, count) - channels.mean;
            channel_sums_take(&own, centre, dn_of(&channels, centre, LOAD_DY(call, unit->sample, at, count)));
        }
        sums[0] = running_sum_total(&own.of_dn);
        sums[1] = running_sum_total(&own.of_product) * call->rstd[group];
    }
    sum_lanes(lanes, sums, 2);
    if (unit->active && unit->lane == 0) {
        global real *part = call->parts + part_of(unit->sample, unit->channel, unit->chunk);
        part[0] = sums[0];
        part[PART_STEP] = sums[1];
    }
}

#else

/* Of the vectors of channels that this lane holds, over the chunk's positions. */
INLINED void take_sums(const struct sums_call *call, const struct unit *unit, struct lanes *lanes) {
    const ulong end = chunk_begin(unit->chunk + 1);
    struct channels channels[HELD_VECTORS];
    struct channel_sums own[HELD_VECTORS];
    (void)lanes;
    if (!unit->active || chunk_count(unit->chunk) == 0)
        return;
    for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
        channels[j] = channels_at(call->mean, call->rstd, unit, j);
        channels[j].weight = WEIGHTS_OF(call, CHANNEL(j), COUNT(j));
        channels[j].bias = BIASES_OF(call, CHANNEL(j), COUNT(j));
        channel_sums_start(&own[j]);
    }
    for (ulong tile = chunk_begin(unit->chunk); tile < end; tile += TILE_POSITIONS)
        for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
            struct channel_sums sums = own[j];
            for (ulong position = tile; position < min(end, tile + TILE_POSITIONS); position++) {
                const ulong at = position * CHANNELS + CHANNEL(j);
                const realv centre = LOAD_X(call, unit->sample, at, COUNT(j)) - channels[j].mean;
                channel_sums_take(&sums, centre, dn_of(&channels[j], centre, LOAD_DY(call, unit->sample, at, COUNT(j))));
            }
            own[j] = sums;
        }
    for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
        global real *part = call->parts + part_of(unit->sample, CHANNEL(j), unit->chunk);
        running_sum_end_run(&own[j].of_dn);
        running_sum_end_run(&own[j].of_product);
        STORE_PART(REAL_DTYPE)(part, own[j].of_dn.runs, COUNT(j), false);
        STORE_PART(REAL_DTYPE)(part + PART_STEP, own[j].of_product.runs * channels[j].rstd, COUNT(j), false);
    }
}

#endif

INLINED void take_share(const struct sums_call *call, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = get_group_id(0) * call->iterations * SEGMENTS;
    for (ulong i = 0; i < call->iterations; i++) {
        const ulong index = first + i * SEGMENTS;
        if (index >= call->work)
            break; /* the whole work-group */
        const ulong own = index + get_local_id(0) / LANES;
        const struct unit unit = unit_of(own, SEGMENTS == 1 || own < call->work);
        take_sums(call, &unit, &lanes);
    }
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_sums(PARAMETERS(GROUP_NORM_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct sums_call call = {ARGUMENTS(GROUP_NORM_SUMS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch);
}

/* -------------------------------------------------------------------------------------------------------------- dx */

static inline void write_vector(const struct dx_call *call, const ulong sample, const ulong at, const ulong count,
                                const struct channels *channels, const realv slopes[2]) {
    const realv centre = LOAD_X(call, sample, at, count) - channels->mean;
    const realv dn = dn_of(channels, centre, LOAD_DY(call, sample, at, count));
    STORE_PART(DX_DTYPE)
    (call->dx + sample * call->dx_stride + at, dx_of(channels, slopes, centre, dn), count, call->aligned);
}

#if IS_FIRST

static inline void write_unit(const struct dx_call *call, const struct unit *unit) {
    const ulong group = unit->sample * GROUPS + unit->channel / CHANNELS_OF_GROUP, end = chunk_begin(unit->chunk + 1);
    const struct channels channels = CHANNELS_AT(call, group, unit->channel);
    const realv slopes[2] = {call->slopes[2 * group], call->slopes[2 * group + 1]};
    for (ulong vector = chunk_begin(unit->chunk) + unit->lane; vector < end; vector += LANES)
        write_vector(call, unit->sample, unit->channel * SPATIAL + vector * VEC, elements_of(vector), &channels, slopes);
}

#else

static inline void write_unit(const struct dx_call *call, const struct unit *unit) {
    const ulong end = chunk_begin(unit->chunk + 1);
    const global real *numbers = call->slopes + 2 * unit->sample * GROUPS;
    struct channels channels[HELD_VECTORS];
    realv slopes[HELD_VECTORS][2];
    for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
        channels[j] = channels_at(call->mean, call->rstd, unit, j);
        channels[j].weight = WEIGHTS_OF(call, CHANNEL(j), COUNT(j));
        channels[j].bias = BIASES_OF(call, CHANNEL(j), COUNT(j));
        slopes[j][0] = of_groups(numbers, CHANNEL(j), COUNT(j), 2);
        slopes[j][1] = of_groups(numbers + 1, CHANNEL(j), COUNT(j), 2);
    }
    for (ulong tile = chunk_begin(unit->chunk); tile < end; tile += TILE_POSITIONS)
        for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++)
            for (ulong position = tile; position < min(end, tile + TILE_POSITIONS); position++)
                write_vector(call, unit->sample, position * CHANNELS + CHANNEL(j), COUNT(j), &channels[j], slopes[j]);
}

#endif

/* From the last unit to the first: what was read last may still be in a cache. */
static inline void write_share(const struct dx_call *call) {
    const ulong first = (get_group_id(0) * call->iterations) * SEGMENTS + get_local_id(0) / LANES;
    for (ulong i = 0; i < call->iterations && first + i * SEGMENTS < call->work; i++) {
        const struct unit unit = unit_of(call->work - 1 - first - i * SEGMENTS, true);
        write_unit(call, &unit);
    }
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_dx(PARAMETERS(GROUP_NORM_DX_ARGS)) {
    const struct dx_call call = {ARGUMENTS(GROUP_NORM_DX_ARGS), .aligned = !ELEMENT_ALIGNED};
    write_share(&call);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_sums_unaligned(PARAMETERS(GROUP_NORM_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct sums_call call = {ARGUMENTS(GROUP_NORM_SUMS_ARGS), .aligned = false};
    take_share(&call, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_dx_unaligned(PARAMETERS(GROUP_NORM_DX_ARGS)) {
    const struct dx_call call = {ARGUMENTS(GROUP_NORM_DX_ARGS), .aligned = false};
    write_share(&call);
}
#endif
