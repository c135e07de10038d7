/* A team: the work-groups that have the tiles of one segment each, and go through the same rows side by side. Each one
 * sums its tile and posts the sums to the others, so that x and dy are read once.
 *
 * Nobody waits without bound. A work-group that has looked for a message MOST_LOOKS times computes the sums of that row,
 * and of its rows after that, itself: in the same order, to the same bits. Any number of launches, processes and
 * preemptions therefore end.
 *
 * The others' tiles can only be read again while nobody has written over them. Where an output lies over an input, a
 * launch before this one has posted the sums of every row (src/plan/plan_enqueue.c), and no message is missing. */
#ifndef TEAM_H
#define TEAM_H

#include "norm/norm_backward.h"

#define EXCHANGES (NEEDS_MEANS && ROW_SPLIT != ROW_SPLIT_TWO_PASSES)
#define MOST_LOOKS (ROW_SPLIT == ROW_SPLIT_EXCHANGE ? 4096 : 1)
#define POSTED (NORM == LAYER_NORM ? 2 : 1) /* sums of a segment */
#define MESSAGES (POSTED * TILES)           /* of a segment */
#define TICKET_WORDS 16                     /* before the mailboxes, a cache line */

/* The launch before this one: it posts, and writes nothing else. */
#define ONLY_POSTS (EXCHANGES && get_global_offset(0) > 0)

/* A message is a sum in other bits: 0, which stands for no message, is a NaN that arithmetic does not yield. If an input
 * has that very NaN its sum counts as missing, and is computed again. */
#define AS_MESSAGE(sum) (as_uint(sum) ^ 0x7fb5a5a5u)
#define AS_SUM(message) as_float((message) ^ 0x7fb5a5a5u)

/* Two rows' messages: while some work-items still read those of one, others write the next one's. */
#define RECEIVED (EXCHANGES ? 2 * MESSAGES : 1)

struct team {
    volatile global uint *mailboxes; /* [rows, GROUPS, POSTED, TILES] */
    local uint *received;            /* [2, POSTED, TILES] */
    uint tile;
    uint collected; /* rows */
    uint message;   /* already read; 0: none */
};

#if EXCHANGES

/* The place of a work-group among all, in the order in which they start: a team that is not complete yet is then the last
 * one. mailbox: TICKET_WORDS words, then mailboxes; 0 before the first launch. */
INLINED ulong take_place(volatile global uint *mailbox, local uint *broadcast) {
    if (get_local_id(0) == 0)
        *broadcast = atomic_inc(mailbox) % (uint)get_num_groups(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    return *broadcast;
}

INLINED struct team team_of(volatile global uint *mailbox, const uint tile, local uint *received) {
    const struct team team = {mailbox + TICKET_WORDS, received, tile, 0, 0};
    return team;
}

INLINED volatile global uint *mailboxes_of(const struct team *team, const struct row *row) {
    return team->mailboxes + (row->index * GROUPS + row->group) * MESSAGES;
}

/* sums: this tile's, the same in every work-item. */
INLINED void post(const struct team *team, const struct row *row, const real *sums) {
    if (get_local_id(0) != 0)
        return;
#pragma unroll
    for (uint k = 0; k < POSTED; k++)
        mailboxes_of(team, row)[k * TILES + team->tile] = AS_MESSAGE(sums[k]);
}

/* Loads the mailboxes of a row that is posted soon into a cache again: reads since the last launch may have evicted them.
 */
INLINED void prefetch_mailboxes(const struct team *team, const struct row *row) {
    if (get_local_id(0) < MESSAGES)
        prefetch_later((const global void *)(mailboxes_of(team, row) + get_local_id(0)));
}

/* Requests a message that collect() wants next. It may have arrived by then. */
INLINED void look(struct team *team, const struct row *row) {
    if (get_local_id(0) < MESSAGES)
        team->message = mailboxes_of(team, row)[get_local_id(0)];
}

/* Receives what was posted of a row: the sums of all its tiles, the same bits in every work-group of the team. Returns, to
 * every work-item alike, whether no message is missing. */
INLINED bool collect(struct team *team, const struct row *row, real *sums) {
    local uint *received = team->received + (team->collected++ & 1) * MESSAGES;
    join_lanes(); /* post() wrote in one work-item alone */
    for (uint i = (uint)get_local_id(0); i < MESSAGES; i += GROUP_ITEMS) {
        for (uint n = 0; n < MOST_LOOKS && team->message == 0; n++)
            team->message = mailboxes_of(team, row)[i];
        received[i] = team->message;
        team->message = 0;
    }
#if GROUP_ITEMS > 1 /* PoCL 6.0 makes the loop endless for a barrier after it, also of one work-item */
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    bool complete = true;
#pragma unroll
    for (uint k = 0; k < POSTED; k++) {
        sums[k] = 0;
        for (uint i = 0; i < TILES; i++) {
            complete &= received[k * TILES + i] != 0;
            sums[k] += AS_SUM(received[k * TILES + i]);
        }
    }
    return complete;
}

#endif

#endif
