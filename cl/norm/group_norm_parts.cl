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

#include "norm/group_norm_course.h"
#include "norm/group_norm_entries.h"
#include "norm/group_norm_moments.h"
#if BLOCK
#include "norm/group_norm_block.h"
#endif

/* Local memory of a work-group, in vectors. */
#if BLOCK
#define SPACE (2 * GROUP_ITEMS + (2 * GROUP_ITEMS + VEC - 1) / VEC)
#else
#define SPACE 1
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
        for (uint i = 0; i < RESTS; i++) {
            const struct rest rest = rest_of_share(&share, unit, i);
            if (rest.count > 0)
                add_rest(call, unit->sample, rest.first, REST_COUNT(rest), origin, &own);
        }
    }
    const struct spread all = spread_over_lanes(own, (real)max(count, (ulong)1), lanes);
    if (unit->active && count > 0 && unit->lane == 0)
        put_part(call->parts, part_of(unit->sample, unit->channel, unit->chunk), origin + all.mean, all.squares);
    (void)space;
}

#else

#if !BLOCK

/* Writes the moments of this lane's j-th vector. */
static inline void put_vector(const struct call *call, const struct unit *unit, const uint j,
                              const struct moments *moments) {
    const realv mean = moments->origin + moments->mean;
    const real *means = (const real *)&mean, *squares = (const real *)&moments->squares;
    for (uint i = 0; i < COUNT(j); i++)
        put_part(call->parts, part_of_element(unit->sample, ELEMENT(j) + i, unit->chunk), means[i], squares[i]);
}

#endif

#if LANES > 1

INLINED void take_moments(const struct call *call, const struct unit *unit, struct lanes *lanes, local realv *space) {
    const ulong first = (chunk_begin(unit->chunk) + unit->phase) * ROW + ELEMENT(0);
    struct moments moments = {0, 0, 0, 0};
    if (IS_THERE(0))
        add_vectors(call, unit->sample, first, PHASES * (ulong)ROW, (index_t)rows_of_phase(unit->chunk, unit->phase),
                    &moments);
#if BLOCK
    put_moments(call->parts, unit, &moments, space);
#else
    if (unit->active && IS_THERE(0) && chunk_count(unit->chunk) > 0)
        put_vector(call, unit, 0, &moments);
#endif
    (void)lanes, (void)space;
}

#else

/* Vectors for whose sums a lane has registers. */
#define SUMMED_VECTORS (HELD_VECTORS < 4 ? HELD_VECTORS : 4)

/* The moments of some of this lane's vectors, over the chunk's rows. */
static inline void take_vectors(const struct call *call, const struct unit *unit, const uint first) {
    const ulong begin = chunk_begin(unit->chunk), end = chunk_begin(unit->chunk + 1);
#define VECTOR_AT(row, j) LOAD_S(call, unit->sample, (row)*ROW + ELEMENT(first + (j)), COUNT(first + (j)))
    struct moments moments[SUMMED_VECTORS];
#pragma unroll
    for (uint j = 0; j < SUMMED_VECTORS; j++)
        if (IS_THERE(first + j))
            moments_start(&moments[j], VECTOR_AT(begin, j));
    for (ulong row = begin; row < end;) {
        const index_t length = run_length(&moments[0], (index_t)(end - row));
        struct run run[SUMMED_VECTORS];
#pragma unroll
        for (uint j = 0; j < SUMMED_VECTORS; j++)
            if (IS_THERE(first + j))
                run_start(&run[j], &moments[j]);
        for (index_t i = 0; i < length; i++)
#pragma unroll
            for (uint j = 0; j < SUMMED_VECTORS; j++)
                if (IS_THERE(first + j))
                    run_take(&run[j], 0, VECTOR_AT(row + i, j));
#pragma unroll
        for (uint j = 0; j < SUMMED_VECTORS; j++)
            if (IS_THERE(first + j))
                run_end(&run[j], &moments[j], length);
        row += length;
    }
#pragma unroll
    for (uint j = 0; j < SUMMED_VECTORS; j++)
        if (IS_THERE(first + j))
            put_vector(call, unit, first + j, &moments[j]);
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
    local realv space[SPACE];
    const struct call call = {ARGUMENTS(GROUP_NORM_MOMENTS_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_moments_share(&call, scratch, space);
}

/* ----------------------------------------------------------------------------------------------------------- apply */

/* What the work-items of a work-group share. */
struct place {
    struct lanes lanes;
#if BLOCK && MERGES
    local struct statistics *statistics; /* [BLOCK_GROUPS] */
    local real *space;                   /* [2, GROUP_ITEMS] */
#endif
};

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
INLINED void write_unit(const struct apply_call *call, const struct unit *unit, struct place *place,
                        struct output *output) {
    const struct share share = share_of(unit);
    const struct course course = course_of_share(unit, &share);
    struct batch batch;
    load_batch(call, &course, 0, &batch);
    const real weight = WEIGHT_OF(call, unit->channel), bias = BIAS_OF(call, unit->channel);
    const struct statistics statistics = statistics_of(call, unit, &place->lanes);
    if (unit->active) {
        const struct affine affine = {statistics.mean, statistics.rstd * weight, bias};
        write_course(call, &course, &batch, &affine, output);
        for (uint i = 0; i < RESTS; i++) {
            const struct rest rest = rest_of_share(&share, unit, i);
            if (rest.count > 0)
                write_vector(call, unit->sample, rest.first, REST_COUNT(rest), &affine,
                             LOAD_S(call, unit->sample, rest.first, REST_COUNT(rest)), output);
        }
    }
}

#elif MERGES

DEFINE_OF_GROUPS(of_block_groups, local)

/* Writes the requested statistics of the groups that begin in a unit's block. */
static inline void put_statistics(const struct apply_call *call, const struct unit *unit, const struct block *block,
                                  const local struct statistics *statistics) {
#if SAVE_MEAN || SAVE_RSTD
    for (uint i = (uint)get_local_id(0); unit->chunk == 0 && i < BLOCK_GROUPS; i += GROUP_ITEMS) {
        const ulong group = block->first_group + i, first = group * CHANNELS_OF_GROUP;
        if (first < block->first || first >= block->end)
            continue;
#if SAVE_MEAN
        call->mean[unit->sample * GROUPS + group] = statistics[i].mean;
#endif
#if SAVE_RSTD
        call->rstd[unit->sample * GROUPS + group] = statistics[i].rstd;
#endif
    }
#endif
    (void)call, (void)unit, (void)block, (void)statistics;
}

INLINED void write_unit(const struct apply_call *call, const struct unit *unit, struct place *place,
                        struct output *output) {
    const struct course course = course_of_phase(unit);
    const struct block block = block_of(unit);
    const ulong of_block = ELEMENT(0) - block.first_group * CHANNELS_OF_GROUP;
    struct batch batch;
    struct affine affine;
    load_batch(call, &course, 0, &batch);
    if (IS_THERE(0)) {
        affine.scale = WEIGHTS_OF(call, ELEMENT(0), VEC);
        affine.bias = BIASES_OF(call, ELEMENT(0), VEC);
    }
    merge_groups(call->parts, unit, call->eps, place->statistics, place->space);
    put_statistics(call, unit, &block, place->statistics);
    if (IS_THERE(0)) {
        affine.mean = of_block_groups(&place->statistics->mean, of_block, VEC, 2);
        affine.scale *= of_block_groups(&place->statistics->rstd, of_block, VEC, 2);
        write_course(call, &course, &batch, &affine, output);
    }
    barrier(CLK_LOCAL_MEM_FENCE); /* before the next unit's statistics */
}

#else

#if LANES == 1

/* Writes y of a row. A last vector that overlaps others is loaded before they are written, as y may lie over x. */
static inline void write_row(const struct apply_call *call, const struct unit *unit, const ulong index,
                             const struct affine *affine, struct output *output) {
    const ulong row = index * ROW;
    const realv last = OVERLAPS ? LOAD_S(call, unit->sample, row + ELEMENT(VECTORS_APART), VEC) : 0;
    for (uint j = 0; j < HELD_VECTORS && IS_APART(j); j++)
        write_vector(call, unit->sample, row + ELEMENT(j), COUNT(j), &affine[j],
                     LOAD_S(call, unit->sample, row + ELEMENT(j), COUNT(j)), output);
    if (OVERLAPS)
        write_vector(call, unit->sample, row + ELEMENT(VECTORS_APART), VEC, affine + VECTORS_APART, last, output);
}

#endif

INLINED void write_unit(const struct apply_call *call, const struct unit *unit, struct place *place,
                        struct output *output) {
    struct affine affine[HELD_VECTORS];
    for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
        affine[j].mean = of_groups(call->mean + unit->sample * GROUPS, ELEMENT(j), COUNT(j), 1);
        affine[j].scale =
            of_groups(call->rstd + unit->sample * GROUPS, ELEMENT(j), COUNT(j), 1) * WEIGHTS_OF(call, ELEMENT(j), COUNT(j));
        affine[j].bias = BIASES_OF(call, ELEMENT(j), COUNT(j));
    }
#if LANES == 1
    const ulong end = unit->active ? chunk_begin(unit->chunk + 1) : 0;
    for (ulong row = chunk_begin(unit->chunk); row < end; row++)
        write_row(call, unit, row, affine, output);
#else
    const struct course course = course_of_phase(unit);
    struct batch batch;
    load_batch(call, &course, 0, &batch);
    write_course(call, &course, &batch, &affine[0], output);
#endif
    (void)place;
}

#endif

#if MEASURES

/* magnitudes: [work, PHASES] */
INLINED void measure_share(const struct apply_call *call, struct place *place) {
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_from(first + i * UNITS, call->work);
        struct output output = OUTPUT_OF(call, unit.sample);
        write_unit(call, &unit, place, &output);
        put_magnitude(call->magnitudes + (first + i * UNITS + own_unit()) * PHASES + unit.phase, &output,
                      unit.active && unit.lane == 0, &place->lanes);
    }
    last_barrier();
}

#define APPLY measure_share

#else

INLINED void write_share(const struct apply_call *call, struct place *place) {
    const ulong first = first_unit(call->iterations);
    for (ulong i = 0; i < call->iterations && first + i * UNITS < call->work; i++) {
        const struct unit unit = unit_backwards(first + i * UNITS, call->work);
        struct output output = OUTPUT_OF(call, unit.sample);
        write_unit(call, &unit, place, &output);
    }
    last_barrier();
}

#define APPLY write_share

#endif

/* Declares a kernel's place. */
#if BLOCK && MERGES
#define APPLY_PLACE                                   \
    local real scratch[2 * SCRATCH];                  \
    local real space[2 * GROUP_ITEMS];                \
    local struct statistics statistics[BLOCK_GROUPS]; \
    struct place place = {{.scratch = scratch}, statistics, space}
#else
#define APPLY_PLACE                  \
    local real scratch[2 * SCRATCH]; \
    struct place place = {{.scratch = scratch}}
#endif

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_apply(PARAMETERS(APPLY_ARGS)) {
    APPLY_PLACE;
    const struct apply_call call = {ARGUMENTS(APPLY_ARGS), .aligned = !ELEMENT_ALIGNED};
    APPLY(&call, &place);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_moments_unaligned(PARAMETERS(GROUP_NORM_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    local realv space[SPACE];
    const struct call call = {ARGUMENTS(GROUP_NORM_MOMENTS_ARGS), .aligned = false};
    take_moments_share(&call, scratch, space);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_apply_unaligned(PARAMETERS(APPLY_ARGS)) {
    APPLY_PLACE;
    const struct apply_call call = {ARGUMENTS(APPLY_ARGS), .aligned = false};
    APPLY(&call, &place);
}
#endif
