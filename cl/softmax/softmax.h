/* Shared by all kernels of softmax. */
#ifndef SOFTMAX_H
#define SOFTMAX_H

#include "common/arguments.h"
#include "common/chunk.h"
#include "common/exponential.h"
#include "common/lanes.h"
#include "softmax/softmax_args.h"

/* The arguments of a launch. */
struct call {
    MEMBERS(SOFTMAX_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

/* Addresses of a row's first element. */
struct row {
    const global STORAGE(X_DTYPE) * x;
    global STORAGE(Y_DTYPE) * y;
    uint lead;
    uint lane;     /* of this work-item */
    bool active;   /* false past the last row: nothing is read or written, but barriers are kept */
    index_t chunk; /* of the row's CHUNKS, that of this work-group */
};

static inline struct row row_at(const struct call *call, const ulong index, const index_t chunk, const bool active) {
    const struct row row = {call->x + ROW_OFFSET(x, index),
                            call->y + ROW_OFFSET(y, index),
                            lead_of(ROW_OFFSET(x, index)),
                            (uint)get_local_id(0) % LANES,
                            active,
                            chunk};
    return row;
}

/* Vector v of x. Elements outside the row are undefined. */
static inline realv load_x(const struct call *call, const struct row *row, const index_t v, const enum load_hint hint) {
    return WIDEN(X_DTYPE)(LOAD_VECTOR(X_DTYPE)(row->x, v, row->lead, call->aligned, hint));
}

/* Vector v of x with -∞, like masked entries, outside the row. Called after the loads of other vectors have begun. */
static inline realv masked(const struct row *row, const index_t v, const realv x) {
    return only_elements_or(x, v, row->lead, -INFINITY);
}

static inline void store_y(const struct call *call, const struct row *row, const index_t v, const realv y) {
    STORE_VECTOR(Y_DTYPE)(row->y, v, row->lead, y, call->aligned);
}

/* The larger element. A NaN in b is ignored: as an element of the row it makes the sum a NaN anyway. */
static inline realv larger(const realv a, const realv b) {
#if APPROXIMATE
    return fmax(a, b);
#else
    return b > a ? b : a;
#endif
}

/* The number that is subtracted before an exponential: the largest element, or 0 instead of -∞, since -∞ - -∞ is NaN. */
static inline realv origins(const realv largest) {
    return largest == -(realv)INFINITY ? (realv)0 : largest;
}

static inline real origin_of(const real largest) {
    return largest == -(real)INFINITY ? (real)0 : largest;
}

/* 0 for a row of masked entries. */
static inline real scale_of(const real sum) {
    return sum == (real)0 ? (real)0 : (real)1 / sum;
}

#endif
