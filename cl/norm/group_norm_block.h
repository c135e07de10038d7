/* A unit's block of vectors, with the last layout: its moments from those of the unit's phases; those of its groups, and
 * their statistics from parts. A team of neighbouring work-items takes a group at a time. */
#ifndef GROUP_NORM_BLOCK_H
#define GROUP_NORM_BLOCK_H

#include "norm/group_norm_entries.h"

/* Replaces the moments of an element in the first phase by those of all phases. The next phases are BLOCK further on. */
static inline void merge_phases(const struct unit *unit, local real *means, local real *squares) {
    const real origin = means[0];
    real sum = 0, total = 0;
    for (uint phase = 1; phase < PHASES; phase++)
        sum += (real)rows_of_phase(unit->chunk, phase) * (means[phase * BLOCK] - origin);
    const real mean = origin + sum / (real)max(chunk_count(unit->chunk), (ulong)1);
    for (uint phase = 0; phase < PHASES; phase++) {
        const real rows = (real)rows_of_phase(unit->chunk, phase);
        const real delta = distance_of(means[phase * BLOCK] - mean, rows);
        total += squares[phase * BLOCK] + rows * (delta * delta);
    }
    means[0] = mean;
    squares[0] = total;
}

#if MERGES_GROUPS

/* Groups in a block, at most. */
#if BLOCK % CHANNELS_OF_GROUP == 0
#define BLOCK_GROUPS (BLOCK / CHANNELS_OF_GROUP)
#else
#define BLOCK_GROUPS ((BLOCK + CHANNELS_OF_GROUP - 2) / CHANNELS_OF_GROUP + 1)
#endif

/* Work-items of a team: as many as all groups leave. */
#if BLOCK_GROUPS * 16 <= GROUP_ITEMS
#define TEAM 16
#elif BLOCK_GROUPS * 4 <= GROUP_ITEMS
#define TEAM 4
#else
#define TEAM 1
#endif
#define TEAMS (GROUP_ITEMS / TEAM)

/* The channels and groups of a unit's block. */
struct block {
    ulong index, first, end; /* channels */
    ulong first_group;
};

static inline struct block block_of(const struct unit *unit) {
    const ulong first = (unit->vector - unit->lane) * VEC;
    const struct block block = {first / BLOCK, first, min(first + BLOCK, (ulong)CHANNELS), first / CHANNELS_OF_GROUP};
    return block;
}

/* The sum over a team. space: [GROUP_ITEMS]. A barrier must follow before the next use of it. */
INLINED real sum_team(const real v, local real *space) {
    const uint item = (uint)get_local_id(0);
    const local real *team = space + item / TEAM * TEAM;
    real total = 0;
    if (TEAM == 1)
        return v;
    space[item] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < TEAM; i++)
        total += team[i];
    return total;
}

/* Writes the parts of a unit's groups, from the moments of its channels. means, squares: [BLOCK]; space: [2, GROUP_ITEMS]
 */
INLINED void put_groups(global real *parts, const struct unit *unit, const local real *means, const local real *squares,
                        local real *space) {
    const struct block block = block_of(unit);
    const uint item = (uint)get_local_id(0);
    const real positions = (real)chunk_count(unit->chunk);
    for (uint i = 0; i < BLOCK_GROUPS; i += TEAMS) {
        const ulong group = block.first_group + i + item / TEAM;
        const uint first = (uint)(min(max(group * CHANNELS_OF_GROUP, block.first), block.end) - block.first);
        const uint end = (uint)(min((group + 1) * CHANNELS_OF_GROUP, block.end) - block.first);
        const real origin = first < end ? means[first] : 0;
        real sum = 0, total = 0;
        for (uint channel = first + item % TEAM; channel < end; channel += TEAM)
            sum += means[channel] - origin;
        const real mean = origin + sum_team(sum, space) / (real)max(end - first, 1u);
        for (uint channel = first + item % TEAM; channel < end; channel += TEAM) {
            const real delta = means[channel] - mean;
            total += squares[channel] + positions * (delta * delta);
        }
        total = sum_team(total, space + GROUP_ITEMS);
        if (item % TEAM == 0 && first < end && positions > 0)
            put_part(parts, part_of(unit->sample, group + block.index, unit->chunk), mean, total);
    }
}

#endif

/* Writes the parts of a unit. moments: this lane's. space: [2, PHASES, LANES] vectors, then [2, GROUP_ITEMS] */
INLINED void put_moments(global real *parts, const struct unit *unit, const struct moments *moments, local realv *space) {
    const uint item = (uint)get_local_id(0);
    local real *means = (local real *)space, *squares = (local real *)(space + GROUP_ITEMS);
    space[item] = moments->origin + moments->mean;
    space[GROUP_ITEMS + item] = moments->squares;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < BLOCK; i += GROUP_ITEMS)
        merge_phases(unit, means + i, squares + i);
    barrier(CLK_LOCAL_MEM_FENCE);
#if MERGES_GROUPS
    put_groups(parts, unit, means, squares, (local real *)(space + 2 * GROUP_ITEMS));
#else
    const ulong first = (unit->vector - unit->lane) * VEC;
    for (uint i = item; i < BLOCK && first + i < ROW && chunk_count(unit->chunk) > 0; i += GROUP_ITEMS)
        put_part(parts, part_of_element(unit->sample, first + i, unit->chunk), means[i], squares[i]);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
}

#if MERGES_GROUPS

/* The statistics of the groups of a unit's block. statistics: [BLOCK_GROUPS]; space: [2, GROUP_ITEMS] */
INLINED void merge_groups(const global real *parts, const struct unit *unit, const real eps,
                          local struct statistics *statistics, local real *space) {
    const struct block block = block_of(unit);
    const uint share = (uint)get_local_id(0) % TEAM;
    for (uint i = 0; i < BLOCK_GROUPS; i += TEAMS) {
        const uint index = i + (uint)get_local_id(0) / TEAM;
        const ulong group = unit->sample * GROUPS + min(block.first_group + index, (ulong)GROUPS - 1);
        const real origin = part_at(parts, first_part_of(group)).x;
        const real sum = sum_team(sum_terms(parts, group, share, TEAM, origin, false), space);
        const real mean = origin + sum * ((real)1 / (real)GROUP_SIZE);
        const real squares = sum_team(sum_terms(parts, group, share, TEAM, mean, true), space + GROUP_ITEMS);
        if (share == 0 && index < BLOCK_GROUPS) {
            statistics[index].mean = mean;
            statistics[index].rstd = rstd_of(squares, eps);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

#endif

#endif
