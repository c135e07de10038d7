/* Group norm with channels last, where a work-group reads its slices once and holds them in registers. See
 * clnorm_group_norm_desc for the formulas, and cl/norm/group_norm.h. */

#include "norm/group_norm.h"

/* The arguments of a launch. work: slices. */
struct call {
    MEMBERS(GROUP_NORM_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "norm/group_norm_slice_y.h"

/* The slices of a work-group begin at an index. Past the last one a segment has that one, and writes nothing. */
INLINED void take_slice(const struct call *call, const ulong index, const struct board *board, struct lanes *lanes) {
    const ulong own = index + own_segment(), slice = SEGMENTS == 1 ? own : min(own, call->work - 1);
    const struct place own_place = place_of(slice / SLICES, slice % SLICES, own < call->work), *const place = &own_place;
    struct packed_s held[HELD_OF_LANE] = {0};
#pragma unroll
    for (uint k = 0; k < HELD_OF_LANE; k++)
        if (HOLDS(k))
            LOAD_PACKED_S(&held[k], call, place->sample, element_of(place, k), VEC);
    begin_loads();
    take_statistics(call, place, held, board);
    put_statistics(call, place, place->writes, board);
    read_barrier();
    struct output output = OUTPUT_OF(call, place->sample);
    write_slice(call, place, held, board, &output);
#if MEASURES
    put_magnitude(call->magnitudes + slice, &output, place->writes && place->lane == 0, lanes);
#else
    (void)lanes;
#endif
}

/* This work-group's slices. */
INLINED void take_share(const struct call *call, const struct board *board, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong first = get_group_id(0) * call->iterations * SEGMENTS;
    for (ulong i = 0; i < call->iterations && first + i * SEGMENTS < call->work; i++) {
        take_slice(call, first + i * SEGMENTS, board, &lanes);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void group_norm_last(PARAMETERS(GROUP_NORM_ARGS)) {
    local real scratch[2 * SCRATCH];
    SLICE_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, &board, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_last_unaligned(PARAMETERS(GROUP_NORM_ARGS)) {
    local real scratch[2 * SCRATCH];
    SLICE_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_ARGS), .aligned = false};
    take_share(&call, &board, scratch);
}
#endif
