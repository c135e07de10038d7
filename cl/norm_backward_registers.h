/* Each lane keeps the sums of its columns in registers, over all the rows that its work-group goes through, SEGMENTS of
 * them side by side. */
#ifndef NORM_BACKWARD_REGISTERS_H
#define NORM_BACKWARD_REGISTERS_H

#include "norm_backward.h"
#include "slots.h"

struct columns {
    index_t first; /* vector of the tile */
    uint lane;
    const global STORAGE(WEIGHT_DTYPE) * weight; /* of the segment's first element */
    const global STORAGE(BIAS_DTYPE) * bias;
};

/* Sums over rows. */
struct gathered {
    realv dweight[TILE_HELD];
    realv dbias[TILE_HELD];
};

#if WEIGHTS == WEIGHTS_EARLY
#define SCALES TILE_HELD
#else
#define SCALES 1
#endif

static inline index_t vector_of(const struct columns *columns, const uint i) {
    return columns->first + columns->lane + i * LANES;
}

static inline bool has_vector(const struct columns *columns, const uint i) {
    const bool in_tile = TILE_VECTORS % LANES == 0 || columns->lane + i * LANES < TILE_VECTORS;
    const bool in_segment = !SPLIT || GROUP_SIZE % TILE == 0 || vector_of(columns, i) < VECTORS;
    return in_tile && in_segment;
}

static inline struct inputs fetch(const struct call *call, const struct row *row, const struct columns *columns,
                                  const uint i, const enum load_hint hint) {
    return row->active && has_vector(columns, i) ? load_inputs(row, vector_of(columns, i), call->aligned, hint)
                                                 : no_inputs();
}

static inline struct scale scale_of(const struct call *call, const struct columns *columns, const struct scale *scales,
                                    const uint i) {
    if (WEIGHTS == WEIGHTS_EARLY || !has_vector(columns, i))
        return scales[i % SCALES];
    return load_scale(columns->weight, vector_of(columns, i), call->aligned);
}

/* Called between one use of the inputs and the next. */
static inline void forget_wide(struct inputs *in) {
    if (sizeof(in->x) < sizeof(realv))
        forget((uint *)&in->x, sizeof(in->x) / sizeof(uint));
    if (sizeof(in->dy) < sizeof(realv))
        forget((uint *)&in->dy, sizeof(in->dy) / sizeof(uint));
}

#if KEEP == KEEP_REGISTERS
#define HELD_INPUTS TILE_HELD
#else
#define HELD_INPUTS 1
#endif

static inline void take_row(const struct call *call, const struct row *row, const struct columns *columns,
                            const struct scale *scales, struct inputs *held, struct gathered *gathered,
                            struct lanes *lanes) {
    struct means means = {0, 0};
#if NEEDS_MEANS && SPLIT
    means = means_of_chunks(call, row);
#elif NEEDS_MEANS
    struct lane_sums sums = {0, 0};
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++) {
        if (KEEP == KEEP_REREAD)
            held[0] = fetch(call, row, columns, i, LOAD_FIRST);
        add_point(&sums, point_at(row, &held[i % HELD_INPUTS]), scale_of(call, columns, scales, i), call->weight_offset);
        if (KEEP == KEEP_REGISTERS)
            forget_wide(&held[i % HELD_INPUTS]);
    }
    means = means_over_lanes(lanes, &sums);
#endif
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++) {
        if (KEEP == KEEP_REREAD)
            held[0] = fetch(call, row, columns, i, LOAD_LAST);
        const struct inputs *in = &held[i % HELD_INPUTS];
        const struct point point = point_at(row, in);
        if (row->active && has_vector(columns, i))
            put_outputs(call, row, vector_of(columns, i), in, point, scale_of(call, columns, scales, i), columns->bias,
                        means);
        gathered->dweight[i] += point.dn * point.x_hat;
        gathered->dbias[i] += point.dn;
    }
}

/* The sum of a value over the SEGMENTS rows that a work-group takes side by side, in the first of them: the upper half hands
 * its values to the lower half, and so on. space: SEGMENTS / 2 times TILE_HELD · LANES vectors. */
static inline void fold_segments(realv value[TILE_HELD], local realv *space, const uint lane) {
    const uint segment = (uint)get_local_id(0) / LANES;
    for (uint half_way = SEGMENTS / 2; half_way > 0; half_way /= 2) {
        local realv *own = space + segment % half_way * (TILE_HELD * LANES) + lane;
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint i = 0; i < TILE_HELD; i++)
            if (segment >= half_way && segment < 2 * half_way)
                own[i * LANES] = value[i];
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint i = 0; i < TILE_HELD; i++)
            if (segment < half_way)
                value[i] += own[i * LANES];
    }
}

static inline void put_gathered(const struct columns *columns, const struct gathered *gathered, const struct slot *slot) {
    if (get_local_id(0) >= LANES)
        return;
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++) {
        if (!has_vector(columns, i))
            continue;
        if (DWEIGHT)
            put_slot(slot->dweight, vector_of(columns, i), gathered->dweight[i], slot);
        if (DBIAS)
            put_slot(slot->dbias, vector_of(columns, i), gathered->dbias[i], slot);
    }
}

#define SPACE (SEGMENTS > 1 ? SEGMENTS / 2 * TILE_HELD * LANES : 1) /* vectors of local memory */

static inline void walk(const struct call *call, const struct share *share, struct slot *slot, volatile global uint *lock,
                        local real *scratch, local realv *space) {
    struct lanes lanes = {scratch, 0};
    const ulong first_column = share->group * GROUP_SIZE;
    const struct columns columns = {share->tile * TILE_VECTORS, (uint)get_local_id(0) % LANES, call->weight + first_column,
                                    call->bias + first_column};
    struct scale scales[SCALES];
    struct gathered gathered;
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++) {
        if (WEIGHTS == WEIGHTS_EARLY && has_vector(&columns, i))
            scales[i % SCALES] = load_scale(columns.weight, vector_of(&columns, i), call->aligned);
        gathered.dweight[i] = gathered.dbias[i] = 0;
    }
    for (ulong first = share->first; first < share->end; first += share->step) {
        const struct row row = row_at(call, first + get_local_id(0) / LANES, share->group);
        struct inputs held[HELD_INPUTS];
#pragma unroll
        for (uint i = 0; i < TILE_HELD; i++)
            if (KEEP == KEEP_REGISTERS)
                held[i % HELD_INPUTS] = fetch(call, &row, &columns, i, LOAD_PLAIN);
        take_row(call, &row, &columns, scales, held, &gathered, &lanes);
    }
    if (DWEIGHT)
        fold_segments(gathered.dweight, space, columns.lane);
    if (DBIAS)
        fold_segments(gathered.dbias, space, columns.lane);
    if (DWEIGHT || DBIAS) {
        open_slot(slot, lock, scratch);
        put_gathered(&columns, &gathered, slot);
        close_slot(lock);
    }
}

#endif
