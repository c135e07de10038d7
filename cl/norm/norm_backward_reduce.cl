/* The sums over slots, for dweight and dbias. A slot has COLUMNS_OF_WEIGHT neighbouring columns for each column of these,
 * all of which are terms of its sum. A work-group owns a tile of LANES · VEC columns of one of the two. Each of its
 * SEGMENTS lines of lanes takes every SEGMENTS-th term. The lines' sums are added up in a fixed order, to the same bits in
 * every run.
 *
 * Macros (src/program/spec.h): X_DTYPE (of the sums), GROUP_SIZE (columns), DWEIGHT_DTYPE, DBIAS_DTYPE, ACCUMULATE, VEC,
 * LANES, SEGMENTS, UNROLL, ISA, STORES, ELEMENT_ALIGNED; perhaps WEIGHT_MAP, COLUMNS_OF_WEIGHT (with a VEC of 1). */

#include "common/arguments.h"
#include "common/dtype.h"
#include "common/segment.h"
#include "norm/norm_backward_args.h"

struct call {
    MEMBERS(NORM_BACKWARD_REDUCE_ARGS)
    bool aligned; /* wide accesses at their own size's alignment */
};

#define TILES ((VECTORS + LANES - 1) / LANES)

/* A sum and the rounding errors of its additions, by Knuth's two-sum, so that any number of slots keeps the accuracy. */
struct exact_sum {
    realv sum, lost;
};

static inline void add_exactly(struct exact_sum *to, const realv v) {
    const realv sum = to->sum + v;
    const realv added = sum - to->sum;
    to->lost += (to->sum - (sum - added)) + (v - added);
    to->sum = sum;
}

/* The rounding error of an infinite sum is a NaN, which is ignored. */
static inline realv total_of(const struct exact_sum *sum) {
#if VEC == 1
    return sum->lost == sum->lost ? sum->sum + sum->lost : sum->sum;
#else
    return select(sum->sum, sum->sum + sum->lost, sum->lost == sum->lost);
#endif
}

#define STRIDE SLOT_COLUMNS(COLUMNS_OF_WEIGHT *(ulong)GROUP_SIZE) /* from slot to slot */

/* Term number i of vector v. On GPUs it has at most four elements and is loaded as a whole, also past the last column. */
static inline realv load_term(const global real *slots, const ulong i, const index_t v) {
    const global real *const slot = slots + i / COLUMNS_OF_WEIGHT * STRIDE;
#if COLUMNS_OF_WEIGHT > 1
    return slot[v * COLUMNS_OF_WEIGHT + i % COLUMNS_OF_WEIGHT];
#elif ELEMENT_ALIGNED
    return LOAD_VECTOR(REAL_DTYPE)(slot, v, 0, false, LOAD_PLAIN);
#else
    return LOAD(REAL_DTYPE)(slot + v * VEC, true, LOAD_PLAIN);
#endif
}

/* The sum of vector v over this line's terms. slots: [count, STRIDE]. */
static inline realv sum_line(const global real *slots, const ulong count, const index_t v, const uint line) {
    const ulong terms = count * COLUMNS_OF_WEIGHT;
    struct exact_sum sum = {0, 0};
    for (ulong i = line; i < terms; i += UNROLL * SEGMENTS) {
        realv value[UNROLL];
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            value[j] = i + j * SEGMENTS < terms ? load_term(slots, i + j * SEGMENTS, v) : (realv)0;
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            add_exactly(&sum, value[j]);
    }
    return total_of(&sum);
}

/* The sum of vector v over all slots, in the first line's lanes. */
INLINED realv sum_slots(const global real *slots, const ulong count, const index_t v, local realv *lines) {
    const uint line = (uint)get_local_id(0) / LANES;
    realv sum = v < VECTORS ? sum_line(slots, count, v, line) : (realv)0;
#if SEGMENTS > 1
    local realv *own = lines + get_local_id(0);
    *own = sum;
    for (uint below = SEGMENTS / 2; below > 0; below /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (line < below) {
            sum += own[below * LANES];
            *own = sum;
        }
    }
#else
    (void)lines;
#endif
    return sum;
}

#define DEFINE_PUT(dtype)                                                                                              \
    static inline void __attribute__((unused))                                                                         \
    JOIN(put_, dtype)(global STORAGE(dtype) * out, const index_t v, const realv sum, const bool aligned) {             \
        const realv before = ACCUMULATE ? WIDEN(dtype)(LOAD_VECTOR(dtype)(out, v, 0, aligned, LOAD_PLAIN)) : (realv)0; \
        STORE_VECTOR(dtype)(out, v, 0, before + sum, aligned);                                                         \
    }
#if IS_DOUBLE(X_DTYPE)
DEFINE_PUT(f64)
#else
DEFINE_PUT(f32)
DEFINE_PUT(f16)
DEFINE_PUT(bf16)
#endif
#if MIXED
/* Element by element, so that with ACCUMULATE the sum is taken in the output's precision. */
static inline void __attribute__((unused))
JOIN(put_, OTHER)(global other_real *out, const index_t v, const realv sum, const bool aligned) {
    real element[VEC];
    VSTORE(sum, element);
    for (uint i = 0; i < VEC && v * VEC + i < GROUP_SIZE; i++)
        PUT1(OTHER)(out + v * VEC + i, element[i], ACCUMULATE);
    (void)aligned;
}
#endif
#define PUT(dtype) JOIN(put_, dtype)

/* The address of an output's row of GROUP_SIZE elements. */
#if WEIGHT_MAP
#define WEIGHT_ROWS call->weight_rows
#define ROW_OF(tensor) (call->tensor + weight_row * call->tensor##_stride)
#else
#define WEIGHT_ROWS 1
#define ROW_OF(tensor) call->tensor
#endif

/* Work-groups take dweight's tiles first, one row of weights after the other, and then dbias's. */
INLINED void reduce_tile(const struct call *call, local realv *lines) {
    if (call->work == 0)
        return;
    const ulong weight_row = get_group_id(0) / TILES % WEIGHT_ROWS;
    const ulong first = weight_row * call->slots * STRIDE;
    const index_t v = (index_t)(get_group_id(0) % TILES) * LANES + (uint)get_local_id(0) % LANES;
    const bool is_dweight = PRESENT(DWEIGHT_DTYPE) && get_group_id(0) < TILES * WEIGHT_ROWS;
    const realv sum = sum_slots((is_dweight ? call->dweight_slots : call->dbias_slots) + first, call->slots, v, lines);
    const bool puts = v < VECTORS && get_local_id(0) < LANES;
#if PRESENT(DWEIGHT_DTYPE)
    if (puts && is_dweight)
        PUT(DWEIGHT_DTYPE)(ROW_OF(dweight), v, sum, call->aligned);
#endif
#if PRESENT(DBIAS_DTYPE)
    if (puts && !is_dweight)
        PUT(DBIAS_DTYPE)(ROW_OF(dbias), v, sum, call->aligned);
#endif
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(LANES * SEGMENTS, 1, 1))) void
norm_backward_reduce(PARAMETERS(NORM_BACKWARD_REDUCE_ARGS)) {
    local realv lines[LANES * SEGMENTS];
    const struct call call = {ARGUMENTS(NORM_BACKWARD_REDUCE_ARGS), .aligned = !ELEMENT_ALIGNED};
    reduce_tile(&call, lines);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to memory. */
kernel __attribute__((reqd_work_group_size(LANES * SEGMENTS, 1, 1))) void
norm_backward_reduce_unaligned(PARAMETERS(NORM_BACKWARD_REDUCE_ARGS)) {
    local realv lines[LANES * SEGMENTS];
    const struct call call = {ARGUMENTS(NORM_BACKWARD_REDUCE_ARGS), .aligned = false};
    reduce_tile(&call, lines);
}
#endif
