/* dx of a course of vectors, and with channels first of a unit. The including file defines a struct dx_call with the
 * members of GROUP_NORM_BACKWARD_READ and GROUP_NORM_BACKWARD_WRITE. */
#ifndef GROUP_NORM_CHUNK_DX_H
#define GROUP_NORM_CHUNK_DX_H

#include "norm/group_norm_backward.h"

#if IS_FIRST || LANES > 1

#define COPIED COPIED_AT_ONCE(2 * sizeof(struct packed_pair)) /* x − mean and dn are held too */

/* COPIED of them, as loaded. */
struct batch {
    struct packed_pair packed[COPIED];
};

/* Loads a course's vectors from the i-th on. */
INLINED void load_batch(const struct dx_call *call, const struct course *course, const index_t i, struct batch *batch) {
#pragma unroll
    for (uint k = 0; k < COPIED; k++)
        if (i + k < course->vectors)
            LOAD_PAIR(&batch->packed[k], call, course->sample, course->first + (i + k) * course->step, course->count);
    begin_loads();
}

/* Writes dx of a course. batch: its first vectors. */
INLINED void write_course(const struct dx_call *call, const struct course *course, struct batch *batch,
                          const struct channels *channels, const realv slopes[2]) {
    for (index_t i = 0; i < course->vectors; i += COPIED) {
        if (i > 0)
            load_batch(call, course, i, batch);
#pragma unroll
        for (uint k = 0; k < COPIED; k++)
            if (i + k < course->vectors) {
                const struct point point = point_of(channels, &batch->packed[k]);
                PUT_DS(call, course->sample, course->first + (i + k) * course->step,
                       dx_of(channels, slopes, point.centre, point.dn), course->count);
            }
    }
}

#endif

#if IS_FIRST

static inline void write_rest(const struct dx_call *call, const ulong sample, const struct rest *rest,
                              const struct channels *channels, const realv slopes[2]) {
    struct packed_pair packed;
    LOAD_PAIR(&packed, call, sample, rest->first, REST_COUNT(*rest));
    const struct point point = point_of(channels, &packed);
    PUT_DS(call, sample, rest->first, dx_of(channels, slopes, point.centre, point.dn), REST_COUNT(*rest));
}

/* batch: the first vectors of the unit's course. */
INLINED void write_chunk(const struct dx_call *call, const struct unit *unit, struct batch *batch, const realv slopes[2]) {
    const struct share share = share_of(unit);
    const struct course course = course_of_share(unit, &share);
    const struct channels channels = CHANNELS_AT(call, group_of(unit), unit->channel);
    write_course(call, &course, batch, &channels, slopes);
    for (uint i = 0; i < RESTS; i++) {
        const struct rest rest = rest_of_share(&share, unit, i);
        if (rest.count > 0)
            write_rest(call, unit->sample, &rest, &channels, slopes);
    }
}

static inline void load_chunk(const struct dx_call *call, const struct unit *unit, struct batch *batch) {
    const struct share share = share_of(unit);
    const struct course course = course_of_share(unit, &share);
    load_batch(call, &course, 0, batch);
}

/* sums: of the unit's group. */
INLINED void write_with_sums(const struct dx_call *call, const struct unit *unit, struct batch *batch, const real sums[2]) {
    const real scale = call->rstd[group_of(unit)] / (real)GROUP_SIZE;
    const realv slopes[2] = {scale * sums[0], scale * sums[1]};
    write_chunk(call, unit, batch, slopes);
}

#endif

#endif
