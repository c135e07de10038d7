/* A team: the work-groups that each have a tile of the same segments, and go through the same rows at the same time. Each
 * one sums its tile and posts the sums to the others, so that x and dy are read once.
 *
 * No work-group waits without bound. After MOST_LOOKS looks for a message, a work-group computes the sums of that row and
 * of its later rows itself: in the same order, to the same bits. Therefore every launch ends, whatever else runs on the
 * device.
 *
 * The tiles of the others can be read again only until they are overwritten. Where an output overlaps an input, a launch
 * before this one has posted the sums of every row (src/plan/plan_enqueue.c), and no message is missing. */
#ifndef TEAM_H
#define TEAM_H

#include "common/cache_line.h"
#include "common/message.h"
#include "norm/norm_backward.h"

#define EXCHANGES (NEEDS_MEANS && ROW_SPLIT != ROW_SPLIT_TWO_PASSES)
#define LOOKS (ROW_SPLIT == ROW_SPLIT_EXCHANGE ? MOST_LOOKS : 1)
#define POSTED (NORM == LAYER_NORM ? 2 : 1) /* sums of a segment */
#define MESSAGES (POSTED * TILES)           /* of a segment */

/* Whether this is the first of two launches, which posts and writes nothing else. */
#define ONLY_POSTS (EXCHANGES && get_global_offset(0) > 0)

/* Room for the messages of two rows: while some work-items read those of one row, others write those of the next. */
#define RECEIVED (EXCHANGES ? 2 * MESSAGES : 1)

struct team {
    volatile global uint *mailboxes; /* [rows, GROUPS, POSTED, TILES] */
    local uint *received;            /* [2, POSTED, TILES] */
    uint tile;
    uint collected; /* rows so far */
    uint message;   /* read by look(); 0: none */
};

#if EXCHANGES

/* The number of a work-group, in the order in which they start, so that only the last team can be incomplete. mailbox:
 * CACHE_LINE_WORDS words and then the mailboxes, all 0 before the first launch. */
INLINED ulong take_place(volatile global uint *mailbox, local uint *broadcast) {
    if (get_local_id(0) == 0)
        *broadcast = atomic_inc(mailbox) % (uint)get_num_groups(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    return *broadcast;
}

INLINED struct team team_of(volatile global uint *mailbox, const uint tile, local uint *received) {
    const struct team team = {mailbox + CACHE_LINE_WORDS, received, tile, 0, 0};
    return team;
}

INLINED volatile global uint *mailboxes_of(const struct team *team, const struct row *row) {
    return team->mailboxes + (row->index * GROUPS + row->group) * MESSAGES;
}

/* Posts this tile's sums, which are the same in every work-item. */
INLINED void post(const struct team *team, const struct row *row, const real *sums) {
    if (get_local_id(0) != 0)
        return;
#pragma unroll
    for (uint k = 0; k < POSTED; k++)
        mailboxes_of(team, row)[k * TILES + team->tile] = AS_MESSAGE(sums[k]);
}

/* Prefetches the mailboxes of a row that is posted soon: reads since they were cleared may have evicted them. */
INLINED void prefetch_mailboxes(const struct team *team, const struct row *row) {
    if (get_local_id(0) < MESSAGES)
        prefetch_later((const global void *)(mailboxes_of(team, row) + get_local_id(0)));
}

/* Loads a message that collect() needs next, as it may have arrived already. */
INLINED void look(struct team *team, const struct row *row) {
    if (get_local_id(0) < MESSAGES)
        team->message = mailboxes_of(team, row)[get_local_id(0)];
}

/* Receives the sums of all tiles of a row, and adds them up to the same bits in every work-group of the team. Returns the
 * same value in every work-item: whether all messages have arrived. */
INLINED bool collect(struct team *team, const struct row *row, real *sums) {
    local uint *received = team->received + (team->collected++ & 1) * MESSAGES;
    join_lanes(); /* post() wrote in one work-item alone */
    for (uint i = (uint)get_local_id(0); i < MESSAGES; i += GROUP_ITEMS) {
        for (uint n = 0; n < LOOKS && team->message == 0; n++)
            team->message = mailboxes_of(team, row)[i];
        received[i] = team->message;
        team->message = 0;
    }
#if GROUP_ITEMS > 1 /* a barrier here makes PoCL 6.0 loop forever, even with one work-item */
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
