/* A row of a tile, whose columns are the same in each lane for every row: it is read, summed, and written. */
#ifndef NORM_BACKWARD_ROWS_H
#define NORM_BACKWARD_ROWS_H

#include "norm/norm_backward_outputs.h"
#include "norm/norm_backward_share.h"
#include "norm/team.h"

#define DWEIGHT_IN_REGISTERS (ACCUMULATOR != ACCUMULATOR_LOCAL)
#define DBIAS_IN_REGISTERS (ACCUMULATOR == ACCUMULATOR_REGISTERS || ACCUMULATOR == ACCUMULATOR_COLUMNS)

struct columns {
    index_t first; /* vector of the tile */
    uint lane, lead;
    const global STORAGE(WEIGHT_DTYPE) * weight; /* of the segment's first element */
    const global STORAGE(BIAS_DTYPE) * bias;
};

/* A lane's sums over rows, in registers or in local memory. There too each lane has its own. */
struct accumulator {
#if DWEIGHT_IN_REGISTERS
    realv dweight[TILE_HELD];
#define DWEIGHT_STEP 1
#else
    local realv *dweight; /* of this lane's first vector; the next one is LANES vectors further on */
#define DWEIGHT_STEP LANES
#endif
#if DBIAS_IN_REGISTERS
    realv dbias[TILE_HELD];
#define DBIAS_STEP 1
#else
    local realv *dbias;
#define DBIAS_STEP LANES
#endif
};

#if WEIGHTS == WEIGHTS_EARLY
#define SCALES TILE_HELD
#else
#define SCALES 1
#endif

#if KEEP == KEEP_REGISTERS
#define HELD_INPUTS TILE_HELD
#else
#define HELD_INPUTS 1
#endif

INLINED index_t vector_of(const struct columns *columns, const uint i) {
    return columns->first + columns->lane + i * LANES;
}

/* Whether every lane has its i-th vector behind so many before it, of so many in all, which saves a comparison. Not on
 * rusticl 22.3: it treats branches on i as the same in all lanes, and with this in the condition it wrote only a part of
 * dx. */
INLINED bool all_have(const uint i, const index_t before, const index_t vectors) {
    return ISA == ISA_PTX && before + (i + 1) * LANES <= vectors;
}

#define LAST_TILE ((index_t)(TILES - 1) * TILE_VECTORS) /* its first vector; it may have fewer than the other tiles */

#if LEADS
/* What is known of each lane's i-th vector. */
INLINED uint known_of(const uint i) {
    if (ISA != ISA_PTX)
        return 0;
    return (i > 0 ? NOT_FIRST : 0) | (all_have(i, LAST_TILE, WHOLE_VECTORS) ? NOT_LAST : 0);
}
#endif

INLINED bool has_vector(const struct columns *columns, const uint i) {
    const bool in_tile =
        TILE_VECTORS % LANES == 0 || all_have(i, 0, TILE_VECTORS) || columns->lane + i * LANES < TILE_VECTORS;
    const bool in_segment = GROUP_SIZE % TILE + LEADS == 0 || all_have(i, LAST_TILE, vectors_of(0)) ||
                            is_vector(vector_of(columns, i), columns->lead);
    return in_tile && in_segment;
}

/* The row, with what is known of each lane's i-th vector added to its lead. */
INLINED struct row row_at_vector(const struct row *row, const uint i) {
    struct row at = *row;
#if LEADS
    at.lead |= known_of(i);
#endif
    (void)i;
    return at;
}

INLINED struct inputs fetch(const struct call *call, const struct row *row, const struct columns *columns, const uint i,
                            const enum load_hint hint) {
    if (!(row->active && has_vector(columns, i)))
        return no_inputs();
    const struct row at = row_at_vector(row, i);
    struct inputs in = load_inputs(call, &at, vector_of(columns, i), hint);
#if HOLDS_DRESIDUAL_OUT
    in.dresidual_out = LOAD_VECTOR(DRESIDUAL_OUT_DTYPE)(SEGMENT_OF(dresidual_out, &at), vector_of(columns, i), at.lead,
                                                        call->aligned, hint);
#endif
    return in;
}

INLINED void fetch_row(const struct call *call, const struct row *row, const struct columns *columns, struct inputs *held,
                       const enum load_hint hint) {
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++)
        if (KEEP == KEEP_REGISTERS)
            held[i % HELD_INPUTS] = fetch(call, row, columns, i, hint);
}

/* Elements of a tile per prefetch of a lane: a vector, or 16 bytes of the tensor with the widest elements. */
#define PREFETCHED (VEC * sizeof(union widest_element) < 16 ? 16 / sizeof(union widest_element) : VEC)

union widest_element {
    STORAGE(X_DTYPE) x;
    STORAGE(DY_DTYPE) dy;
    STORAGE(Z_DTYPE) z;
    STORAGE(RESIDUAL_DTYPE) residual;
    STORAGE(DRESIDUAL_OUT_DTYPE) dresidual_out;
};

/* Prefetches the inputs of a later row, from a column on. */
static inline void prefetch_inputs(const struct call *call, const struct row *row, const index_t column) {
    prefetch_later(SEGMENT_OF(x, row) + column);
    prefetch_later(SEGMENT_OF(dy, row) + column);
#if IS_FP8(X_DTYPE)
    prefetch_later(call->x_scale + place_of_scale(X_SCALING, X_GROUP, row->index, row->group * GROUP_SIZE + column));
#endif
#if GATE
    prefetch_later(SEGMENT_OF(z, row) + column);
#endif
#if ADDS_RESIDUAL
    prefetch_later(SEGMENT_OF(residual, row) + column);
#endif
#if HOLDS_DRESIDUAL_OUT
    prefetch_later(SEGMENT_OF(dresidual_out, row) + column);
#endif
}

/* Prefetches ROWS_AT_ONCE rows, if the share has them. first: the first of them. */
INLINED void prefetch_rows(const struct call *call, const struct share *share, const ulong first,
                           const struct columns *columns) {
#if PREFETCH == PREFETCH_NEXT
    const ulong place = first + share->behind;
    if (!share->has_segment || place >= share->end)
        return;
    const ulong index = row_of_place(call, share, place);
    const struct row row = {index, share->group ROW_STARTS(index), 0, 0, columns->lead, true};
    const index_t begin = columns->first * VEC, end = min(begin + (index_t)TILE, (index_t)GROUP_SIZE);
#pragma unroll
    for (index_t i = 0; i < TILE; i += LANES * PREFETCHED)
        if (begin + i + columns->lane * PREFETCHED < end)
            prefetch_inputs(call, &row, begin + i + columns->lane * PREFETCHED);
#else
    (void)call, (void)share, (void)first, (void)columns;
#endif
}

INLINED struct scale scale_of(const struct call *call, const struct columns *columns, const struct scale *scales,
                              const uint i) {
    if (WEIGHTS == WEIGHTS_EARLY || !has_vector(columns, i))
        return scales[i % SCALES];
    return load_scale(columns->weight, columns->bias, vector_of(columns, i), columns->lead, call->aligned, LOAD_IN_TURN);
}

/* Loads what a lane's vectors from the i-th on need besides the inputs. */
INLINED void load_at_once(const struct call *call, const struct row *row, const struct columns *columns,
                          const struct scale *scales, const uint i, struct scale *scale, struct beside *beside) {
#pragma unroll
    for (uint j = 0; j < WEIGHTS_AT_ONCE; j++) {
        if (i + j < TILE_HELD)
            scale[j] = scale_of(call, columns, scales, i + j);
        const struct row at = row_at_vector(row, i + j);
        if (i + j < TILE_HELD && row->active && has_vector(columns, i + j))
            load_beside(call, &at, columns->bias, vector_of(columns, i + j), &beside[j]);
    }
}

/* Called between one use of the inputs and the next. */
static inline void forget_wide(struct inputs *in) {
    if (sizeof(in->x.packed) < sizeof(realv))
        forget((uint *)&in->x.packed, sizeof(in->x.packed) / sizeof(uint));
    if (sizeof(in->dy) < sizeof(realv))
        forget((uint *)&in->dy, sizeof(in->dy) / sizeof(uint));
}

/* Σ(x̂ · wdn) and Σwdn of the tile, or of the segment where that is not split. */
INLINED void sum_row(const struct call *call, const struct row *row, const struct columns *columns,
                     const struct scale *scales, struct inputs *held, struct lanes *lanes, real *sums) {
    struct lane_sums lane_sums = {0, 0};
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++) {
        if (KEEP == KEEP_REREAD && !(row->active && has_vector(columns, i)))
            continue;
        if (KEEP == KEEP_REREAD)
            held[0] = fetch(call, row, columns, i, LOAD_FIRST);
        const struct scale scale = scale_of(call, columns, scales, i);
        add_point(&lane_sums, point_at(call, row, &held[i % HELD_INPUTS], scale), scale, call->weight_offset,
                  vector_of(columns, i), row_at_vector(row, i).lead);
        if (KEEP == KEEP_REGISTERS)
            forget_wide(&held[i % HELD_INPUTS]);
    }
    sums_over_lanes(lanes, &lane_sums, sums);
}

/* Posts the sums of a row to the other work-groups of the team, as early as possible. */
INLINED void post_row(const struct call *call, const struct row *row, const struct columns *columns,
                      const struct scale *scales, struct inputs *held, struct lanes *lanes, struct team *team) {
#if EXCHANGES
    real sums[2];
    sum_row(call, row, columns, scales, held, lanes, sums);
    post(team, row, sums);
#endif
}

INLINED void prefetch_row_mailboxes(const struct team *team, const struct row *row) {
#if EXCHANGES
    prefetch_mailboxes(team, row);
#else
    (void)team, (void)row;
#endif
}

INLINED void look_for_row(struct team *team, const struct row *row) {
#if EXCHANGES
    look(team, row);
#else
    (void)team, (void)row;
#endif
}

/* The same sums over the whole segment. Returns false if a message is missing. */
INLINED bool sum_segment(const struct call *call, const struct row *row, const struct columns *columns,
                         const struct scale *scales, struct inputs *held, struct lanes *lanes, struct team *team,
                         real *sums) {
#if EXCHANGES
    return collect(team, row, sums);
#elif NEEDS_MEANS && HAS_SUMS
    sum_chunks(call, row, sums);
#elif NEEDS_MEANS
    sum_row(call, row, columns, scales, held, lanes, sums);
#endif
    return true;
}

/* Writes the outputs of the tile, and adds to its sums over rows. sums: of the segment. */
INLINED void put_row(const struct call *call, const struct row *row, const struct columns *columns,
                     const struct scale *scales, struct inputs *held, struct accumulator *accumulator, const real *sums) {
    const struct means means = means_of_sums(call, row, sums);
    struct scale at_once[WEIGHTS_AT_ONCE];
    struct beside beside[WEIGHTS_AT_ONCE];
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++) {
        if (i % WEIGHTS_AT_ONCE == 0)
            load_at_once(call, row, columns, scales, i, at_once, beside);
        if (KEEP == KEEP_REREAD && !(row->active && has_vector(columns, i)))
            continue;
        if (KEEP == KEEP_REREAD)
            held[0] = fetch(call, row, columns, i, LOAD_LAST);
        const struct inputs *in = &held[i % HELD_INPUTS];
        /* with scales in an array rusticl 22.3 leaves a part of dx unwritten */
        const struct scale scale = ISA == ISA_PTX ? at_once[i % WEIGHTS_AT_ONCE] : scale_of(call, columns, scales, i);
        const struct point point = point_at(call, row, in, scale);
        const struct row at = row_at_vector(row, i);
        if (row->active && has_vector(columns, i))
            put_outputs(call, &at, vector_of(columns, i), in, point, scale, &beside[i % WEIGHTS_AT_ONCE], means);
        if (DWEIGHT && row->active) /* elsewhere an infinite weight makes the point NaN */
            accumulator->dweight[i * DWEIGHT_STEP] += point.dn * point.x_hat;
        if (DBIAS && row->active)
            accumulator->dbias[i * DBIAS_STEP] += point.dn;
    }
}

/* Returns false, and writes nothing, if a message is missing. */
INLINED bool take_row(const struct call *call, const struct row *row, const struct columns *columns,
                      const struct scale *scales, struct inputs *held, struct accumulator *accumulator, struct lanes *lanes,
                      struct team *team) {
    real sums[2] = {0, 0};
    if (!sum_segment(call, row, columns, scales, held, lanes, team, sums))
        return false;
    put_row(call, row, columns, scales, held, accumulator, sums);
    return true;
}

#endif
