#include "operation/group_norm_statistics.h"

#include "base/arithmetic.h"

/* Divides a work-group's lanes into segments of so many. */
static void divide_lanes(struct cln_spec *spec, uint64_t lanes) {
    spec->segments *= spec->lanes / lanes;
    spec->lanes = lanes;
    spec->reduce = spec->segments > 1 && spec->reduce == CLN_REDUCE_SUBGROUP ? CLN_REDUCE_TREE : spec->reduce;
}

/* The lanes that hold a slice take chunks of few rows, of which there are some for the whole device. Few of them are idle.
 * A single lane would share its rows with no other phase. */
static void divide_slice(const clnorm_plan *plan, const struct cln_group_norm *norm, struct cln_spec *spec) {
    enum { FEWEST = 2, LANES = 32, ITEMS = 256, ROWS = 8 }; /* rows: of a phase */
    struct cln_config chunked = plan->config;
    chunked.chunks = 2;
    spec->row_positions = cln_config_row_positions(&plan->work, &chunked);
    const uint64_t vectors = norm->cols * spec->row_positions / spec->vec;
    divide_lanes(spec,
                 cln_larger(cln_smaller(cln_smaller(spec->lanes, LANES), cln_power_of_two_at_least(vectors)), FEWEST));
    const uint64_t rows = norm->spatial / spec->row_positions;
    spec->segments = cln_smaller(cln_smaller(spec->segments, ITEMS / spec->lanes), cln_power_of_two_at_most(rows));
    spec->chunks = cln_divide_up(rows, ROWS * spec->segments);
    spec->block = spec->segments > 1 ? spec->lanes * spec->vec : 0;
    spec->span = 0;
}

struct cln_spec cln_group_norm_statistics_spec(const clnorm_plan *plan, const struct cln_group_norm *norm) {
    struct cln_spec spec = cln_group_norm_spec(plan, norm);
    if (spec.channel_lanes) /* each set takes channels as a segment of its own */
        divide_lanes(&spec, spec.channel_lanes);
    spec.channel_lanes = spec.piece_channels = 0;
    if (spec.span)
        divide_slice(plan, norm, &spec);
    spec.y_dtype = norm->x.scaling ? CLNORM_F32 : norm->x.dtype; /* of another kernel of the same program */
    return spec;
}
