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
    const ulong count = unit->active ? chunk_count(unit->chunk) : 0;
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
    if (count > 0 && unit->lane == 0) {
        global real *part = call->parts + part_of(unit->sample, unit->channel, unit->chunk);
        part[0] = origin + all.mean;
        part[PART_STEP] = all.squares;
    }
    (void)space;
}

#else

static inline void put_moments(const struct call *call, const struct unit *unit, const uint j, const realv mean,
                               const realv squares) {
    global real *part = call->parts + part_of(unit->sample, CHANNEL(j), unit->chunk);
    STORE_PART(REAL_DTYPE)(part, mean, COUNT(j), false);
    STORE_PART(REAL_DTYPE)(part + PART_STEP, squares, COUNT(j), false);
}

#if LANES > 1

/* Merges the moments of a unit's phases; the first phase gets them. space: [PHASES, LANES, 2] */
INLINED void merge_phases(const struct unit *unit, struct moments *moments, local realv *space) {
#if PHASES > 1
    local realv *own = space + 2 * get_local_id(0);
    own[0] = moments->mean += moments->origin;
    own[1] = moments->squares;
    moments->origin = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint phase = 1; unit->phase == 0 && phase < PHASES; phase++) {
        const real count = (real)positions_of(unit->chunk, phase), share = count / (moments->count + count);
        const realv delta = own[2 * phase * LANES] - moments->mean;
        if (count == 0)
            break;
        moments->mean += delta * share;
        moments->squares += own[2 * phase * LANES + 1] + delta * delta * (moments->count * share);
        moments->count += count;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    (void)unit, (void)moments, (void)space;
#endif
}

INLINED void take_moments(const struct call *call, const struct unit *unit, struct lanes *lanes, local realv *space) {
    const bool has_vector = unit->active && IS_THERE(0);
    const ulong positions = has_vector ? positions_of(unit->chunk, unit->phase) : 0;
    const ulong first = (chunk_begin(unit->chunk) + unit->phase) * CHANNELS + CHANNEL(0);
    struct moments moments = {0, 0, 0, 0};
    add_vectors(call, unit->sample, first, PHASES * (ulong)CHANNELS, (index_t)positions, &moments);
    merge_phases(unit, &moments, space);
    if (has_vector && unit->phase == 0 && positions > 0)
        put_moments(call, unit, 0, moments.origin + moments.mean, moments.squares);
    (void)lanes;
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

/* The statistics of a unit's group. */
struct statistics {
    real mean, rstd;
};

/* Writes y of vectors that are step elements apart, each with count elements. */
static inline void write_vectors(const struct apply_call *call, const ulong sample, const ulong first, const ulong step,
                                 const ulong vectors, const ulong count, const struct affine *affine,
                                 struct output *output) {
    for (ulong i = 0; i < vectors; i += AT_ONCE) {
        struct packed_s packed[AT_ONCE];
#pragma unroll
        for (uint k = 0; k < AT_ONCE; k++)
            if (i + k < vectors)
                LOAD_PACKED_S(&packed[k], call, sample, first + (i + k) * step, count);
        begin_loads();
#pragma unroll
        for (uint k = 0; k < AT_ONCE; k++)
            if (i + k < vectors)
                write_vector(call, sample, first + (i + k) * step, count, affine, S_OF(call, sample, &packed[k]), output);
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
    const real origin = call->parts[entry_of(group, 0).at];
    const struct spread own = own_entries(call->parts, group, unit->lane, origin);
    const struct spread all = spread_over_lanes(own, (real)GROUP_SIZE, lanes);
    const struct statistics statistics = {origin + all.mean, rstd_of(all.squares, call->eps)};
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

static inline void write_unit(const struct apply_call *call, const struct unit *unit, const struct statistics *statistics,
                              struct output *output) {
    const struct share share = share_of(unit);
    const struct affine affine = {statistics->mean, statistics->rstd * WEIGHT_OF(call, unit->channel),
                                  BIAS_OF(call, unit->channel)};
    write_vectors(call, unit->sample, share.first, LANES * VEC, share.vectors, VEC, &affine, output);
    if (share.tail)
        write_vectors(call, unit->sample, share.tail_first, VEC, 1, share.tail, &affine, output);
}

#else

/* With channels last, write_unit reads statistics where it uses them. */
static inline struct statistics statistics_of(const struct apply_call *call, const struct unit *unit, struct lanes *lanes) {
    const struct statistics none = {0, 0};
    (void)call, (void)unit, (void)lanes;
    return none;
}

static inline void write_unit(const struct apply_call *call, const struct unit *unit, const struct statistics *statistics,
                              struct output *output) {
    const ulong begin = chunk_begin(unit->chunk) + unit->phase, end = chunk_begin(unit->chunk + 1);
    struct affine affine[HELD_VECTORS];
    for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
        affine[j].mean = of_groups(call->mean + unit->sample * GROUPS, CHANNEL(j), COUNT(j), 1);
        affine[j].scale =
            of_groups(call->rstd + unit->sample * GROUPS, CHANNEL(j), COUNT(j), 1) * WEIGHTS_OF(call, CHANNEL(j), COUNT(j));
        affine[j].bias = BIASES_OF(call, CHANNEL(j), COUNT(j));
    }
    for (ulong tile = begin; tile < end; tile += TILE_POSITIONS)
        for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++)
            write_vectors(call, unit->sample, tile * CHANNELS + CHANNEL(j), PHASES * (ulong)CHANNELS,
                          positions_of_tile(tile, end), COUNT(j), &affine[j], output);
    (void)statistics;
}

#endif

#if MEASURES

/* magnitudes: [work, PHASES] */
INLINED void measure_share(const struct apply_call *call, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_from(first + i * UNITS, call->work);
        const struct statistics statistics = statistics_of(call, &unit, &lanes);
        struct output output = OUTPUT_OF(call, unit.sample);
        if (unit.active)
            write_unit(call, &unit, &statistics, &output);
        put_magnitude(call->magnitudes + (first + i * UNITS + own_unit()) * PHASES + unit.phase, &output,
                      unit.active && unit.lane == 0, &lanes);
    }
    last_barrier();
}

#define APPLY(call) measure_share(call, scratch)

#else

/* Takes units from the last to the first, as a cache may still have those that were read last. */
INLINED void write_share(const struct apply_call *call, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const ulong own = first + i * UNITS + own_unit();
        const struct unit unit = unit_of(call->work - 1 - min(own, call->work - 1), UNITS == 1 || own < call->work);
        const struct statistics statistics = statistics_of(call, &unit, &lanes);
        struct output output = OUTPUT_OF(call, unit.sample);
        if (unit.active)
            write_unit(call, &unit, &statistics, &output);
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
