/* The gradients of group norm by chunks, with either layout: first the sums of each channel, and later dx, after
 * group_norm_slopes has added them up over groups or while group_norm_dx_of_sums does so itself. */

#include "norm/group_norm_backward.h"
#include "norm/group_norm_shares.h"

/* The arguments of the launches. work: units. */
struct sums_call {
    MEMBERS(GROUP_NORM_SUMS_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

struct dx_call {
    MEMBERS(GROUP_NORM_DX_OF_SUMS_ARGS)
    const global real *slopes;
    bool aligned;
};

#if !IS_FIRST
/* The rstd of each channel of a held vector. */
#define RSTDS_BESIDE(call, unit, j) of_groups((call)->rstd + (unit)->sample * GROUPS, CHANNEL(j), COUNT(j), 1)
#define CHANNELS_BESIDE(call, unit, j)                                                                                    \
    ((struct channels){of_groups((call)->mean + (unit)->sample * GROUPS, CHANNEL(j), COUNT(j), 1),                        \
                       RSTDS_BESIDE(call, unit, j), RSTDS_BESIDE(call, unit, j) * WEIGHTS_OF(call, CHANNEL(j), COUNT(j)), \
                       BIASES_OF(call, CHANNEL(j), COUNT(j)) X_SCALE_MEMBER(call, (unit)->sample)})
#endif

/* ------------------------------------------------------------------------------------------------------------ sums */

#if IS_FIRST || LANES > 1

/* Adds vectors that are step elements apart, each with count elements. */
static inline void add_vectors(const struct sums_call *call, const ulong sample, const ulong first, const ulong step,
                               const index_t vectors, const ulong count, const struct channels *channels,
                               struct channel_sums *sums) {
    for (index_t run = 0; run < vectors; run += RUN_VECTORS) {
        const index_t end = min(vectors, run + (index_t)RUN_VECTORS);
        for (index_t i = run; i < end; i += AT_ONCE) {
            struct packed_pair packed[AT_ONCE];
#pragma unroll
            for (uint k = 0; k < AT_ONCE; k++)
                if (i + k < end)
                    LOAD_PAIR(&packed[k], call, sample, first + (i + k) * step, count);
            begin_loads();
#pragma unroll
            for (uint k = 0; k < AT_ONCE; k++)
                if (i + k < end) {
                    const struct point point = point_of(channels, &packed[k]);
                    channel_sums_take(sums, point.centre, point.dn);
                }
        }
        channel_sums_end_run(sums);
    }
}

#endif

#if IS_FIRST

static inline void add_rest(const struct sums_call *call, const ulong sample, const struct rest *rest,
                            const struct channels *channels, struct channel_sums *sums) {
    struct packed_pair packed;
    LOAD_PAIR(&packed, call, sample, rest->first, REST_COUNT(*rest));
    const struct point point = point_of(channels, &packed);
    channel_sums_take(sums, point.centre, point.dn);
    channel_sums_end_run(sums);
}

INLINED void take_sums(const struct sums_call *call, const struct unit *unit, struct lanes *lanes, local realv *space) {
    real sums[2] = {0, 0};
    if (unit->active) {
        const ulong group = unit->sample * GROUPS + unit->channel / CHANNELS_OF_GROUP;
        const struct channels channels = CHANNELS_AT(call, group, unit->channel);
        const struct share share = share_of(unit);
        struct channel_sums own;
        channel_sums_start(&own);
        add_vectors(call, unit->sample, share.first, LANES * VEC, share.vectors, VEC, &channels, &own);
        for (uint i = 0; i < RESTS; i++) {
            const struct rest rest = rest_of_share(&share, unit, i);
            if (rest.count > 0)
                add_rest(call, unit->sample, &rest, &channels, &own);
        }
        sums[0] = own.of_dn;
        sums[1] = own.of_product * call->rstd[group];
    }
    sum_lanes(lanes, sums, 2);
    if (unit->active && unit->lane == 0) {
        put_part(call->parts, part_of(unit->sample, unit->channel, unit->chunk), sums[0], sums[1]);
    }
    (void)space;
}

#else

#if PHASES > 1

/* Writes the sums of a unit's channels over its phases. sums: this lane's. space: [2, PHASES, LANES] */
INLINED void put_sums(const struct sums_call *call, const struct unit *unit, const uint j, const realv sums[2],
                      local realv *space) {
    const uint item = (uint)get_local_id(0);
    const local real *phases = (const local real *)space;
    const ulong first = (unit->vector - unit->lane) * VEC;
    space[item] = sums[0];
    space[GROUP_ITEMS + item] = sums[1];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < BLOCK_CHANNELS && chunk_count(unit->chunk) > 0; i += GROUP_ITEMS) {
        real total[2] = {0, 0};
        for (uint phase = 0; phase < PHASES; phase++) {
            total[0] += phases[phase * BLOCK_CHANNELS + i];
            total[1] += phases[(PHASES + phase) * BLOCK_CHANNELS + i];
        }
        if (first + i < CHANNELS)
            put_part(call->parts, part_of(unit->sample, first + i, unit->chunk), total[0], total[1]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    (void)j;
}

#else

/* Writes the sums of this lane's j-th vector of channels. */
INLINED void put_sums(const struct sums_call *call, const struct unit *unit, const uint j, const realv sums[2],
                      local realv *space) {
    const real *first = (const real *)&sums[0], *second = (const real *)&sums[1];
    for (uint i = 0; i < COUNT(j); i++)
        put_part(call->parts, part_of(unit->sample, CHANNEL(j) + i, unit->chunk), first[i], second[i]);
    (void)space;
}

#endif

/* The sums of this lane's vectors of channels, over the chunk's positions. */
INLINED void take_sums(const struct sums_call *call, const struct unit *unit, struct lanes *lanes, local realv *space) {
    const ulong begin = chunk_begin(unit->chunk) + unit->phase;
    struct channels channels[HELD_VECTORS];
    struct channel_sums own[HELD_VECTORS];
    (void)lanes;
    if (PHASES == 1 && !(unit->active && chunk_count(unit->chunk) > 0))
        return;
    for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
        channels[j] = CHANNELS_BESIDE(call, unit, j);
        channel_sums_start(&own[j]);
    }
#if LANES == 1
    const ulong end = chunk_begin(unit->chunk + 1);
    for (ulong position = begin; position < end; position++) {
        const bool ends_run = position + 1 == end || (position - begin) % RUN_VECTORS == RUN_VECTORS - 1;
        for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
            struct packed_pair packed;
            LOAD_PAIR(&packed, call, unit->sample, position * CHANNELS + CHANNEL(j), COUNT(j));
            const struct point point = point_of(&channels[j], &packed);
            channel_sums_take(&own[j], point.centre, point.dn);
            if (ends_run)
                channel_sums_end_run(&own[j]);
        }
    }
#else
    if (IS_THERE(0)) {
        struct channel_sums sums = own[0];
        add_vectors(call, unit->sample, begin * CHANNELS + CHANNEL(0), PHASES * (ulong)CHANNELS,
                    positions_of(unit->chunk, unit->phase), COUNT(0), &channels[0], &sums);
        own[0] = sums;
    }
#endif
    for (uint j = 0; j < HELD_VECTORS; j++) {
        if (PHASES == 1 && !IS_THERE(j))
            break;
        realv sums[2] = {0, 0};
        if (IS_THERE(j)) {
            sums[0] = own[j].of_dn;
            sums[1] = own[j].of_product * channels[j].rstd;
        }
        put_sums(call, unit, j, sums, space);
    }
}

#endif

INLINED void take_share(const struct sums_call *call, local real *scratch, local realv *space) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_from(first + i * UNITS, call->work);
        take_sums(call, &unit, &lanes, space);
    }
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_sums(PARAMETERS(GROUP_NORM_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    local realv space[PHASES > 1 ? 2 * GROUP_ITEMS : 1];
    const struct sums_call call = {ARGUMENTS(GROUP_NORM_SUMS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch, space);
}

/* -------------------------------------------------------------------------------------------------------------- dx */

#if IS_FIRST || LANES > 1

#define COPIED COPIED_AT_ONCE(2 * sizeof(struct packed_pair)) /* x − mean and dn are held too */

/* COPIED of them, as loaded. */
struct batch {
    struct packed_pair packed[COPIED];
};

/* Loads a course's vectors from the i-th on. */
INLINED void load_batch(const struct dx_call *call, const struct course *course, const index_t i, struct batch *batch) {
#pragma unroll
    for (uint k = 0; k < COPIED; k++)
        if (i + k < course->vectors)
            LOAD_PAIR(&batch->packed[k], call, course->sample, course->first + (i + k) * course->step, course->count);
    begin_loads();
}

/* Writes dx of a course. batch: its first vectors. */
INLINED void write_course(const struct dx_call *call, const struct course *course, struct batch *batch,
                          const struct channels *channels, const realv slopes[2]) {
    for (index_t i = 0; i < course->vectors; i += COPIED) {
        if (i > 0)
            load_batch(call, course, i, batch);
#pragma unroll
        for (uint k = 0; k < COPIED; k++)
            if (i + k < course->vectors) {
                const struct point point = point_of(channels, &batch->packed[k]);
                PUT_DS(call, course->sample, course->first + (i + k) * course->step,
                       dx_of(channels, slopes, point.centre, point.dn), course->count);
            }
    }
}

#endif

#if IS_FIRST

static inline ulong group_of(const struct unit *unit) {
    return unit->sample * GROUPS + unit->channel / CHANNELS_OF_GROUP;
}

static inline void write_rest(const struct dx_call *call, const ulong sample, const struct rest *rest,
                              const struct channels *channels, const realv slopes[2]) {
    struct packed_pair packed;
    LOAD_PAIR(&packed, call, sample, rest->first, REST_COUNT(*rest));
    const struct point point = point_of(channels, &packed);
    PUT_DS(call, sample, rest->first, dx_of(channels, slopes, point.centre, point.dn), REST_COUNT(*rest));
}

/* batch: the first vectors of the unit's course. */
INLINED void write_chunk(const struct dx_call *call, const struct unit *unit, struct batch *batch, const realv slopes[2]) {
    const struct share share = share_of(unit);
    const struct course course = course_of_share(unit, &share);
    const struct channels channels = CHANNELS_AT(call, group_of(unit), unit->channel);
    write_course(call, &course, batch, &channels, slopes);
    for (uint i = 0; i < RESTS; i++) {
        const struct rest rest = rest_of_share(&share, unit, i);
        if (rest.count > 0)
            write_rest(call, unit->sample, &rest, &channels, slopes);
    }
}

static inline void load_chunk(const struct dx_call *call, const struct unit *unit, struct batch *batch) {
    const struct share share = share_of(unit);
    const struct course course = course_of_share(unit, &share);
    load_batch(call, &course, 0, batch);
}

static inline void write_unit(const struct dx_call *call, const struct unit *unit) {
    struct batch batch;
    load_chunk(call, unit, &batch);
    const ulong group = group_of(unit);
    const realv slopes[2] = {call->slopes[2 * group], call->slopes[2 * group + 1]};
    write_chunk(call, unit, &batch, slopes);
}

#else

#if LANES == 1

/* The gradient of s of a vector. at: element of the sample. */
static inline realv ds_at(const struct dx_call *call, const struct unit *unit, const ulong at, const ulong count,
                          const struct channels *channels, const realv slopes[2]) {
    struct packed_pair packed;
    LOAD_PAIR(&packed, call, unit->sample, at, count);
    const struct point point = point_of(channels, &packed);
    return ALL_OF_S(call, unit->sample, at, dx_of(channels, slopes, point.centre, point.dn), count);
}

/* Writes dx of a position. A last vector that overlaps others is computed before they are written, as dx may lie over x or
 * dy. */
static inline void write_position(const struct dx_call *call, const struct unit *unit, const ulong position,
                                  const struct channels *channels, realv slopes[][2]) {
    const ulong row = position * CHANNELS;
    realv last = 0;
    if (OVERLAPS)
        last = ds_at(call, unit, row + CHANNEL(VECTORS_APART), VEC, channels + VECTORS_APART, slopes[VECTORS_APART]);
    for (uint j = 0; j < HELD_VECTORS && IS_APART(j); j++) {
        const realv ds = ds_at(call, unit, row + CHANNEL(j), COUNT(j), &channels[j], slopes[j]);
        PUT_ALL(call, unit->sample, row + CHANNEL(j), ds, COUNT(j));
    }
    if (OVERLAPS)
        PUT_ALL(call, unit->sample, row + CHANNEL(VECTORS_APART), last, VEC);
}

#endif

static inline void write_unit(const struct dx_call *call, const struct unit *unit) {
    const global real *numbers = call->slopes + 2 * unit->sample * GROUPS;
    struct channels channels[HELD_VECTORS];
    realv slopes[HELD_VECTORS][2];
    for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
        channels[j] = CHANNELS_BESIDE(call, unit, j);
        slopes[j][0] = of_groups(numbers, CHANNEL(j), COUNT(j), 2);
        slopes[j][1] = of_groups(numbers + 1, CHANNEL(j), COUNT(j), 2);
    }
#if LANES == 1
    const ulong end = chunk_begin(unit->chunk + 1);
    for (ulong position = chunk_begin(unit->chunk); position < end; position++)
        write_position(call, unit, position, channels, slopes);
#else
    const struct course course = course_of_phase(unit);
    struct batch batch;
    load_batch(call, &course, 0, &batch);
    write_course(call, &course, &batch, &channels[0], slopes[0]);
#endif
}

#endif

static inline void write_share(const struct dx_call *call) {
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_backwards(first + i * UNITS, call->work);
        if (unit.active)
            write_unit(call, &unit);
    }
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_dx(PARAMETERS(GROUP_NORM_DX_ARGS)) {
    const struct dx_call call = {ARGUMENTS(GROUP_NORM_DX_ARGS), .aligned = !ELEMENT_ALIGNED};
    write_share(&call);
}

#if IS_FIRST

/* Computes a channel's sums over samples, or dx of a unit, whose first vectors are on their way meanwhile. Units are taken
 * from the last to the first. */
INLINED void take_piece(const struct dx_call *call, const ulong index, struct lanes *lanes) {
    const bool of_channel = index < call->channels && index < call->work, of_unit = !of_channel && index < call->work;
    const struct unit unit = unit_of(of_unit ? call->work - 1 - index : 0, of_unit);
    struct batch batch;
    if (of_unit)
        load_chunk(call, &unit, &batch);
    struct shares shares = {{0, 0}, {0, 0}};
    if (of_channel)
        take_channel(&shares, call->parts, call->rows, index, unit.lane);
    if (of_unit)
        take_group(&shares, call->parts, call->weight, group_of(&unit), unit.lane);
    real sums[2] = {shares.of_dn.sum, shares.of_product.sum};
    sum_lanes(lanes, sums, 2);
    if (of_channel && unit.lane == 0) {
        PUT_DBIAS(call->dbias, index, sums);
        PUT_DWEIGHT(call->dweight, index, sums);
    }
    join_lanes();
    if (of_unit) {
        const real scale = call->rstd[group_of(&unit)] / (real)GROUP_SIZE;
        const realv slopes[2] = {scale * sums[0], scale * sums[1]};
        write_chunk(call, &unit, &batch, slopes);
    }
}

INLINED void take_pieces(const struct dx_call *call, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = get_group_id(0) * call->iterations * SEGMENTS;
    for (ulong i = 0; i < call->iterations && first + i * SEGMENTS < call->work; i++)
        take_piece(call, first + i * SEGMENTS + own_unit(), &lanes);
    last_barrier();
}

/* work: channels, 0 where another kernel computes their sums; then units. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_dx_of_sums(PARAMETERS(GROUP_NORM_DX_OF_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct dx_call call = {ARGUMENTS(GROUP_NORM_DX_OF_SUMS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_pieces(&call, scratch);
}

#if !ELEMENT_ALIGNED
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_dx_of_sums_unaligned(PARAMETERS(GROUP_NORM_DX_OF_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct dx_call call = {ARGUMENTS(GROUP_NORM_DX_OF_SUMS_ARGS), .aligned = false};
    take_pieces(&call, scratch);
}
#endif

#endif

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_sums_unaligned(PARAMETERS(GROUP_NORM_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    local realv space[PHASES > 1 ? 2 * GROUP_ITEMS : 1];
    const struct sums_call call = {ARGUMENTS(GROUP_NORM_SUMS_ARGS), .aligned = false};
    take_share(&call, scratch, space);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_dx_unaligned(PARAMETERS(GROUP_NORM_DX_ARGS)) {
    const struct dx_call call = {ARGUMENTS(GROUP_NORM_DX_ARGS), .aligned = false};
    write_share(&call);
}
#endif
