/* A work-group takes SEGMENTS segments at a time, and its lanes keep the sums of their columns over all rows: in registers
 * or, with ACCUMULATOR_LOCAL and in part with ACCUMULATOR_SPLIT, in local memory. */
#ifndef NORM_BACKWARD_REGISTERS_H
#define NORM_BACKWARD_REGISTERS_H

#include "norm/norm_backward_fallback.h"
#include "norm/slots.h"

/* Local memory, in vectors: LINE for each of the SEGMENTS segments. It holds dweight's sums followed by dbias's, or the two
 * one after the other in the same place. */
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

/* Writes the sums in the lanes' registers to the slot. */
INLINED void put_registers(global real *slot_row, const struct columns *columns, const realv *value, local realv *space,
                           const struct slot *slot) {
#if SEGMENTS == 1
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++)
        if (has_vector(columns, i))
            put_slot(slot_row, vector_of(columns, i), columns->lead, value[i], slot);
    (void)space;
#else
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++)
        space[get_local_id(0) / LANES * LINE + i * LANES + columns->lane] = value[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    put_lines(slot_row, columns->first, columns->lead, (const local real *)space, ROWS_AT_ONCE, LINE * VEC, slot);
#endif
}

INLINED void put_accumulator(const struct columns *columns, const struct accumulator *accumulator, local realv *space,
                             const struct slot *slot) {
    barrier(CLK_LOCAL_MEM_FENCE);
#if !DBIAS_IN_REGISTERS
    if (DBIAS)
        put_lines(slot->dbias, columns->first, columns->lead, (const local real *)(space + DBIAS_LINES), ROWS_AT_ONCE,
                  LINE * VEC, slot);
#endif
#if !DWEIGHT_IN_REGISTERS
    if (DWEIGHT)
        put_lines(slot->dweight, columns->first, columns->lead, (const local real *)space, ROWS_AT_ONCE, LINE * VEC, slot);
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

/* Takes the rows of a share one after the other. Returns the first row that is not done since a message is missing, else
 * the end. */
#if PIPELINE <= 1

INLINED ulong take_rows(const struct call *call, const struct share *share, const struct columns *columns,
                        const struct scale *scales, struct accumulator *accumulator, struct lanes *lanes,
                        struct team *team) {
    for (ulong first = share->first; first < share->end; first = rows_after(share, first)) {
        const struct row row = own_row(call, share, first);
        struct inputs held[HELD_INPUTS];
        fetch_row(call, &row, columns, held, LOAD_PLAIN);
        prefetch_rows(call, share, rows_after(share, first), columns);
        post_row(call, &row, columns, scales, held, lanes, team);
        if (!take_row(call, &row, columns, scales, held, accumulator, lanes, team))
            return first;
    }
    return share->end;
}

#elif PIPELINE == 2

INLINED ulong take_rows(const struct call *call, const struct share *share, const struct columns *columns,
                        const struct scale *scales, struct accumulator *accumulator, struct lanes *lanes,
                        struct team *team) {
    struct row row = own_row(call, share, share->first);
    struct inputs held[TILE_HELD];
    fetch_row(call, &row, columns, held, LOAD_PLAIN);
    post_row(call, &row, columns, scales, held, lanes, team);
    for (ulong first = share->first; first < share->end; first = rows_after(share, first)) {
        const bool more = rows_after(share, first) < share->end;
        struct row next = row;
        struct inputs next_held[TILE_HELD];
        if (more) {
            next = own_row(call, share, rows_after(share, first));
            prefetch_row_mailboxes(team, &next);
            fetch_row(call, &next, columns, next_held, LOAD_IN_TURN);
            prefetch_rows(call, share, rows_after(share, rows_after(share, first)), columns);
        }
        if (!take_row(call, &row, columns, scales, held, accumulator, lanes, team))
            return first;
        if (more)
            post_row(call, &next, columns, scales, next_held, lanes, team);
        row = next;
#pragma unroll
        for (uint i = 0; i < TILE_HELD; i++)
            held[i] = next_held[i];
    }
    return share->end;
}

#else

INLINED ulong take_rows(const struct call *call, const struct share *share, const struct columns *columns,
                        const struct scale *scales, struct accumulator *accumulator, struct lanes *lanes,
                        struct team *team) {
    struct row row = own_row(call, share, share->first);
    struct inputs held[TILE_HELD];
    fetch_row(call, &row, columns, held, LOAD_PLAIN);
    post_row(call, &row, columns, scales, held, lanes, team);
    struct row next = row;
    struct inputs next_held[TILE_HELD];
    if (rows_after(share, share->first) < share->end) {
        next = own_row(call, share, rows_after(share, share->first));
        fetch_row(call, &next, columns, next_held, LOAD_PLAIN);
    }
    for (ulong first = share->first; first < share->end; first = rows_after(share, first)) {
        const bool more = rows_after(share, first) < share->end;
        struct row after = next;
        struct inputs after_held[TILE_HELD];
        if (rows_after(share, rows_after(share, first)) < share->end) {
            after = own_row(call, share, rows_after(share, rows_after(share, first)));
            prefetch_row_mailboxes(team, &after);
            fetch_row(call, &after, columns, after_held, LOAD_IN_TURN);
            prefetch_rows(call, share, rows_after(share, rows_after(share, rows_after(share, first))), columns);
        }
        look_for_row(team, &row);
        if (more)
            post_row(call, &next, columns, scales, next_held, lanes, team);
        if (!take_row(call, &row, columns, scales, held, accumulator, lanes, team))
            return first;
        row = next;
#pragma unroll
        for (uint i = 0; i < TILE_HELD; i++)
            held[i] = next_held[i];
        next = after;
#pragma unroll
        for (uint i = 0; i < TILE_HELD; i++)
            next_held[i] = after_held[i];
    }
    return share->end;
}

#endif

INLINED void walk(const struct call *call, const struct share *share, struct slot *slot, volatile global uint *lock,
                  local real *scratch, local realv *space, local uint *broadcast, struct team *team) {
    struct lanes lanes = {.scratch = scratch, .wait_alone = true};
    const ulong first_column = share->group * GROUP_SIZE;
    const struct columns columns = {
        share->tile * TILE_VECTORS, (uint)get_local_id(0) % LANES, lead_of_row(call, share->first, share->group),
        WEIGHTS_AT(weight, share->weight_row) + first_column, WEIGHTS_AT(bias, share->weight_row) + first_column};
    struct scale scales[SCALES];
#pragma unroll
    for (uint i = 0; i < TILE_HELD; i++)
        scales[i % SCALES] =
            WEIGHTS == WEIGHTS_EARLY && has_vector(&columns, i)
                ? load_scale(columns.weight, columns.bias, vector_of(&columns, i), columns.lead, call->aligned, LOAD_PLAIN)
                : no_scale();
    struct accumulator accumulator;
    clear_accumulator(&accumulator, space);
    const ulong done = take_rows(call, share, &columns, scales, &accumulator, &lanes, team);
#if EXCHANGES
    finish_share(call, share, done, &columns, scales, &accumulator, &lanes, team);
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
