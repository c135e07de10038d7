/* Loads and stores of vectors: 2-byte elements of any dtype, and numbers of the arithmetic. */
#ifndef WORDS_H
#define WORDS_H

#include "common/enums.h"
#include "common/storage.h"

#if defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STORE_STREAMING(value, pointer) __builtin_nontemporal_store(value, pointer)
#endif
#endif
#ifndef STORE_STREAMING
#define STORE_STREAMING(value, pointer) (*(pointer) = (value))
#endif
#if STORES == STORES_STREAMING
#define STORE_ALIGNED(value, pointer) STORE_STREAMING(value, pointer)
#else
#define STORE_ALIGNED(value, pointer) (*(pointer) = (value))
#endif

/* A vector at the address of any element, in one access of a CPU. On PoCL, vstoren makes an access for each 2-byte element,
 * and three for a vector of wider ones. */
struct __attribute__((packed)) anywhere {
    ushortv vector;
};

struct __attribute__((packed)) reals_anywhere {
    realv vector;
};

/* Hints of a load, which some devices obey. */
enum load_hint {
    LOAD_PLAIN,
    LOAD_IN_TURN, /* now: the compiler must not delay it */
    LOAD_FIRST,   /* it is loaded again soon: caches should keep it */
    LOAD_LAST     /* it is not loaded again: the L2 cache should rather keep the output */
};

#if ISA == ISA_PTX
static inline uint4 load16_in_turn(const global void *p) {
    uint4 v;
    __asm__ volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

static inline uint4 load16_first(const global void *p) {
    uint4 v;
    ulong policy;
    __asm__("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    __asm__ volatile("ld.global.L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(p), "l"(policy));
    return v;
}

static inline uint4 load16_last(const global void *p) {
    uint4 v;
    ulong policy;
    __asm__("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    __asm__ volatile("ld.global.L1::evict_first.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(p), "l"(policy));
    return v;
}
#endif

static inline WORDS load_words(const global ushort *p, const bool aligned, const enum load_hint hint) {
#if ISA == ISA_PTX && VEC == 8
    if (aligned && hint == LOAD_IN_TURN)
        return load16_in_turn(p);
    if (aligned && hint == LOAD_FIRST)
        return load16_first(p);
    if (aligned && hint == LOAD_LAST)
        return load16_last(p);
#else
    (void)hint;
#endif
    return aligned ? *(const global WORDS *)p : AS_WORDS(VLOAD(p));
}

static inline void store_words(global ushort *p, const WORDS v, const bool aligned) {
    if (aligned)
        STORE_ALIGNED(v, (global WORDS *)p);
    else if (ON_CPU)
        ((global struct anywhere *)p)->vector = AS_USHORTV(v);
    else
        VSTORE(AS_USHORTV(v), p);
}

static inline WORDS only_words(const WORDS v, const intv kept) {
#if VEC == 1
    return kept ? v : (WORDS)0;
#elif ISA == ISA_PTX
    WORDS only = v;
    const int *keep = (const int *)&kept;
    uint *word = (uint *)&only;
#pragma unroll
    for (uint i = 0; i < VEC / 2; i++)
        word[i] &= ((uint)keep[2 * i] & 0xffffu) | (uint)keep[2 * i + 1] << 16;
    return only;
#else
    return AS_WORDS(AS_USHORTV(v) & TO_USHORTV(AS_UINTV(kept)));
#endif
}

/* v, with zeros for elements that are not kept. */
static inline realv only_lanes(const realv v, const intv kept) {
#if VEC == 1
    return kept ? v : (real)0;
#elif IS_DOUBLE(X_DTYPE)
    return select((realv)0, v, JOIN(convert_long, VEC)(kept));
#else
    return AS_FLOATV(choose(kept, AS_UINTV(v), (uintv)0));
#endif
}

static inline realv load_reals(const global real *p, const bool aligned, const enum load_hint hint) {
#if ISA == ISA_PTX && VEC == 4 && !IS_DOUBLE(X_DTYPE)
    if (aligned && hint == LOAD_IN_TURN)
        return as_float4(load16_in_turn(p));
    if (aligned && hint == LOAD_FIRST)
        return as_float4(load16_first(p));
    if (aligned && hint == LOAD_LAST)
        return as_float4(load16_last(p));
#else
    (void)hint;
#endif
    return aligned ? *(const global realv *)p : VLOAD(p);
}

static inline void store_reals(global real *p, const realv v, const bool aligned) {
    if (aligned)
        STORE_ALIGNED(v, (global realv *)p);
    else if (ON_CPU)
        ((global struct reals_anywhere *)p)->vector = v;
    else
        VSTORE(v, p);
}

#endif
