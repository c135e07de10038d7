/* The sum over slots, for dweight and dbias. A work-group owns a tile of LANES · VEC columns of one of the two; its
 * SEGMENTS lines of lanes take every SEGMENTS-th slot, and then are added up one after the other: the same bits every time.
 *
 * Macros (src/spec.h): X_DTYPE (of the sums), GROUP_SIZE (columns), DWEIGHT_DTYPE, DBIAS_DTYPE, ACCUMULATE, VEC, LANES,
 * SEGMENTS, UNROLL, ISA, STORES, ELEMENT_ALIGNED. */

#include "dtype.h"
#include "segment.h"

#if IS_DOUBLE(X_DTYPE)
#define REAL_DTYPE f64
#else
#define REAL_DTYPE f32
#endif

#define TILES ((VECTORS + LANES - 1) / LANES)

/* This lane's slots of vector v. slots: [count, GROUP_SIZE]. */
static inline realv sum_line(const global real *slots, const ulong count, const index_t v, const uint line) {
    realv sum = 0;
    ulong slot = line;
    for (; slot + (UNROLL - 1) * SEGMENTS < count; slot += UNROLL * SEGMENTS) {
        realv value[UNROLL];
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            value[j] = LOAD_VECTOR(REAL_DTYPE)(slots + (slot + j * SEGMENTS) * GROUP_SIZE, v, !ELEMENT_ALIGNED, LOAD_PLAIN);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            sum += value[j];
    }
    for (; slot < count; slot += SEGMENTS)
        sum += LOAD_VECTOR(REAL_DTYPE)(slots + slot * GROUP_SIZE, v, !ELEMENT_ALIGNED, LOAD_PLAIN);
    return sum;
}

INLINED realv sum_slots(const global real *slots, const ulong count, const index_t v, local realv *lines) {
    const uint lane = (uint)get_local_id(0) % LANES;
    const uint line = (uint)get_local_id(0) / LANES;
    realv sum = v < VECTORS ? sum_line(slots, count, v, line) : (realv)0;
#if SEGMENTS > 1
    lines[line * LANES + lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 1; line == 0 && i < SEGMENTS; i++)
        sum += lines[i * LANES + lane];
#else
    (void)lines, (void)lane;
#endif
    return sum;
}

#define DEFINE_PUT(dtype)                                                                                           \
    static inline void JOIN(put_, dtype)(global STORAGE(dtype) * out, const index_t v, const realv sum,             \
                                         const bool aligned) {                                                      \
        const realv before = ACCUMULATE ? WIDEN(dtype)(LOAD_VECTOR(dtype)(out, v, aligned, LOAD_PLAIN)) : (realv)0; \
        STORE_VECTOR(dtype)(out, v, before + sum, aligned);                                                         \
    }
#if IS_DOUBLE(X_DTYPE)
DEFINE_PUT(f64)
#else
DEFINE_PUT(f32)
DEFINE_PUT(f16)
DEFINE_PUT(bf16)
#endif
#define PUT(dtype) JOIN(put_, dtype)

#define PARAMETERS                                                                                   \
    const global real *dweight_slots, const ulong dweight_slots_at, const global real *dbias_slots,  \
        const ulong dbias_slots_at, global STORAGE(DWEIGHT_DTYPE) * dweight, const ulong dweight_at, \
        global STORAGE(DBIAS_DTYPE) * dbias, const ulong dbias_at, const ulong work, const ulong slots

#define REDUCE_TILE(aligned)                                                                                            \
    reduce_tile(dweight_slots + dweight_slots_at, dbias_slots + dbias_slots_at, dweight + dweight_at, dbias + dbias_at, \
                work, slots, aligned, lines)

/* Work-groups take dweight's tiles first, then dbias's, where both are wanted. work: 0: nothing is to be done. */
INLINED void reduce_tile(const global real *dweight_slots, const global real *dbias_slots,
                         global STORAGE(DWEIGHT_DTYPE) * dweight, global STORAGE(DBIAS_DTYPE) * dbias, const ulong work,
                         const ulong slots, const bool aligned, local realv *lines) {
    if (work == 0)
        return;
    const index_t v = (index_t)(get_group_id(0) % TILES) * LANES + (uint)get_local_id(0) % LANES;
    const bool is_dweight = PRESENT(DWEIGHT_DTYPE) && get_group_id(0) < TILES;
    const realv sum = sum_slots(is_dweight ? dweight_slots : dbias_slots, slots, v, lines);
    const bool puts = v < VECTORS && get_local_id(0) < LANES;
#if PRESENT(DWEIGHT_DTYPE)
    if (puts && is_dweight)
        PUT(DWEIGHT_DTYPE)(dweight, v, sum, aligned);
#endif
#if PRESENT(DBIAS_DTYPE)
    if (puts && !is_dweight)
        PUT(DBIAS_DTYPE)(dbias, v, sum, aligned);
#endif
    last_barrier();
    (void)dweight, (void)dbias;
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(LANES * SEGMENTS, 1, 1))) void norm_backward_reduce(PARAMETERS) {
    local realv lines[LANES * SEGMENTS];
    REDUCE_TILE(!ELEMENT_ALIGNED);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to memory. */
kernel __attribute__((reqd_work_group_size(LANES * SEGMENTS, 1, 1))) void norm_backward_reduce_any(PARAMETERS) {
    local realv lines[LANES * SEGMENTS];
    REDUCE_TILE(false);
}
#endif
