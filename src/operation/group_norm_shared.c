#include <inttypes.h>

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/status.h"
#include "config/group_parts.h"
#include "config/group_registers.h"
#include "norm/group_norm_args.h"
#include "operation/fp8.h"
#include "operation/group_norm.h"
#include "operation/launch.h"
#include "plan/tensor.h"

clnorm_layout cln_group_norm_layout(uint64_t cols, clnorm_layout layout) {
    return cols == 1 ? CLNORM_LAYOUT_FIRST : layout;
}

clnorm_status cln_group_norm_prepare(const struct cln_group_norm *norm) {
    uint64_t sample;
    if (!norm->spatial)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.spatial is 0: expected 1 or more");
    if (!norm->groups || norm->cols % norm->groups)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.groups is %" PRIu64 ": expected a divisor of cols, %" PRIu64,
                        norm->groups, norm->cols);
    if (__builtin_mul_overflow(norm->cols, norm->spatial, &sample) || sample > INT64_MAX)
        return cln_fail(CLNORM_OVERFLOW, "desc.spatial is %" PRIu64 ": expected less than 2^63 elements with cols %" PRIu64,
                        norm->spatial, norm->cols);
    return CLNORM_SUCCESS;
}

clnorm_status cln_group_norm_check_scales(const char *name, const clnorm_tensor *tensor) {
    return tensor->scaling == CLNORM_SCALING_GROUP
               ? cln_fail(CLNORM_UNSUPPORTED,
                          "desc.%s.scaling is %d, CLNORM_SCALING_GROUP: expected a scale for the tensor or a row, which is "
                          "a sample",
                          name, (int)tensor->scaling)
               : CLNORM_SUCCESS;
}

clnorm_status cln_group_norm_describe_statistics(const struct cln_operation *operation, const void *desc,
                                                 const struct cln_group_norm *norm, bool mean, bool rstd,
                                                 struct cln_tensor tensor[CLN_ROLES]) {
    const uint64_t size = cln_operation_real_size(operation, desc), count = norm->rows * norm->groups;
    clnorm_status status = mean ? cln_tensor_vector(&tensor[CLN_MEAN], "mean", count, size, 0) : CLNORM_SUCCESS;
    if (!status && rstd)
        status = cln_tensor_vector(&tensor[CLN_RSTD], "rstd", count, size, 0);
    tensor[CLN_MEAN].read = tensor[CLN_RSTD].read = true; /* in the forward by chunks */
    return status;
}

/* Bytes of one element of every input: those that a cache holds for each element of a segment. */
static uint64_t input_bytes(const struct cln_operation *operation, const void *desc) {
    uint64_t bytes = 0;
    for (unsigned i = 0; i < operation->tensor_count; i++)
        if (operation->tensors[i].extent == CLN_MATRIX && !operation->tensors[i].output)
            bytes += clnorm_dtype_size(cln_operation_tensor(&operation->tensors[i], desc)->dtype);
    return bytes;
}

struct cln_workload cln_group_norm_workload(const struct cln_operation *operation, const void *desc,
                                            const struct cln_group_norm *norm) {
    const bool last = norm->layout == CLNORM_LAYOUT_LAST;
    return (struct cln_workload){
        .users = CLN_KNOBS_GROUP,
        .rows = norm->rows,
        .groups = norm->groups,
        .group_size = norm->cols / norm->groups * norm->spatial,
        .channels = norm->cols,
        .channels_of_group = norm->cols / norm->groups,
        .spatial = norm->spatial,
        .channels_last = last,
        .alignment = cln_lowest_bit(cln_operation_strides(operation, desc)),
        .x_size = clnorm_dtype_size(norm->x.dtype),
        .held_size = input_bytes(operation, desc),
        .norm = CLNORM_LAYER_NORM,
        .real_size = cln_operation_real_size(operation, desc),
    };
}

void cln_group_norm_tuning_key(const struct cln_group_norm *norm, struct cln_tuning_key *key) {
    key->spatial = norm->spatial;
    key->groups = norm->groups;
    key->channels_last = norm->layout == CLNORM_LAYOUT_LAST;
}

struct cln_spec cln_group_norm_spec(const clnorm_plan *plan, const struct cln_group_norm *norm) {
    const struct cln_config *const c = &plan->config;
    const clnorm_device_info *const device = &plan->context->device;
    struct cln_spec spec = {
        .family = CLN_GROUP_NORM,
        .group_size = plan->work.group_size,
        .groups = norm->groups,
        .channels = norm->cols,
        .spatial = norm->spatial,
        .layout = norm->layout,
        .x_dtype = norm->x.dtype,
        .x_scaling = norm->x.scaling,
        .x_scale_dtype = norm->x.scale_dtype,
        .fp8_isa = norm->x.scaling ? cln_fp8_isa(device, c) : 0,
        .span = cln_config_slice_groups(&plan->work, c),
    };
    cln_launch_spec(device, c, &spec);
    const struct cln_channel_piece piece = cln_channel_piece(&plan->work, c);
    const uint64_t of_channel = cln_larger(cln_config_channel_chunks(&plan->work, c), 1);
    const bool of_segment = spec.span || cln_group_holds_pieces(&plan->work, c);
    spec.channel_lanes = piece.lanes;
    spec.piece_channels = piece.lanes ? piece.channels : 0;
    spec.chunks = piece.lanes ? piece.chunks : of_segment ? c->chunks : of_channel;
    spec.row_positions = cln_config_row_positions(&plan->work, c);
    spec.block = cln_group_block(&plan->work, c);
    return spec;
}

/* -------------------------------------------------------------------------------------------------------- workspace */

/* Whether the moments of a block are merged by group: a part is of a group, not of a channel. */
static bool merges_groups(const struct cln_spec *spec) {
    return spec->block && spec->row_positions == 1;
}

uint64_t cln_group_norm_part_rows(const struct cln_group_norm *norm, const struct cln_spec *spec) {
    return merges_groups(spec) ? norm->groups + cln_divide_up(norm->cols, spec->block) : norm->cols;
}

uint64_t cln_group_norm_row_parts(const struct cln_spec *spec) {
    return spec->chunks * spec->row_positions;
}

/* Parts of a group, at most. */
static uint64_t entries_of(const struct cln_group_norm *norm, const struct cln_spec *spec) {
    const uint64_t block = merges_groups(spec) ? spec->block : 0;
    return cln_group_part_rows(norm->cols / norm->groups, block) * cln_group_norm_row_parts(spec);
}

clnorm_status cln_group_norm_parts(clnorm_plan *plan, uint64_t rows, uint64_t row_parts, struct cln_binding *part) {
    return cln_plan_add_part(plan, cln_product(rows, 2 * row_parts), plan->work.real_size, part);
}

/* ---------------------------------------------------------------------------------------------------------- kernels */

/* Whether all segments of a work-group share its unit, as with channels last where it holds no slices: see PHASES in
 * cl/norm/group_norm.h. */
static bool shares_units(const struct cln_spec *spec) {
    return spec->layout == CLNORM_LAYOUT_LAST && spec->lanes > 1 && !spec->span;
}

static clnorm_status add(clnorm_plan *plan, const struct cln_spec *spec, const struct cln_group_norm_stage *stage,
                         bool reduces) {
    const uint64_t blocks = !reduces && shares_units(spec) ? stage->work : cln_divide_up(stage->work, spec->segments);
    const uint64_t wish = reduces ? 1 : plan->config.iterations;
    const uint64_t iterations = cln_launch_iterations(wish, blocks, CLN_MOST_GROUPS);
    const struct cln_argument arguments[] = {cln_integer("iterations", iterations), cln_include(stage->arguments), {0}};
    const struct cln_stage_recipe recipe = {
        .kernel = stage->kernel,
        .spec = spec,
        .arguments = arguments,
        .work = stage->work,
        .groups = (size_t)cln_divide_up(blocks, iterations),
        .items = (size_t)(spec->lanes * spec->segments),
    };
    return cln_plan_add_stage(plan, &recipe);
}

clnorm_status cln_group_norm_add(clnorm_plan *plan, const struct cln_spec *spec, const struct cln_group_norm_stage *stage) {
    return add(plan, spec, stage, false);
}

clnorm_status cln_group_norm_add_reduction(clnorm_plan *plan, const struct cln_spec *spec,
                                           const struct cln_group_norm_stage *stage, uint64_t terms) {
    enum { MOST_LANES = 256, ITEMS = 256 };
    const clnorm_device_info *const device = &plan->context->device;
    const bool alone = device->kind == CLNORM_DEVICE_CPU;
    struct cln_spec own = *spec;
    own.lanes = alone ? 1
                      : cln_smaller(cln_power_of_two_at_most(cln_smaller(terms, MOST_LANES)),
                                    cln_power_of_two_at_most(device->max_work_group_size));
    own.segments = alone ? 1 : cln_larger(cln_smaller(ITEMS, device->max_work_group_size) / own.lanes, 1);
    own.reduce = spec->reduce == CLN_REDUCE_SHUFFLE ? CLN_REDUCE_SHUFFLE : CLN_REDUCE_TREE;
    own.merges = 0;
    own.opencl_c = 120;
    return add(plan, &own, stage, true);
}

uint64_t cln_group_norm_units(const struct cln_group_norm *norm, const struct cln_spec *spec) {
    const uint64_t held = spec->lanes == 1 ? MOST_HELD_VECTORS : spec->lanes;
    const uint64_t row = norm->cols * spec->row_positions; /* of channels last */
    const uint64_t blocks = cln_divide_up(cln_divide_up(row, spec->vec), held);
    return norm->rows * spec->chunks * (norm->layout == CLNORM_LAYOUT_LAST ? blocks : norm->cols);
}

uint64_t cln_group_norm_pieces(const struct cln_group_norm *norm, const struct cln_spec *spec) {
    const uint64_t of_group = spec->piece_channels ? norm->cols / norm->groups / spec->piece_channels : 1;
    const uint64_t of_sample = cln_product(spec->span ? norm->groups / spec->span : norm->groups * of_group, spec->chunks);
    return cln_product(norm->rows, of_sample);
}

struct cln_spec cln_group_norm_without_parts(const struct cln_group_norm *norm, const struct cln_spec *spec) {
    enum { VECTORS = 32 }; /* of a lane, at most */
    struct cln_spec own = *spec;
    const uint64_t rows = norm->spatial / spec->row_positions;
    if (shares_units(spec))
        own.chunks = cln_larger(spec->chunks, cln_divide_up(rows, VECTORS * spec->segments));
    return own;
}

uint64_t cln_group_norm_magnitudes(const struct cln_group_norm *norm, const struct cln_spec *spec) {
    return cln_product(cln_group_norm_units(norm, spec), shares_units(spec) ? spec->segments : 1);
}

static const struct cln_kernel moments_kernel =
    CLN_KERNEL_PAIR(group_norm_parts, group_norm_moments, GROUP_NORM_MOMENTS_ARGS);
static const struct cln_kernel merge_kernel = CLN_KERNEL(group_norm_reduce, group_norm_merge, GROUP_NORM_MERGE_ARGS);

clnorm_status cln_group_norm_add_moments(clnorm_plan *plan, const struct cln_spec *spec, const struct cln_group_norm *norm,
                                         struct cln_binding parts) {
    const struct cln_argument into[] = {cln_bind("parts", parts), {0}};
    const struct cln_group_norm_stage moments = {&moments_kernel, into, cln_group_norm_units(norm, spec)};
    return cln_group_norm_add(plan, spec, &moments);
}

clnorm_status cln_group_norm_add_statistics(clnorm_plan *plan, const struct cln_spec *spec,
                                            const struct cln_group_norm *norm, struct cln_binding parts,
                                            struct cln_binding mean, struct cln_binding rstd) {
    const struct cln_argument from[] = {
        cln_real("eps", norm->eps), cln_bind("parts", parts), cln_bind("mean", mean), cln_bind("rstd", rstd), {0}};
    const struct cln_group_norm_stage merge = {&merge_kernel, from, norm->rows * norm->groups};
    const clnorm_status status = cln_group_norm_add_moments(plan, spec, norm, parts);
    return status ? status : cln_group_norm_add_reduction(plan, spec, &merge, entries_of(norm, spec));
}
