/* Sums, and largest values, over the LANES work-items that share a segment. A work-group has SEGMENTS of them side by
 * side: local id = segment · LANES + lane. */
#ifndef LANES_H
#define LANES_H

#include "common/enums.h"
#include "common/vector.h"

#define GROUP_ITEMS (LANES * SEGMENTS)

#if REDUCE == REDUCE_SHUFFLE
#define STEP_LANES (LANES < 32 ? LANES : 32)     /* lanes that run in step, and can exchange registers */
#define SCRATCH (2 * (GROUP_ITEMS / STEP_LANES)) /* reals that the sums of two values need */
#else
#define SCRATCH (2 * GROUP_ITEMS)
#endif

/* Consecutive sums use alternate halves of the scratch. The barrier inside the second sum protects the first, so that no
 * sum ends with a barrier. */
struct lanes {
    local real *scratch; /* [2 · SCRATCH] */
    uint sums;           /* taken so far */
    bool wait_alone;     /* where possible, a barrier covers the lanes of one segment only */
};

#if REDUCE == REDUCE_SUBGROUP && !defined(__opencl_c_subgroups)
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif

#if REDUCE == REDUCE_SHUFFLE
static inline real shuffle_xor(const real v, const uint mask) {
#if IS_DOUBLE(X_DTYPE)
    int2 word = as_int2(v);
    __asm__ volatile("shfl.sync.bfly.b32 %0, %0, %1, 0x1f, 0xffffffff;" : "+r"(word.x) : "r"(mask));
    __asm__ volatile("shfl.sync.bfly.b32 %0, %0, %1, 0x1f, 0xffffffff;" : "+r"(word.y) : "r"(mask));
    return as_double(word);
#else
    real other;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(other) : "f"(v), "r"(mask));
    return other;
#endif
}
#endif

/* A barrier for the lanes of one segment, with wait_alone for them only. Such a kernel uses all 16 barriers of a
 * work-group, so that fewer work-groups fit on a compute unit: it pays where work-groups are few and large. */
static inline void segment_barrier(const struct lanes *lanes) {
#if ISA == ISA_PTX && REDUCE == REDUCE_SHUFFLE && SEGMENTS > 1 && SEGMENTS < 16 && LANES % 32 == 0
    if (lanes->wait_alone) {
        __asm__ volatile("bar.sync %0, %1;" : : "r"(1 + (uint)get_local_id(0) / LANES), "n"(LANES) : "memory");
        return;
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    (void)lanes;
}

/* Separates code that every lane runs from code that one lane runs for all, because of PoCL's defect that last_barrier
 * describes. */
INLINED void join_lanes(void) {
    if (LANES > 1)
        last_barrier();
}

/* The barrier before lanes write where other lanes have read: y may be x. */
static inline void read_barrier(void) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

INLINED local real *next_scratch(struct lanes *lanes) {
    return lanes->scratch + (lanes->sums++ & 1) * SCRATCH;
}

/* How the values of two lanes are combined. */
enum fold { FOLD_SUM, FOLD_LARGEST };

static inline real folded(const real a, const real b, const enum fold fold) {
    return fold == FOLD_SUM ? a + b : fmax(a, b);
}

/* Combines count values (1 or 2) over blocks of neighbouring lanes. neighbours: of a block, a power of two up to LANES.
 * Every lane of a block gets the same bits. Every work-item of the work-group must call it. */
#if LANES == 1

INLINED void fold_neighbours(struct lanes *lanes, real *v, const uint count, const uint neighbours, const enum fold fold) {
    (void)lanes;
    (void)v;
    (void)count;
    (void)neighbours;
    (void)fold;
}

#elif REDUCE == REDUCE_SHUFFLE

/* Likewise, of lanes that run in step. */
INLINED void fold_steps(real *v, const uint count, const uint neighbours, const enum fold fold) {
#pragma unroll
    for (uint mask = neighbours / 2; mask > 0; mask /= 2)
        for (uint k = 0; k < count; k++)
            v[k] = folded(v[k], shuffle_xor(v[k], mask), fold);
}

INLINED void fold_neighbours(struct lanes *lanes, real *v, const uint count, const uint neighbours, const enum fold fold) {
    fold_steps(v, count, min(neighbours, (uint)STEP_LANES), fold);
    if (neighbours <= STEP_LANES)
        return;
    local real *scratch = next_scratch(lanes);
    const uint item = (uint)get_local_id(0);
    const uint steps = neighbours / STEP_LANES;
    for (uint k = 0; k < count; k++)
        if (item % STEP_LANES == 0)
            scratch[k * SCRATCH / 2 + item / STEP_LANES] = v[k];
    segment_barrier(lanes);
    for (uint k = 0; k < count; k++)
        v[k] = scratch[k * SCRATCH / 2 + item / neighbours * steps + item % steps];
    fold_steps(v, count, steps, fold);
}

#else

INLINED void fold_neighbours(struct lanes *lanes, real *v, const uint count, const uint neighbours, const enum fold fold) {
    if (neighbours == 1)
        return;
    local real *scratch = next_scratch(lanes);
    const uint item = (uint)get_local_id(0);
#if REDUCE == REDUCE_SUBGROUP
    if (neighbours == LANES) {
        for (uint k = 0; k < count; k++) {
            v[k] = fold == FOLD_SUM ? sub_group_reduce_add(v[k]) : sub_group_reduce_max(v[k]);
            if (get_sub_group_local_id() == 0)
                scratch[k * SCRATCH / 2 + get_sub_group_id()] = v[k];
        }
        read_barrier();
        for (uint k = 0; k < count; k++) {
            v[k] = scratch[k * SCRATCH / 2];
            for (uint i = 1; i < get_num_sub_groups(); i++)
                v[k] = folded(v[k], scratch[k * SCRATCH / 2 + i], fold);
        }
        return;
    }
#endif
    for (uint k = 0; k < count; k++)
        scratch[k * SCRATCH / 2 + item] = v[k];
    read_barrier();
    for (uint distance = neighbours / 2; distance > 0; distance /= 2) {
        for (uint k = 0; k < count; k++)
            if (item % neighbours < distance) {
                local real *own = scratch + k * SCRATCH / 2 + item;
                *own = folded(*own, own[distance], fold);
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint k = 0; k < count; k++)
        v[k] = scratch[k * SCRATCH / 2 + item / neighbours * neighbours];
}

#endif

/* Likewise over all lanes of the segment. */
INLINED void fold_lanes(struct lanes *lanes, real *v, const uint count, const enum fold fold) {
    fold_neighbours(lanes, v, count, LANES, fold);
}

INLINED void sum_lanes(struct lanes *lanes, real *v, const uint count) {
    fold_lanes(lanes, v, count, FOLD_SUM);
}

INLINED real largest_over_neighbours(struct lanes *lanes, real v, const uint neighbours) {
    fold_neighbours(lanes, &v, 1, neighbours, FOLD_LARGEST);
    return v;
}

INLINED real largest_over_lanes(struct lanes *lanes, real v) {
    return largest_over_neighbours(lanes, v, LANES);
}

INLINED real sum_over_lanes(struct lanes *lanes, real v) {
    sum_lanes(lanes, &v, 1);
    return v;
}

/* The distance of a part's mean from that of the whole. A part without elements has none: the square of its distance from a
 * huge mean would be infinite, and 0 times that is NaN. */
static inline real distance_of(const real distance, const real count) {
    return count > 0 ? distance : 0;
}

#endif
