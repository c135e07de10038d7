/* Vectors of VEC elements, for any VEC from 1 to 16, and the arithmetic type: real is float, or double for f64 tensors. */
#ifndef VECTOR_H
#define VECTOR_H

#include "common/enums.h"

/* The qualifier of every function that takes a pointer to a __local array. PoCL 3.1 shares the array between
 * work-groups, and rusticl 25.0 crashes, when such a function is not inlined. NVIDIA's compiler inlines every function. A
 * build option may define another qualifier: Oclgrind does not support the intrinsic that always_inline leaves. */
#if !defined INLINED && ISA == ISA_PTX
#define INLINED static inline
#elif !defined INLINED
#define INLINED static inline __attribute__((always_inline))
#endif

/* A CPU with AVX-512 passes vectors of 64 bytes to functions in another way than one without it, of which PoCL's compiler
 * warns at each function. All of a kernel's functions are compiled for the same CPU. */
#ifdef POCL_DEVICE_ADDRESS_BITS
#pragma clang diagnostic ignored "-Wpsabi"
#endif

/* Intel's runtime for CPUs makes vectors of neighbouring work-items, even where a work-group has a single one. On some
 * kernels its compiler (2026.2) then crashes. */
#if defined(cl_intel_vec_len_hint) && LANES == 1 && (!defined(SEGMENTS) || SEGMENTS == 1)
#define kernel __kernel __attribute__((intel_vec_len_hint(1)))
#endif

/* PoCL 3.1 and 6.0 treat a barrier after an early return as a conditional one. Where a branch then leads to the end of
 * the kernel, every work-item takes the branch of the first. A barrier before the end prevents that. */
INLINED void last_barrier(void) {
#ifdef POCL_DEVICE_ADDRESS_BITS
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

#define JOIN_EXPANDED(a, b) a##b
#define JOIN(a, b) JOIN_EXPANDED(a, b)

/* Lets #if test a dtype's name: PRESENT(WEIGHT_DTYPE) is 0 where the tensor is absent. Also works with flags, and with
 * enumerations of up to four. */
#define PRESENT(dtype) JOIN(PRESENT_, dtype)
#define PRESENT_0 0
#define PRESENT_1 1
#define PRESENT_2 1
#define PRESENT_3 1
#define PRESENT_none 0
#define PRESENT_f32 1
#define PRESENT_f16 1
#define PRESENT_bf16 1
#define PRESENT_f64 1
#define PRESENT_f8e4m3 1
#define PRESENT_f8e5m2 1
#define IS_FP8(dtype) JOIN(IS_FP8_, dtype)
#define IS_FP8_f8e4m3 1
#define IS_FP8_f8e5m2 1
#define IS_DOUBLE(dtype) JOIN(IS_DOUBLE_, dtype)
#define IS_DOUBLE_f64 1
#define IS_SINGLE(dtype) JOIN(IS_SINGLE_, dtype)
#define IS_SINGLE_f32 1

/* Whether weights have another precision than the arithmetic: see common/mixed.h. */
#if IS_DOUBLE(X_DTYPE)
#define MIXED (IS_SINGLE(WEIGHT_DTYPE) || IS_SINGLE(BIAS_DTYPE) || IS_SINGLE(DWEIGHT_DTYPE) || IS_SINGLE(DBIAS_DTYPE))
#else
#define MIXED (IS_DOUBLE(WEIGHT_DTYPE) || IS_DOUBLE(BIAS_DTYPE) || IS_DOUBLE(DWEIGHT_DTYPE) || IS_DOUBLE(DBIAS_DTYPE))
#endif

#if IS_DOUBLE(X_DTYPE)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define real_int long
#else
#define real float
#define real_int int
#endif

#if VEC == 1
#define VECTOR(type) type
#define VLOAD(pointer) (*(pointer))
#define VSTORE(value, pointer) (*(pointer) = (value))
#else
#define VECTOR(type) JOIN(type, VEC)
#define VLOAD(pointer) JOIN(vload, VEC)(0, pointer)
#define VSTORE(value, pointer) JOIN(vstore, VEC)(value, 0, pointer)
#endif

typedef VECTOR(real) realv;
typedef VECTOR(float) floatv;
typedef VECTOR(uint) uintv;
typedef VECTOR(int) intv;
typedef VECTOR(char) charv;
typedef VECTOR(ushort) ushortv;

#if VEC == 1
#define AS_FLOATV as_float
#define AS_UINTV as_uint
#define TO_UINTV convert_uint
#define TO_USHORTV convert_ushort
#define TO_CHARV convert_char
#define TO_INTV convert_int
#else
#define AS_FLOATV JOIN(as_float, VEC)
#define AS_UINTV JOIN(as_uint, VEC)
#define TO_UINTV JOIN(convert_uint, VEC)
#define TO_USHORTV JOIN(convert_ushort, VEC)
#define TO_CHARV JOIN(convert_char, VEC)
#define TO_INTV JOIN(convert_int, VEC)
#endif

/* a where the condition holds, else b. With vectors the condition is a mask, with scalars a truth value. */
static inline uintv choose(intv condition, uintv a, uintv b) {
#if VEC == 1
    return condition ? a : b;
#else
    return select(b, a, condition);
#endif
}

static inline real first_element(const realv v) {
#if VEC == 1
    return v;
#else
    return v.s0;
#endif
}

/* The sum over a vector's elements, pairwise. */
static inline real sum_elements(realv v) {
#if VEC == 16
    const JOIN(real, 8) v8 = v.lo + v.hi;
#elif VEC == 8
    const JOIN(real, 8) v8 = v;
#endif
#if VEC >= 8
    const JOIN(real, 4) v4 = v8.lo + v8.hi;
#elif VEC == 4
    const JOIN(real, 4) v4 = v;
#endif
#if VEC >= 4
    const JOIN(real, 2) v2 = v4.lo + v4.hi;
#elif VEC == 2
    const JOIN(real, 2) v2 = v;
#endif
#if VEC >= 2
    return v2.lo + v2.hi;
#else
    return v;
#endif
}

/* The largest of a vector's elements; NaNs do not count. */
static inline real largest_element(realv v) {
#if VEC == 16
    const JOIN(real, 8) v8 = fmax(v.lo, v.hi);
#elif VEC == 8
    const JOIN(real, 8) v8 = v;
#endif
#if VEC >= 8
    const JOIN(real, 4) v4 = fmax(v8.lo, v8.hi);
#elif VEC == 4
    const JOIN(real, 4) v4 = v;
#endif
#if VEC >= 4
    const JOIN(real, 2) v2 = fmax(v4.lo, v4.hi);
#elif VEC == 2
    const JOIN(real, 2) v2 = v;
#endif
#if VEC >= 2
    return fmax(v2.lo, v2.hi);
#else
    return v;
#endif
}

#if VEC == 2
#define PLACES_OF_VECTOR \
    { 0, 1 }
#elif VEC == 4
#define PLACES_OF_VECTOR \
    { 0, 1, 2, 3 }
#elif VEC == 8
#define PLACES_OF_VECTOR \
    { 0, 1, 2, 3, 4, 5, 6, 7 }
#elif VEC == 16
#define PLACES_OF_VECTOR \
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }
#endif

/* v with the elements from count on replaced by other. */
static inline realv fill_from(realv v, uint count, real other) {
#if VEC == 1
    return count > 0 ? v : other;
#else
    const VECTOR(real_int) place = PLACES_OF_VECTOR;
    return select((realv)other, v, place < (real_int)count);
#endif
}

/* v with the elements before count replaced by other. */
static inline realv fill_before(realv v, uint count, real other) {
#if VEC == 1
    return count == 0 ? v : other;
#else
    const VECTOR(real_int) place = PLACES_OF_VECTOR;
    return select((realv)other, v, place >= (real_int)count);
#endif
}

static inline realv keep_first(realv v, uint count) {
    return fill_from(v, count, (real)0);
}

#endif
