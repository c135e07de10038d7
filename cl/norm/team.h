/* A team: the work-groups that each have a tile of the same segments, and go through the same rows at the same time. Each
 * one sums its tile and posts the sums to the others, so that x and dy are read once.
 *
 * No work-group waits without bound (waiting.h). After MOST_LOOKS looks for a message, a work-group computes the sums of
 * that row and of its later rows itself: in the same order, to the same bits. Therefore every launch ends, whatever else
 * runs on the device. */
#ifndef TEAM_H
#define TEAM_H

#include "common/message.h"
#include "norm/norm_backward.h"

#define LOOKS (ROW_SPLIT == ROW_SPLIT_EXCHANGE ? MOST_LOOKS : 1)

/* The sums of a tile. RMS norm has no use for the second number of a message. */
#define POSTED (NORM == LAYER_NORM ? 2 : 1)

/* Local memory for the sums of all tiles of a row, with zeros to the end of the last four. */
#define QUADS ((TILES + 3) / 4)
#define RECEIVED (EXCHANGES ? 2 * POSTED * QUADS : 1)

struct team {
    volatile global message_t *mailboxes; /* [rows, GROUPS, TILES] */
    ulong launch;                         /* its number */
    local float4 *received;               /* [2, POSTED, QUADS], of the rows in turn */
    local uint *missing;                  /* [2]: not 0 if a message is */
    uint tile;
    uint collected;    /* rows so far */
    message_t message; /* of the lane's first tile, read by look() */
};

#if EXCHANGES

/* Joins a work-group to its team. Devices start work-groups in the order of their ids, so that only the last team that runs
 * can be incomplete. received: [RECEIVED]; missing: [2]. */
INLINED void join_team(volatile global message_t *mailboxes, const ulong launch, const uint tile, local float4 *received,
                       local uint *missing, struct team *team) {
    if (get_local_id(0) == 0) {
        missing[0] = missing[1] = 0;
        for (uint i = 0; i < RECEIVED; i++)
            received[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    team->mailboxes = mailboxes;
    team->launch = launch;
    team->received = received;
    team->missing = missing;
    team->tile = tile;
    team->collected = 0;
    team->message = no_message(launch);
}

INLINED volatile global message_t *mailboxes_of(const struct team *team, const struct row *row) {
    return team->mailboxes + (row->index * GROUPS + row->group) * TILES;
}

/* Posts this tile's sums, which are the same in every work-item. */
INLINED void post(const struct team *team, const struct row *row, const real *sums) {
    const struct outbox outbox = {mailboxes_of(team, row), team->launch, false};
    if (get_local_id(0) == 0)
        post_pair(&outbox, team->tile, sums[0], POSTED > 1 ? sums[1] : 0);
}

/* Prefetches the mailboxes of a row that is posted soon: caches do not have them. */
INLINED void prefetch_mailboxes(const struct team *team, const struct row *row) {
    if (get_local_id(0) < TILES)
        prefetch_later((const global void *)(mailboxes_of(team, row) + get_local_id(0)));
}

/* Loads a message that collect() needs next, as it may have arrived already. */
INLINED void look(struct team *team, const struct row *row) {
    if (get_local_id(0) < TILES)
        team->message = mailboxes_of(team, row)[get_local_id(0)];
}

/* Tiles are added up in four sums, each of every fourth tile, to the same bits in every work-item and every work-group of
 * the team. */
static inline real add_four(const float4 sum) {
    return (sum.x + sum.y) + (sum.z + sum.w);
}

/* What a tile adds to the four. */
static inline float4 of_four(const uint tile, const real sum) {
    return select((float4)0, (float4)sum, (uint4)(tile % 4) == (uint4)(0, 1, 2, 3));
}

INLINED void add_received(const local float4 *received, real *sums) {
#pragma unroll
    for (uint k = 0; k < POSTED; k++) {
        float4 sum = 0;
#pragma unroll
        for (uint i = 0; i < QUADS; i++)
            sum += received[k * QUADS + i];
        sums[k] = add_four(sum);
    }
}

/* Orders the messages that a work-group has loaded before what it writes from now on (waiting.h). */
INLINED void order_messages(void) {
    fence_after_loads();
#if GROUP_ITEMS > 1 /* a barrier here makes PoCL 6.0 loop forever, even with one work-item */
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

/* Receives the sums of all tiles of a row, and adds them up. Returns the same value in every work-item: whether all
 * messages have arrived. */
INLINED bool collect(struct team *team, const struct row *row, real *sums) {
    const uint turn = team->collected++ & 1;
    local float4 *const received = team->received + turn * POSTED * QUADS;
    join_lanes(); /* post() wrote in one work-item alone */
    for (uint tile = (uint)get_local_id(0); tile < TILES; tile += LANES) {
        for (uint n = 0; n < LOOKS && !has_arrived(team->message, team->launch); n++)
            team->message = mailboxes_of(team, row)[tile];
        if (!has_arrived(team->message, team->launch))
            team->missing[turn] = 1;
        const float2 own = numbers_of(team->message);
        ((local real *)received)[tile] = own.x;
        if (POSTED > 1)
            ((local real *)received)[4 * QUADS + tile] = own.y;
        team->message = no_message(team->launch);
    }
    order_messages();
    add_received(received, sums);
    return team->missing[turn] == 0;
}

#endif

#endif
