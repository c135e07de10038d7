/* Each lane keeps the sums of its columns in registers, over all the rows that its work-group goes through, SEGMENTS of
 * them side by side. */
#ifndef NORM_BACKWARD_REGISTERS_H
#define NORM_BACKWARD_REGISTERS_H

#include "norm/norm_backward.h"
#include "norm/norm_backward_share.h"
#include "norm/slots.h"
#include "norm/team.h"

#define DWEIGHT_IN_REGISTERS (ACCUMULATOR != ACCUMULATOR_LOCAL)
#define DBIAS_IN_REGISTERS (ACCUMULATOR == ACCUMULATOR_REGISTERS || ACCUMULATOR == ACCUMULATOR_COLUMNS)

struct columns {
    index_t first; /* vector of the tile */
    uint lane;
    const global STORAGE(WEIGHT_DTYPE) * weight; /* of the segment's first element */
    const global STORAGE(BIAS_DTYPE) * bias;
};

/* A lane's sums over rows, in registers, or all of a work-group's in local memory: each lane's are its own there too. */
struct accumulator {
#if DWEIGHT_IN_REGISTERS
    realv dweight[TILE_HELD];
#define DWEIGHT_STEP 1
#else
    local realv *dweight; /* of this lane's first vector; the next one is LANES further on */
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

INLINED bool has_vector(const struct columns *columns, const uint i) {
    const bool in_tile = TILE_VECTORS % LANES == 0 || columns->lane + i * LANES < TILE_VECTORS;
    const bool in_segment = GROUP_SIZE % TILE == 0 || vector_of(columns, i) < VECTORS;
    return in_tile && in_segment;
}

INLINED struct inputs fetch(const struct call *call, const struct row *row, const struct columns *columns, const uint i,
                            const enum load_hint hint) {
    return row->active && has_vector(columns, i) ? load_inputs(call, row, vector_of(columns, i), hint) : no_inputs();
}

INLINED void fetch_row(const struct call *call, const struct row *row, const struct columns *columns, struct inputs *held,
                       const enum load_hint hint) {
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++)
        if (KEEP == KEEP_REGISTERS)
            held[i % HELD_INPUTS] = fetch(call, row, columns, i, hint);
}

/* What load_inputs reads of vector v, of a row that is due later. */
static inline void prefetch_inputs(const struct call *call, const struct row *row, const index_t v) {
    prefetch_later(SEGMENT_OF(x, row) + v * VEC);
    prefetch_later(SEGMENT_OF(dy, row) + v * VEC);
#if IS_FP8(X_DTYPE)
    prefetch_later(call->x_scale + place_of_scale(X_SCALING, X_GROUP, row->index, row->group * GROUP_SIZE + v * VEC));
#endif
#if GATE
    prefetch_later(SEGMENT_OF(z, row) + v * VEC);
#endif
#if ADDS_RESIDUAL
    prefetch_later(SEGMENT_OF(residual, row) + v * VEC);
#endif
}

/* first: of SEGMENTS rows that are due after those that are fetched, if the share has them. */
INLINED void prefetch_rows(const struct call *call, const struct share *share, const ulong first,
                           const struct columns *columns) {
#if PREFETCH == PREFETCH_NEXT
    const ulong place = first + get_local_id(0) / LANES;
    if (place >= share->end)
        return;
    const ulong index = row_of_place(call, share, place);
    const struct row row = {index, share->group ROW_STARTS(index), 0, 0, true};
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++)
        if (has_vector(columns, i))
            prefetch_inputs(call, &row, vector_of(columns, i));
#else
    (void)call, (void)share, (void)first, (void)columns;
#endif
}

INLINED struct scale scale_of(const struct call *call, const struct columns *columns, const struct scale *scales,
                              const uint i) {
    if (WEIGHTS == WEIGHTS_EARLY || !has_vector(columns, i))
        return scales[i % SCALES];
    return load_scale(columns->weight, columns->bias, vector_of(columns, i), call->aligned, LOAD_IN_TURN);
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
            held[0] = load_inputs(call, row, vector_of(columns, i), LOAD_FIRST);
        const struct scale scale = scale_of(call, columns, scales, i);
        add_point(&lane_sums, point_at(call, row, &held[i % HELD_INPUTS], scale), scale, call->weight_offset);
        if (KEEP == KEEP_REGISTERS)
            forget_wide(&held[i % HELD_INPUTS]);
    }
    sums_over_lanes(lanes, &lane_sums, sums);
}

/* To the other work-groups of the team, as early as possible. */
INLINED void post_row(const struct call *call, const struct row *row, const struct columns *columns,
                      const struct scale *scales, struct inputs *held, struct lanes *lanes, struct team *team) {
#if EXCHANGES
    real sums[2];
    sum_row(call, row, columns, scales, held, lanes, sums);
    post(team, row, sums);
#endif
}

INLINED void expect_row(const struct team *team, const struct row *row) {
#if EXCHANGES
    expect(team, row);
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

/* The same of the whole segment. False: a message is missing. */
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
    const struct means means = means_of_sums(sums[0], sums[1]);
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++) {
        if (KEEP == KEEP_REREAD && !(row->active && has_vector(columns, i)))
            continue;
        if (KEEP == KEEP_REREAD)
            held[0] = load_inputs(call, row, vector_of(columns, i), LOAD_LAST);
        const struct inputs *in = &held[i % HELD_INPUTS];
        const struct scale scale = scale_of(call, columns, scales, i);
        const struct point point = point_at(call, row, in, scale);
        if (row->active && has_vector(columns, i))
            put_outputs(call, row, vector_of(columns, i), in, point, scale, columns->bias, means);
        if (DWEIGHT)
            accumulator->dweight[i * DWEIGHT_STEP] += point.dn * point.x_hat;
        if (DBIAS)
            accumulator->dbias[i * DBIAS_STEP] += point.dn;
    }
}

/* False, and nothing is written: a message is missing. */
INLINED bool take_row(const struct call *call, const struct row *row, const struct columns *columns,
                      const struct scale *scales, struct inputs *held, struct accumulator *accumulator, struct lanes *lanes,
                      struct team *team) {
    real sums[2] = {0, 0};
    if (!sum_segment(call, row, columns, scales, held, lanes, team, sums))
        return false;
    put_row(call, row, columns, scales, held, accumulator, sums);
    return true;
}

/* Local memory, in vectors: LINE for each of the SEGMENTS rows that a work-group takes side by side; dweight's, then
 * dbias's, or one after the other in the same place. */
#define LINE (TILE_HELD * LANES)
#define DBIAS_LINES (DWEIGHT_IN_REGISTERS ? 0 : SEGMENTS * LINE)
#if ACCUMULATOR == ACCUMULATOR_COLUMNS
#define SPACE (2 * GROUP_ITEMS) /* of norm_backward_columns.h */
#elif DBIAS_IN_REGISTERS
#define SPACE (SEGMENTS > 1 ? SEGMENTS * LINE : 1)
#else
#define SPACE (DBIAS_LINES + SEGMENTS * LINE)
#endif

INLINED void clear_accumulator(struct accumulator *accumulator, local realv *space) {
    local realv *own = space + get_local_id(0) / LANES * LINE + get_local_id(0) % LANES;
#if !DWEIGHT_IN_REGISTERS
    accumulator->dweight = own;
#endif
#if !DBIAS_IN_REGISTERS
    accumulator->dbias = own + DBIAS_LINES;
#endif
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++) {
        accumulator->dweight[i * DWEIGHT_STEP] = 0;
        accumulator->dbias[i * DBIAS_STEP] = 0;
    }
    (void)own;
}

/* The sums of a lane's registers. */
INLINED void put_registers(global real *slot_row, const struct columns *columns, const realv *value, local realv *space,
                           const struct slot *slot) {
#if SEGMENTS == 1
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++)
        if (has_vector(columns, i))
            put_slot(slot_row, vector_of(columns, i), value[i], slot);
    (void)space;
#else
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++)
        space[get_local_id(0) / LANES * LINE + i * LANES + columns->lane] = value[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    put_lines(slot_row, columns->first, (const local real *)space, SEGMENTS, LINE * VEC, slot);
#endif
}

INLINED void put_accumulator(const struct columns *columns, const struct accumulator *accumulator, local realv *space,
                             const struct slot *slot) {
    barrier(CLK_LOCAL_MEM_FENCE);
#if !DBIAS_IN_REGISTERS
    if (DBIAS)
        put_lines(slot->dbias, columns->first, (const local real *)(space + DBIAS_LINES), SEGMENTS, LINE * VEC, slot);
#endif
#if !DWEIGHT_IN_REGISTERS
    if (DWEIGHT)
        put_lines(slot->dweight, columns->first, (const local real *)space, SEGMENTS, LINE * VEC, slot);
#else
    if (DWEIGHT)
        put_registers(slot->dweight, columns, accumulator->dweight, space, slot);
#endif
#if DBIAS_IN_REGISTERS
    if (DBIAS)
        put_registers(slot->dbias, columns, accumulator->dbias, space, slot);
#endif
    (void)accumulator;
}

/* The rows of a share one after the other. Returns the first that is not done, where a message is missing; else the end. */
INLINED ulong take_rows(const struct call *call, const struct share *share, const struct columns *columns,
                        const struct scale *scales, struct accumulator *accumulator, struct lanes *lanes,
                        struct team *team) {
    const uint segment = (uint)get_local_id(0) / LANES;
#if PIPELINE >= 2
    struct row row = row_in_share(call, share, share->first + segment, share->group);
    struct inputs held[TILE_HELD];
    fetch_row(call, &row, columns, held, LOAD_PLAIN);
    post_row(call, &row, columns, scales, held, lanes, team);
#if PIPELINE == 3
    struct row next = row;
    struct inputs next_held[TILE_HELD];
    if (rows_after(share, share->first) < share->end) {
        next = row_in_share(call, share, rows_after(share, share->first) + segment, share->group);
        fetch_row(call, &next, columns, next_held, LOAD_PLAIN);
    }
#endif
    for (ulong first = share->first; first < share->end; first = rows_after(share, first)) {
        const bool more = rows_after(share, first) < share->end;
#if PIPELINE == 3
        struct row after = next;
        struct inputs after_held[TILE_HELD];
        if (rows_after(share, rows_after(share, first)) < share->end) {
            after = row_in_share(call, share, rows_after(share, rows_after(share, first)) + segment, share->group);
            expect_row(team, &after);
            fetch_row(call, &after, columns, after_held, LOAD_IN_TURN);
            prefetch_rows(call, share, rows_after(share, rows_after(share, rows_after(share, first))), columns);
        }
        look_for_row(team, &row);
        if (more)
            post_row(call, &next, columns, scales, next_held, lanes, team);
        if (!take_row(call, &row, columns, scales, held, accumulator, lanes, team))
            return first;
#else
        struct row next = row;
        struct inputs next_held[TILE_HELD];
        if (more) {
            next = row_in_share(call, share, rows_after(share, first) + segment, share->group);
            expect_row(team, &next);
            fetch_row(call, &next, columns, next_held, LOAD_IN_TURN);
            prefetch_rows(call, share, rows_after(share, rows_after(share, first)), columns);
        }
        if (!take_row(call, &row, columns, scales, held, accumulator, lanes, team))
            return first;
        if (more)
            post_row(call, &next, columns, scales, next_held, lanes, team);
#endif
        row = next;
#pragma unroll
        for (uint i = 0; i < TILE_HELD; i++)
            held[i] = next_held[i];
#if PIPELINE == 3
        next = after;
#pragma unroll
        for (uint i = 0; i < TILE_HELD; i++)
            next_held[i] = after_held[i];
#endif
    }
#else
    for (ulong first = share->first; first < share->end; first = rows_after(share, first)) {
        const struct row row = row_in_share(call, share, first + segment, share->group);
        struct inputs held[HELD_INPUTS];
        fetch_row(call, &row, columns, held, LOAD_PLAIN);
        prefetch_rows(call, share, rows_after(share, first), columns);
        post_row(call, &row, columns, scales, held, lanes, team);
        if (!take_row(call, &row, columns, scales, held, accumulator, lanes, team))
            return first;
    }
#endif
    return share->end;
}

#if EXCHANGES

/* As sum_row, of any tile, from memory. It is not unrolled, to need few registers: it is seldom run. */
INLINED void sum_tile(const struct call *call, const struct row *row, const struct columns *tile, struct lanes *lanes,
                      real *sums) {
    struct lane_sums lane_sums = {0, 0};
#pragma unroll 1
    for (uint i = 0; i < TILE_HELD; i++) {
        if (KEEP == KEEP_REREAD && !(row->active && has_vector(tile, i)))
            continue;
        const struct inputs in = fetch(call, row, tile, i, LOAD_FIRST);
        const struct scale scale = has_vector(tile, i)
                                       ? load_scale(tile->weight, tile->bias, vector_of(tile, i), call->aligned, LOAD_PLAIN)
                                       : no_scale();
        add_point(&lane_sums, point_at(call, row, &in, scale), scale, call->weight_offset);
    }
    sums_over_lanes(lanes, &lane_sums, sums);
}

/* As take_rows, from a row on, without any message. Others may wait for this tile's, and get them. */
INLINED void take_rows_alone(const struct call *call, const struct share *share, ulong first, const struct columns *columns,
                             const struct scale *scales, struct accumulator *accumulator, struct lanes *lanes,
                             const struct team *team) {
#pragma unroll 1
    for (; first < share->end; first = rows_after(share, first)) {
        const struct row row = row_in_share(call, share, first, share->group);
        real sums[2] = {0, 0};
        for (uint tile = 0; tile < TILES; tile++) {
            const struct columns other = {(index_t)tile * TILE_VECTORS, columns->lane, columns->weight, columns->bias};
            real of_tile[2];
            sum_tile(call, &row, &other, lanes, of_tile);
            if (tile == team->tile)
                post(team, &row, of_tile);
            for (uint k = 0; k < POSTED; k++)
                sums[k] += of_tile[k];
        }
        struct inputs held[HELD_INPUTS];
        fetch_row(call, &row, columns, held, LOAD_PLAIN);
        put_row(call, &row, columns, scales, held, accumulator, sums);
    }
}

#endif

/* Posts the sums of all rows of a share. */
INLINED void post_rows(const struct call *call, const struct share *share, const struct columns *columns,
                       const struct scale *scales, struct lanes *lanes, struct team *team) {
    for (ulong first = share->first; first < share->end; first = rows_after(share, first)) {
        const struct row row = row_in_share(call, share, first, share->group);
        struct inputs held[HELD_INPUTS];
        fetch_row(call, &row, columns, held, LOAD_PLAIN);
        post_row(call, &row, columns, scales, held, lanes, team);
    }
}

INLINED void walk(const struct call *call, const struct share *share, struct slot *slot, volatile global uint *lock,
                  local real *scratch, local realv *space, local uint *broadcast, struct team *team) {
    struct lanes lanes = {.scratch = scratch, .wait_alone = true};
    const ulong first_column = share->group * GROUP_SIZE;
    const struct columns columns = {share->tile * TILE_VECTORS, (uint)get_local_id(0) % LANES,
                                    WEIGHTS_AT(weight, share->weight_row) + first_column,
                                    WEIGHTS_AT(bias, share->weight_row) + first_column};
    struct scale scales[SCALES];
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++)
        scales[i % SCALES] =
            WEIGHTS == WEIGHTS_EARLY && has_vector(&columns, i)
                ? load_scale(columns.weight, columns.bias, vector_of(&columns, i), call->aligned, LOAD_PLAIN)
                : no_scale();
    struct accumulator accumulator;
    clear_accumulator(&accumulator, space);
    if (ONLY_POSTS) {
        post_rows(call, share, &columns, scales, &lanes, team);
        return;
    }
    const ulong done = take_rows(call, share, &columns, scales, &accumulator, &lanes, team);
#if EXCHANGES
    take_rows_alone(call, share, done, &columns, scales, &accumulator, &lanes, team);
#else
    (void)done;
#endif
    if (HAS_SLOTS) {
        open_slot(slot, lock, broadcast);
        put_accumulator(&columns, &accumulator, space, slot);
        close_slot(lock);
    }
}

#endif
