#include "operation/norm_tiles.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "norm/fp8_rms_norm_args.h"
#include "operation/fp8.h"
#include "operation/outer.h"
#include "plan/stage.h"

typedef clnorm_norm_desc problem;

/* Whether there is nothing but x, weight and y. */
static bool is_plain(const problem *p) {
    return p->norm == CLNORM_RMS_NORM && p->group_size == p->cols && !p->gate && !p->activation && !p->bias.dtype &&
           !p->residual.dtype && !p->row_scale && p->weight_offset == 0 && p->dropout == 0 && p->weight_rows <= 1 &&
           !p->rope;
}

bool cln_norm_in_tiles(const clnorm_norm_desc *p) {
    const clnorm_tensor *const codes = cln_norm_codes(p);
    struct cln_config forced = {0};
    cln_config_open(&p->config, &forced);
    const bool rereads = !forced.keep || forced.keep == CLN_KEEP_REREAD;
    return is_plain(p) && rereads && p->x.scaling == CLNORM_SCALING_GROUP && p->cols % p->x.scale_group == 0 &&
           codes->scaling == CLNORM_SCALING_TENSOR && codes->scale == 0 && !cln_outer_given(&p->x) &&
           !cln_outer_given(&p->y);
}

struct cln_workload cln_norm_tiles_workload(const struct cln_operation *operation, const clnorm_norm_desc *p) {
    struct cln_workload work = cln_fp8_workload(operation, p, p->x.dtype, p->x.scale_group);
    work.y_scaled = true;
    return work;
}

static struct cln_spec spec_of(const clnorm_plan *plan, const problem *p) {
    struct cln_spec spec = cln_fp8_spec(&plan->context->device, &plan->config);
    spec.x_dtype = p->x.dtype;
    spec.x_scale_dtype = p->x.scale_dtype;
    spec.weight_dtype = p->weight.dtype;
    spec.q_dtype = cln_norm_codes(p)->dtype;
    spec.group_size = p->x.scale_group;
    spec.compatible = p->accuracy == CLNORM_FP8_COMPATIBLE;
    return spec;
}

/* Two rows share the weights, which are loaded and widened once; more rows take registers, so that fewer work-groups run at
 * once. A single lane spends its time on sums, not on weights. */
static uint64_t rows_at_once(const struct cln_config *config) {
    return config->lanes > 1 ? 2 : 1;
}

static const struct cln_kernel rows_kernel = CLN_KERNEL_PAIR(fp8_rms_norm_rows, fp8_rms_norm_rows, FP8_RMS_NORM_ROWS_ARGS);
static const struct cln_kernel tile_kernel = CLN_KERNEL_PAIR(fp8_rms_norm_tile, fp8_rms_norm_tile, FP8_RMS_NORM_TILE_ARGS);

/* Adds fp8_rms_norm_rows.cl. largest: the part for the largest |n| of each work-group. */
static clnorm_status add_rows(clnorm_plan *plan, const problem *p, const struct cln_launch *launch, struct cln_binding rstd,
                              struct cln_binding largest) {
    struct cln_spec spec = spec_of(plan, p);
    spec.scale_dtype = p->save_y_row_scale ? cln_norm_codes(p)->scale_dtype : CLNORM_DTYPE_NONE;
    spec.rows = rows_at_once(&plan->config);
    const struct cln_argument arguments[] = {
        cln_bind("rstd", rstd),
        cln_bind("largest", largest),
        cln_bind("row_scale", (struct cln_binding){.role = CLN_Y_ROW_SCALE}),
        cln_integer("iterations", launch->iterations),
        cln_integer("cols", p->cols),
        cln_real("eps", p->eps),
        {0},
    };
    const struct cln_stage_recipe recipe = {
        .kernel = &rows_kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = p->rows,
        .groups = launch->groups,
        .items = launch->items,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* fp8_rms_norm_tile.cl. count: the magnitudes that each work-group searches; 0: y_scale is already written. */
static clnorm_status add_tiles(clnorm_plan *plan, const problem *p, const struct cln_fp8_tile *tile,
                               struct cln_binding rstd, struct cln_binding magnitudes, cl_ulong count) {
    struct cln_spec spec = spec_of(plan, p);
    spec.scale_dtype = cln_norm_codes(p)->scale_dtype;
    spec.write_q = p->y.dtype != CLNORM_DTYPE_NONE;
    spec.transposed = p->y_t.dtype != CLNORM_DTYPE_NONE;
    cln_fp8_spec_tile(&spec, tile);
    const struct cln_argument arguments[] = {
        cln_bind("rstd", rstd),
        cln_bind("scale", (struct cln_binding){.role = CLN_Y_SCALE}),
        cln_bind("q", (struct cln_binding){.role = CLN_Y}),
        cln_bind("q_t", (struct cln_binding){.role = CLN_Y_T}),
        cln_bind("magnitudes", magnitudes),
        cln_integer("rows", p->rows),
        cln_integer("cols", p->cols),
        cln_integer("count", count),
        {0},
    };
    const struct cln_stage_recipe recipe = {
        .kernel = &tile_kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = tile->count,
        .groups = (size_t)tile->count,
        .items = (size_t)tile->lanes,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* The workspace has the largest |y| of each work-group, and rstd unless it is an output. */
clnorm_status cln_norm_add_tiles(clnorm_plan *plan, const clnorm_norm_desc *p) {
    const clnorm_device_info *const device = &plan->context->device;
    const struct cln_fp8_tile tile =
        cln_fp8_tile_of(device, &plan->config, p->rows, p->cols, p->y_t.dtype != CLNORM_DTYPE_NONE, p->y_t.stride);
    plan->tensor[CLN_Y_T].vector = tile.row_vec * plan->tensor[CLN_Y_T].element;
    plan->tensor[CLN_RSTD].read = true;
    if (!p->rows)
        return CLNORM_SUCCESS;
    const struct cln_launch launch =
        cln_fp8_launch_of_largest(device, &plan->config, cln_divide_up(p->rows, rows_at_once(&plan->config)));
    struct cln_binding magnitudes, rstd = {.role = CLN_RSTD};
    clnorm_status status = cln_plan_add_part(plan, launch.groups, sizeof(cl_float), &magnitudes);
    if (!status && !p->save_rstd)
        status = cln_plan_add_part(plan, p->rows, sizeof(cl_float), &rstd);
    if (status)
        return status;
    const struct cln_fp8_largest largest = {
        .magnitudes = magnitudes,
        .count = launch.groups,
        .q_dtype = cln_norm_codes(p)->dtype,
        .scale_dtype = cln_norm_codes(p)->scale_dtype,
        .scale = CLN_Y_SCALE,
    };
    const bool tiles_search = cln_fp8_tiles_search(&tile, largest.count);
    status = add_rows(plan, p, &launch, rstd, largest.magnitudes);
    if (!status && !tiles_search)
        status = cln_fp8_add_largest(plan, &largest);
    return status ? status : add_tiles(plan, p, &tile, rstd, largest.magnitudes, tiles_search ? largest.count : 0);
}
