/* Layer and RMS norm, forward, of rows whose columns are shared out to several callers: the moments of a slice of the
 * columns, and a slice normalised with the moments of whole rows. See include/clnorm/norm_slices.h.
 *
 * Macros as for norm_forward.cl; KEEP is KEEP_REREAD, y is not 8-bit, and SEGMENTS is 1 with several CHUNKS. */

#include "norm/norm_chunks.h"
#include "norm/norm_slices_args.h"

#define NUMBERS 3 /* of moments: mean, Σ(s − mean)², elements */

/* The segment, or chunk of one, that this work-item's lanes take in an iteration. index: the work-group's first. */
static inline struct segment segment_in_turn(const struct call *call, const ulong index) {
    const ulong own = index + get_local_id(0) / LANES;
    return segment_at(call, own / CHUNKS, (index_t)(own % CHUNKS));
}

/* moments: of segments, or with several CHUNKS of chunks in the order of the work. */
INLINED void take_share(const struct call *call, global real *moments, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = get_group_id(0) * call->iterations * SEGMENTS;
    for (ulong turn = 0; turn < call->iterations; turn++) {
        const ulong index = first + turn * SEGMENTS;
        if (index >= call->work)
            break; /* the whole work-group */
        const struct segment segment = segment_in_turn(call, index);
        const struct spread spread = spread_of_chunk(call, &segment, &lanes);
        if (segment.lane == 0 && segment.active) {
            global real *own = moments + NUMBERS * (CHUNKS == 1 ? segment.statistic : index);
            own[0] = spread.mean;
            own[1] = spread.squares;
            own[2] = (real)elements_of_chunk(segment.chunk, segment.lead);
        }
    }
    last_barrier();
}

static inline struct statistics statistics_of(const struct call *call, const struct segment *segment,
                                              const global real *moments) {
    struct statistics statistics = {0, 0};
    if (!segment->active)
        return statistics;
    const global real *own = moments + NUMBERS * segment->statistic;
    if (NORM == LAYER_NORM)
        statistics.mean = own[0];
    statistics.rstd = (real)1 / sqrt(own[1] / own[2] + call->eps);
    return statistics;
}

INLINED void put_share(const struct call *call, const global real *moments, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = get_group_id(0) * call->iterations * SEGMENTS;
    for (ulong turn = 0; turn < call->iterations; turn++) {
        const ulong index = first + turn * SEGMENTS;
        if (index >= call->work)
            break; /* the whole work-group */
        const struct segment segment = segment_in_turn(call, index);
        const struct memory memory = {0};
        put_segment(call, &segment, statistics_of(call, &segment, moments), &memory, &lanes);
    }
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_statistics(PARAMETERS(NORM_FORWARD_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(NORM_FORWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, moments + moments_at, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void norm_apply(PARAMETERS(NORM_FORWARD_APPLY_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(NORM_FORWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    put_share(&call, moments + moments_at, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_statistics_unaligned(PARAMETERS(NORM_FORWARD_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(NORM_FORWARD_ARGS), .aligned = false};
    take_share(&call, moments + moments_at, scratch);
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_apply_unaligned(PARAMETERS(NORM_FORWARD_APPLY_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(NORM_FORWARD_ARGS), .aligned = false};
    put_share(&call, moments + moments_at, scratch);
}
#endif

/* Merges the moments of a segment's chunks, relative to the first chunk's mean, like lanes relative to their origin. */
INLINED void merge_chunks(const global real *chunk, global real *moments, struct lanes *lanes) {
    const uint lane = (uint)get_local_id(0);
    const real origin = chunk[0];
    real sum = 0, squares = 0;
    for (index_t i = lane; i < CHUNKS; i += LANES)
        sum += (chunk[NUMBERS * i] - origin) * chunk[NUMBERS * i + 2];
    const real mean = sum_over_lanes(lanes, sum) / (real)GROUP_SIZE;
    for (index_t i = lane; i < CHUNKS; i += LANES) {
        const real count = chunk[NUMBERS * i + 2];
        const real delta = distance_of(chunk[NUMBERS * i] - origin - mean, count);
        squares += chunk[NUMBERS * i + 1] + delta * delta * count;
    }
    squares = sum_over_lanes(lanes, squares);
    if (lane == 0) {
        moments[0] = origin + mean;
        moments[1] = squares;
        moments[2] = (real)GROUP_SIZE;
    }
}

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_merge_moments(PARAMETERS(NORM_MERGE_MOMENTS_ARGS)) {
    local real scratch[2 * SCRATCH];
    struct lanes lanes = {.scratch = scratch};
    for (ulong turn = 0; turn < iterations; turn++) {
        const ulong index = get_group_id(0) * iterations + turn;
        if (index >= work)
            break; /* the whole work-group */
        const ulong statistic = index % GROUPS * rows + index / GROUPS;
        merge_chunks(chunk_moments + chunk_moments_at + index * (NUMBERS * (ulong)CHUNKS),
                     moments + moments_at + NUMBERS * statistic, &lanes);
    }
    last_barrier();
}
