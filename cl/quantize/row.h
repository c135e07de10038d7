/* A row of x and of its codes, in vectors. The vector at column c, a multiple of VEC, has the elements from c - lead on,
 * less those outside of the row. x and q have the same leads. The including file has a struct call with x_stride, cols and
 * elements. */
#ifndef ROW_H
#define ROW_H

#include "common/fp8.h"
#include "quantize/leads.h"

static inline uint lead_of(const struct call *call, const ulong row) {
    return LEADS ? (uint)(row * call->x_stride) % VEC : 0;
}

/* The column after the last one of a row's last vector. The last row of a contiguous tensor may be shorter. */
static inline ulong end_of_row(const struct call *call, const ulong row) {
    return TAILS ? min(call->cols, call->elements - row * call->cols) + lead_of(call, row) : call->cols;
}

/* Elements from .. to of a vector belong to the row. */
struct part {
    uint from, to;
};

static inline struct part part_of(const struct call *call, const ulong row, const ulong column) {
    const uint lead = lead_of(call, row);
    const ulong end = end_of_row(call, row);
    const struct part part = {column < lead ? lead : 0, column + VEC <= end ? VEC
                                                        : column < end      ? (uint)(end - column)
                                                                            : 0};
    return part;
}

static inline bool is_whole(const struct part part) {
    return !TAILS || (part.from == 0 && part.to == VEC);
}

/* Functions that load or store a part of the vector at p. Elements that are not loaded are zeros. */
#define DEFINE_LOAD_SOME(name, dtype)                                                           \
    static inline PACKED(dtype) name(const global STORAGE(dtype) * p, const struct part part) { \
        ELEMENTS(dtype) loaded;                                                                 \
        _Pragma("unroll") for (uint i = 0; i < VEC; i++) loaded.element[i] =                    \
            i >= part.from && i < part.to ? p[i] : (STORAGE(dtype))0;                           \
        return loaded.packed;                                                                   \
    }

#define DEFINE_STORE_SOME(name, dtype)                                                                                \
    static inline void name(global STORAGE(dtype) * p, const PACKED(dtype) packed, const struct part part) {          \
        const ELEMENTS(dtype) stored = {packed};                                                                      \
        _Pragma("unroll") for (uint i = 0; i < VEC; i++) if (i >= part.from && i < part.to) p[i] = stored.element[i]; \
    }

#endif
