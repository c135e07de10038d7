/* Which elements dropout keeps: see clnorm_norm_desc. The answer for VEC neighbouring elements is a mask of a vector, or
 * a bit for each element, the lowest for the first. */
#ifndef DROPOUT_H
#define DROPOUT_H

#include "common/philox.h"
#include "common/segment.h"

/* The numbers on which masks depend. */
struct dice {
    ulong seed, offset;
    uint threshold; /* an element is kept where its random word is at least this */
};

/* A draw of four words decides for eight columns: each word for an even column, and with its halves exchanged for the
 * next one. */
#define DRAW 8

/* The counter of a column, for philox() and its vector forms. draws: ulong, or a vector of ulong for several draws. */
#define COUNTER(draws, dice, row, column) \
    { (draws)((uint)((column) / DRAW)), (draws)(row), (draws)((uint)(dice)->offset), (draws)((dice)->offset >> 32) }

static inline uint2 key_of(const struct dice *dice) {
    return (uint2)((uint)dice->seed, (uint)(dice->seed >> 32));
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

/* Vectors begin at multiples of VEC, so that a vector consists of whole draws, or lies within one. */
#define WHOLE_DRAWS (VEC >= 4 && !LEADS && (GROUPS == 1 || GROUP_SIZE % VEC == 0))

/* Vectors whose draws at once fill a CPU's registers. */
#define AT_ONCE 4
#define DRAWS_AT_ONCE (VEC == 16 && WHOLE_DRAWS && ISA != ISA_PTX)

#if WHOLE_DRAWS

/* The words of an even column and of the next one. They are two arguments, as Oclgrind 21.10 cannot make a vector of
 * vectors. */
#define BOTH(word) (uint)(word), rotate((uint)(word), 16u)

static inline intv kept_lanes(const struct dice *dice, const ulong row, const ulong column) {
#if VEC == 16
    ulong2 word[] = COUNTER(ulong2, dice, row, column);
    word[0] += (ulong2)(0, 1);
    philox2(word, key_of(dice));
    const uintv words = (uintv)(BOTH(word[0].x), BOTH(word[1].x), BOTH(word[2].x), BOTH(word[3].x), BOTH(word[0].y),
                                BOTH(word[1].y), BOTH(word[2].y), BOTH(word[3].y));
#else
    ulong word[] = COUNTER(ulong, dice, row, column);
    philox(word, key_of(dice));
#if VEC == 8
    const uintv words = (uintv)(BOTH(word[0]), BOTH(word[1]), BOTH(word[2]), BOTH(word[3]));
#else
    const bool second = column & 4;
    const uintv words = (uintv)(BOTH(second ? word[2] : word[0]), BOTH(second ? word[3] : word[1]));
#endif
#endif
    return words >= (uintv)dice->threshold;
}

#if DRAWS_AT_ONCE

/* Whether the two columns of one word are kept, for each of eight draws. */
static inline short8 kept_by(const struct dice *dice, const ulong8 word) {
    const uint16 even = convert_uint8(word).s0011223344556677;
    const uint16 words = rotate(even, (uint16)(0, 16, 0, 16, 0, 16, 0, 16, 0, 16, 0, 16, 0, 16, 0, 16));
    return as_short8(convert_char16(words >= dice->threshold));
}

static inline int8 side_by_side(const short8 a, const short8 b) {
    return as_int8(
        (short16)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7));
}

/* The answers for AT_ONCE vectors, the first of which begins at a column. */
static inline void kept_lanes_at_once(const struct dice *dice, const ulong row, const ulong column, intv *kept) {
    ulong8 word[] = COUNTER(ulong8, dice, row, column);
    word[0] += (ulong8)(0, 1, 2, 3, 4, 5, 6, 7);
    philox8(word, key_of(dice));
    const int8 first = side_by_side(kept_by(dice, word[0]), kept_by(dice, word[1]));
    const int8 last = side_by_side(kept_by(dice, word[2]), kept_by(dice, word[3]));
    kept[0] = convert_int16(as_char16((int4)(first.s0, last.s0, first.s1, last.s1)));
    kept[1] = convert_int16(as_char16((int4)(first.s2, last.s2, first.s3, last.s3)));
    kept[2] = convert_int16(as_char16((int4)(first.s4, last.s4, first.s5, last.s5)));
    kept[3] = convert_int16(as_char16((int4)(first.s6, last.s6, first.s7, last.s7)));
}

#endif

#else

/* The answers for the eight columns from a multiple of DRAW on. */
static inline uint bits_of_draw(const struct dice *dice, const ulong row, const ulong column) {
    ulong word[] = COUNTER(ulong, dice, row, column);
    philox(word, key_of(dice));
    uint bits = 0;
#pragma unroll
    for (uint i = 0; i < DRAW / 2; i++) {
        const uint even = (uint)word[i];
        bits |= (even >= dice->threshold ? 1u : 0u) << 2 * i;
        bits |= (rotate(even, 16u) >= dice->threshold ? 2u : 0u) << 2 * i;
    }
    return bits;
}

/* Draws that VEC columns touch, at most. */
#define DRAWS ((VEC + DRAW - 2) / DRAW + 1)

/* A vector may begin before column 0, where a segment's lead is. Such columns have any answer. */
static inline intv kept_lanes(const struct dice *dice, const ulong row, const ulong column) {
    const uint within = (uint)column % DRAW;
    uint bits = 0;
#pragma unroll
    for (uint i = 0; i < DRAWS; i++)
        bits |= bits_of_draw(dice, row, column - within + i * DRAW) << i * DRAW;
    return lanes_of_bits(bits >> within);
}

#endif

/* Which elements are kept, as bits. */
static inline uint kept_at(const struct dice *dice, const ulong row, const ulong column) {
    return bits_of_lanes(kept_lanes(dice, row, column));
}

static inline realv only_kept(const realv v, const uint kept) {
    return only_lanes(v, lanes_of_bits(kept));
}

#endif
