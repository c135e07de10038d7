/* Shared by all kernels of softmax's gradient. */
#ifndef SOFTMAX_BACKWARD_H
#define SOFTMAX_BACKWARD_H

#include "common/arguments.h"
#include "common/chunk.h"
#include "common/lanes.h"
#include "softmax/softmax_args.h"

/* The arguments of a launch. */
struct call {
    MEMBERS(SOFTMAX_BACKWARD_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

/* Addresses of a row's first element. */
struct row {
    const global STORAGE(Y_DTYPE) * y;
    const global STORAGE(DY_DTYPE) * dy;
    global STORAGE(DX_DTYPE) * dx;
    uint lead;
    uint lane;     /* of this work-item */
    bool active;   /* false past the last row: nothing is read or written, but barriers are kept */
    index_t chunk; /* of the row's CHUNKS, that of this work-group */
};

static inline struct row row_at(const struct call *call, const ulong index, const index_t chunk, const bool active) {
    const struct row row = {call->y + ROW_OFFSET(y, index),
                            call->dy + ROW_OFFSET(dy, index),
                            call->dx + ROW_OFFSET(dx, index),
                            lead_of(ROW_OFFSET(y, index)),
                            (uint)get_local_id(0) % LANES,
                            active,
                            chunk};
    return row;
}

/* One vector of each input, as loaded. */
struct point {
    PACKED(Y_DTYPE) y;
    PACKED(DY_DTYPE) dy;
};

static inline void load_point(const struct call *call, const struct row *row, const index_t v, const enum load_hint hint,
                              struct point *point) {
    point->y = LOAD_VECTOR(Y_DTYPE)(row->y, v, row->lead, call->aligned, hint);
    point->dy = LOAD_VECTOR(DY_DTYPE)(row->dy, v, row->lead, call->aligned, hint);
}

/* At vector v, with zeros outside the row. Without contraction: a compiler would fuse products with sums in some kernels,
 * and a row's bits would depend on where tensors lie. */
static inline realv product_of(const struct row *row, const index_t v, const struct point *point) {
#pragma OPENCL FP_CONTRACT OFF
    const realv product = WIDEN(Y_DTYPE)(point->y) * WIDEN(DY_DTYPE)(point->dy);
    return LEADS ? only_elements(product, v, row->lead) : product;
}

static inline void put_dx(const struct call *call, const struct row *row, const index_t v, const struct point *point,
                          const real sum) {
    const realv dx = WIDEN(Y_DTYPE)(point->y) * (WIDEN(DY_DTYPE)(point->dy) - sum);
    STORE_VECTOR(DX_DTYPE)(row->dx, v, row->lead, dx, call->aligned);
}

#endif
