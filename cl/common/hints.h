/* Hints for compilers and caches, where a device obeys them: nothing here changes what is computed. */
#ifndef HINTS_H
#define HINTS_H

#include "common/enums.h"

/* Ask a CPU for a line that is read, or written, soon: its own prefetchers stop at the end of a page, and know nothing of
 * what is to be written. */
static inline void prefetch_to_read(const global void *p) {
#if ELEMENT_ALIGNED && defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
    __builtin_prefetch((const void *)(size_t)p, 0, 2);
#endif
#endif
    (void)p;
}

static inline void prefetch_to_write(const global void *p) {
#if ELEMENT_ALIGNED && defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
    __builtin_prefetch((const void *)(size_t)p, 1, 2);
#endif
#endif
    (void)p;
}

/* Ask the L2 cache, or a CPU's, for what is read some time later. */
static inline void prefetch_later(const global void *p) {
#if ISA == ISA_PTX
    __asm__ volatile("prefetch.global.L2 [%0];" : : "l"(p));
#else
    prefetch_to_read(p);
#endif
}

/* Loads before it are under way before what comes after it begins: NVIDIA's assembler would rather do with fewer registers
 * and ask for one vector after the other, each time waiting for it. */
static inline void begin_loads(void) {
#if ISA == ISA_PTX
    __asm__ volatile("fence.acq_rel.cta;" : : : "memory");
#endif
}

/* Hides from the compiler what it knows of a packed vector, so that it widens it anew where it is used next: that costs
 * less than the registers which the wide values would take up meanwhile. */
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
