/* A part of a vector, and functions that load and store one, element by element. */
#ifndef PART_H
#define PART_H

#include "common/dtype.h"

/* Elements from .. to of a vector belong to a segment or a row. */
struct part {
    uint from, to;
};

/* Whether an aligned load may reach beyond a segment or a row, or even the buffer: NVIDIA's buffers begin and end at
 * multiples of 512 bytes. */
#define LOADS_BEYOND (ISA == ISA_PTX)

/* Defines a function that loads the part of the vector at p. The other elements are zeros. */
#define DEFINE_LOAD_ELEMENTS(name, dtype)                                                       \
    static inline PACKED(dtype) name(const global STORAGE(dtype) * p, const struct part part) { \
        ELEMENTS(dtype) loaded;                                                                 \
        _Pragma("unroll") for (uint i = 0; i < VEC; i++) loaded.element[i] =                    \
            i >= part.from && i < part.to ? p[i] : (STORAGE(dtype))0;                           \
        return loaded.packed;                                                                   \
    }

/* Defines a function that stores the part of the vector at p. */
#define DEFINE_STORE_ELEMENTS(name, dtype)                                                                            \
    static inline void name(global STORAGE(dtype) * p, const PACKED(dtype) packed, const struct part part) {          \
        const ELEMENTS(dtype) stored = {packed};                                                                      \
        _Pragma("unroll") for (uint i = 0; i < VEC; i++) if (i >= part.from && i < part.to) p[i] = stored.element[i]; \
    }

#endif
