/* L2 norm and its gradients: see clnorm_l2_norm_desc for the formulas.
 *
 * A work-group owns segments, and takes SEGMENTS of them at a time with LANES work-items each. It reads each segment twice:
 * for the sums and for the results. dweight is first summed over shares of the rows, each into a slot, with a span of
 * columns for each work-item, and then over the slots.
 *
 * Macros (src/program/spec.h), of the norms' forward or, with DY_DTYPE, of their backward: GROUP_SIZE, GROUPS, X_DTYPE,
 * WEIGHT_DTYPE, Y_DTYPE, SAVE_RSTD (write norm), DY_DTYPE, DX_DTYPE, DWEIGHT_DTYPE, VEC, LANES, SEGMENTS, UNROLL, REDUCE,
 * STORES, ISA, ELEMENT_ALIGNED; perhaps WEIGHT_MAP. */

#include "common/arguments.h"
#include "common/lanes.h"
#include "common/segment.h"
#include "norm/compensated_sum.h"
#include "norm/l2_norm_args.h"
#include "norm/running_sum.h"
#include "norm/weight_map.h"

#define BACKWARD PRESENT(DY_DTYPE)

#if BACKWARD
#define CALL_ARGS L2_NORM_BACKWARD_ARGS
#else
#define CALL_ARGS L2_NORM_ARGS
#endif

/* The arguments of a launch. */
struct call {
    MEMBERS(CALL_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

/* clang-format off */
#if BACKWARD
#define ROW_START_MEMBERS START_MEMBER(x) START_MEMBER(dy) START_MEMBER(dx)
#define ROW_STARTS(row) START(x, row) START(dy, row) START(dx, row)
#else
#define ROW_START_MEMBERS START_MEMBER(x) START_MEMBER(y)
#define ROW_STARTS(row) START(x, row) START(y, row)
#endif
/* clang-format on */

/* A segment's place, and this work-item's lane. */
struct place {
    ulong index, row;
    ulong column;  /* of its first element */
    ulong weights; /* the first element of its row of the weight */
    ROW_START_MEMBERS
    uint lane;
    bool active; /* false past the last segment: nothing is read or written, but barriers are kept */
};

static inline ulong first_weight_of(const struct call *call, const ulong row) {
#if WEIGHT_MAP && PRESENT(WEIGHT_DTYPE)
    return weight_row_of(row, call->weight_repeat, call->weight_rows) * call->weight_stride;
#else
    (void)call, (void)row;
    return 0;
#endif
}

static inline struct place place_of(const struct call *call, const ulong index, const bool active) {
    const ulong group = index / call->rows, row = index - group * call->rows;
    const struct place place = {
        index, row, group * GROUP_SIZE, first_weight_of(call, row) ROW_STARTS(row), (uint)get_local_id(0) % LANES, active};
    return place;
}

static inline realv load_x(const struct call *call, const struct place *place, const index_t v, const enum load_hint hint) {
    const global STORAGE(X_DTYPE) *base = call->x + START_OF(x, place, place->row) + place->column;
    return WIDEN(X_DTYPE)(LOAD_VECTOR(X_DTYPE)(base, v, 0, call->aligned, hint));
}

static inline realv weighted(const struct call *call, const struct place *place, const index_t v, const realv value) {
#if PRESENT(WEIGHT_DTYPE)
    const global STORAGE(WEIGHT_DTYPE) *weight = call->weight + place->weights + place->column;
    return value * WIDEN(WEIGHT_DTYPE)(LOAD_VECTOR(WEIGHT_DTYPE)(weight, v, 0, call->aligned, LOAD_PLAIN));
#else
    return value;
#endif
}

/* Whether eps is used as the length. A NaN is not below it. */
static inline bool is_on_floor(const struct call *call, const real squares) {
    return call->floor && sqrt(squares) < call->eps;
}

static inline real length_of(const struct call *call, const real squares) {
    return is_on_floor(call, squares) ? call->eps : sqrt(call->floor ? squares : squares + call->eps);
}

#if !BACKWARD

static inline real own_squares(const struct call *call, const struct place *place) {
    struct running_sum sum;
    running_sum_start(&sum);
    for (index_t v = place->lane; v < VECTORS; v += LANES) {
        const realv x = load_x(call, place, v, LOAD_FIRST);
        sum.run[0] += x * x;
        running_sum_end_block(&sum);
    }
    return running_sum_total(&sum);
}

INLINED void take_segment(const struct call *call, const ulong index, const bool active, struct lanes *lanes) {
    const struct place own_place = place_of(call, index, active), *const place = &own_place;
    const real length = length_of(call, sum_over_lanes(lanes, place->active ? own_squares(call, place) : 0));
    if (!place->active)
        return;
#if SAVE_RSTD
    if (place->lane == 0)
        call->norm[place->index] = length;
#endif
    global STORAGE(Y_DTYPE) *y = call->y + START_OF(y, place, place->row) + place->column;
    for (index_t v = place->lane; v < VECTORS; v += LANES)
        STORE_VECTOR(Y_DTYPE)(y, v, 0, weighted(call, place, v, load_x(call, place, v, LOAD_LAST) / length), call->aligned);
}

#else

/* g = weight · dy */
static inline realv load_g(const struct call *call, const struct place *place, const index_t v, const enum load_hint hint) {
    const global STORAGE(DY_DTYPE) *base = call->dy + START_OF(dy, place, place->row) + place->column;
    return weighted(call, place, v, WIDEN(DY_DTYPE)(LOAD_VECTOR(DY_DTYPE)(base, v, 0, call->aligned, hint)));
}

/* Σx² and Σ(x · g) of a lane's vectors. */
static inline void own_sums(const struct call *call, const struct place *place, real sums[2]) {
    struct running_sum squares, products;
    running_sum_start(&squares);
    running_sum_start(&products);
    for (index_t v = place->lane; v < VECTORS; v += LANES) {
        const realv x = load_x(call, place, v, LOAD_FIRST);
        squares.run[0] += x * x;
        products.run[0] += x * load_g(call, place, v, LOAD_FIRST);
        running_sum_end_block(&squares);
        running_sum_end_block(&products);
    }
    sums[0] = running_sum_total(&squares);
    sums[1] = running_sum_total(&products);
}

INLINED void take_segment(const struct call *call, const ulong index, const bool active, struct lanes *lanes) {
    const struct place own_place = place_of(call, index, active), *const place = &own_place;
    real sums[2] = {0, 0};
    if (place->active)
        own_sums(call, place, sums);
    sum_lanes(lanes, sums, 2);
    if (!place->active)
        return;
    const real length = length_of(call, sums[0]);
    const real slope = is_on_floor(call, sums[0]) ? 0 : sums[1] / length / length;
#if PRESENT(DWEIGHT_DTYPE)
    if (place->lane == 0)
        call->norm[place->index] = length;
#endif
    global STORAGE(DX_DTYPE) *dx = call->dx + START_OF(dx, place, place->row) + place->column;
    for (index_t v = place->lane; v < VECTORS; v += LANES) {
        const realv g = load_g(call, place, v, LOAD_LAST), x = load_x(call, place, v, LOAD_LAST);
        STORE_VECTOR(DX_DTYPE)(dx, v, 0, (g - x * slope) / length, call->aligned);
    }
}

#endif

#include "common/take_share.h"

#if BACKWARD
#define KERNEL l2_norm_backward
#else
#define KERNEL l2_norm
#endif

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void KERNEL(PARAMETERS(CALL_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(CALL_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void JOIN(KERNEL, _unaligned)(PARAMETERS(CALL_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(CALL_ARGS), .aligned = false};
    take_share(&call, scratch);
}
#endif

/* ----------------------------------------------------------------------------------------------------------- dweight */

#if BACKWARD && PRESENT(DWEIGHT_DTYPE)

#define SPANS ((VECTORS + UNROLL - 1) / UNROLL) /* of a segment's columns */

struct slots_call {
    MEMBERS(L2_NORM_SLOTS_ARGS)
};

#if WEIGHT_MAP
#define WEIGHT_ROWS weight_rows
#define ROW_OF_WEIGHT(number, weight_row) row_of_weight(number, weight_row, weight_repeat, weight_rows)
#else
#define WEIGHT_ROWS 1
#define ROW_OF_WEIGHT(number, weight_row) (number)
#endif

/* Sums the columns over a share of the rows that use one row of weights. Each work-item has a span of UNROLL vectors. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void l2_norm_slots(PARAMETERS(L2_NORM_SLOTS_ARGS)) {
    const struct slots_call own = {ARGUMENTS(L2_NORM_SLOTS_ARGS)}, *const call = &own;
    const ulong blocks = max((work + GROUP_ITEMS - 1) / GROUP_ITEMS, (ulong)1); /* a warm-up has no work */
    const ulong slot = get_group_id(0) / blocks;
    const ulong span = (get_group_id(0) - slot * blocks) * GROUP_ITEMS + get_local_id(0);
    if (span >= work)
        return;
    const ulong weight_row = slot / count, first = (slot - weight_row * count) * share;
    const ulong end = min(first + share, rows / WEIGHT_ROWS), group = span / SPANS, column = group * GROUP_SIZE;
    const index_t vector = (index_t)(span - group * SPANS) * UNROLL;
    struct compensated_sums sums[UNROLL];
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        sums[j].sum = sums[j].lost = 0;
    for (ulong number = first; number < end; number++) {
        const ulong row = ROW_OF_WEIGHT(number, weight_row);
        const global STORAGE(X_DTYPE) *const row_x = call->x + ROW_OFFSET(x, row) + column;
        const global STORAGE(DY_DTYPE) *const row_dy = call->dy + ROW_OFFSET(dy, row) + column;
        const real length = norm[norm_at + group * rows + row];
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            if (UNROLL > 1 && vector + j >= VECTORS)
                continue;
            const realv x_hat = WIDEN(X_DTYPE)(LOAD_VECTOR(X_DTYPE)(row_x, vector + j, 0, false, LOAD_LAST)) / length;
            const realv wide_dy = WIDEN(DY_DTYPE)(LOAD_VECTOR(DY_DTYPE)(row_dy, vector + j, 0, false, LOAD_LAST));
            compensated_sums_add(&sums[j], wide_dy * x_hat);
        }
    }
    global real *const to = slots + slots_at + slot * GROUPS * GROUP_SIZE + column;
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        if (UNROLL == 1 || vector + j < VECTORS)
            STORE_VECTOR(REAL_DTYPE)(to, vector + j, 0, sums[j].sum, false);
}

#if VEC == 1

/* Sums over count slots. Each work-item has a column of a row of weights. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void l2_norm_dweight(PARAMETERS(L2_NORM_DWEIGHT_ARGS)) {
    const ulong blocks = (work - 1) / GROUP_ITEMS + 1, weight_row = get_group_id(0) / blocks;
    const ulong column = (get_group_id(0) - weight_row * blocks) * GROUP_ITEMS + get_local_id(0);
    if (column >= work)
        return;
    struct compensated_sum sum = {0, 0};
    for (ulong slot = 0; slot < count; slot++)
        compensated_sum_add(&sum, slots[slots_at + (weight_row * count + slot) * work + column]);
#if WEIGHT_MAP
    dweight += weight_row * dweight_stride;
#endif
    STORE1(DWEIGHT_DTYPE)(dweight + dweight_at + column, sum.sum);
}

#endif

#endif
