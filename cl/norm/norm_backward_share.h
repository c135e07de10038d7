/* Which rows a work-group goes through. */
#ifndef NORM_BACKWARD_SHARE_H
#define NORM_BACKWARD_SHARE_H

/* What a work-group has to do: SEGMENTS rows side by side at a time, from first on, below end. With RUN_LENGTH it takes
 * a run of so many neighbours and then skips the runs of all other work-groups, so that what is under way at any time lies
 * side by side in memory. Else its rows are all neighbours. */
struct share {
    ulong first, end;
    ulong gap;   /* rows of the others that are passed over */
    ulong group; /* the first of SPAN */
    uint tile;
};

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
