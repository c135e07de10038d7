/* The rows that a work-group goes through. */
#ifndef NORM_BACKWARD_SHARE_H
#define NORM_BACKWARD_SHARE_H

#include "norm/norm_backward.h"

/* A work-group takes SEGMENTS segments at a time. ABREAST of them lie side by side, each with weights of its own: they are
 * neighbouring groups of a row or, where a row has one group, neighbouring rows that use neighbouring rows of weights. Of
 * each it takes ROWS_AT_ONCE rows. */
#define GROUPS_ABREAST (GROUPS > 1 ? ABREAST : 1)
#define WEIGHT_ROWS_ABREAST (GROUPS > 1 ? 1 : ABREAST)
#define ROWS_AT_ONCE (SEGMENTS / ABREAST)

/* A work-group's share: ROWS_AT_ONCE rows at a time, from first on, below end. With RUN_LENGTH it takes a run of that many
 * iterations over consecutive rows, and then skips the runs of all other work-groups, so that the rows read at any time are
 * contiguous in memory. Otherwise all of its rows are consecutive.
 *
 * With LEADS all of its rows have the same lead, so that a lane has the same columns of each: from one of the ROWS_AT_ONCE
 * to the next there are as many rows as work-groups that share them.
 *
 * With WEIGHT_MAP all of its rows use one row of weights, and first and end count such rows only: row number i of them is
 * i mod weight_repeat rows into the (i / weight_repeat)-th run of such rows. */
struct share {
    ulong first, end;
    ulong gap; /* rows of the other work-groups, which it skips */
    uint tile;
    /* of this work-item: */
    ulong group; /* the first of SPAN */
    ulong weight_row;
    ulong behind;     /* rows from the first of those taken at a time to its own */
    bool has_segment; /* false for those left over, which keep barriers alone */
};

static inline ulong weight_rows_of(const struct call *call) {
#if WEIGHT_MAP
    return call->weight_rows;
#else
    (void)call;
    return 1;
#endif
}

/* Rows from one of the ROWS_AT_ONCE to the next. */
static inline ulong row_step(const struct call *call) {
    return LEADS ? call->share_rows / ROWS_AT_ONCE : 1;
}

/* Which of ROWS_AT_ONCE · ABREAST segments is this work-item's. share: of its work-group. */
INLINED void take_segment(const struct call *call, struct share *share) {
    const uint segment = (uint)get_local_id(0) / LANES, abreast = segment % ABREAST;
    const ulong left = GROUPS > 1 ? GROUPS - share->group : weight_rows_of(call) - share->weight_row;
    share->behind = segment / ABREAST * row_step(call);
    if (ABREAST == 1)
        return;
    share->has_segment = segment < ROWS_AT_ONCE * ABREAST && abreast < left;
    if (share->has_segment && GROUPS > 1)
        share->group += abreast;
    else if (share->has_segment)
        share->weight_row += abreast;
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
    return row_at(call, row_of_place(call, share, place), share->has_segment && place < share->end, group);
}

/* This work-item's row of those that the work-group takes from a place on. */
INLINED struct row own_row(const struct call *call, const struct share *share, const ulong first) {
    return row_in_share(call, share, first + share->behind, share->group);
}

static inline ulong rows_after(const struct share *share, const ulong first) {
    const ulong next = first + ROWS_AT_ONCE;
#if RUN_LENGTH == 0
    (void)share;
    return next;
#else
    return RUN_LENGTH > 1 && next % ((ulong)RUN_LENGTH * ROWS_AT_ONCE) != 0 ? next : next + share->gap;
#endif
}

#endif
