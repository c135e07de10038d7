/* GELU, forward (y) or backward (dx), element by element: see clnorm_gelu_desc and clnorm_gelu_backward_desc.
 *
 * Rows are cut into blocks of BLOCK elements. A work-group takes one block after the other, in which each lane has UNROLL
 * vectors.
 *
 * Macros (src/program/spec.h): GELU, X_DTYPE, DY_DTYPE, Y_DTYPE, DX_DTYPE (a forward has y, a backward dy and dx), VEC,
 * LANES, UNROLL, STORES, ISA, ELEMENT_ALIGNED. */

#include "common/arguments.h"
#include "gelu/gelu_args.h"
#include "norm/activation.h"
#include "norm/partial.h"

#define BACKWARD PRESENT(DX_DTYPE)
#define BLOCK ((ulong)(LANES * UNROLL * VEC))

#if BACKWARD
#define OUT_DTYPE DX_DTYPE
#else
#define OUT_DTYPE Y_DTYPE
#endif

/* The arguments of a launch. work: blocks of all rows; blocks: of one. */
struct call {
    MEMBERS(GELU_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

/* Addresses of a row's first element. */
struct row {
    const global STORAGE(X_DTYPE) * x;
    const global STORAGE(DY_DTYPE) * dy;
    global STORAGE(OUT_DTYPE) * out;
};

/* The inputs of one vector of the output, as loaded. */
struct point {
    PACKED(X_DTYPE) x;
#if BACKWARD
    PACKED(DY_DTYPE) dy;
#endif
};

/* Loads the vector that begins at a column and has count elements. */
static inline void load_point(const struct row *row, const ulong column, const ulong count, const bool aligned,
                              struct point *point) {
    point->x = LOAD_PART(X_DTYPE)(row->x + column, count, aligned, LOAD_PLAIN);
#if BACKWARD
    point->dy = LOAD_PART(DY_DTYPE)(row->dy + column, count, aligned, LOAD_PLAIN);
#endif
}

static inline realv value_of(const struct point *point) {
    const realv x = WIDEN(X_DTYPE)(point->x);
#if BACKWARD && GELU == GELU_TANH
    return WIDEN(DY_DTYPE)(point->dy) * gelu_tanh_slope(x);
#elif BACKWARD
    return WIDEN(DY_DTYPE)(point->dy) * gelu_slope(x);
#elif GELU == GELU_TANH
    return gelu_tanh(x);
#else
    return gelu(x);
#endif
}

static inline void take_vector(const struct row *row, const ulong column, const ulong count, const bool aligned) {
    struct point point;
    load_point(row, column, count, aligned, &point);
    STORE_PART(OUT_DTYPE)(row->out + column, value_of(&point), count, aligned);
}

/* A CPU's prefetch distance, in elements: hardware prefetchers stop at the end of a page. */
#define AHEAD 1024

static inline void prefetch_ahead(const struct row *row, const ulong column) {
    prefetch_to_read(row->x + column + AHEAD);
#if BACKWARD
    prefetch_to_read(row->dy + column + AHEAD);
#endif
    prefetch_to_write(row->out + column + AHEAD);
}

/* A lane's part of the block that begins at a column. */
static inline void take_block(const struct call *call, const struct row *row, const ulong first) {
    const ulong own = first + (uint)get_local_id(0) * VEC;
    if (first + BLOCK <= call->cols) {
        struct point points[UNROLL];
#pragma unroll
        for (uint i = 0; i < UNROLL; i++)
            load_point(row, own + i * LANES * VEC, VEC, call->aligned, &points[i]);
#pragma unroll
        for (uint i = 0; i < UNROLL; i++) {
            const ulong column = own + i * LANES * VEC;
            STORE_PART(OUT_DTYPE)(row->out + column, value_of(&points[i]), VEC, call->aligned);
            prefetch_ahead(row, column);
        }
        return;
    }
    for (ulong column = own; column < call->cols; column += LANES * VEC)
        take_vector(row, column, min(call->cols - column, (ulong)VEC), call->aligned);
}

/* This work-group's blocks. */
static inline void take_share(const struct call *call) {
    const ulong first = get_group_id(0) * call->iterations;
    const ulong end = min(first + call->iterations, call->work);
    /* a division takes as long as a block */
    ulong row_index = call->work == call->blocks ? 0 : first / call->blocks;
    ulong block = first - row_index * call->blocks;
    for (ulong i = first; i < end; i++) {
        const struct row row = {call->x + ROW_OFFSET(x, row_index), call->dy + ROW_OFFSET(dy, row_index),
                                call->out + ROW_OFFSET(out, row_index)};
        take_block(call, &row, block * BLOCK);
        if (++block == call->blocks) {
            block = 0;
            row_index++;
        }
    }
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void gelu_rows(PARAMETERS(GELU_ARGS)) {
    const struct call call = {ARGUMENTS(GELU_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void gelu_rows_unaligned(PARAMETERS(GELU_ARGS)) {
    const struct call call = {ARGUMENTS(GELU_ARGS), .aligned = false};
    take_share(&call);
}
#endif
