/* Philox 4x32-10, a counter-based generator: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2,
 * 3". Four words for each (counter, key), the same on every device, with no state in between. */
#ifndef PHILOX_H
#define PHILOX_H

/* NAME(word, key): in place of the counters with words word[0] to word[3], one or a vector of them, what is drawn for them.
 */
#define DEFINE_PHILOX(name, uints, ulongs, to_uints, to_ulongs)              \
    static inline void name(uints word[4], uint2 key) {                      \
        _Pragma("unroll") for (uint round = 0; round < 10; round++) {        \
            const ulongs even = to_ulongs(word[0]) * (ulongs)0xd2511f53u;    \
            const ulongs odd = to_ulongs(word[2]) * (ulongs)0xcd9e8d57u;     \
            word[0] = to_uints(odd >> (ulongs)32) ^ word[1] ^ (uints)key.x;  \
            word[1] = to_uints(odd & (ulongs)0xffffffffu);                   \
            word[2] = to_uints(even >> (ulongs)32) ^ word[3] ^ (uints)key.y; \
            word[3] = to_uints(even & (ulongs)0xffffffffu);                  \
            key += (uint2)(0x9e3779b9u, 0xbb67ae85u);                        \
        }                                                                    \
    }

DEFINE_PHILOX(philox_one, uint, ulong, convert_uint, convert_ulong)
DEFINE_PHILOX(philox_two, uint2, ulong2, convert_uint2, convert_ulong2)
DEFINE_PHILOX(philox_four, uint4, ulong4, convert_uint4, convert_ulong4)

static inline uint4 philox4x32(const uint4 counter, const uint2 key) {
    uint word[] = {counter.x, counter.y, counter.z, counter.w};
    philox_one(word, key);
    return (uint4)(word[0], word[1], word[2], word[3]);
}

#endif
