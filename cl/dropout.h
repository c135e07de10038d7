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

/* Vectors of so many counters are what a CPU draws for at once. */
#if VEC == 16
#define PHILOX philox_four
#define DRAWS 4
typedef uint4 draws_t;
#elif VEC == 8
#define PHILOX philox_two
#define DRAWS 2
typedef uint2 draws_t;
#else
#define PHILOX philox_one
#define DRAWS 1
typedef uint draws_t;
#endif

/* Of the 4 · DRAWS elements from a column on that is a multiple of 4. */
static inline uint kept_from(const struct dice *dice, const ulong row, const ulong column) {
    const uint first = (uint)(column / 4);
#if DRAWS == 4
    const draws_t counters = first + (draws_t)(0, 1, 2, 3), bit = (draws_t)(1, 1 << 4, 1 << 8, 1 << 12);
#elif DRAWS == 2
    const draws_t counters = first + (draws_t)(0, 1), bit = (draws_t)(1, 1 << 4);
#else
    const draws_t counters = first, bit = 1;
#endif
    draws_t word[] = {counters, (uint)row, (uint)dice->offset, (uint)(dice->offset >> 32)};
    PHILOX(word, (uint2)((uint)dice->seed, (uint)(dice->seed >> 32)));
    draws_t kept = 0;
#pragma unroll
    for (uint i = 0; i < 4; i++)
        kept |= word[i] >= dice->threshold ? bit << i : (draws_t)0;
#if DRAWS == 4
    return kept.x | kept.y | kept.z | kept.w;
#elif DRAWS == 2
    return kept.x | kept.y;
#else
    return kept;
#endif
}

/* Of a vector that begins at a column. */
static inline uint kept_at(const struct dice *dice, const ulong row, const ulong column) {
#if VEC >= 4 && (GROUPS == 1 || GROUP_SIZE % 4 == 0) /* columns are multiples of 4 */
    return kept_from(dice, row, column);
#else
    uint kept = 0;
#pragma unroll 1
    for (uint i = 0; i < VEC; i++)
        kept |= (kept_from(dice, row, (column + i) / 4 * 4) >> (uint)((column + i) % 4) & 1) << i;
    return kept;
#endif
}

/* v with zeros where an element is not kept. */
static inline realv only_kept(const realv v, const uint kept) {
#if VEC == 1
    return kept & 1 ? v : (real)0;
#elif IS_DOUBLE(X_DTYPE)
    real element[VEC];
    VSTORE(v, element);
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        element[i] = kept >> i & 1 ? element[i] : (real)0;
    return VLOAD(element);
#else
    uint bit[VEC];
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        bit[i] = 1u << i;
    return AS_FLOATV(choose(((uintv)kept & VLOAD(bit)) != (uintv)0, AS_UINTV(v), (uintv)0));
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
