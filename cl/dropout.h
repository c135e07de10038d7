/* Which elements dropout keeps: see clnorm_norm_desc. An answer for VEC neighbouring elements is as comparisons of vectors
 * have it, or a bit each, the first one's the lowest. */
#ifndef DROPOUT_H
#define DROPOUT_H

#include "philox.h"
#include "vector.h"

/* What masks depend on. */
struct dice {
    ulong seed, offset;
    uint threshold; /* random words from here on keep their element */
};

/* Counters of a vector, or of two where that fills a CPU's registers, which are drawn for at once. */
#define PAIRED (VEC == 16)
#if PAIRED
#define PHILOX philox8
#define COUNTERS (draws_t)(0, 1, 2, 3, 4, 5, 6, 7)
typedef ulong8 draws_t;
#elif VEC == 8
#define PHILOX philox2
#define COUNTERS (draws_t)(0, 1)
typedef ulong2 draws_t;
#else
#define PHILOX philox
#define COUNTERS 0
typedef ulong draws_t;
#endif

/* For the counters from that of a column on. */
static inline void draw(const struct dice *dice, const ulong row, const ulong column, draws_t word[4]) {
    word[0] = (uint)(column / 4) + COUNTERS;
    word[1] = row;
    word[2] = (uint)dice->offset;
    word[3] = dice->offset >> 32;
    PHILOX(word, (uint2)((uint)dice->seed, (uint)(dice->seed >> 32)));
}

static inline intv lanes_of_bits(const uint bits) {
#if VEC == 1
    return bits & 1;
#else
    uint bit[VEC];
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        bit[i] = 1u << i;
    return ((uintv)bits & VLOAD(bit)) != (uintv)0;
#endif
}

static inline uint bits_of_lanes(const intv lanes) {
#if VEC == 1
    return lanes != 0;
#else
    int lane[VEC];
    uint bits = 0;
    VSTORE(lanes, lane);
#pragma unroll
    for (uint i = 0; i < VEC; i++)
        bits |= lane[i] ? 1u << i : 0u;
    return bits;
#endif
}

#define WHOLE_DRAWS (VEC >= 4 && (GROUPS == 1 || GROUP_SIZE % 4 == 0)) /* columns of vectors are multiples of 4 */

#if PAIRED && WHOLE_DRAWS
static inline intv kept_lanes_of(const struct dice *dice, const uint4 a, const uint4 b, const uint4 c, const uint4 d) {
    const uintv words = (uintv)(a.x, b.x, c.x, d.x, a.y, b.y, c.y, d.y, a.z, b.z, c.z, d.z, a.w, b.w, c.w, d.w);
    return words >= (uintv)dice->threshold;
}

/* Of the vector that begins at a column, and of the next one. */
static inline void kept_lanes_of_two(const struct dice *dice, const ulong row, const ulong column, intv kept[2]) {
    draws_t word[4];
    draw(dice, row, column, word);
    const uint8 a = convert_uint8(word[0]), b = convert_uint8(word[1]);
    const uint8 c = convert_uint8(word[2]), d = convert_uint8(word[3]);
    kept[0] = kept_lanes_of(dice, a.lo, b.lo, c.lo, d.lo);
    kept[1] = kept_lanes_of(dice, a.hi, b.hi, c.hi, d.hi);
}
#endif

/* Of a vector that begins at a column. */
static inline intv kept_lanes(const struct dice *dice, const ulong row, const ulong column) {
#if PAIRED && WHOLE_DRAWS
    intv kept[2];
    kept_lanes_of_two(dice, row, column, kept);
    return kept[0];
#elif WHOLE_DRAWS
    draws_t word[4];
    draw(dice, row, column, word);
#if VEC == 8
    const uintv words = (uintv)((uint)word[0].x, (uint)word[1].x, (uint)word[2].x, (uint)word[3].x, (uint)word[0].y,
                                (uint)word[1].y, (uint)word[2].y, (uint)word[3].y);
#else
    const uintv words = (uintv)((uint)word[0], (uint)word[1], (uint)word[2], (uint)word[3]);
#endif
    return words >= (uintv)dice->threshold;
#else
    uint bits = 0;
#pragma unroll 1
    for (uint i = 0; i < VEC; i++) {
        const ulong own = column + i;
        const uint4 counter = (uint4)((uint)(own / 4), (uint)row, (uint)dice->offset, (uint)(dice->offset >> 32));
        const uint4 words = philox4x32(counter, (uint2)((uint)dice->seed, (uint)(dice->seed >> 32)));
        const uint2 pair = own & 2 ? words.zw : words.xy;
        bits |= (own & 1 ? pair.y : pair.x) >= dice->threshold ? 1u << i : 0u;
    }
    return lanes_of_bits(bits);
#endif
}

/* v with zeros where an element is not kept. */
static inline realv only_lanes(const realv v, const intv kept) {
#if VEC == 1
    return kept ? v : (real)0;
#elif IS_DOUBLE(X_DTYPE)
    return select((realv)0, v, JOIN(convert_long, VEC)(kept));
#else
    return AS_FLOATV(choose(kept, AS_UINTV(v), (uintv)0));
#endif
}

/* The same with bits. */
static inline uint kept_at(const struct dice *dice, const ulong row, const ulong column) {
    return bits_of_lanes(kept_lanes(dice, row, column));
}

static inline realv only_kept(const realv v, const uint kept) {
    return only_lanes(v, lanes_of_bits(kept));
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
