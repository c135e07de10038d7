/* The sums of a work-group's columns are in memory or local memory, and x, dy and z are read twice. This allows any number
 * of columns, and suits CPUs, which have few registers and fast caches. SEGMENTS is 1. */
#ifndef NORM_BACKWARD_MEMORY_H
#define NORM_BACKWARD_MEMORY_H

#include "norm/norm_backward_outputs.h"
#include "norm/norm_backward_share.h"
#include "norm/slots.h"
#include "norm/team.h"

/* The sums are in local memory, or with ACCUMULATOR_MEMORY in the slot itself, which then is not shared. */
#if ACCUMULATOR == ACCUMULATOR_LOCAL
#define SPACE (2 * SPAN * TILE_VECTORS) /* vectors of local memory: dweight's, then dbias's */
#else
#define SPACE 1
#endif

/* A lane's part of one segment: the vectors first, first + LANES, … below end. */
struct columns {
    index_t tile, first, end;
    const global STORAGE(WEIGHT_DTYPE) * weight; /* at the segment's first element, like every global address here */
    const global STORAGE(BIAS_DTYPE) * bias;
    global real *dweight, *dbias;         /* in the slot */
    local realv *dweight_sum, *dbias_sum; /* in local memory, at the tile's first vector */
};

INLINED struct columns columns_of(const struct call *call, const struct share *share, const struct slot *slot,
                                  local realv *space, const ulong turn) {
    const ulong first_column = (share->group + turn) * GROUP_SIZE;
    const index_t tile = share->tile * TILE_VECTORS;
    const index_t end = SPLIT && tile + TILE_VECTORS > VECTORS ? VECTORS : tile + TILE_VECTORS;
    const struct columns columns = {tile,
                                    tile + (uint)get_local_id(0) % LANES,
                                    end,
                                    WEIGHTS_AT(weight, share->weight_row) + first_column,
                                    WEIGHTS_AT(bias, share->weight_row) + first_column,
                                    slot->dweight + turn * GROUP_SIZE,
                                    slot->dbias + turn * GROUP_SIZE,
                                    space + (ACCUMULATOR == ACCUMULATOR_LOCAL ? turn * TILE_VECTORS : 0),
                                    space + (ACCUMULATOR == ACCUMULATOR_LOCAL ? (SPAN + turn) * TILE_VECTORS : 0)};
    return columns;
}

/* Whether an access to a slot is aligned. A slot stays in caches, and aligned stores may be streamed. */
#define ALIGNED_SLOT(aligned) ((aligned) && STORES != STORES_STREAMING)

INLINED void accumulate(global real *in_slot, local realv *sum, const index_t v, const index_t tile, const realv value,
                        const bool aligned) {
#if ACCUMULATOR == ACCUMULATOR_LOCAL
    sum[v - tile] += value;
    (void)in_slot, (void)aligned;
#else
    const realv so_far = LOAD_VECTOR(REAL_DTYPE)(in_slot, v, 0, aligned, LOAD_PLAIN);
    STORE_VECTOR(REAL_DTYPE)(in_slot, v, 0, so_far + value, ALIGNED_SLOT(aligned));
    (void)sum, (void)tile;
#endif
}

INLINED void clear(global real *in_slot, local realv *sum, const index_t v, const index_t tile, const bool aligned) {
#if ACCUMULATOR == ACCUMULATOR_LOCAL
    sum[v - tile] = 0;
    (void)in_slot, (void)aligned;
#else
    STORE_VECTOR(REAL_DTYPE)(in_slot, v, 0, 0, ALIGNED_SLOT(aligned));
    (void)sum, (void)tile;
#endif
}

INLINED void add_vector(const struct call *call, const struct row *row, const struct columns *columns, const index_t v,
                        struct lane_sums *sums) {
    const struct inputs in = load_inputs(call, row, v, LOAD_FIRST);
    const struct scale scale = load_scale(columns->weight, columns->bias, v, 0, call->aligned, LOAD_PLAIN);
    add_point(sums, point_at(call, row, &in, scale), scale, call->weight_offset, v, 0);
}

INLINED struct means means_of_row(const struct call *call, const struct row *row, const struct columns *columns,
                                  struct lanes *lanes) {
#if !NEEDS_MEANS
    const struct means means = {0, 0};
    return means;
#elif HAS_SUMS
    real sums[2];
    sum_chunks(call, row, sums);
    return means_of_sums(call, row, sums);
#else
    struct lane_sums sums[UNROLL]; /* independent, so that no addition waits for the one before it */
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        sums[j].product = sums[j].gradient = 0;
    index_t v = columns->first;
    for (; v + (UNROLL - 1) * LANES < columns->end; v += UNROLL * LANES) {
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            add_vector(call, row, columns, v + j * LANES, &sums[j]);
    }
    for (; v < columns->end; v += LANES)
        add_vector(call, row, columns, v, &sums[0]);
#pragma unroll
    for (uint j = 1; j < UNROLL; j++) {
        sums[0].product += sums[j].product;
        sums[0].gradient += sums[j].gradient;
    }
    real total[2];
    sums_over_lanes(lanes, &sums[0], total);
    return means_of_sums(call, row, total);
#endif
}

/* Elements from this segment to the next one of a CPU's work-item, which is prefetched while this one is written. */
#if WEIGHT_MAP
#define NEXT_ROWS (call->weight_repeat > 1 ? 1 : call->weight_rows) /* except from the last row of a run */
#else
#define NEXT_ROWS 1
#endif
#define NEXT(stride) (GROUPS == 1 ? NEXT_ROWS * (stride) : GROUP_SIZE)

static inline void prefetch_next(const struct call *call, const struct row *row, const index_t v) {
    prefetch_to_read(SEGMENT_OF(x, row) + NEXT(call->x_stride) + v * VEC);
    prefetch_to_read(SEGMENT_OF(dy, row) + NEXT(call->dy_stride) + v * VEC);
    if (GATE)
        prefetch_to_read(SEGMENT_OF(z, row) + NEXT(call->z_stride) + v * VEC);
    if (ADDS_RESIDUAL)
        prefetch_to_read(SEGMENT_OF(residual, row) + NEXT(call->residual_stride) + v * VEC);
    if (PRESENT(DRESIDUAL_OUT_DTYPE))
        prefetch_to_read(SEGMENT_OF(dresidual_out, row) + NEXT(call->dresidual_out_stride) + v * VEC);
    if (PRESENT(DRESIDUAL_DTYPE))
        prefetch_to_write(SEGMENT_OF(dresidual, row) + NEXT(call->dresidual_stride) + v * VEC);
    if (PRESENT(DX_DTYPE))
        prefetch_to_write(SEGMENT_OF(dx, row) + NEXT(call->dx_stride) + v * VEC);
    if (PRESENT(DZ_DTYPE))
        prefetch_to_write(SEGMENT_OF(dz, row) + NEXT(call->dz_stride) + v * VEC);
}

INLINED void take_row(const struct call *call, const struct row *row, const struct columns *columns, struct lanes *lanes) {
    const struct means means = means_of_row(call, row, columns, lanes);
    for (index_t v = columns->first; v < columns->end; v += LANES) {
        const struct inputs in = load_inputs(call, row, v, LOAD_LAST);
        const struct scale scale = load_scale(columns->weight, columns->bias, v, 0, call->aligned, LOAD_PLAIN);
        const struct point point = point_at(call, row, &in, scale);
        struct beside beside;
        load_beside(call, row, columns->bias, v, &beside);
        put_outputs(call, row, v, &in, point, scale, &beside, means);
        if (DWEIGHT)
            accumulate(columns->dweight, columns->dweight_sum, v, columns->tile, point.dn * point.x_hat, call->aligned);
        if (DBIAS)
            accumulate(columns->dbias, columns->dbias_sum, v, columns->tile, point.dn, call->aligned);
        prefetch_next(call, row, v);
    }
}

INLINED void clear_columns(const struct columns *columns, const bool aligned) {
    for (index_t v = columns->first; v < columns->end; v += LANES) {
        if (DWEIGHT)
            clear(columns->dweight, columns->dweight_sum, v, columns->tile, aligned);
        if (DBIAS)
            clear(columns->dbias, columns->dbias_sum, v, columns->tile, aligned);
    }
}

INLINED void put_columns(const struct columns *columns, const struct slot *slot) {
#if ACCUMULATOR == ACCUMULATOR_LOCAL
    if (DWEIGHT)
        put_lines(columns->dweight, columns->tile, 0, (const local real *)columns->dweight_sum, 1, 0, slot);
    if (DBIAS)
        put_lines(columns->dbias, columns->tile, 0, (const local real *)columns->dbias_sum, 1, 0, slot);
#else
    (void)columns, (void)slot;
#endif
}

INLINED void walk(const struct call *call, const struct share *share, struct slot *slot, volatile global uint *lock,
                  local real *scratch, local realv *space, local uint *broadcast, struct team *team) {
    struct lanes lanes = {.scratch = scratch};
    (void)team;
    for (ulong turn = 0; turn < SPAN; turn++) {
        const struct columns columns = columns_of(call, share, slot, space, turn);
        clear_columns(&columns, call->aligned);
    }
    for (ulong index = share->first; index < share->end; index = rows_after(share, index))
        for (ulong turn = 0; turn < SPAN; turn++) {
            const struct columns columns = columns_of(call, share, slot, space, turn);
            const struct row row = row_in_share(call, share, index, share->group + turn);
            take_row(call, &row, &columns, &lanes);
        }
    if (!(DWEIGHT || DBIAS))
        return;
    open_slot(slot, lock, broadcast);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (ulong turn = 0; turn < SPAN; turn++) {
        const struct columns columns = columns_of(call, share, slot, space, turn);
        put_columns(&columns, slot);
    }
    close_slot(lock);
}

#endif
