/* Layer, RMS and L2 normalisation, forward, of segments too few to fill the device: a work-group takes one of the CHUNKS of
 * a segment. A first kernel computes the moments of each chunk. A second one merges those of its segment, and normalises.
 *
 * Macros as for norm_forward.cl; SEGMENTS is 1, KEEP is KEEP_REREAD, y is not 8-bit. */

#include "norm/norm_chunks.h"

/* moments: [segments, CHUNKS] of mean and Σ(s − mean)². Those of an empty chunk are 0. */
INLINED void take_share(const struct call *call, global real *moments, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    for (ulong turn = 0; turn < call->iterations; turn++) {
        const ulong index = get_group_id(0) * call->iterations + turn;
        if (index >= call->work)
            break; /* the whole work-group */
        const struct segment segment = segment_at(call, index / CHUNKS, (index_t)(index % CHUNKS));
        const struct spread spread = spread_of_chunk(call, &segment, &lanes);
        if (segment.lane == 0) {
            moments[2 * index] = spread.mean;
            moments[2 * index + 1] = spread.squares;
        }
    }
    last_barrier();
}

/* Merges the moments of chunks, relative to the first chunk's mean, like lanes relative to their origin. moments: [CHUNKS],
 * of the segment. */
INLINED struct statistics statistics_of_chunks(const struct call *call, const struct segment *segment,
                                               const global real *moments, struct lanes *lanes) {
    const uint lane = (uint)get_local_id(0);
    real squares = 0;
#if NORM == LAYER_NORM
    const real origin = moments[0];
    real sum = 0;
    for (index_t i = lane; i < CHUNKS; i += LANES)
        sum += (moments[2 * i] - origin) * (real)elements_of_chunk(i, segment->lead);
    const real mean = sum_over_lanes(lanes, sum) / (real)GROUP_SIZE;
    for (index_t i = lane; i < CHUNKS; i += LANES) {
        const real count = (real)elements_of_chunk(i, segment->lead);
        const real delta = distance_of(moments[2 * i] - origin - mean, count);
        squares += moments[2 * i + 1] + delta * delta * count;
    }
    const struct statistics statistics = {origin + mean, rstd_of(sum_over_lanes(lanes, squares), call->eps)};
#else
    (void)segment;
    for (index_t i = lane; i < CHUNKS; i += LANES)
        squares += moments[2 * i + 1];
    const struct statistics statistics = {0, rstd_of(sum_over_lanes(lanes, squares), call->eps)};
#endif
    return statistics;
}

INLINED void put_share(const struct call *call, const global real *moments, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    for (ulong turn = 0; turn < call->iterations; turn++) {
        const ulong index = get_group_id(0) * call->iterations + turn;
        if (index >= call->work)
            break; /* the whole work-group */
        const struct segment segment = segment_at(call, index / CHUNKS, (index_t)(index % CHUNKS));
        const struct memory memory = {0};
        const struct statistics statistics =
            statistics_of_chunks(call, &segment, moments + index / CHUNKS * (2 * CHUNKS), &lanes);
        put_segment(call, &segment, statistics, &memory, &lanes);
        if (segment.chunk == 0)
            save_statistics(call, &segment, statistics);
    }
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_forward_moments(PARAMETERS(NORM_FORWARD_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(NORM_FORWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, moments + moments_at, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_forward_apply(PARAMETERS(NORM_FORWARD_APPLY_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(NORM_FORWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    put_share(&call, moments + moments_at, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_forward_moments_unaligned(PARAMETERS(NORM_FORWARD_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(NORM_FORWARD_ARGS), .aligned = false};
    take_share(&call, moments + moments_at, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_forward_apply_unaligned(PARAMETERS(NORM_FORWARD_APPLY_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(NORM_FORWARD_ARGS), .aligned = false};
    put_share(&call, moments + moments_at, scratch);
}
#endif
