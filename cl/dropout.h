/* Which elements dropout keeps: see clnorm_norm_desc. An answer for VEC neighbouring elements is a bit each, the first
 * one's the lowest. */
#ifndef DROPOUT_H
#define DROPOUT_H

#include "philox.h"
#include "vector.h"

/* What masks depend on. */
struct dice {
    ulong seed, offset;
    uint threshold; /* random words from here on keep their element */
};

static inline uint kept_of_four(const struct dice *dice, const ulong row, const ulong column) {
    const uint4 counter = (uint4)((uint)(column / 4), (uint)row, (uint)dice->offset, (uint)(dice->offset >> 32));
    const uint4 word = philox4x32(counter, (uint2)((uint)dice->seed, (uint)(dice->seed >> 32)));
    return (uint)(word.x >= dice->threshold) | (uint)(word.y >= dice->threshold) << 1 |
           (uint)(word.z >= dice->threshold) << 2 | (uint)(word.w >= dice->threshold) << 3;
}

/* Of a vector that begins at a column. */
static inline uint kept_at(const struct dice *dice, const ulong row, const ulong column) {
    uint kept = 0;
#if VEC >= 4 && (GROUPS == 1 || GROUP_SIZE % 4 == 0) /* columns are multiples of 4 */
#pragma unroll
    for (uint i = 0; i < VEC; i += 4)
        kept |= kept_of_four(dice, row, column + i) << i;
#else
#pragma unroll 1
    for (uint i = 0; i < VEC; i++)
        kept |= (kept_of_four(dice, row, column + i) >> (uint)((column + i) % 4) & 1) << i;
#endif
    return kept;
}

/* v with zeros where an element is not kept. */
static inline realv only_kept(const realv v, const uint kept) {
#if VEC == 1
    return kept & 1 ? v : (real)0;
#else
    real element[VEC];
    VSTORE(v, element);
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        element[i] = kept >> i & 1 ? element[i] : (real)0;
    return VLOAD(element);
#endif
}

/* Arguments behind a kernel's others, where there is dropout. */
#if DROPOUT
#define SEED_PARAMETERS , const ulong seed, const ulong offset
#define DICE \
    { seed, offset, threshold }
#else
#define SEED_PARAMETERS
#define DICE \
    { 0, 0, 0 }
#endif

#endif
