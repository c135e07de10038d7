/* The gradients of group norm with channels last, where a work-group holds its slices in registers: it reads x and dy
 * once. See clnorm_group_norm_backward_desc. */

#include "norm/group_norm_backward.h"

/* The arguments of a launch. work: SEGMENTS for each slice of each bundle. */
struct call {
    MEMBERS(GROUP_NORM_LAST_BACKWARD_ARGS)
    bool aligned;        /* wide accesses at their own size's alignment */
    enum load_hint hint; /* of inputs */
};

#include "norm/group_norm_slice_dx.h"

/* Writes the sums of the slice's channels over the samples of a bundle, as a part of each channel. of_lanes: of the first
 * segment. */
INLINED void put_sums(const struct call *call, const ulong bundle, const struct place *place, const local real *of_lanes) {
#if HAS_SUMS
    const uint count = (uint)min((ulong)SEGMENTS, call->rows - bundle * SEGMENTS);
    for (uint first = 0; first < SLICE_CHANNELS; first += GROUP_ITEMS) {
        const uint i = first + (uint)get_local_id(0);
        if (i >= SLICE_CHANNELS)
            continue;
        struct compensated_sum of_dn = {0, 0}, of_product = {0, 0};
        for (uint segment = 0; segment < count; segment++) {
            const local real *const own = of_lanes + segment * 2 * STEP * SLICE_CHANNELS + i;
            compensated_sum_add(&of_dn, own[0]);
            compensated_sum_add(&of_product, own[STEP * SLICE_CHANNELS]);
        }
        put_part(call->parts, part_of(bundle, place->channel + i, 0), of_dn.sum, of_product.sum);
    }
#endif
    (void)call, (void)bundle, (void)place, (void)of_lanes;
}

/* Computes the slopes of the slice's groups. */
INLINED void take_slopes(const struct call *call, const struct place *place, const struct board *board) {
    for (uint first = 0; first < 2 * SPAN; first += LANES) {
        const uint i = first + place->lane;
        if (i < 2 * SPAN)
            board->slopes[i] = scale_of(call, place, i) * sum_of_group(board, i);
    }
    read_barrier();
}

/* Takes a slice of a bundle: each segment has that of a sample. Past the last sample a segment has that one, and writes
 * nothing. index: of the slice among those of all bundles. */
INLINED void take_slice(const struct call *call, const ulong index, const struct board *board, const local real *of_lanes) {
    const ulong bundle = index / SLICES, sample = bundle * SEGMENTS + own_segment();
    const struct place place = place_of(min(sample, call->rows - 1), index % SLICES, sample < call->rows);
    struct held held;
    load_slice(call, &place, &held);
    const struct channels channels = channels_of(call, &place);
    struct channel_sums own;
    channel_sums_start(&own);
    sum_held(&place, &channels, &held, &own);
    put_lane(&place, &channels, &own, board);
    sum_channels(call, &place, board);
    take_slopes(call, &place, board);
    write_slice(call, &place, &channels, &held, board);
    put_sums(call, bundle, &place, of_lanes);
}

/* This work-group's slices. */
INLINED void take_share(const struct call *call, const struct board *board, const local real *of_lanes) {
    const ulong first = get_group_id(0) * call->iterations;
    for (ulong i = 0; i < call->iterations && (first + i) * SEGMENTS < call->work; i++) {
        take_slice(call, first + i, board, of_lanes);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_last_backward(PARAMETERS(GROUP_NORM_LAST_BACKWARD_ARGS)) {
    SLICE_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_LAST_BACKWARD_ARGS), .aligned = !ELEMENT_ALIGNED};
    take_share(&call, &board, of_lanes);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element to and from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
group_norm_last_backward_unaligned(PARAMETERS(GROUP_NORM_LAST_BACKWARD_ARGS)) {
    SLICE_MEMORY
    const struct call call = {ARGUMENTS(GROUP_NORM_LAST_BACKWARD_ARGS), .aligned = false};
    take_share(&call, &board, of_lanes);
}
#endif
