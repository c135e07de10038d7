/* y of a lane's vectors. The including file defines struct apply_call with the members of GROUP_NORM_READ and
 * GROUP_NORM_WRITE. */
#ifndef GROUP_NORM_COURSE_H
#define GROUP_NORM_COURSE_H

#include "norm/group_norm.h"
#include "norm/group_norm_y.h"

/* The numbers that turn s of a vector's channels into n. */
struct affine {
    realv mean, scale, bias;
};

static inline void write_vector(const struct apply_call *call, const ulong sample, const ulong at, const ulong count,
                                const struct affine *affine, const realv s, struct output *output) {
#if PRESENT(RESIDUAL_OUT_DTYPE)
    STORE_PART(RESIDUAL_OUT_DTYPE)
    (call->residual_out + sample * call->residual_out_stride + at, s, count, call->aligned);
#endif
    PUT_Y(call, sample, at, activated((s - affine->mean) * affine->scale + affine->bias), count, output);
}

#define COPIED COPIED_AT_ONCE(sizeof(struct packed_s))

/* COPIED of them, as loaded. */
struct batch {
    struct packed_s packed[COPIED];
};

/* Loads a course's vectors from the i-th on. */
INLINED void load_batch(const struct apply_call *call, const struct course *course, const index_t i, struct batch *batch) {
#pragma unroll
    for (uint k = 0; k < COPIED; k++)
        if (i + k < course->vectors)
            LOAD_PACKED_S(&batch->packed[k], call, course->sample, course->first + (i + k) * course->step, course->count);
    begin_loads();
}

/* Writes y of a course. batch: its first vectors. */
INLINED void write_course(const struct apply_call *call, const struct course *course, struct batch *batch,
                          const struct affine *affine, struct output *output) {
    for (index_t i = 0; i < course->vectors; i += COPIED) {
        if (i > 0)
            load_batch(call, course, i, batch);
#pragma unroll
        for (uint k = 0; k < COPIED; k++)
            if (i + k < course->vectors)
                write_vector(call, course->sample, course->first + (i + k) * course->step, course->count, affine,
                             S_OF(call, course->sample, &batch->packed[k]), output);
    }
}

#endif
