/* The moments of a unit: of a chunk of a channel, or of a block of vectors. The including file defines a struct call with
 * the members of GROUP_NORM_MOMENTS_ARGS. */
#ifndef GROUP_NORM_CHUNK_MOMENTS_H
#define GROUP_NORM_CHUNK_MOMENTS_H

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
        post_part(call->parts, part_of(unit->sample, unit->channel, unit->chunk), origin + all.mean, all.squares);
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

#endif
