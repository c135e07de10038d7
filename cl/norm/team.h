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

/* Whether this is the first of two launches, which posts and writes nothing else. */
#define ONLY_POSTS (EXCHANGES && get_global_offset(0) > 0)

/* The sums of a tile. */
#if NORM == LAYER_NORM
#define POSTED 2
typedef uint2 message_t;
#else
#define POSTED 1
typedef uint message_t;
#endif

/* Local memory for the sums of all tiles of a row, with zeros to the end of the last four. */
#define QUADS ((TILES + 3) / 4)
#define RECEIVED (EXCHANGES ? 2 * POSTED * QUADS : 1)

struct team {
    volatile global message_t *mailboxes; /* [rows, GROUPS, TILES] */
    local float4 *received;               /* [2, POSTED, QUADS], of the rows in turn */
    local uint *missing;                  /* [2]: not 0 if a message is */
    uint tile;
    uint collected;    /* rows so far */
    message_t message; /* of the lane's first tile, read by look(); 0: none */
};

#if EXCHANGES

#if POSTED == 2
static inline message_t message_of(const real *sums) {
    return (message_t)(AS_MESSAGE(sums[0]), AS_MESSAGE(sums[1]));
}

static inline void take_message(const message_t message, real *sums) {
    sums[0] = AS_SUM(message.x);
    sums[1] = AS_SUM(message.y);
}

/* A message may arrive word by word. */
static inline bool has_arrived(const message_t message) {
    return message.x != 0 && message.y != 0;
}
#else
static inline message_t message_of(const real *sums) {
    return AS_MESSAGE(sums[0]);
}

static inline void take_message(const message_t message, real *sums) {
    sums[0] = AS_SUM(message);
}

static inline bool has_arrived(const message_t message) {
    return message != 0;
}
#endif

/* Joins a work-group to its team. Returns its number, in the order in which work-groups start, so that only the last team
 * can be incomplete. words: CACHE_LINE_WORDS of them and then the mailboxes, all 0 before the first launch. received:
 * [RECEIVED]; missing: [2]. */
INLINED ulong join_team(volatile global uint *words, local float4 *received, local uint *missing, local uint *broadcast,
                        struct team *team) {
    if (get_local_id(0) == 0) {
        *broadcast = atomic_inc(words) % (uint)get_num_groups(0);
        missing[0] = missing[1] = 0;
        for (uint i = 0; i < RECEIVED; i++)
            received[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const ulong place = *broadcast;
    team->mailboxes = (volatile global message_t *)(words + CACHE_LINE_WORDS);
    team->received = received;
    team->missing = missing;
    team->tile = (uint)(place % TILES);
    team->collected = 0;
    team->message = 0;
    return place;
}

INLINED volatile global message_t *mailboxes_of(const struct team *team, const struct row *row) {
    return team->mailboxes + (row->index * GROUPS + row->group) * TILES;
}

/* Posts this tile's sums, which are the same in every work-item. */
INLINED void post(const struct team *team, const struct row *row, const real *sums) {
    if (get_local_id(0) == 0)
        mailboxes_of(team, row)[team->tile] = message_of(sums);
}

/* Prefetches the mailboxes of a row that is posted soon: reads since they were cleared may have evicted them. */
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

/* Receives the sums of all tiles of a row, and adds them up. Returns the same value in every work-item: whether all
 * messages have arrived. */
INLINED bool collect(struct team *team, const struct row *row, real *sums) {
    const uint turn = team->collected++ & 1;
    local float4 *const received = team->received + turn * POSTED * QUADS;
    join_lanes(); /* post() wrote in one work-item alone */
    for (uint tile = (uint)get_local_id(0); tile < TILES; tile += LANES) {
        for (uint n = 0; n < LOOKS && !has_arrived(team->message); n++)
            team->message = mailboxes_of(team, row)[tile];
        if (!has_arrived(team->message))
            team->missing[turn] = 1;
        real own[POSTED];
        take_message(team->message, own);
        for (uint k = 0; k < POSTED; k++)
            ((local real *)received)[k * 4 * QUADS + tile] = own[k];
        team->message = 0;
    }
#if GROUP_ITEMS > 1 /* a barrier here makes PoCL 6.0 loop forever, even with one work-item */
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    add_received(received, sums);
    return team->missing[turn] == 0;
}

#endif

#endif
