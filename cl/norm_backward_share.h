/* Which rows a work-group goes through. */
#ifndef NORM_BACKWARD_SHARE_H
#define NORM_BACKWARD_SHARE_H

/* What a work-group has to do: SEGMENTS rows side by side at a time, from first on, below end. With ROUNDS it goes on to
 * their neighbours that often, and then behind those of all other work-groups, so that what is under way at any time lies
 * side by side in memory: at 16384 x 8192, f32, an H200 then took 395 us rather than 414. Else its rows are all
 * neighbours. */
struct share {
    ulong first, end;
    ulong gap;   /* rows of the others that are passed over */
    ulong group; /* the first of SPAN */
    uint tile;
};

static inline ulong rows_after(const struct share *share, const ulong first) {
    const ulong next = first + SEGMENTS;
#if ROUNDS == 0
    (void)share;
    return next;
#else
    return ROUNDS > 1 && next % ((ulong)ROUNDS * SEGMENTS) != 0 ? next : next + share->gap;
#endif
}

#endif
