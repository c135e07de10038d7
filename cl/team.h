/* A team: the work-groups that have the tiles of one segment each, and go through the same rows side by side. Each takes
 * the sums of its tile and posts them where the others of its team wait for them, so that x and dy are read once.
 *
 * A team's work-groups have to run at the same time. They take their places in the order in which they start, and not by
 * their ids: a team that is not complete yet is then the last one, and every other ends without it and makes room. */
#ifndef TEAM_H
#define TEAM_H

#include "norm_backward.h"

#define POSTED (NORM == LAYER_NORM ? 2 : 1) /* sums of a segment */
#define LETTERS (POSTED * TILES)            /* numbers that a team posts of a row */
#define SETS 4
#define TICKET_WORDS 16 /* before a launch's first box, a cache line */

#if SUMS == SUMS_EXCHANGED
#define LETTER_SPACE (SETS * LETTERS)
#else
#define LETTER_SPACE 1
#endif

/* A box holds a letter: the number of the team's row, from 1 on, above the bits of a sum. Rows take turns with SETS sets of
 * boxes. Who posts row r + 4 has the letters of row r + 2 at least, whose senders had those of row r before: nobody looks
 * into the boxes of row r any more. */
struct team {
    volatile global ulong *boxes; /* [SETS, POSTED, TILES] */
    local real *letters;          /* [SETS, POSTED, TILES] */
    uint tile;
    uint posted, collected; /* rows */
    ulong letter;           /* looked at beforehand; 0: none */
};

/* The place of a work-group among all. mail: TICKET_WORDS words, then boxes; 0 before the launch. */
INLINED ulong take_place(volatile global uint *mail, local uint *told) {
    if (get_local_id(0) == 0)
        *told = atomic_inc(mail);
    barrier(CLK_LOCAL_MEM_FENCE);
    return *told;
}

INLINED struct team team_of(volatile global uint *mail, const ulong place, local real *letters) {
    volatile global ulong *boxes = (volatile global ulong *)(mail + TICKET_WORDS);
    const struct team team = {boxes + place / TILES * (SETS * LETTERS), letters, (uint)(place % TILES), 0, 0, 0};
    return team;
}

#if SUMS == SUMS_EXCHANGED

/* sums: this tile's, the same in every work-item. */
INLINED void post(struct team *team, const real *sums) {
    const uint row = ++team->posted;
    if (get_local_id(0) != 0)
        return;
    for (uint k = 0; k < POSTED; k++)
        team->boxes[(row % SETS * POSTED + k) * TILES + team->tile] = (ulong)row << 32 | as_uint(sums[k]);
}

/* Asks for a letter that collect() wants next. It may have come by then. */
INLINED void look(struct team *team) {
    const uint row = team->collected + 1;
    if (get_local_id(0) < LETTERS)
        team->letter = team->boxes[row % SETS * LETTERS + get_local_id(0)];
}

/* sums: those of all tiles, of the first row that was posted and not collected yet; the same bits in every work-group of
 * the team. */
INLINED void collect(struct team *team, real *sums) {
    const uint row = ++team->collected;
    const uint set = row % SETS * LETTERS;
    for (uint i = (uint)get_local_id(0); i < LETTERS; i += GROUP_ITEMS) {
        while ((uint)(team->letter >> 32) != row)
            team->letter = team->boxes[set + i];
        team->letters[set + i] = as_float((uint)team->letter);
        team->letter = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < POSTED; k++) {
        sums[k] = 0;
        for (uint i = 0; i < TILES; i++)
            sums[k] += team->letters[set + k * TILES + i];
    }
}

#endif

#endif
