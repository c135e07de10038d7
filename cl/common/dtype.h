/* Element types in memory and in registers. Each dtype NAME has
 *
 *     storage_NAME              one element, as a kernel's pointers see it
 *     packed_NAME               VEC elements as they were loaded, in as few registers as they can be
 *     load_NAME(p, aligned, hint)   VEC elements at p, packed; aligned: p is a multiple of the vector's size
 *     widen_NAME(packed)        as realv
 *     only_NAME(packed, kept)   with zeros where a comparison of vectors does not hold
 *     store_NAME(p, v, aligned) realv v, rounded to nearest even and stored; NaN stays NaN
 *     store1_NAME(p, v)         the same for one element
 *     put1_NAME(p, v, add)      that, or with add that added to what is there
 *
 * and a kernel names them by the macro of a tensor: LOAD(X_DTYPE)(x + i, aligned, LOAD_PLAIN). */
#ifndef DTYPE_H
#define DTYPE_H

#include "common/enums.h"
#include "common/hints.h"
#include "common/vector.h"

#define STORAGE(dtype) JOIN(storage_, dtype)
#define PACKED(dtype) JOIN(packed_, dtype)
#define LOAD(dtype) JOIN(load_, dtype)
#define WIDEN(dtype) JOIN(widen_, dtype)
#define ONLY(dtype) JOIN(only_, dtype)
#define STORE(dtype) JOIN(store_, dtype)
#define STORE1(dtype) JOIN(store1_, dtype)
#define PUT1(dtype) JOIN(put1_, dtype)

#define storage_f32 float
#define storage_f16 ushort
#define storage_bf16 ushort
#define storage_f64 double
#define storage_none uchar

/* Whether the arithmetic's numbers are stored in it as they are: in a tensor of rows, where f64 goes with f64 alone. */
#define IS_REAL(dtype) JOIN(IS_REAL_, dtype)
#define IS_REAL_f32 1
#define IS_REAL_f64 1
#define IS_REAL_f16 0
#define IS_REAL_bf16 0
#define IS_REAL_none 0

/* Vectors of 2-byte elements as words, which is how 16 bytes travel in one access. */
#if VEC == 1
#define WORDS ushort
#define AS_WORDS as_ushort
#define AS_USHORTV as_ushort
#elif VEC == 2
#define WORDS uint
#define AS_WORDS as_uint
#define AS_USHORTV as_ushort2
#else
#if VEC == 4
#define WORDS uint2
#define AS_WORDS as_uint2
#elif VEC == 8
#define WORDS uint4
#define AS_WORDS as_uint4
#else
#define WORDS uint8
#define AS_WORDS as_uint8
#endif
#define AS_USHORTV JOIN(as_ushort, VEC)
#endif

typedef floatv packed_f32;
typedef WORDS packed_f16;
typedef WORDS packed_bf16;
#if IS_DOUBLE(X_DTYPE)
typedef realv packed_f64;
#endif

/* A packed vector, element by element. A pointer to elements would not do: compilers assume that a ushort is no part of a
 * uint, which two of them are packed in. */
#define ELEMENTS(dtype)              \
    union {                          \
        PACKED(dtype) packed;        \
        STORAGE(dtype) element[VEC]; \
    }

/* ------------------------------------------------------------------------------------------- to and from memory */

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

/* A vector at any element's address in one access; vstoren of 2-byte elements becomes an access each on PoCL, and that of
 * wider ones three. */
struct __attribute__((packed)) anywhere {
    ushortv vector;
};

struct __attribute__((packed)) reals_anywhere {
    realv vector;
};

/* Hints of a load, which some devices obey. */
enum load_hint {
    LOAD_PLAIN,
    LOAD_IN_TURN, /* now, and not when it suits the compiler */
    LOAD_FIRST,   /* it is loaded again soon: it has the best claim to a place in the caches */
    LOAD_LAST     /* it is not loaded again: the output has the better claim to a place in the L2 cache */
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
    else if (ELEMENT_ALIGNED)
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
    else if (ELEMENT_ALIGNED)
        ((global struct reals_anywhere *)p)->vector = v;
    else
        VSTORE(v, p);
}

#if IS_DOUBLE(X_DTYPE)

static inline packed_f64 load_f64(const global double *p, const bool aligned, const enum load_hint hint) {
    return load_reals(p, aligned, hint);
}

static inline packed_f64 only_f64(const packed_f64 v, const intv kept) {
    return only_lanes(v, kept);
}

static inline realv widen_f64(const packed_f64 v) {
    return v;
}

static inline void store_f64(global double *p, const realv v, const bool aligned) {
    store_reals(p, v, aligned);
}

static inline void store1_f64(global double *p, const real v) {
    *p = v;
}

static inline void put1_f64(global double *p, const real v, const bool add) {
    store1_f64(p, add ? *p + v : v);
}

#else

static inline packed_f32 load_f32(const global float *p, const bool aligned, const enum load_hint hint) {
    return load_reals(p, aligned, hint);
}

static inline packed_f32 only_f32(const packed_f32 v, const intv kept) {
    return only_lanes(v, kept);
}

static inline realv widen_f32(const packed_f32 v) {
    return v;
}

static inline void store_f32(global float *p, const realv v, const bool aligned) {
    store_reals(p, v, aligned);
}

static inline void store1_f32(global float *p, const real v) {
    *p = v;
}

static inline void put1_f32(global float *p, const real v, const bool add) {
    store1_f32(p, add ? *p + v : v);
}

/* ------------------------------------------------------------------------------ bfloat16: the upper half of a float */

static inline packed_bf16 load_bf16(const global ushort *p, const bool aligned, const enum load_hint hint) {
    return load_words(p, aligned, hint);
}

static inline packed_bf16 only_bf16(const packed_bf16 v, const intv kept) {
    return only_words(v, kept);
}

static inline realv widen_bf16(const packed_bf16 v) {
#if ISA == ISA_PTX && VEC >= 2 /* one instruction an element, where its compiler makes two of the other's */
    realv wide;
    const uint *from = (const uint *)&v;
    uint *to = (uint *)&wide;
#pragma unroll
    for (uint i = 0; i < VEC / 2; i++) {
        to[2 * i] = from[i] << 16;
        to[2 * i + 1] = from[i] & 0xffff0000u;
    }
    return wide;
#else
    return AS_FLOATV(TO_UINTV(AS_USHORTV(v)) << 16);
#endif
}

/* NaN stays NaN. */
static inline ushort narrow1_bf16(const real v) {
#if ISA == ISA_PTX
    ushort narrowed;
    __asm__("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrowed) : "f"(v));
    return narrowed;
#else
    const uint bits = as_uint(v);
    const uint rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    return (ushort)((v != v ? bits | 0x400000u : rounded) >> 16);
#endif
}

static inline packed_bf16 narrow_bf16(const realv v) {
#if VEC == 1
    return narrow1_bf16(v);
#elif ISA == ISA_PTX
    packed_bf16 narrowed;
    const float *from = (const float *)&v;
    uint *to = (uint *)&narrowed;
#pragma unroll
    for (uint i = 0; i < VEC / 2; i++)
        __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to[i]) : "f"(from[2 * i + 1]), "f"(from[2 * i]));
    return narrowed;
#else
    const uintv bits = AS_UINTV(v);
    const uintv rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    return AS_WORDS(TO_USHORTV(choose(v != v, bits | 0x400000u, rounded) >> 16));
#endif
}

static inline void store_bf16(global ushort *p, const realv v, const bool aligned) {
    store_words(p, narrow_bf16(v), aligned);
}

static inline void store1_bf16(global ushort *p, const real v) {
    *p = narrow1_bf16(v);
}

static inline void put1_bf16(global ushort *p, const real v, const bool add) {
    store1_bf16(p, add ? as_float((uint)*p << 16) + v : v);
}

/* binary16, by the conversions that OpenCL C has without half arithmetic; they read and write private memory, which
 * compilers turn into registers. PoCL makes four elements of that an instruction, where a CPU can convert a whole vector.
 */
#if defined(POCL_DEVICE_ADDRESS_BITS) && defined(__F16C__) && defined(__FLT16_MAX__) && VEC > 1
#define CONVERTS_HALVES 1
typedef _Float16 halfv __attribute__((ext_vector_type(VEC)));
#else
#define CONVERTS_HALVES 0
#endif

static inline packed_f16 load_f16(const global ushort *p, const bool aligned, const enum load_hint hint) {
    return load_words(p, aligned, hint);
}

static inline packed_f16 only_f16(const packed_f16 v, const intv kept) {
    return only_words(v, kept);
}

static inline realv widen_f16(const packed_f16 v) {
#if CONVERTS_HALVES
    return __builtin_convertvector(__builtin_astype(v, halfv), floatv);
#else
    const ELEMENTS(f16) vector = {v};
#if VEC == 1
    return vload_half(0, (const private half *)vector.element);
#else
    return JOIN(vload_half, VEC)(0, (const private half *)vector.element);
#endif
#endif
}

static inline packed_f16 narrow_f16(const realv v) {
#if CONVERTS_HALVES
    return __builtin_astype(__builtin_convertvector(v, halfv), packed_f16);
#else
    ELEMENTS(f16) narrowed;
#if VEC == 1
    vstore_half_rte(v, 0, (private half *)narrowed.element);
#else
    JOIN(JOIN(vstore_half, VEC), _rte)(v, 0, (private half *)narrowed.element);
#endif
    return narrowed.packed;
#endif
}

static inline void store_f16(global ushort *p, const realv v, const bool aligned) {
    store_words(p, narrow_f16(v), aligned);
}

static inline void store1_f16(global ushort *p, const real v) {
    ELEMENTS(f16) narrowed;
    vstore_half_rte(v, 0, (private half *)narrowed.element);
    *p = narrowed.element[0];
}

static inline void put1_f16(global ushort *p, const real v, const bool add) {
    store1_f16(p, add ? vload_half(0, (const global half *)p) + v : v);
}

#endif

#if MIXED
#include "common/mixed.h"
#endif

#endif
