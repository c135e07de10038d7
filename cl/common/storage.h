/* Element types in memory and in registers: the names of dtype.h's functions, and the types that they work on. */
#ifndef STORAGE_H
#define STORAGE_H

#include "common/vector.h"

#define STORAGE(dtype) JOIN(storage_, dtype)
#define PACKED(dtype) JOIN(packed_, dtype)
#define LOAD(dtype) JOIN(load_, dtype)
#define WIDEN(dtype) JOIN(widen_, dtype)
#define NARROW(dtype) JOIN(narrow_, dtype)
#define ONLY(dtype) JOIN(only_, dtype)
#define STORE(dtype) JOIN(store_, dtype)
#define LOAD1(dtype) JOIN(load1_, dtype)
#define STORE1(dtype) JOIN(store1_, dtype)
#define PUT1(dtype) JOIN(put1_, dtype)

#define storage_f32 float
#define storage_f16 ushort
#define storage_bf16 ushort
#define storage_f64 double
#define storage_none uchar

/* Whether a tensor of rows of this dtype stores the arithmetic's numbers unrounded: f32, and f64, which only exists with
 * f64 arithmetic. */
#define IS_REAL(dtype) JOIN(IS_REAL_, dtype)
#define IS_REAL_f32 1
#define IS_REAL_f64 1
#define IS_REAL_f16 0
#define IS_REAL_bf16 0
#define IS_REAL_none 0

/* The dtype that stores the arithmetic's numbers. */
#if IS_DOUBLE(X_DTYPE)
#define REAL_DTYPE f64
#else
#define REAL_DTYPE f32
#endif

/* Vectors of 2-byte elements as words, so that one access moves 16 bytes. */
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

/* A packed vector as single elements. A pointer to elements would not do, as compilers assume that a ushort pointer does
 * not point into a uint. */
#define ELEMENTS(dtype)              \
    union {                          \
        PACKED(dtype) packed;        \
        STORAGE(dtype) element[VEC]; \
    }

#endif
