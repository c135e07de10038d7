/* The sums over a chunk of each channel, or of each element of a row: of dn, and of dn · (x − mean) · rstd. */
#ifndef GROUP_NORM_SUMS_H
#define GROUP_NORM_SUMS_H

#include "norm/group_norm_backward.h"
#include "norm/group_norm_entries.h"

/* The arguments of the launch. work: units. */
struct sums_call {
    MEMBERS(GROUP_NORM_SUMS_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#if !IS_FIRST
/* The rstd of each element of a held vector, and all of its numbers. */
#define RSTDS_BESIDE(call, unit, j) of_groups((call)->rstd + (unit)->sample * GROUPS, ELEMENT(j), COUNT(j), 1)
#define CHANNELS_BESIDE(call, unit, j)                                                                                    \
    ((struct channels){of_groups((call)->mean + (unit)->sample * GROUPS, ELEMENT(j), COUNT(j), 1),                        \
                       RSTDS_BESIDE(call, unit, j), RSTDS_BESIDE(call, unit, j) * WEIGHTS_OF(call, ELEMENT(j), COUNT(j)), \
                       BIASES_OF(call, ELEMENT(j), COUNT(j)) X_SCALE_MEMBER(call, (unit)->sample)})
#endif

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
        const ulong group = group_of(unit);
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
    if (unit->active && unit->lane == 0)
        post_part(call->parts, part_of(unit->sample, unit->channel, unit->chunk), sums[0], sums[1]);
    (void)space;
}

#else

#if PHASES > 1

/* Writes the sums of a unit's elements over its phases. sums: this lane's. space: [2, PHASES, LANES] */
INLINED void put_sums(const struct sums_call *call, const struct unit *unit, const uint j, const realv sums[2],
                      local realv *space) {
    const uint item = (uint)get_local_id(0);
    const local real *phases = (const local real *)space;
    const ulong first = (unit->vector - unit->lane) * VEC;
    space[item] = sums[0];
    space[GROUP_ITEMS + item] = sums[1];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < BLOCK_ELEMENTS && chunk_count(unit->chunk) > 0; i += GROUP_ITEMS) {
        real total[2] = {0, 0};
        for (uint phase = 0; phase < PHASES; phase++) {
            total[0] += phases[phase * BLOCK_ELEMENTS + i];
            total[1] += phases[(PHASES + phase) * BLOCK_ELEMENTS + i];
        }
        if (first + i < ROW)
            put_part(call->parts, part_of_element(unit->sample, first + i, unit->chunk), total[0], total[1]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    (void)j;
}

#else

/* Writes the sums of this lane's j-th vector. */
INLINED void put_sums(const struct sums_call *call, const struct unit *unit, const uint j, const realv sums[2],
                      local realv *space) {
    const real *first = (const real *)&sums[0], *second = (const real *)&sums[1];
    for (uint i = 0; i < COUNT(j); i++)
        put_part(call->parts, part_of_element(unit->sample, ELEMENT(j) + i, unit->chunk), first[i], second[i]);
    (void)space;
}

#endif

/* The sums of this lane's vectors, over the chunk's rows. */
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
    for (ulong row = begin; row < end; row++) {
        const bool ends_run = row + 1 == end || (row - begin) % RUN_VECTORS == RUN_VECTORS - 1;
        for (uint j = 0; j < HELD_VECTORS && IS_THERE(j); j++) {
            struct packed_pair packed;
            LOAD_PAIR(&packed, call, unit->sample, row * ROW + ELEMENT(j), COUNT(j));
            const struct point point = point_of(&channels[j], &packed);
            channel_sums_take(&own[j], point.centre, point.dn);
            if (ends_run)
                channel_sums_end_run(&own[j]);
        }
    }
#else
    if (IS_THERE(0)) {
        struct channel_sums sums = own[0];
        add_vectors(call, unit->sample, begin * ROW + ELEMENT(0), PHASES * (ulong)ROW,
                    rows_of_phase(unit->chunk, unit->phase), COUNT(0), &channels[0], &sums);
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

#endif
