/* Σ(x̂ · wdn) and Σwdn of segments that norm_backward.cl takes in tiles. LANES work-items take one of the CHUNKS of a
 * segment, so that a few rows also keep a device busy. norm_backward.cl adds up the chunks.
 *
 * Macros as for norm_backward.cl. */

#include "common/chunk.h"
#include "norm/norm_backward_outputs.h"

static inline struct lane_sums sums_of_chunk(const struct call *call, const struct row *row, const index_t chunk,
                                             const global STORAGE(WEIGHT_DTYPE) * weight,
                                             const global STORAGE(BIAS_DTYPE) * bias) {
    const index_t all = vectors_of(row->lead), own_end = min((chunk + 1) * CHUNK_VECTORS, all);
    const index_t end = row->active ? own_end : 0;
    struct lane_sums sums[UNROLL];
#pragma unroll
    for (uint j = 0; j < UNROLL; j++)
        sums[j].product = sums[j].gradient = 0;
    index_t v = chunk * CHUNK_VECTORS + (uint)get_local_id(0) % LANES;
    for (; v + (UNROLL - 1) * LANES < end; v += UNROLL * LANES) {
        struct inputs in[UNROLL];
#pragma unroll
        for (uint j = 0; j < UNROLL; j++)
            in[j] = load_inputs(call, row, v + j * LANES, LOAD_FIRST);
#pragma unroll
        for (uint j = 0; j < UNROLL; j++) {
            const struct scale scale = load_scale(weight, bias, v + j * LANES, row->lead, call->aligned, LOAD_PLAIN);
            add_point(&sums[j], point_at(call, row, &in[j], scale), scale, call->weight_offset, v + j * LANES, row->lead);
        }
    }
    for (; v < end; v += LANES) {
        const struct inputs in = load_inputs(call, row, v, LOAD_FIRST);
        const struct scale scale = load_scale(weight, bias, v, row->lead, call->aligned, LOAD_PLAIN);
        add_point(&sums[0], point_at(call, row, &in, scale), scale, call->weight_offset, v, row->lead);
    }
#pragma unroll
    for (uint j = 1; j < UNROLL; j++) {
        sums[0].product += sums[j].product;
        sums[0].gradient += sums[j].gradient;
    }
    return sums[0];
}

INLINED void sum_share(const struct call *call, global real *sums, const ulong iterations, local real *scratch) {
    struct lanes lanes = {.scratch = scratch};
    const ulong segments = call->work / CHUNKS;
    for (ulong turn = 0; turn < iterations; turn++) {
        const ulong first = (get_group_id(0) * iterations + turn) * SEGMENTS;
        if (first >= call->work)
            break; /* the whole work-group */
        const ulong index = first + get_local_id(0) / LANES;
        const ulong chunk = index % CHUNKS;
        const ulong segment = index / CHUNKS;
        const ulong group = segment % GROUPS;
        const struct row row = row_at(call, segment / GROUPS, index < call->work, group);
        const struct lane_sums lane_sums =
            sums_of_chunk(call, &row, (index_t)chunk, WEIGHTS_OF(weight, row.index) + group * GROUP_SIZE,
                          WEIGHTS_OF(bias, row.index) + group * GROUP_SIZE);
        real total[] = {sum_elements(lane_sums.product), sum_elements(lane_sums.gradient)};
        sum_lanes(&lanes, total, NORM == LAYER_NORM ? 2 : 1);
        if (get_local_id(0) % LANES == 0 && row.active) {
            sums[chunk * segments + statistic_of(call, &row)] = total[0];
            if (NORM == LAYER_NORM)
                sums[(CHUNKS + chunk) * segments + statistic_of(call, &row)] = total[1];
        }
    }
    last_barrier();
}

/* For offsets that are multiples of a vector's size. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_backward_sums(PARAMETERS(NORM_BACKWARD_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(NORM_BACKWARD_INPUTS), .rows = rows, .aligned = !ELEMENT_ALIGNED};
    sum_share(&call, sums + sums_at, iterations, scratch);
}

#if !ELEMENT_ALIGNED
/* For any offsets: the same sums in the same order, element by element from memory. */
kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
norm_backward_sums_unaligned(PARAMETERS(NORM_BACKWARD_SUMS_ARGS)) {
    local real scratch[2 * SCRATCH];
    const struct call call = {ARGUMENTS(NORM_BACKWARD_INPUTS), .rows = rows, .aligned = false};
    sum_share(&call, sums + sums_at, iterations, scratch);
}
#endif
