/* Loads and stores of vectors whose first count elements are in memory, 1 to VEC. */
#ifndef PARTIAL_H
#define PARTIAL_H

#include "common/dtype.h"

#if IS_FP8(X_DTYPE) || IS_FP8(Y_DTYPE)
#include "common/fp8.h"
#endif

#define LOAD_PART(dtype) JOIN(load_part_, dtype)
#define STORE_PART(dtype) JOIN(store_part_, dtype)

/* The other elements are 0. */
#define DEFINE_LOAD_PART(dtype)                                                                                          \
    static inline PACKED(dtype) LOAD_PART(dtype)(const global STORAGE(dtype) * p, const ulong count, const bool aligned, \
                                                 const enum load_hint hint) {                                            \
        if (count == VEC)                                                                                                \
            return LOAD(dtype)(p, aligned, hint);                                                                        \
        ELEMENTS(dtype) vector;                                                                                          \
        for (uint i = 0; i < VEC; i++)                                                                                   \
            vector.element[i] = i < count ? p[i] : (STORAGE(dtype))0;                                                    \
        return vector.packed;                                                                                            \
    }

#define DEFINE_STORE_PART(dtype)                                                                          \
    static inline void STORE_PART(dtype)(global STORAGE(dtype) * p, const realv value, const ulong count, \
                                         const bool aligned) {                                            \
        if (count == VEC) {                                                                               \
            STORE(dtype)(p, value, aligned);                                                              \
            return;                                                                                       \
        }                                                                                                 \
        real element[VEC];                                                                                \
        VSTORE(value, element);                                                                           \
        for (uint i = 0; i < count; i++)                                                                  \
            STORE1(dtype)(p + i, element[i]);                                                             \
    }

#if IS_DOUBLE(X_DTYPE)
DEFINE_LOAD_PART(f64)
DEFINE_STORE_PART(f64)
#else
DEFINE_LOAD_PART(f32)
DEFINE_LOAD_PART(f16)
DEFINE_LOAD_PART(bf16)
DEFINE_STORE_PART(f32)
DEFINE_STORE_PART(f16)
DEFINE_STORE_PART(bf16)
#endif
#if IS_FP8(X_DTYPE)
DEFINE_LOAD_PART(f8e4m3)
DEFINE_LOAD_PART(f8e5m2)
#endif

#endif
