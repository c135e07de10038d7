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

/* Of the channels side by side of a held vector. */
#define CHANNELS_SIDE_BY_SIDE(call, unit, j)                                              \
    {                                                                                     \
        of_groups((call)->mean + (unit)->sample * GROUPS, CHANNEL(j), COUNT(j), 1),       \
            of_groups((call)->rstd + (unit)->sample * GROUPS, CHANNEL(j), COUNT(j), 1),   \
            WEIGHTS_OF(call, CHANNEL(j), COUNT(j)), BIASES_OF(call, CHANNEL(j), COUNT(j)) \
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
            channel_sums_take(&own, &channels, LOAD_X(call, unit->sample, at, count),
                              LOAD_DY(call, unit->sample, at, count));
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

/* One held vector after the other: a lane has no registers for the sums of several. */
INLINED void take_sums(const struct sums_call *call, const struct unit *unit, struct lanes *lanes) {
    const ulong begin = chunk_begin(unit->chunk), end = chunk_begin(unit->chunk + 1);
    (void)lanes;
    for (uint j = 0; j < (unit->active ? HELD_VECTORS : 0); j++) {
        if (!IS_THERE(j))
            break;
        const struct channels channels = CHANNELS_SIDE_BY_SIDE(call, unit, j);
        struct channel_sums own;
        channel_sums_start(&own);
        for (ulong position = begin; position < end; position++) {
            const ulong at = position * CHANNELS + CHANNEL(j);
            channel_sums_take(&own, &channels, LOAD_X(call, unit->sample, at, COUNT(j)),
                              LOAD_DY(call, unit->sample, at, COUNT(j)));
        }
        running_sum_end_run(&own.of_dn);
        running_sum_end_run(&own.of_product);
        global real *part = call->parts + part_of(unit->sample, CHANNEL(j), unit->chunk);
        STORE_PART(REAL_DTYPE)(part, own.of_dn.runs, COUNT(j), false);
        STORE_PART(REAL_DTYPE)(part + PART_STEP, own.of_product.runs * channels.rstd, COUNT(j), false);
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
    const realv x = LOAD_X(call, sample, at, count), dy = LOAD_DY(call, sample, at, count);
    STORE_PART(DX_DTYPE)
    (call->dx + sample * call->dx_stride + at, dx_of(channels, slopes, x, dy), count, call->aligned);
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
    for (uint j = 0; j < HELD_VECTORS; j++) {
        if (!IS_THERE(j))
            break;
        const struct channels channels = CHANNELS_SIDE_BY_SIDE(call, unit, j);
        const global real *own = call->slopes + 2 * unit->sample * GROUPS;
        const realv slopes[2] = {of_groups(own, CHANNEL(j), COUNT(j), 2), of_groups(own + 1, CHANNEL(j), COUNT(j), 2)};
        for (ulong position = chunk_begin(unit->chunk); position < end; position++)
            write_vector(call, unit->sample, position * CHANNELS + CHANNEL(j), COUNT(j), &channels, slopes);
    }
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
