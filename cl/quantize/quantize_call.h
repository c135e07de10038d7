/* Quantises one vector of x. With SCALING_GROUP VEC divides GROUP_SIZE, so that a vector has one scale. The including file
 * has a struct call with QUANTIZE_COMMON_ARGS and aligned. */
#ifndef QUANTIZE_CALL_H
#define QUANTIZE_CALL_H

#include "quantize/quantize.h"
#include "quantize/row.h"

DEFINE_LOAD_ELEMENTS(load_part_of_x, X_DTYPE)

/* Loads a vector that lies in its row. */
static inline PACKED(X_DTYPE)
    load_whole(const struct call *call, const ulong row, const ulong column, const enum load_hint hint) {
    return LOAD(X_DTYPE)(call->x + row * call->x_stride + column - lead_of(call, row), call->aligned, hint);
}

static inline PACKED(X_DTYPE)
    load_x(const struct call *call, const ulong row, const ulong column, const enum load_hint hint) {
    const struct part part = part_of(call, row, column);
    return is_whole(part) ? load_whole(call, row, column, hint)
                          : load_part_of_x(call->x + row * call->x_stride + column - lead_of(call, row), part);
}

#if WRITE_Q
DEFINE_STORE_ELEMENTS(store_part_of_q, Q_DTYPE)

/* Writes the codes of one vector of q. whole: it lies in its row. */
static inline void put(const struct call *call, const ulong row, const ulong column, const BYTES codes, const bool whole) {
    const struct part part = part_of(call, row, column);
    global uchar *const q = call->q + row * call->q_stride + column - lead_of(call, row);
    if (whole || is_whole(part))
        store_bytes(q, codes, call->aligned);
    else
        store_part_of_q(q, codes, part);
}
#endif

#if STOCHASTIC
/* Random words depend on the call's seed and an element's place in x alone: a draw has words for four neighbouring
 * elements. */
static inline uint4 draw(const struct call *call, const ulong element) {
    const ulong four = element / 4, offset = call->seed_offset;
    return philox4x32((uint4)((uint)four, (uint)(four >> 32), (uint)offset, (uint)(offset >> 32)),
                      (uint2)((uint)call->seed, (uint)(call->seed >> 32)));
}

/* Rows have no leads here: a vector's first element is a multiple of VEC. */
static inline uintv random_at(const struct call *call, const ulong row, const ulong column) {
    const ulong element = row * call->cols + column;
#if VEC >= 4
    uint word[VEC];
#if LANES == 1 /* four unrolled generators take compilers long */
#pragma unroll 1
#endif
    for (uint i = 0; i < VEC; i += 4)
        vstore4(draw(call, element + i), 0, word + i);
    return VLOAD(word);
#else
    const uint4 four = draw(call, element);
    const uint2 two = element & 2 ? four.zw : four.xy;
#if VEC == 2
    return two;
#else
    return element & 1 ? two.y : two.x;
#endif
#endif
}
#endif

static inline BYTES quantized(const struct call *call, const ulong row, const ulong column, const floatv x,
                              const float scale) {
#if STOCHASTIC
    return AS_BYTES(TO_UCHARV(encode_stochastic(divide(x, scale), random_at(call, row, column), JOIN(fp8_, Q_DTYPE))));
#else
    (void)call, (void)row, (void)column;
    return DIVIDED(Q_DTYPE)(x, scale);
#endif
}

#endif
