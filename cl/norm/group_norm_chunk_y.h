/* y of a unit: of a chunk of a channel, or of a block of vectors. The including file defines a struct apply_call with the
 * members of GROUP_NORM_APPLY_ARGS or, with MERGES, of GROUP_NORM_APPLY_MOMENTS_ARGS or GROUP_NORM_EXCHANGE_ARGS. */
#ifndef GROUP_NORM_CHUNK_Y_H
#define GROUP_NORM_CHUNK_Y_H

#include "norm/group_norm_course.h"
#include "norm/group_norm_entries.h"
#if BLOCK
#include "norm/group_norm_block.h"
#endif

/* What the work-items of a work-group share. */
struct place {
    struct lanes lanes;
#if BLOCK && MERGES
    local struct statistics *statistics; /* [BLOCK_GROUPS] */
    local real *space;                   /* [2, GROUP_ITEMS] */
#endif
};

#if IS_FIRST

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

#endif
