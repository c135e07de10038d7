/* The parts of group norm's chunks, where they lie, and how work-groups of one launch post them to each other. Included by
 * group_norm.h. */
#ifndef GROUP_NORM_PART_H
#define GROUP_NORM_PART_H

#include "common/cleared_word.h"

/* A part: two numbers of a chunk of a channel. With MERGES_GROUPS, the moments of the last layout are those of a chunk of a
 * group's channels in a block of BLOCK channels, which is a row of parts: each group and each block begins a new row, so
 * that the row of a group in a block is the sum of their indices. Else a row of parts is a channel, which has a part for
 * each of a row's positions in each chunk. The parts of a group are contiguous. In the backward over slices a part is of a
 * bundle, which takes the place of a sample: SEGMENTS neighbouring samples. */
#if IS_DOUBLE(X_DTYPE)
typedef double2 part_t;
#else
typedef float2 part_t;
#endif

#define MERGES_GROUPS (BLOCK && ROW_POSITIONS == 1)
#if MERGES_GROUPS
#define PART_ROWS (GROUPS + (CHANNELS - 1) / BLOCK + 1)
#else
#define PART_ROWS CHANNELS
#endif

#define ROW_PARTS ((ulong)CHUNKS * ROW_POSITIONS) /* of a row of parts */

static inline ulong part_of(const ulong sample, const ulong row, const ulong part) {
    return (sample * PART_ROWS + row) * ROW_PARTS + part;
}

/* With the last layout, the channel of an element of a row, and the element's part. */
static inline ulong channel_of_element(const ulong element) {
    return ROW_POSITIONS > 1 ? element % CHANNELS : element;
}

static inline ulong part_of_element(const ulong sample, const ulong element, const ulong chunk) {
    const ulong position = ROW_POSITIONS > 1 ? element / CHANNELS : 0;
    return part_of(sample, channel_of_element(element), position * CHUNKS + chunk);
}

/* Whether the work-groups of a launch post parts to each other: as messages. */
#define EXCHANGES (ROW_SPLIT != ROW_SPLIT_TWO_PASSES)

#if EXCHANGES

static inline uint2 message_at(const global real *parts, const ulong index) {
    return ((const volatile global uint2 *)parts)[index];
}

static inline part_t part_at(const global real *parts, const ulong index) {
    const uint2 message = message_at(parts, index);
    return (part_t)(AS_SUM(message.x), AS_SUM(message.y));
}

static inline void put_part(global real *parts, const ulong index, const real first, const real second) {
    ((volatile global uint2 *)parts)[index] = (uint2)(AS_MESSAGE(first), AS_MESSAGE(second));
}

/* Posts a part, in cleared words, if it is not there: several work-groups may compute it. */
static inline void post_part(global real *parts, const ulong index, const real first, const real second) {
    volatile global uint *const words = (volatile global uint *)parts + 2 * index;
    post_word(words, AS_MESSAGE(first));
    post_word(words + 1, AS_MESSAGE(second));
}

#else

static inline part_t part_at(const global real *parts, const ulong index) {
    return ((const global part_t *)parts)[index];
}

static inline void put_part(global real *parts, const ulong index, const real first, const real second) {
    ((global part_t *)parts)[index] = (part_t)(first, second);
}

static inline void post_part(global real *parts, const ulong index, const real first, const real second) {
    put_part(parts, index, first, second);
}

#endif

#endif
