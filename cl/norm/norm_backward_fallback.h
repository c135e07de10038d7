/* The work of a work-group of a team that does not wait for the others: it finishes rows whose messages are missing. */
#ifndef NORM_BACKWARD_FALLBACK_H
#define NORM_BACKWARD_FALLBACK_H

#include "norm/norm_backward_rows.h"

#if EXCHANGES

/* Like sum_row, of any tile, from memory. It rarely runs, and is not unrolled, so that it needs few registers. */
INLINED void sum_tile(const struct call *call, const struct row *row, const struct columns *tile, struct lanes *lanes,
                      real *sums) {
    struct lane_sums lane_sums = {0, 0};
#pragma unroll 1
    for (uint i = 0; i < TILE_HELD; i++) {
        if (KEEP == KEEP_REREAD && !(row->active && has_vector(tile, i)))
            continue;
        const struct inputs in = fetch(call, row, tile, i, LOAD_FIRST);
        const struct scale scale = has_vector(tile, i) ? load_scale(tile->weight, tile->bias, vector_of(tile, i),
                                                                    tile->lead, call->aligned, LOAD_PLAIN)
                                                       : no_scale();
        add_point(&lane_sums, point_at(call, row, &in, scale), scale, call->weight_offset, vector_of(tile, i), tile->lead);
    }
    sums_over_lanes(lanes, &lane_sums, sums);
}

/* The sums of another tile whose message has arrived meanwhile: it may have been overwritten while it was summed
 * (waiting.h). A work-item that does not see the message has the same sums. */
INLINED void prefer_message(const struct team *team, const struct row *row, const uint tile, real *sums) {
    device_fence();
    const message_t message = message_in_memory(mailboxes_of(team, row) + tile);
    if (!has_arrived(message, team->launch))
        return;
    sums[0] = numbers_of(message).x;
    sums[1] = numbers_of(message).y;
}

/* Like take_rows, from row first to the share's end, but computes here the sums of all tiles whose messages are missing. It
 * still posts this tile's sums, as others may wait for them. */
INLINED void finish_share(const struct call *call, const struct share *share, ulong first, const struct columns *columns,
                          const struct scale *scales, struct accumulator *accumulator, struct lanes *lanes,
                          const struct team *team) {
#pragma unroll 1
    for (; first < share->end; first = rows_after(share, first)) {
        const struct row row = row_in_share(call, share, first, share->group);
        float4 four[POSTED] = {0};
        for (uint tile = 0; tile < TILES; tile++) {
            const struct columns other = {(index_t)tile * TILE_VECTORS, columns->lane, columns->lead, columns->weight,
                                          columns->bias};
            real of_tile[2];
            sum_tile(call, &row, &other, lanes, of_tile);
            if (tile == team->tile)
                post(team, &row, of_tile);
            else
                prefer_message(team, &row, tile, of_tile);
            for (uint k = 0; k < POSTED; k++)
                four[k] += of_four(tile, of_tile[k]);
        }
        real sums[2] = {0, 0};
        for (uint k = 0; k < POSTED; k++)
            sums[k] = add_four(four[k]);
        struct inputs held[HELD_INPUTS];
        fetch_row(call, &row, columns, held, LOAD_PLAIN);
        device_fence();
        order_messages();
        put_row(call, &row, columns, scales, held, accumulator, sums);
    }
}

#endif

#endif
