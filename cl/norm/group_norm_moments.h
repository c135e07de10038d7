/* The moments of vectors of s. The including file defines a struct call with GROUP_NORM_READ's members. */
#ifndef GROUP_NORM_MOMENTS_H
#define GROUP_NORM_MOMENTS_H

#include "norm/group_moments.h"
#include "norm/group_norm.h"

#if IS_FIRST

/* Adds neighbouring elements, fewer than VEC and at least 1. origin: of the spread. */
static inline void add_rest(const struct call *call, const ulong sample, const ulong first, const uint count,
                            const real origin, struct spread *spread) {
    const realv s = LOAD_S(call, sample, first, count) - origin;
    const real mean = sum_elements(keep_first(s, count)) / (real)count;
    const realv deviation = keep_first(s - mean, count);
    const struct spread part = {mean, sum_elements(deviation * deviation), (real)count};
    spread_merge(spread, part);
}

#endif

#if LANES > 1

#define BATCH (sizeof(struct packed_s) > 8 ? 8 : 16) /* vectors that are loaded together: about 128 bytes */

/* Adds whole vectors that are step elements apart. */
static inline void add_vectors(const struct call *call, const ulong sample, const ulong first, const ulong step,
                               const index_t count, struct moments *moments) {
    for (index_t i = 0; i < count; i += BATCH) {
        struct packed_s packed[BATCH];
#pragma unroll
        for (uint k = 0; k < BATCH; k++)
            if (i + k < count)
                LOAD_PACKED_S(&packed[k], call, sample, first + (ulong)(i + k) * step, VEC);
        begin_loads();
        if (i == 0)
            moments_start(moments, S_OF(call, sample, &packed[0]));
        struct run run;
        run_start(&run, moments);
#pragma unroll
        for (uint k = 0; k < BATCH; k++)
            if (i + k < count)
                run_take(&run, 0, S_OF(call, sample, &packed[k]));
        run_end(&run, moments, min((index_t)BATCH, count - i));
    }
}

#elif IS_FIRST

#define BATCH CHAINS /* vectors that are loaded together */

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
