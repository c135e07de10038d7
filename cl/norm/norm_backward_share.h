/* Which rows a work-group goes through. */
#ifndef NORM_BACKWARD_SHARE_H
#define NORM_BACKWARD_SHARE_H

#include "norm/norm_backward.h"

/* What a work-group has to do: SEGMENTS rows side by side at a time, from first on, below end. With RUN_LENGTH it takes
 * a run of so many neighbours and then skips the runs of all other work-groups, so that what is under way at any time lies
 * side by side in memory. Else its rows are all neighbours.
 *
 * With WEIGHT_MAP, all of its rows take one row of weights. They are counted among those that do: place i among them is
 * i mod weight_repeat rows into the (i / weight_repeat)-th run of such rows. */
struct share {
    ulong first, end;
    ulong gap;   /* rows of the others that are passed over */
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

/* The row at a place of a share. */
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
