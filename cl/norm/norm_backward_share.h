/* The rows that a work-group goes through. */
#ifndef NORM_BACKWARD_SHARE_H
#define NORM_BACKWARD_SHARE_H

#include "norm/norm_backward.h"

/* A work-group's share: SEGMENTS rows at a time, from first on, below end. With RUN_LENGTH it takes a run of that many
 * iterations over consecutive rows, and then skips the runs of all other work-groups, so that the rows read at any time are
 * contiguous in memory. Otherwise all of its rows are consecutive.
 *
 * With LEADS all of its rows have the same lead, so that a lane has the same columns of each: from one of the SEGMENTS rows
 * to the next there are as many rows as work-groups that share them.
 *
 * With WEIGHT_MAP all of its rows use one row of weights, and first and end count such rows only: row number i of them is
 * i mod weight_repeat rows into the (i / weight_repeat)-th run of such rows. */
struct share {
    ulong first, end;
    ulong gap;   /* rows of the other work-groups, which it skips */
    ulong group; /* the first of SPAN */
    uint tile;
    ulong weight_row;
};

static inline ulong weight_rows_of(const struct call *call) {
#if WEIGHT_MAP
    return call->weight_rows;
#else
    (void)call;
    return 1;
#endif
}

/* Rows from one of the SEGMENTS rows to the next. */
static inline ulong segment_step(const struct call *call) {
    return LEADS ? call->share_rows / SEGMENTS : 1;
}

/* The row with a number of a share. */
INLINED ulong row_of_place(const struct call *call, const struct share *share, const ulong place) {
#if WEIGHT_MAP
    return row_of_weight(place, share->weight_row, call->weight_repeat, call->weight_rows);
#else
    (void)call, (void)share;
    return place;
#endif
}

INLINED struct row row_in_share(const struct call *call, const struct share *share, const ulong place, const ulong group) {
    const ulong index = row_of_place(call, share, place);
    return row_at(call, index, WEIGHT_MAP ? index + (place < share->end) : share->end, group);
}

static inline ulong rows_after(const struct share *share, const ulong first) {
    const ulong next = first + SEGMENTS;
#if RUN_LENGTH == 0
    (void)share;
    return next;
#else
    return RUN_LENGTH > 1 && next % ((ulong)RUN_LENGTH * SEGMENTS) != 0 ? next : next + share->gap;
#endif
}

#endif
