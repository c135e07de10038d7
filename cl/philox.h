/* Philox 4x32-10, a counter-based generator: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2,
 * 3". Four words for each (counter, key), the same on every device, with no state in between. */
#ifndef PHILOX_H
#define PHILOX_H

static inline uint4 philox4x32(uint4 counter, uint2 key) {
#pragma unroll
    for (uint round = 0; round < 10; round++) {
        const ulong even = (ulong)counter.x * 0xd2511f53u;
        const ulong odd = (ulong)counter.z * 0xcd9e8d57u;
        counter =
            (uint4)((uint)(odd >> 32) ^ counter.y ^ key.x, (uint)odd, (uint)(even >> 32) ^ counter.w ^ key.y, (uint)even);
        key += (uint2)(0x9e3779b9u, 0xbb67ae85u);
    }
    return counter;
}

#endif
