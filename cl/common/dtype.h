/* Element types in memory and in registers. Each dtype NAME has
 *
 *     storage_NAME              one element, as a kernel's pointers see it
 *     packed_NAME               VEC elements as loaded, in the fewest registers
 *     load_NAME(p, aligned, hint)   VEC elements at p, packed; aligned: p is a multiple of the vector's size
 *     widen_NAME(packed)        as realv
 *     narrow_NAME(v)            realv v, rounded to nearest even; NaN stays NaN
 *     only_NAME(packed, kept)   with zeros where kept, the result of a comparison of vectors, is false
 *     store_NAME(p, v, aligned) realv v, narrowed and stored
 *     load1_NAME(p)             one element, widened
 *     store1_NAME(p, v)         the same as store_NAME for one element
 *     put1_NAME(p, v, add)      the same, or with add the sum with the element there
 *
 * and a kernel names them by the macro of a tensor: LOAD(X_DTYPE)(x + i, aligned, LOAD_PLAIN). */
#ifndef DTYPE_H
#define DTYPE_H

#include "common/hints.h"
#include "common/mixed.h"
#include "common/words.h"

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

static inline packed_f64 narrow_f64(const realv v) {
    return v;
}

static inline void store_f64(global double *p, const realv v, const bool aligned) {
    store_reals(p, v, aligned);
}

static inline real load1_f64(const global double *p) {
    return *p;
}

static inline void store1_f64(global double *p, const real v) {
    *p = v;
}

static inline void put1_f64(global double *p, const real v, const bool add) {
    store1_f64(p, add ? load1_f64(p) + v : v);
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

static inline packed_f32 narrow_f32(const realv v) {
    return v;
}

static inline void store_f32(global float *p, const realv v, const bool aligned) {
    store_reals(p, v, aligned);
}

static inline real load1_f32(const global float *p) {
    return *p;
}

static inline void store1_f32(global float *p, const real v) {
    *p = v;
}

static inline void put1_f32(global float *p, const real v, const bool add) {
    store1_f32(p, add ? load1_f32(p) + v : v);
}

/* ------------------------------------------------------------------------------ bfloat16: the upper half of a float */

static inline packed_bf16 load_bf16(const global ushort *p, const bool aligned, const enum load_hint hint) {
    return load_words(p, aligned, hint);
}

static inline packed_bf16 only_bf16(const packed_bf16 v, const intv kept) {
    return only_words(v, kept);
}

static inline realv widen_bf16(const packed_bf16 v) {
#if ISA == ISA_PTX && VEC >= 2 /* one instruction an element, where NVIDIA's compiler makes two of the portable code */
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

static inline real load1_bf16(const global ushort *p) {
    return as_float((uint)*p << 16);
}

static inline void store1_bf16(global ushort *p, const real v) {
    *p = narrow1_bf16(v);
}

static inline void put1_bf16(global ushort *p, const real v, const bool add) {
    store1_bf16(p, add ? load1_bf16(p) + v : v);
}

/* binary16, by the conversions that OpenCL C has without half arithmetic. They read and write private memory, which
 * compilers turn into registers. PoCL converts four elements at a time in this way, although a CPU can convert a whole
 * vector. */
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

static inline real load1_f16(const global ushort *p) {
    return vload_half(0, (const global half *)p);
}

static inline void store1_f16(global ushort *p, const real v) {
    ELEMENTS(f16) narrowed;
    vstore_half_rte(v, 0, (private half *)narrowed.element);
    *p = narrowed.element[0];
}

static inline void put1_f16(global ushort *p, const real v, const bool add) {
    store1_f16(p, add ? load1_f16(p) + v : v);
}

#endif

#endif
