/* Philox 4x32-10, a counter-based generator: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2,
 * 3". Four words for each (counter, key), the same on every device, with no state in between. */
#ifndef PHILOX_H
#define PHILOX_H

#include "common/enums.h"

/* The product of a's lower half and b. Vector units multiply the lower halves of 64-bit elements, and ignore the upper
 * ones. */
static inline ulong lower_product(const ulong a, const uint b) {
#if ISA == ISA_PTX /* NVIDIA's compiler would multiply twice, for each half of the product */
    ulong product;
    __asm__("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"((uint)a), "r"(b));
    return product;
#else
    return (a & 0xffffffffu) * b;
#endif
}

static inline ulong2 lower_product2(const ulong2 a, const uint b) {
#if ISA == ISA_PTX
    return (ulong2)(lower_product(a.x, b), lower_product(a.y, b));
#else
    return (a & 0xffffffffu) * b;
#endif
}

static inline ulong8 lower_product8(const ulong8 a, const uint b) {
    return (a & 0xffffffffu) * b;
}

/* Defines NAME(word, key), which replaces counters by their random words. word[0] to word[3] are the words of one
 * counter or of a vector of counters, each in the lower half of an element. */
#define DEFINE_PHILOX(name, words, product)                              \
    static inline void name(words word[4], uint2 key) {                  \
        _Pragma("unroll") for (uint round = 0; round < 10; round++) {    \
            const words even = product(word[0], 0xd2511f53u);            \
            const words odd = product(word[2], 0xcd9e8d57u);             \
            word[0] = odd >> (words)32 ^ word[1] ^ (words)(ulong)key.x;  \
            word[1] = odd;                                               \
            word[2] = even >> (words)32 ^ word[3] ^ (words)(ulong)key.y; \
            word[3] = even;                                              \
            key += (uint2)(0x9e3779b9u, 0xbb67ae85u);                    \
        }                                                                \
    }

DEFINE_PHILOX(philox, ulong, lower_product)
DEFINE_PHILOX(philox2, ulong2, lower_product2)
DEFINE_PHILOX(philox8, ulong8, lower_product8)

static inline uint4 philox4x32(const uint4 counter, const uint2 key) {
    ulong word[] = {counter.x, counter.y, counter.z, counter.w};
    philox(word, key);
    return (uint4)((uint)word[0], (uint)word[1], (uint)word[2], (uint)word[3]);
}

#endif
