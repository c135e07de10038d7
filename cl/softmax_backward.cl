/* The gradient of softmax: see clnorm_softmax_backward_desc for the formula.
 *
 * A work-group owns rows, SEGMENTS of them at a time, LANES work-items each. KEEP says whether y and dy are held in
 * registers or read again once their product is summed.
 *
 * Macros (src/spec.h): GROUP_SIZE (cols), X_DTYPE (y's, for the arithmetic), Y_DTYPE, DY_DTYPE, DX_DTYPE, VEC, LANES,
 * SEGMENTS, KEEP, UNROLL, REDUCE, STORES, ISA, ELEMENT_ALIGNED. */

#include "lanes.h"
#include "running_sum.h"
#include "segment.h"

/* The arguments of a launch, offsets already added. */
struct call {
    const global STORAGE(Y_DTYPE) * y;
    const global STORAGE(DY_DTYPE) * dy;
    global STORAGE(DX_DTYPE) * dx;
    ulong y_stride, dy_stride, dx_stride; /* elements */
    bool aligned;                         /* wide accesses at their own size's alignment */
};

/* Addresses of a row's first element. */
struct row {
    const global STORAGE(Y_DTYPE) * y;
    const global STORAGE(DY_DTYPE) * dy;
    global STORAGE(DX_DTYPE) * dx;
    uint lane;   /* of this work-item */
    bool active; /* false past the last row: nothing is read or written, but barriers are kept */
};

/* One vector of each input, as it was loaded. */
struct point {
    PACKED(Y_DTYPE) y;
    PACKED(DY_DTYPE) dy;
};

static inline void load_point(const struct call *call, const struct row *row, const index_t v, const enum load_hint hint,
                              struct point *point) {
    point->y = LOAD_VECTOR(Y_DTYPE)(row->y, v, call->aligned, hint);
    point->dy = LOAD_VECTOR(DY_DTYPE)(row->dy, v, call->aligned, hint);
}

static inline realv product_of(const struct point *point) {
    return WIDEN(Y_DTYPE)(point->y) * WIDEN(DY_DTYPE)(point->dy);
}

static inline void put_dx(const struct call *call, const struct row *row, const index_t v, const struct point *point,
                          const real sum) {
    const realv dx = WIDEN(Y_DTYPE)(point->y) * (WIDEN(DY_DTYPE)(point->dy) - sum);
    STORE_VECTOR(DX_DTYPE)(row->dx, v, dx, call->aligned);
}

#if KEEP == KEEP_REGISTERS

static inline bool has_vector(const struct row *row, const uint i) {
    return row->active && (EVEN || row->lane + i * LANES < VECTORS);
}

INLINED void take_row(const struct call *call, const struct row *row, struct lanes *lanes) {
    struct point held[HELD];
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (has_vector(row, i))
            load_point(call, row, row->lane + i * LANES, LOAD_PLAIN, &held[i]);
    realv products = 0;
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (has_vector(row, i))
            products += product_of(&held[i]);
    const real sum = sum_over_lanes(lanes, sum_elements(products));
#pragma unroll
    for (uint i = 0; i < HELD; i++)
        if (has_vector(row, i))
            put_dx(call, row, row->lane + i * LANES, &held[i], sum);
}

#else

/* A lane's vectors, the last one perhaps partly filled. */
static inline index_t own_vectors(const struct row *row) {
    return row->active ? VECTORS / LANES + (row->lane < VECTORS % LANES) : 0;
}

/* How many of them are in blocks of UNROLL; those are whole. */
static inline index_t in_blocks(const struct row *row) {
    const index_t whole = row->active ? WHOLE_VECTORS / LANES + (row->lane < WHOLE_VECTORS % LANES) : 0;
    return whole / UNROLL * UNROLL;
}

static inline void load_block(const struct call *call, const struct row *row, const index_t i, const enum load_hint hint,
                              struct point *block) {
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        load_point(call, row, row->lane + (i + j) * LANES, hint, &block[j]);
}

static inline real own_sum(const struct call *call, const struct row *row) {
    struct running_sum sum;
    running_sum_start(&sum);
    index_t i = 0;
    for (; i < in_blocks(row); i += UNROLL) {
        struct point block[UNROLL];
        load_block(call, row, i, LOAD_FIRST, block);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            sum.run[j] += product_of(&block[j]);
        running_sum_end_block(&sum);
    }
    for (; i < own_vectors(row); i++) {
        struct point point;
        load_point(call, row, row->lane + i * LANES, LOAD_FIRST, &point);
        sum.runs += product_of(&point);
    }
    return running_sum_total(&sum);
}

static inline void ask_for_next(const struct call *call, const struct row *row, const index_t v) {
    ask_to_read(row->y + call->y_stride + v * VEC);
    ask_to_read(row->dy + call->dy_stride + v * VEC);
    ask_to_write(row->dx + call->dx_stride + v * VEC);
}

INLINED void take_row(const struct call *call, const struct row *row, struct lanes *lanes) {
    const real sum = sum_over_lanes(lanes, own_sum(call, row));
    index_t i = 0;
    for (; i < in_blocks(row); i += UNROLL) {
        struct point block[UNROLL];
        load_block(call, row, i, LOAD_LAST, block);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            put_dx(call, row, row->lane + (i + j) * LANES, &block[j], sum);
            ask_for_next(call, row, row->lane + (i + j) * LANES);
        }
    }
    for (; i < own_vectors(row); i++) {
        const index_t v = row->lane + i * LANES;
        struct point point;
        load_point(call, row, v, LOAD_LAST, &point);
        put_dx(call, row, v, &point, sum);
    }
}

#endif

/* This work-group's rows, out of work. rounds: how often it goes on to its next ones. */
INLINED void take_share(const struct call *call, const ulong work, const ulong rounds, local real *scratch) {
    struct lanes lanes = {scratch, 0};
    const ulong first = get_group_id(0) * rounds * SEGMENTS;
    for (ulong round = 0; round < rounds; round++) {
        const ulong index = first + round * SEGMENTS;
        if (index >= work)
            return; /* the whole work-group */
        const ulong own = index + get_local_id(0) / LANES;
        const struct row row = {call->y + own * call->y_stride, call->dy + own * call->dy_stride,
                                call->dx + own * call->dx_stride, (uint)get_local_id(0) % LANES,
                                SEGMENTS == 1 || own < work};
        take_row(call, &row, &lanes);
    }
}

#define PARAMETERS                                                                                                    \
    const global STORAGE(Y_DTYPE) * y, const ulong y_at, const global STORAGE(DY_DTYPE) * dy, const ulong dy_at,      \
        global STORAGE(DX_DTYPE) * dx, const ulong dx_at, const ulong work, const ulong rounds, const ulong y_stride, \
        const ulong dy_stride, const ulong dx_stride

#define CALL(aligned) \
    { y + y_at, dy + dy_at, dx + dx_at, y_stride, dy_stride, dx_stride, (aligned) }

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_backward(PARAMETERS) {
    local real scratch[2 * SCRATCH];
    const struct call call = CALL(!ELEMENT_ALIGNED);
    take_share(&call, work, rounds, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void softmax_backward_any(PARAMETERS) {
    local real scratch[2 * SCRATCH];
    const struct call call = CALL(false);
    take_share(&call, work, rounds, scratch);
}
#endif
