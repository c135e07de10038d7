/* The tail of a segment, TAIL elements that fill a vector only partly (segment.h). Where one work-item takes a whole
 * segment, it loads the last VEC elements, and moves the tail to the front of the vector. Loops over single elements may
 * take several times as long on CPUs, whose compilers lead the vector through memory. */
#ifndef TAIL_H
#define TAIL_H

#include "common/dtype.h"

/* Moves elements 1, 2, 4 or 8 places to the front, and zeros behind them. */
#if VEC == 2
#define MOVED_1(type, v) ((type)(v.s1, 0))
#elif VEC == 4
#define MOVED_1(type, v) ((type)(v.s123, 0))
#define MOVED_2(type, v) ((type)(v.hi, 0, 0))
#elif VEC == 8
#define MOVED_1(type, v) ((type)(v.s1234, v.s567, 0))
#define MOVED_2(type, v) ((type)(v.s2345, v.s67, 0, 0))
#define MOVED_4(type, v) ((type)(v.hi, 0, 0, 0, 0))
#elif VEC == 16
#define MOVED_1(type, v) ((type)(v.s12345678, v.s9abc, v.sdef, 0))
#define MOVED_2(type, v) ((type)(v.s23456789, v.sabcd, v.sef, 0, 0))
#define MOVED_4(type, v) ((type)(v.s456789ab, v.scdef, 0, 0, 0, 0))
#define MOVED_8(type, v) ((type)(v.hi, 0, 0, 0, 0, 0, 0, 0, 0))
#endif
#ifndef MOVED_1
#define MOVED_1(type, v) (v)
#endif
#ifndef MOVED_2
#define MOVED_2(type, v) (v)
#endif
#ifndef MOVED_4
#define MOVED_4(type, v) (v)
#endif
#ifndef MOVED_8
#define MOVED_8(type, v) (v)
#endif
#define PLACES (VEC - TAIL)

/* Whether the elements before the tail are loaded with it: whether there are enough, and no other work-item writes them
 * meanwhile. */
#if LANES > 1 || GROUP_SIZE < VEC
#define LOADS_MORE 0
#elif defined(TILE)
#define LOADS_MORE (TILE == GROUP_SIZE)
#elif defined(CHUNKS)
#define LOADS_MORE (CHUNKS == 1)
#else
#define LOADS_MORE 0
#endif

/* Loads the tail that begins at p. The other elements are zeros. vector: of elements; packs: turns it into a packed
 * vector. */
#define DEFINE_LOAD_TAIL(dtype, vector, packs)                                                                      \
    static inline PACKED(dtype) JOIN(load_tail_, dtype)(const global STORAGE(dtype) * p) {                          \
        if (!LOADS_MORE) {                                                                                          \
            ELEMENTS(dtype) tail;                                                                                   \
            _Pragma("unroll") for (uint i = 0; i < VEC; i++) tail.element[i] = i < TAIL ? p[i] : (STORAGE(dtype))0; \
            return tail.packed;                                                                                     \
        }                                                                                                           \
        vector moved = VLOAD(p + TAIL - VEC);                                                                       \
        if (PLACES & 8)                                                                                             \
            moved = MOVED_8(vector, moved);                                                                         \
        if (PLACES & 4)                                                                                             \
            moved = MOVED_4(vector, moved);                                                                         \
        if (PLACES & 2)                                                                                             \
            moved = MOVED_2(vector, moved);                                                                         \
        if (PLACES & 1)                                                                                             \
            moved = MOVED_1(vector, moved);                                                                         \
        return packs(moved);                                                                                        \
    }

#define DEFINE_STORE_TAIL(dtype)                                                                         \
    static inline void JOIN(store_tail_, dtype)(global STORAGE(dtype) * p, const PACKED(dtype) packed) { \
        const ELEMENTS(dtype) tail = {packed};                                                           \
        _Pragma("unroll") for (uint i = 0; i < TAIL; i++) p[i] = tail.element[i];                        \
    }

#define AS_IT_IS(vector) (vector)

#if IS_DOUBLE(X_DTYPE)
DEFINE_LOAD_TAIL(f64, realv, AS_IT_IS)
DEFINE_STORE_TAIL(f64)
#else
DEFINE_LOAD_TAIL(f32, floatv, AS_IT_IS)
DEFINE_LOAD_TAIL(f16, ushortv, AS_WORDS)
DEFINE_LOAD_TAIL(bf16, ushortv, AS_WORDS)
DEFINE_STORE_TAIL(f32)
DEFINE_STORE_TAIL(f16)
DEFINE_STORE_TAIL(bf16)
#endif
#if MIXED
DEFINE_LOAD_TAIL(OTHER, PACKED(OTHER), AS_IT_IS)
DEFINE_STORE_TAIL(OTHER)
#endif

#define LOAD_TAIL(dtype) JOIN(load_tail_, dtype)
#define STORE_TAIL(dtype) JOIN(store_tail_, dtype)

#endif
