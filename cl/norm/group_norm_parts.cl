/* Group norm by chunks, with either layout: a kernel for their moments, and one for y, after group_norm_merge has made
 * statistics of the moments or, with MERGES, while each work-group does so itself. */

#include "norm/group_norm.h"
#include "norm/group_norm_y.h"

/* The arguments of the launches for moments and for y. work: units. */
struct call {
    MEMBERS(GROUP_NORM_MOMENTS_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

#if MERGES
#define APPLY_ARGS GROUP_NORM_APPLY_MOMENTS_ARGS
#else
#define APPLY_ARGS GROUP_NORM_APPLY_ARGS
#endif

struct apply_call {
    MEMBERS(APPLY_ARGS)
    bool aligned;
};

#include "norm/group_norm_moments.h"
#if MERGES
#include "norm/group_norm_entries.h"
#endif

/* --------------------------------------------------------------------------------------------------------- moments */

#if IS_FIRST

INLINED void take_moments(const struct call *call, const struct unit *unit, struct lanes *lanes, local realv *space) {
    const ulong count = chunk_count(unit->chunk);
    struct spread own = {0, 0, 0};
    real origin = 0;
    if (count > 0) {
        const struct share share = share_of(unit);
        struct moments moments = {0, 0, 0, 0};
        origin = first_element(LOAD_S(call, unit->sample, unit->channel * SPATIAL + chunk_begin(unit->chunk) * VEC, 1));
        add_vectors(call, unit->sample, share.first, LANES * VEC, (index_t)share.vectors, &moments);
        own = spread_of(&moments, origin);
        for (ulong i = 0; i < share.tail; i++) {
            const struct spread one = {first_element(LOAD_S(call, unit->sample, share.tail_first + i, 1)) - origin, 0, 1};
            spread_merge(&own, one);
        }
    }
    const struct spread all = spread_over_lanes(own, (real)max(count, (ulong)1), lanes);
    if (unit->active && count > 0 && unit->lane == 0) {
        global real *part = call->parts + part_of(unit->sample, unit->channel, unit->chunk);
        part[0] = origin + all.mean;
        part[PART_STEP] = all.squares;
    }
    (void)space;
}

#else

#if PHASES > 1

/* The moments of a unit's channel from those of its phases. means, squares: of the first phase; the next ones are
 * BLOCK_CHANNELS apart. */
static inline void put_channel(const struct call *call, const struct unit *unit, const ulong channel,
                               const local real *means, const local real *squares) {
    const real origin = means[0], count = (real)chunk_count(unit->chunk);
    real sum = 0, total = 0;
    for (uint phase = 1; phase < PHASES; phase++)
        sum += (real)positions_of(unit->chunk, phase) * (means[phase * BLOCK_CHANNELS] - origin);
    const real mean = origin + sum / count;
    for (uint phase = 0; phase < PHASES; phase++) {
        const real delta = means[phase * BLOCK_CHANNELS] - mean;
        total += squares[phase * BLOCK_CHANNELS] + (real)positions_of(unit->chunk, phase) * (delta * delta);
    }
    global real *part = call->parts + part_of(unit->sample, channel, unit->chunk);
    part[0] = mean;
    part[PART_STEP] = total;
}

/* space: [2, PHASES, LANES] */
INLINED void put_unit(const struct call *call, const struct unit *unit, const struct moments *moments, local realv *space) {
    const uint item = (uint)get_local_id(0);
    const local real *means = (const local real *)space, *squares = (const local real *)(space + GROUP_ITEMS);
    space[item] = moments->origin + moments->mean;
    space[GROUP_ITEMS + item] = moments->squares;
    barrier(CLK_LOCAL_MEM_FENCE);
    const ulong first = (unit->vector - unit->lane) * VEC;
    for (uint i = item; i < BLOCK_CHANNELS && chunk_count(unit->chunk) > 0; i += GROUP_ITEMS)
        if (first + i < CHANNELS)
            put_channel(call, unit, first + i, means + i, squares + i);
    barrier(CLK_LOCAL_MEM_FENCE);
}

#else

static inline void put_moments(const struct call *call, const struct unit *unit, const uint j, const realv mean,
                               const realv squares) {
    global real *part = call->parts + part_of(unit->sample, CHANNEL(j), unit->chunk);
    STORE_PART(REAL_DTYPE)(part, mean, COUNT(j), false);
    STORE_PART(REAL_DTYPE)(part + PART_STEP, squares, COUNT(j), false);
}

#endif

#if LANES > 1

INLINED void take_moments(const struct call *call, const struct unit *unit, struct lanes *lanes, local realv *space) {
    const ulong first = (chunk_begin(unit->chunk) + unit->phase) * CHANNELS + CHANNEL(0);
    struct moments moments = {0, 0, 0, 0};
    if (IS_THERE(0))
        add_vectors(call, unit->sample, first, PHASES * (ulong)CHANNELS, (index_t)positions_of(unit->chunk, unit->phase),
                    &moments);
#if PHASES > 1
    put_unit(call, unit, &moments, space);
#else
    if (unit->active && IS_THERE(0) && chunk_count(unit->chunk) > 0)
        put_moments(call, unit, 0, moments.origin + moments.mean, moments.squares);
#endif
    (void)lanes, (void)space;
}

#else

/* Vectors for whose sums a lane has registers. */
#define SUMMED_VECTORS (HELD_VECTORS < 4 ? HELD_VECTORS : 4)

/* The moments of some of this lane's vectors of channels, over the chunk's positions. */
static inline void take_vectors(const struct call *call, const struct unit *unit, const uint first) {
    const ulong begin = chunk_begin(unit->chunk), end = chunk_begin(unit->chunk + 1);
#define VECTOR_AT(position, j) LOAD_S(call, unit->sample, (position)*CHANNELS + CHANNEL(first + (j)), COUNT(first + (j)))
    struct moments moments[SUMMED_VECTORS];
#pragma unroll
    for (uint j = 0; j < SUMMED_VECTORS; j++)
        if (IS_THERE(first + j))
            moments_start(&moments[j], VECTOR_AT(begin, j));
    for (ulong position = begin; position < end;) {
        const index_t length = run_length(&moments[0], (index_t)(end - position));
        struct run run[SUMMED_VECTORS];
#pragma unroll
        for (uint j = 0; j < SUMMED_VECTORS; j++)
            if (IS_THERE(first + j))
                run_start(&run[j], &moments[j]);
        for (index_t i = 0; i < length; i++)
#pragma unroll
            for (uint j = 0; j < SUMMED_VECTORS; j++)
                if (IS_THERE(first + j))
                    run_take(&run[j], 0, VECTOR_AT(position + i, j));
#pragma unroll
        for (uint j = 0; j < SUMMED_VECTORS; j++)
            if (IS_THERE(first + j))
                run_end(&run[j], &moments[j], length);
        position += length;
    }
#pragma unroll
    for (uint j = 0; j < SUMMED_VECTORS; j++)
        if (IS_THERE(first + j))
            put_moments(call, unit, first + j, moments[j].origin + moments[j].mean, moments[j].squares);
#undef VECTOR_AT
}

INLINED void take_moments(const struct call *call, const struct unit *unit, struct lanes *lanes, local realv *space) {
    (void)lanes, (void)space;
    if (!unit->active || chunk_count(unit->chunk) == 0)
        return;
    for (uint first = 0; first < HELD_VECTORS && IS_THERE(first); first += SUMMED_VECTORS)
        take_vectors(call, unit, first);
}

#endif
#endif

INLINED void take_moments_share(const struct call *call, local real *scratch, local realv *space) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_from(first + i * UNITS, call->work);
        take_moments(call, &unit, &lanes, space);
    }
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_moments(PARAMETERS(GROUP_NORM_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    local realv space[PHASE_SPACE];
    const struct call call = {ARGUMENTS(GROUP_NORM_MOMENTS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_moments_share(&call, scratch, space);
}

/* ----------------------------------------------------------------------------------------------------------- apply */

/* The numbers that turn s of a vector's channels into n. */
struct affine {
    realv mean, scale, bias;
};

static inline void write_vector(const struct apply_call *call, const ulong sample, const ulong at, const ulong count,
                                const struct affine *affine, const realv s, struct output *output) {
#if PRESENT(RESIDUAL_OUT_DTYPE)
    STORE_PART(RESIDUAL_OUT_DTYPE)(call->residual_out + sample * call->residual_out_stride + at, s, count, call->aligned);
#endif
    PUT_Y(call, sample, at, activated((s - affine->mean) * affine->scale + affine->bias), count, output);
}

/* A lane's vectors, which are step elements apart, each with count elements. */
struct course {
    ulong sample, first, step, count;
    index_t vectors;
};

/* AT_ONCE of them, as loaded. */
struct batch {
    struct packed_s packed[AT_ONCE];
};

/* Loads a course's vectors from the i-th on. */
INLINED void load_batch(const struct apply_call *call, const struct course *course, const index_t i, struct batch *batch) {
#pragma unroll
    for (uint k = 0; k < AT_ONCE; k++)
        if (i + k < course->vectors)
            LOAD_PACKED_S(&batch->packed[k], call, course->sample, course->first + (i + k) * course->step, course->count);
    begin_loads();
}

/* Writes y of a course. batch: its first vectors. */
INLINED void write_course(const struct apply_call *call, const struct course *course, struct batch *batch,
                          const struct affine *affine, struct output *output) {
    for (index_t i = 0; i < course->vectors; i += AT_ONCE) {
        if (i > 0)
            load_batch(call, course, i, batch);
#pragma unroll
        for (uint k = 0; k < AT_ONCE; k++)
            if (i + k < course->vectors)
                write_vector(call, course->sample, course->first + (i + k) * course->step, course->count, affine,
                             S_OF(call, course->sample, &batch->packed[k]), output);
    }
}

#if IS_FIRST

static inline ulong group_of(const struct unit *unit) {
    return unit->sample * GROUPS + unit->channel / CHANNELS_OF_GROUP;
}

/* Every work-item of the work-group must call it. */
INLINED struct statistics statistics_of(const struct apply_call *call, const struct unit *unit, struct lanes *lanes) {
    const ulong group = group_of(unit);
#if MERGES
    const struct statistics statistics = merge_entries(call->parts, group, unit->lane, call->eps, lanes);
    const bool puts = unit->active && unit->lane == 0 && unit->chunk == 0 && unit->channel % CHANNELS_OF_GROUP == 0;
#if SAVE_MEAN
    if (puts)
        call->mean[group] = statistics.mean;
#endif
#if SAVE_RSTD
    if (puts)
        call->rstd[group] = statistics.rstd;
#endif
    (void)puts;
#else
    const struct statistics statistics = {call->mean[group], call->rstd[group]};
    (void)lanes;
#endif
    return statistics;
}

/* Writes y of a unit. Its first vectors are on their way while the statistics are computed. Every work-item of the
 * work-group calls it. */
INLINED void write_unit(const struct apply_call *call, const struct unit *unit, struct lanes *lanes,
                        struct output *output) {
    const struct share share = share_of(unit);
    const struct course course = {unit->sample, share.first, LANES * VEC, VEC, (index_t)share.vectors};
    struct batch batch;
    load_batch(call, &course, 0, &batch);
    const real weight = WEIGHT_OF(call, unit->channel), bias = BIAS_OF(call, unit->channel);
    const struct statistics statistics = statistics_of(call, unit, lanes);
    if (unit->active) {
        const struct affine affine = {statistics.mean, statistics.rstd * weight, bias};
        write_course(call, &course, &batch, &affine, output);
        if (share.tail) {
            const struct course tail = {unit->sample, share.tail_first, VEC, share.tail, 1};
            load_batch(call, &tail, 0, &batch);
            write_course(call, &tail, &batch, &affine, output);
        }
    }
}

#else

INLINED void write_unit(const struct apply_call *call, const struct unit *unit, struct lanes *lanes,
                        struct output *output) {
    const ulong begin = chunk_begin(unit->chunk) + unit->phase, end = unit->active ? chunk_begin(unit->chunk + 1) : 0;
    struct affine affine[HELD_VECTORS];
    for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
        affine[j].mean = of_groups(call->mean + unit->sample * GROUPS, CHANNEL(j), COUNT(j), 1);
        affine[j].scale =
            of_groups(call->rstd + unit->sample * GROUPS, CHANNEL(j), COUNT(j), 1) * WEIGHTS_OF(call, CHANNEL(j), COUNT(j));
        affine[j].bias = BIASES_OF(call, CHANNEL(j), COUNT(j));
    }
    for (ulong tile = begin; tile < end; tile += TILE_POSITIONS)
        for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
            const struct course course = {unit->sample, tile * CHANNELS + CHANNEL(j), PHASES * (ulong)CHANNELS, COUNT(j),
                                          (index_t)positions_of_tile(unit, tile, end)};
            struct batch batch;
            load_batch(call, &course, 0, &batch);
            write_course(call, &course, &batch, &affine[j], output);
        }
    (void)lanes;
}

#endif

#if MEASURES

/* magnitudes: [work, PHASES] */
INLINED void measure_share(const struct apply_call *call, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_from(first + i * UNITS, call->work);
        struct output output = OUTPUT_OF(call, unit.sample);
        write_unit(call, &unit, &lanes, &output);
        put_magnitude(call->magnitudes + (first + i * UNITS + own_unit()) * PHASES + unit.phase, &output,
                      unit.active && unit.lane == 0, &lanes);
    }
    last_barrier();
}

#define APPLY(call) measure_share(call, scratch)

#else

INLINED void write_share(const struct apply_call *call, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_backwards(first + i * UNITS, call->work);
        struct output output = OUTPUT_OF(call, unit.sample);
        write_unit(call, &unit, &lanes, &output);
    }
    last_barrier();
}

#define APPLY(call) write_share(call, scratch)

#endif

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_apply(PARAMETERS(APPLY_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct apply_call call = {ARGUMENTS(APPLY_ARGS), .aligned = !ELEMENT_ALIGNED};
    APPLY(&call);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_moments_unaligned(PARAMETERS(GROUP_NORM_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    local realv space[PHASE_SPACE];
    const struct call call = {ARGUMENTS(GROUP_NORM_MOMENTS_ARGS), .aligned = false};
    take_moments_share(&call, scratch, space);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_apply_unaligned(PARAMETERS(APPLY_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct apply_call call = {ARGUMENTS(APPLY_ARGS), .aligned = false};
    APPLY(&call);
}
#endif
