/* The moments of vectors of s. The including file defines a struct call with GROUP_NORM_READ's members. */
#ifndef GROUP_NORM_MOMENTS_H
#define GROUP_NORM_MOMENTS_H

#include "norm/group_moments.h"
#include "norm/group_norm.h"

#if IS_FIRST && LANES > 1

#define BATCH 4 /* vectors that are loaded together; two batches are in flight */

/* BATCH of a lane's count vectors, from the i-th on. Vectors are step elements apart. */
struct batch {
    struct packed_s packed[BATCH];
};

INLINED void load_batch(const struct call *call, const ulong sample, const ulong first, const ulong step, const index_t i,
                        const index_t count, struct batch *batch) {
#pragma unroll
    for (uint k = 0; k < BATCH; k++)
        if (i + k < count)
            LOAD_PACKED_S(&batch->packed[k], call, sample, first + (ulong)(i + k) * step, VEC);
    begin_loads();
}

/* The current run. length: the vectors that it will have; taken: those that it has. */
struct course {
    struct run run;
    index_t length, taken;
};

/* All runs but the last are whole batches long. */
INLINED void take_batch(const struct call *call, const ulong sample, const struct batch *batch, const index_t i,
                        const index_t count, struct course *course, struct moments *moments) {
    if (i >= count)
        return;
#pragma unroll
    for (uint k = 0; k < BATCH; k++)
        if (i + k < count)
            run_take(&course->run, 0, S_OF(call, sample, &batch->packed[k]));
    course->taken += min((index_t)BATCH, count - i);
    if (course->taken == course->length) {
        run_end(&course->run, moments, course->length);
        run_start(&course->run, moments);
        course->length = run_length(moments, count - min(count, i + BATCH));
        course->taken = 0;
    }
}

/* Adds whole vectors that are step elements apart. */
INLINED void add_vectors(const struct call *call, const ulong sample, const ulong first, const ulong step,
                         const index_t count, struct moments *moments) {
    struct batch batch, next;
    load_batch(call, sample, first, step, 0, count, &batch);
    load_batch(call, sample, first, step, BATCH, count, &next);
    if (count == 0)
        return;
    moments_start(moments, S_OF(call, sample, &batch.packed[0]));
    struct course course = {.length = run_length(moments, count), .taken = 0};
    run_start(&course.run, moments);
    for (index_t i = 0; i < count; i += 2 * BATCH) {
        take_batch(call, sample, &batch, i, count, &course, moments);
        load_batch(call, sample, first, step, i + 2 * BATCH, count, &batch);
        take_batch(call, sample, &next, i + BATCH, count, &course, moments);
        load_batch(call, sample, first, step, i + 3 * BATCH, count, &next);
    }
}

#elif IS_FIRST || LANES > 1

#define BATCH (LANES == 1 ? CHAINS : 4) /* vectors that are loaded together */

/* Adds whole vectors that are step elements apart. */
static inline void add_vectors(const struct call *call, const ulong sample, const ulong first, const ulong step,
                               const index_t count, struct moments *moments) {
    if (count > 0)
        moments_start(moments, LOAD_S(call, sample, first, VEC));
    for (index_t i = 0; i < count;) {
        const index_t length = run_length(moments, count - i), batches = length / BATCH * BATCH;
        struct run run;
        run_start(&run, moments);
        for (index_t j = 0; j < batches; j += BATCH) {
            struct packed_s packed[BATCH];
#pragma unroll
            for (uint k = 0; k < BATCH; k++)
                LOAD_PACKED_S(&packed[k], call, sample, first + (ulong)(i + j + k) * step, VEC);
            begin_loads();
#pragma unroll
            for (uint k = 0; k < BATCH; k++)
                run_take(&run, k % CHAINS, S_OF(call, sample, &packed[k]));
        }
        for (index_t j = batches; j < length; j++)
            run_take(&run, 0, LOAD_S(call, sample, first + (ulong)(i + j) * step, VEC));
        run_end(&run, moments, length);
        i += length;
    }
}

#endif

#endif
