#include "norm_stages.h"

#include "arithmetic.h"
#include "context.h"
#include "dropout.h"
#include "fp8.h"
#include "norm_statistics.h"
#include "status.h"

typedef clnorm_norm_desc problem;

/* s is not x alone, but made of several numbers. */
static bool is_sum(const problem *p) {
    return p->residual_dtype || p->row_scale || p->gate_first;
}

/* Scales are taken from y and written, where one is not given. */
static bool takes_scales(const problem *p) {
    return p->y_scaling == CLNORM_SCALING_ROW || p->y_scaling == CLNORM_SCALING_GROUP;
}

static enum cln_work work_of(const problem *p) {
    if (p->dropout > 0)
        return p->residual_dtype ? CLN_WORK_CHAIN : CLN_WORK_DROPOUT;
    if (p->residual_dtype)
        return CLN_WORK_ADD;
    if (takes_scales(p))
        return CLN_WORK_QUANTIZED;
    return p->gate ? CLN_WORK_GATED : CLN_WORK_NORM;
}

struct cln_workload cln_norm_workload(const problem *p) {
    const uint64_t strides = p->x_stride | p->y_stride | (p->gate ? p->z_stride : 0) |
                             (p->residual_dtype ? p->residual_stride : 0) |
                             (p->residual_out_dtype ? p->residual_out_stride : 0);
    return (struct cln_workload){
        .rows = p->rows,
        .groups = p->cols / p->group_size,
        .group_size = p->group_size,
        .alignment = cln_lowest_bit(p->group_size | strides),
        .x_size = clnorm_dtype_size(p->x_dtype),
        .held_size = is_sum(p) || p->dropout > 0 ? cln_norm_real_size(p) : clnorm_dtype_size(p->x_dtype),
        .shelf_size = is_sum(p) ? cln_norm_real_size(p) : clnorm_dtype_size(p->x_dtype),
        .norm = p->norm,
        .real_size = cln_norm_real_size(p),
        .work = work_of(p),
        .y_scaled = p->y_scaling != 0,
    };
}

/* ---------------------------------------------------------------------------------------------------------- stages */

static uint64_t shelved_of(const problem *p, const clnorm_device_info *device, const clnorm_config *c) {
    const struct cln_workload work = cln_norm_workload(p);
    return cln_config_shelved(device, &work, c);
}

/* What a work-group goes on to is its next row; what its compute unit does when it ends is as many rows away as there are
 * units. 0: it is not asked for. */
static uint64_t rows_ahead(const clnorm_device_info *device, const clnorm_config *c, uint64_t rounds) {
    if (c->prefetch != CLNORM_PREFETCH_NEXT)
        return 0;
    return rounds > 1 ? 1 : device->compute_units;
}

static struct cln_spec spec_of(const problem *p, const clnorm_device_info *device, const clnorm_config *c,
                               uint64_t rounds) {
    return (struct cln_spec){
        .family = CLN_NORM_FORWARD,
        .norm = p->norm,
        .group_size = p->group_size,
        .groups = p->cols / p->group_size,
        .x_dtype = p->x_dtype,
        .y_dtype = p->y_dtype,
        .z_dtype = p->z_dtype,
        .weight_dtype = p->weight_dtype,
        .bias_dtype = p->bias_dtype,
        .gate = p->gate,
        .gate_first = p->gate_first,
        .weight_offset = p->weight_offset != 0,
        .save_mean = p->save_mean,
        .save_rstd = p->save_rstd,
        .residual_dtype = p->residual_dtype,
        .residual_out_dtype = p->residual_out_dtype,
        .row_scale = p->row_scale,
        .dropout = p->dropout > 0,
        .save_mask = p->save_mask,
        .activation = p->activation,
        .scaling = p->y_scaling,
        .y_group = p->y_group_size,
        .fp8_isa = cln_fp8_isa(device, c),
        .vec = c->vec,
        .lanes = c->lanes,
        .segments = c->segments,
        .keep = c->keep,
        .unroll = c->unroll,
        .reduce = c->reduce,
        .stores = c->stores,
        .weights = c->weights,
        .isa = c->isa,
        .shelved = shelved_of(p, device, c),
        .registers = c->registers,
        .rows_ahead = rows_ahead(device, c, rounds),
        .asked = c->asked,
        .loop = rounds > 1,
        .chunks = cln_larger(c->chunks, 1),
        .element_aligned = cln_config_element_aligned(device, c),
        .opencl_c = c->reduce == CLNORM_REDUCE_SUBGROUP ? device->opencl_c_version : 120,
    };
}

/* A kernel over all segments, or over all of their chunks. */
struct kernel {
    const struct cln_source *source;
    const char *name;
};

static const struct kernel whole_segments = {&cln_source_norm_forward, "norm_forward"};
static const struct kernel chunk_moments = {&cln_source_norm_forward_chunks, "norm_forward_moments"};
static const struct kernel chunk_apply = {&cln_source_norm_forward_chunks, "norm_forward_apply"};

/* Where the statistics go: those of segments, and of chunks. */
struct parts {
    struct cln_binding mean, rstd, moments;
};

static clnorm_status add_kernel(clnorm_plan *plan, const problem *p, const clnorm_config *c, const struct kernel *kernel,
                                struct parts parts) {
    const struct cln_binding binding[] = {
        {.role = CLN_X},
        cln_role_if(p->weight_dtype, CLN_WEIGHT),
        cln_role_if(p->bias_dtype, CLN_BIAS),
        cln_role_if(p->z_dtype, CLN_Z),
        cln_role_if(p->y_dtype, CLN_Y),
        cln_binding_if(p->save_mean, parts.mean),
        cln_binding_if(p->save_rstd, parts.rstd),
        cln_role_if(p->residual_dtype, CLN_RESIDUAL),
        cln_role_if(p->row_scale, CLN_ROW_SCALE),
        cln_role_if(p->residual_out_dtype, CLN_RESIDUAL_OUT),
        cln_role_if(p->save_mask, CLN_DROPOUT_MASK),
        cln_role_if(takes_scales(p), CLN_Y_SCALE),
        cln_binding_if(c->chunks > 1, parts.moments),
    };
    const cl_ulong work = p->rows * (p->cols / p->group_size) * cln_larger(c->chunks, 1);
    const cl_ulong blocks = (work - 1) / c->segments + 1;
    const cl_ulong least_rounds = (blocks - 1) / CLN_MOST_GROUPS + 1;
    const cl_ulong rounds = c->rounds > least_rounds ? c->rounds : least_rounds;
    const struct cln_spec spec = spec_of(p, &plan->context->device, c, rounds);
    const bool is_double = p->x_dtype == CLNORM_F64;
    const double scale = cln_dropout_scale(p->dropout);
    const cl_float f[] = {(cl_float)p->eps, (cl_float)p->weight_offset, (cl_float)scale, (cl_float)p->y_scale};
    const cl_uint threshold = cln_dropout_threshold(p->dropout);
    const struct cln_constant constant[] = {
        {sizeof p->x_stride, &p->x_stride},
        {sizeof p->y_stride, &p->y_stride},
        {cln_norm_real_size(p), is_double ? (const void *)&p->eps : &f[0]},
        {cln_norm_real_size(p), is_double ? (const void *)&p->weight_offset : &f[1]},
        {sizeof p->rows, &p->rows},
        {sizeof rounds, &rounds},
        {sizeof p->z_stride, &p->z_stride},
        {sizeof p->residual_stride, &p->residual_stride},
        {sizeof p->residual_out_stride, &p->residual_out_stride},
        {cln_norm_real_size(p), is_double ? (const void *)&scale : &f[2]},
        {sizeof threshold, &threshold},
        {sizeof f[3], &f[3]},
        {0, NULL},
    };
    const struct cln_stage_recipe recipe = {
        .source = kernel->source,
        .kernel = kernel->name,
        .spec = &spec,
        .any = !spec.element_aligned,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = work,
        .groups = (size_t)((blocks - 1) / rounds + 1),
        .items = (size_t)c->lanes * c->segments,
        .constant = constant,
        .seeded = p->dropout > 0,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* Segments in chunks: the workspace holds the moments of each, [segments, chunks, 2]. */
static clnorm_status add_chunks(clnorm_plan *plan, const problem *p, struct parts parts) {
    const clnorm_status sized =
        cln_plan_set_chunks(plan, p->rows, p->cols / p->group_size, 2, cln_norm_real_size(p), &parts.moments);
    if (sized)
        return sized;
    const clnorm_status status = add_kernel(plan, p, &plan->config, &chunk_moments, parts);
    return status ? status : add_kernel(plan, p, &plan->config, &chunk_apply, parts);
}

clnorm_status cln_norm_add_stages(clnorm_plan *plan, const problem *p) {
    const struct parts parts = {{.role = CLN_MEAN}, {.role = CLN_RSTD}, {0}};
    return plan->config.chunks > 1 ? add_chunks(plan, p, parts)
                                   : add_kernel(plan, p, &plan->config, &whole_segments, parts);
}

clnorm_status cln_norm_add_statistics(clnorm_plan *plan, const clnorm_norm_backward_desc *backward, struct cln_binding mean,
                                      struct cln_binding rstd) {
    problem p = CLNORM_NORM_DESC_INIT;
    p.norm = backward->norm;
    p.rows = backward->rows;
    p.cols = backward->cols;
    p.group_size = backward->group_size;
    p.x_stride = backward->x_stride;
    p.y_stride = p.residual_out_stride = backward->cols;
    p.residual_stride = backward->residual_stride;
    p.residual_dtype = backward->residual_dtype;
    p.row_scale = backward->row_scale && !backward->s_given;
    p.dropout = backward->s_given ? 0 : backward->dropout;
    p.z_stride = backward->gate_first ? backward->z_stride : backward->cols;
    p.x_dtype = backward->x_dtype;
    p.gate = backward->gate_first ? backward->gate : CLNORM_GATE_NONE;
    p.gate_first = backward->gate_first;
    p.z_dtype = backward->gate_first ? backward->z_dtype : CLNORM_DTYPE_NONE;
    p.save_mean = backward->norm == CLNORM_LAYER_NORM;
    p.save_rstd = true;
    p.eps = backward->eps;
    const struct cln_workload work = cln_norm_workload(&p);
    const clnorm_config forced = {.vec = plan->config.vec, .isa = plan->config.isa}; /* the plan's tensors allow this vec */
    clnorm_config config = clnorm_config_automatic();
    const clnorm_status status = cln_config_choose(&plan->context->device, &work, &forced, &config);
    if (config.keep == CLNORM_KEEP_LOCAL) /* nothing is read again */
        config.keep = CLNORM_KEEP_REREAD;
    config.prefetch = CLNORM_PREFETCH_NONE; /* nothing is written that could be waited for */
    config.asked = 0;
    return status ? status : add_kernel(plan, &p, &config, &whole_segments, (struct parts){mean, rstd, {0}});
}
