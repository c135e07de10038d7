/* Hints for compilers and caches, where a device obeys them. No hint changes a result. */
#ifndef HINTS_H
#define HINTS_H

#include "common/enums.h"

/* Prefetch a line that a CPU reads, or writes, soon. A CPU's own prefetchers stop at the end of a page, and do not
 * foresee writes. */
static inline void prefetch_to_read(const global void *p) {
#if ON_CPU && defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
    __builtin_prefetch((const void *)(size_t)p, 0, 2);
#endif
#endif
    (void)p;
}

/* Not with streaming stores, which bypass the caches: there ELEMENT_ALIGNED is 0. */
static inline void prefetch_to_write(const global void *p) {
#if ELEMENT_ALIGNED && defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
    __builtin_prefetch((const void *)(size_t)p, 1, 2);
#endif
#endif
    (void)p;
}

/* Prefetches a line that is read later into the L2 cache, or into a CPU's cache. */
static inline void prefetch_later(const global void *p) {
#if ISA == ISA_PTX
    __asm__ volatile("prefetch.global.L2 [%0];" : : "l"(p));
#else
    prefetch_to_read(p);
#endif
}

/* Keeps the loads before it from being delayed past it. To save registers, NVIDIA's assembler would issue one load after
 * the other, and wait for each. It moves no load across the event, which does not wait for the loads as a fence would. */
static inline void begin_loads(void) {
#if ISA == ISA_PTX
    __asm__ volatile("pmevent 0;" : : : "memory");
#endif
}

/* Makes the compiler widen a packed vector again at its next use: that costs less than registers for the wide values until
 * then. */
static inline void forget(uint *word, const uint words) {
#if ISA == ISA_PTX
#pragma unroll
    for (uint i = 0; i < words; i++)
        __asm__ volatile("" : "+r"(word[i]));
#else
    (void)word;
    (void)words;
#endif
}

#endif
