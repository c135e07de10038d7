/* A team: the work-groups that have the tiles of one segment each, and go through the same rows side by side. Each takes
 * the sums of its tile and posts them where the others of its team wait for them, so that x and dy are read once.
 *
 * A team's work-groups have to run at the same time. They take their places in the order in which they start, and not by
 * their ids: a team that is not complete yet is then the last one, and every other ends without it and makes room. */
#ifndef TEAM_H
#define TEAM_H

#include "norm/norm_backward.h"

#define POSTED (NORM == LAYER_NORM ? 2 : 1) /* sums of a segment */
#define MESSAGES (POSTED * TILES)           /* numbers that a team posts of a row */
#define SETS 4
#define TICKET_WORDS 16 /* before a launch's first mailbox, a cache line */

#if ROW_SPLIT == ROW_SPLIT_EXCHANGE
#define MESSAGE_SPACE (SETS * MESSAGES)
#else
#define MESSAGE_SPACE 1
#endif

/* A mailbox holds a message: the number of the team's row, from 1 on, above the bits of a sum. Rows take turns with SETS
 * sets of mailboxes. Who posts row r + 4 has the messages of row r + 2 at least, whose senders had those of row r before:
 * nobody looks into the mailboxes of row r any more. */
struct team {
    volatile global ulong *mailboxes; /* [SETS, POSTED, TILES] */
    local real *messages;             /* [SETS, POSTED, TILES] */
    uint tile;
    uint posted, collected; /* rows */
    ulong message;          /* looked at beforehand; 0: none */
};

/* The place of a work-group among all. mailbox: TICKET_WORDS words, then mailboxes; 0 before the launch. */
INLINED ulong take_place(volatile global uint *mailbox, local uint *broadcast) {
    if (get_local_id(0) == 0)
        *broadcast = atomic_inc(mailbox);
    barrier(CLK_LOCAL_MEM_FENCE);
    return *broadcast;
}

INLINED struct team team_of(volatile global uint *mailbox, const ulong place, local real *messages) {
    volatile global ulong *mailboxes = (volatile global ulong *)(mailbox + TICKET_WORDS);
    const struct team team = {mailboxes + place / TILES * (SETS * MESSAGES), messages, (uint)(place % TILES), 0, 0, 0};
    return team;
}

#if ROW_SPLIT == ROW_SPLIT_EXCHANGE

/* sums: this tile's, the same in every work-item. */
INLINED void post(struct team *team, const real *sums) {
    const uint row = ++team->posted;
    if (get_local_id(0) != 0)
        return;
    for (uint k = 0; k < POSTED; k++)
        team->mailboxes[(row % SETS * POSTED + k) * TILES + team->tile] = (ulong)row << 32 | as_uint(sums[k]);
}

/* Asks for a message that collect() wants next. It may have come by then. */
INLINED void look(struct team *team) {
    const uint row = team->collected + 1;
    if (get_local_id(0) < MESSAGES)
        team->message = team->mailboxes[row % SETS * MESSAGES + get_local_id(0)];
}

/* sums: those of all tiles, of the first row that was posted and not collected yet; the same bits in every work-group of
 * the team. */
INLINED void collect(struct team *team, real *sums) {
    const uint row = ++team->collected;
    const uint set = row % SETS * MESSAGES;
    for (uint i = (uint)get_local_id(0); i < MESSAGES; i += GROUP_ITEMS) {
        while ((uint)(team->message >> 32) != row)
            team->message = team->mailboxes[set + i];
        team->messages[set + i] = as_float((uint)team->message);
        team->message = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < POSTED; k++) {
        sums[k] = 0;
        for (uint i = 0; i < TILES; i++)
            sums[k] += team->messages[set + k * TILES + i];
    }
}

#endif

#endif
