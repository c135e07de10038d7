#include "operation/norm_stages.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/dtype.h"
#include "config/resources.h"
#include "device/driver_defects.h"
#include "norm/norm_forward_args.h"
#include "operation/dropout.h"
#include "operation/fp8.h"
#include "operation/launch.h"
#include "operation/norm_statistics.h"
#include "operation/norm_tiles.h"
#include "operation/operations.h"
#include "operation/rope.h"
#include "operation/weight_map.h"
#include "plan/stage.h"

typedef clnorm_norm_desc problem;

/* Whether s, which is normalised, is computed from several numbers instead of being x as it is stored. */
static bool is_made(const problem *p) {
    return p->residual.dtype || p->row_scale || p->gate_first || p->x.scaling;
}

/* Whether the scales of rows or groups are measured. */
static bool takes_scales(const clnorm_tensor *y) {
    return y->scaling == CLNORM_SCALING_ROW || y->scaling == CLNORM_SCALING_GROUP;
}

/* Whether one scale for all of y is measured. */
static bool takes_whole_scale(const clnorm_tensor *y) {
    return y->scaling == CLNORM_SCALING_TENSOR && y->scale == 0;
}

static enum cln_kind kind_of(const problem *p) {
    if (p->dropout > 0)
        return p->residual.dtype ? CLN_KIND_CHAIN : CLN_KIND_DROPOUT;
    if (p->residual.dtype)
        return CLN_KIND_ADD;
    if (takes_scales(cln_norm_codes(p)))
        return CLN_KIND_QUANTIZED;
    return p->gate ? CLN_KIND_GATED : CLN_KIND_NORM;
}

struct cln_workload cln_norm_workload(const struct cln_operation *operation, const void *desc) {
    const problem *const p = desc;
    if (cln_norm_in_tiles(p))
        return cln_norm_tiles_workload(operation, p);
    const struct cln_rope rope = CLN_ROPE_OF(p);
    return (struct cln_workload){
        .users = CLN_KNOBS_FORWARD,
        .rows = p->rows,
        .groups = p->cols / p->group_size,
        .group_size = p->group_size,
        .alignment = cln_lowest_bit(p->group_size | cln_operation_strides(operation, desc) | cln_rope_strides(&rope)),
        .lead_vec = p->rope || p->weight_rows > 1 ? 0 : cln_operation_lead_vec(operation, desc),
        .x_size = clnorm_dtype_size(p->x.dtype),
        .held_size = is_made(p) || p->dropout > 0 ? cln_dtype_real_size(p->x.dtype) : clnorm_dtype_size(p->x.dtype),
        .local_size = is_made(p) ? cln_dtype_real_size(p->x.dtype) : clnorm_dtype_size(p->x.dtype),
        .norm = p->norm,
        .real_size = cln_dtype_real_size(p->x.dtype),
        .kind = kind_of(p),
        .y_scaled = cln_norm_codes(p)->scaling != CLNORM_SCALING_NONE,
        .rope = p->rope,
        .rope_dims = p->rope_dims,
    };
}

clnorm_status cln_norm_choose(const clnorm_device_info *device, const struct cln_workload *work,
                              const struct cln_config *forced, struct cln_config *config) {
    if (!work->whole)
        return cln_config_choose(device, work, forced, config);
    const clnorm_status status = cln_fp8_config(device, work, forced, config);
    return status || config->vec >= 4 ? status : cln_refuse_defect(device, CLN_DEFECT_NARROW_TILES);
}

/* ---------------------------------------------------------------------------------------------------------- stages */

enum cln_role cln_role_of_rstd(clnorm_norm norm) {
    return (int)norm >= CLN_L2_NORM ? CLN_NORM : CLN_RSTD;
}

void cln_norm_spec_norm(clnorm_norm norm, struct cln_spec *spec) {
    spec->floored = (int)norm == CLN_FLOORED_L2_NORM;
    spec->norm = spec->floored ? CLN_L2_NORM : norm;
}

/* A y with one measured scale takes two launches: one measures the largest |y|, the next writes y by the scale. */
enum pass { PASS_ONLY, PASS_MEASURE, PASS_CODES };

static struct cln_spec spec_of(const problem *p, const clnorm_device_info *device, const struct cln_config *c,
                               const struct cln_workload *work, enum pass pass, uint64_t iterations) {
    struct cln_spec spec = {
        .family = CLN_NORM_FORWARD,
        .group_size = p->group_size,
        .groups = p->cols / p->group_size,
        .x_dtype = p->x.dtype,
        .x_scale_dtype = p->x.scale_dtype,
        .x_scaling = p->x.scaling,
        .x_group = p->x.scale_group,
        .y_dtype = p->y.dtype,
        .z_dtype = p->z.dtype,
        .weight_dtype = p->weight.dtype,
        .bias_dtype = p->bias.dtype,
        .gate = p->gate,
        .gate_first = p->gate_first,
        .weight_offset = p->weight_offset != 0,
        .weight_map = p->weight_rows > 1,
        .columns_of_weight = work->columns_of_weight,
        .save_mean = p->save_mean,
        .save_rstd = p->save_rstd,
        .y_scales = takes_scales(&p->y) || pass == PASS_CODES,
        .residual_dtype = p->residual.dtype,
        .residual_out_dtype = p->residual_out.dtype,
        .row_scale = p->row_scale,
        .dropout = p->dropout > 0,
        .save_mask = p->save_mask,
        .activation = p->activation,
        .scaling = p->y.scaling,
        .y_group = p->y.scale_group,
        .scale_dtype = p->y.scale == 0 ? p->y.scale_dtype : CLNORM_DTYPE_NONE,
        .writes_y = p->y.dtype && pass != PASS_MEASURE,
        .measures = pass == PASS_MEASURE,
        .save_y_row_scale = p->save_y_row_scale,
        .compatible = p->accuracy == CLNORM_FP8_COMPATIBLE,
        .fp8_isa = cln_fp8_isa(device, c),
        .local_vectors = cln_config_local_vectors(device, work, c),
        .loop = iterations > 1,
    };
    cln_norm_spec_norm(p->norm, &spec);
    cln_launch_spec(device, c, &spec);
    spec.leads = cln_leads(work, c);
    return spec;
}

struct cln_spec cln_norm_spec(const clnorm_plan *plan, const clnorm_norm_desc *p, const struct cln_workload *work,
                              uint64_t iterations) {
    return spec_of(p, &plan->context->device, &plan->config, work, PASS_ONLY, iterations);
}

/* Kernels over all segments, or over all of their chunks. */
static const struct cln_kernel whole_segments = CLN_KERNEL_PAIR(norm_forward, norm_forward, NORM_FORWARD_ARGS);
static const struct cln_kernel chunk_moments =
    CLN_KERNEL_PAIR(norm_forward_chunks, norm_forward_moments, NORM_FORWARD_MOMENTS_ARGS);
static const struct cln_kernel chunk_apply =
    CLN_KERNEL_PAIR(norm_forward_chunks, norm_forward_apply, NORM_FORWARD_APPLY_ARGS);

/* Where a kernel writes statistics of segments and of chunks, y, and the largest |y| of each work-group. */
struct parts {
    struct cln_binding mean, rstd, moments, y, magnitudes;
    enum pass pass;
};

/* The statistics and y of the caller. */
static struct parts outputs_of(const problem *p) {
    return (struct parts){.mean = {.role = CLN_MEAN}, .rstd = {.role = cln_role_of_rstd(p->norm)}, .y = {.role = CLN_Y}};
}

/* Segments, or their chunks. */
static uint64_t units_of(const problem *p, const struct cln_config *c) {
    return p->rows * (p->cols / p->group_size) * cln_larger(c->chunks, 1);
}

/* Work-groups that go through the segments, or their chunks. A measuring launch has fewer, as later kernels search the
 * largest |y| of each. */
static struct cln_launch launch_of(const clnorm_plan *plan, const problem *p, const struct cln_config *c, enum pass pass) {
    const uint64_t units = units_of(p, c);
    return pass == PASS_MEASURE ? cln_fp8_launch_of_largest(&plan->context->device, c, units) : cln_launch_of(c, units);
}

static clnorm_status add_kernel(clnorm_plan *plan, const problem *p, const struct cln_workload *work,
                                const struct cln_config *c, const struct cln_kernel *kernel, struct parts parts) {
    const struct cln_launch launch = launch_of(plan, p, c, parts.pass);
    const struct cln_rope rope = CLN_ROPE_OF(p);
    struct cln_spec spec = spec_of(p, &plan->context->device, c, work, parts.pass, launch.iterations);
    cln_rope_spec(&rope, &spec);
    const struct cln_arguments dropout = cln_dropout_arguments(p->dropout);
    const struct cln_arguments map =
        cln_weight_map_arguments(p->weight_rows, p->weight_repeat, p->weight.stride, p->bias.stride);
    const struct cln_argument arguments[] = {
        cln_bind("mean", parts.mean),
        cln_bind("rstd", parts.rstd),
        cln_bind_part("y", parts.y, p->y.stride),
        cln_bind("magnitudes", parts.magnitudes),
        cln_real("eps", p->eps),
        cln_integer("rows", p->rows),
        cln_integer("iterations", launch.iterations),
        cln_real("weight_offset", p->weight_offset),
        cln_include(map.list),
        cln_real("y_given", p->y.scale),
        cln_include(dropout.list),
        cln_integer("rope_positions", p->rope_positions),
        c->chunks > 1 ? cln_bind("moments", parts.moments) : (struct cln_argument){0},
        {0},
    };
    const struct cln_stage_recipe recipe = {
        .kernel = kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = units_of(p, c),
        .groups = launch.groups,
        .items = launch.items,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* Adds the kernels for segments in chunks. The workspace holds the moments of each chunk, [segments, chunks, 2]. */
static clnorm_status add_chunks(clnorm_plan *plan, const problem *p, const struct cln_workload *work) {
    struct parts parts = outputs_of(p);
    clnorm_status status = cln_plan_add_chunks(plan, 2, &parts.moments);
    if (!status)
        status = add_kernel(plan, p, work, &plan->config, &chunk_moments, parts);
    return status ? status : add_kernel(plan, p, work, &plan->config, &chunk_apply, parts);
}

/* The first pass over a y with one scale, which writes the largest |y| of each work-group and y_row_scale alone, and the
 * kernel that makes the scale. */
static clnorm_status add_measure(clnorm_plan *plan, const problem *p, const struct cln_workload *work, struct parts parts) {
    problem measured = *p;
    measured.save_mean = measured.save_rstd = measured.save_mask = 0;
    measured.residual_out = (clnorm_tensor)CLNORM_TENSOR_NONE;
    parts.pass = PASS_MEASURE;
    const clnorm_status status = add_kernel(plan, &measured, work, &plan->config, &whole_segments, parts);
    const struct cln_fp8_largest largest = {
        .magnitudes = parts.magnitudes,
        .count = parts.magnitudes.size / sizeof(cl_float),
        .q_dtype = p->y.dtype,
        .scale_dtype = p->y.scale_dtype,
        .scale = CLN_Y_SCALE,
    };
    return status ? status : cln_fp8_add_largest(plan, &largest);
}

/* Lays out the workspace: the largest |y| of each work-group, and y where only its transposed copy is an output. */
static clnorm_status lay_out(clnorm_plan *plan, const problem *p, bool keeps_y, struct parts *parts) {
    clnorm_status status = CLNORM_SUCCESS;
    if (takes_whole_scale(&p->y))
        status = cln_plan_add_part(plan, launch_of(plan, p, &plan->config, PASS_MEASURE).groups, sizeof(cl_float),
                                   &parts->magnitudes);
    if (!status && keeps_y)
        status = cln_plan_add_part(plan, p->rows * p->cols, 1, &parts->y); /* no more than y_t has */
    return status;
}

/* p: has a y. keeps_y: it is a part of the workspace. */
static clnorm_status add_segments(clnorm_plan *plan, const problem *p, const struct cln_workload *work, bool keeps_y) {
    struct parts parts = outputs_of(p);
    clnorm_status status = lay_out(plan, p, keeps_y, &parts);
    if (!status && takes_whole_scale(&p->y)) {
        status = add_measure(plan, p, work, parts);
        parts.pass = PASS_CODES;
    }
    problem last = *p;
    last.save_y_row_scale = 0;
    if (!status)
        status = add_kernel(plan, &last, work, &plan->config, &whole_segments, parts);
    return status || !p->y_t.dtype ? status : cln_fp8_add_transpose(plan, &p->y, parts.y, &p->y_t, p->rows, p->cols);
}

clnorm_status cln_norm_add_stages(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    problem p = *(const problem *)desc;
    plan->tensor[CLN_Y].read = p.y_t.dtype != CLNORM_DTYPE_NONE; /* most configs transpose y */
    if (cln_norm_in_tiles(&p))
        return cln_norm_add_tiles(plan, &p);
    const bool keeps_y = !p.y.dtype;
    if (keeps_y) {
        p.y = p.y_t;
        p.y.stride = p.cols;
    }
    plan->tensor[CLN_RESIDUAL_OUT].read = true; /* some configs read s again from it */
    plan->seeding = p.dropout > 0 ? CLN_SEED_ARGS : CLN_SEED_NONE;
    if (!p.rows)
        return CLNORM_SUCCESS;
    return plan->config.chunks > 1 ? add_chunks(plan, &p, work) : add_segments(plan, &p, work, keeps_y);
}

clnorm_status cln_norm_add_statistics(clnorm_plan *plan, const clnorm_norm_backward_desc *backward, struct cln_binding mean,
                                      struct cln_binding rstd) {
    problem p = CLNORM_NORM_DESC_INIT;
    p.norm = backward->norm;
    p.rows = backward->rows;
    p.cols = backward->cols;
    p.group_size = backward->group_size;
    p.x = backward->x;
    p.residual = backward->residual;
    p.row_scale = backward->row_scale && !backward->s_given;
    p.dropout = backward->s_given ? 0 : backward->dropout;
    p.gate_first = backward->gate_first;
    if (backward->gate_first) {
        p.gate = backward->gate;
        p.z = backward->z;
    }
    p.save_mean = backward->norm == CLNORM_LAYER_NORM;
    p.save_rstd = true;
    p.eps = backward->eps;
    struct cln_workload work = cln_norm_workload(&cln_norm_forward, &p);
    work.any_address = plan->work.any_address;
    if (!cln_leads(&plan->work, &plan->config)) /* else a row's bits would depend on more than the plan's config */
        work.lead_vec = 0;
    const struct cln_config forced = {
        .vec = plan->config.vec, .isa = plan->config.isa, .chunks = 1}; /* the plan's tensors allow this vec */
    struct cln_config config = {0};
    const clnorm_config none = CLNORM_CONFIG_AUTOMATIC;
    const struct cln_workload many = cln_config_many_rows(&work);
    clnorm_status status =
        cln_config_choose(&plan->context->device, backward->batch_invariant ? &many : &work, &forced, &config);
    if (!status && backward->batch_invariant)
        status = cln_config_share_out(cln_config_choose, &plan->context->device, &work, &none, &config);
    if (config.keep == CLN_KEEP_LOCAL) /* no row is read again for y */
        config.keep = CLN_KEEP_REREAD;
    return status ? status
                  : add_kernel(plan, &p, &work, &config, &whole_segments, (struct parts){.mean = mean, .rstd = rstd});
}
