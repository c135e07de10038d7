#include "norm_backward.h"

#include "arithmetic.h"
#include "context.h"
#include "dropout.h"
#include "fp8.h"
#include "norm_statistics.h"

typedef cln_backward_problem problem;

/* Of what norm_backward.cl writes a sum over rows to: slots, or the output itself. */
static clnorm_dtype sums_dtype(const problem *p, clnorm_dtype dtype, const struct cln_backward_layout *layout) {
    if (!dtype || layout->columns)
        return dtype;
    return p->x_dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
}

static struct cln_spec spec_of(const problem *p, const clnorm_device_info *device, const clnorm_config *c,
                               const struct cln_backward_layout *layout) {
    return (struct cln_spec){
        .family = CLN_NORM_BACKWARD,
        .norm = p->norm,
        .group_size = p->group_size,
        .groups = p->cols / p->group_size,
        .x_dtype = p->x_dtype,
        .y_dtype = p->y_dtype,
        .z_dtype = p->x_scale_dtype ? p->x_scale_dtype : p->z_dtype,
        .weight_dtype = p->weight_dtype,
        .bias_dtype = p->bias_dtype,
        .dy_dtype = p->dy_dtype,
        .dx_dtype = p->dx_dtype,
        .dz_dtype = p->dz_dtype,
        .gate = p->gate,
        .gate_first = p->gate_first,
        .weight_offset = p->weight_offset != 0,
        .dweight_dtype = sums_dtype(p, p->dweight_dtype, layout),
        .dbias_dtype = sums_dtype(p, p->dbias_dtype, layout),
        .accumulate = layout->columns && p->accumulate,
        .locked = layout->locked,
        .residual_dtype = p->residual_dtype,
        .dresidual_out_dtype = p->dresidual_out_dtype,
        .dresidual_dtype = p->dresidual_dtype,
        .s_given = p->s_given,
        .y_given = p->y_given,
        .row_scale = p->row_scale,
        .dropout = p->dropout > 0,
        .activation = p->activation,
        .vec = c->vec,
        .lanes = c->lanes,
        .segments = c->segments,
        .keep = c->keep,
        .unroll = c->unroll,
        .reduce = c->reduce,
        .stores = c->stores,
        .weights = c->weights,
        .isa = c->isa,
        .tile = c->tile,
        .gather = c->gather,
        .rounds = layout->rounds,
        .column_lanes = layout->column_lanes,
        .fetch = c->fetch,
        .prefetch = c->prefetch,
        .x_group = p->x_group_size,
        .fp8_isa = cln_fp8_isa(device, c),
        .span = layout->span,
        .chunks = c->chunks,
        .sums = layout->exchanged ? CLNORM_SUMS_EXCHANGED : CLNORM_SUMS_BEFORE,
        .element_aligned = cln_config_element_aligned(device, c),
        .opencl_c = c->reduce == CLNORM_REDUCE_SUBGROUP || (layout->locked && c->isa == CLNORM_ISA_PORTABLE)
                        ? device->opencl_c_version
                        : 120,
    };
}

/* The scales of an 8-bit x have z's place in the kernels. */
static enum cln_role role_of_z(const problem *p) {
    return p->x_scale_dtype ? CLN_X_SCALE : CLN_Z;
}

static struct cln_binding given_or(bool given, enum cln_role role, struct cln_binding part) {
    const struct cln_binding argument = {.role = role};
    return given ? argument : part;
}

/* A number as the kernels' real. */
struct real {
    cl_float f;
    cl_double d;
};

static struct real real_of(double value) {
    return (struct real){(cl_float)value, value};
}

static struct cln_constant real_constant(const problem *p, const struct real *real) {
    const bool is_double = p->x_dtype == CLNORM_F64;
    const struct cln_constant constant = {cln_backward_real_size(p), is_double ? (const void *)&real->d : &real->f};
    return constant;
}

/* Of a number that the kernels have a parameter for where it counts: cl/parameter.h. */
static struct cln_constant number_if(bool counts, const uint64_t *number) {
    return (struct cln_constant){counts ? sizeof *number : 0, number};
}

static struct cln_constant real_if(bool counts, const problem *p, const struct real *real) {
    return (struct cln_constant){counts ? cln_backward_real_size(p) : 0, real_constant(p, real).value};
}

/* norm_backward_sums.cl over the chunks of all segments. */
static clnorm_status add_sums(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout) {
    clnorm_config c = plan->config;
    c.segments = 1;
    if (c.reduce == CLNORM_REDUCE_SHUFFLE && c.lanes < 32)
        c.reduce = CLNORM_REDUCE_TREE;
    struct cln_spec spec = spec_of(p, &plan->context->device, &c, layout);
    const struct cln_binding binding[] = {{.role = cln_backward_role_of_x(p)},
                                          {.role = role_of_z(p)},
                                          {.role = CLN_DY},
                                          {.role = CLN_WEIGHT},
                                          {.role = CLN_BIAS},
                                          {.role = CLN_RESIDUAL},
                                          {.role = CLN_ROW_SCALE},
                                          given_or(p->mean_given, CLN_MEAN, layout->mean),
                                          given_or(p->rstd_given, CLN_RSTD, layout->rstd),
                                          layout->sums};
    const cl_ulong work = p->rows * (p->cols / p->group_size) * c.chunks;
    const cl_ulong rounds = cln_divide_up(work, CLN_MOST_GROUPS);
    const struct real weight_offset = real_of(p->weight_offset), kept_scale = real_of(cln_dropout_scale(p->dropout));
    const cl_uint threshold = cln_dropout_threshold(p->dropout);
    const struct cln_constant constant[] = {
        {sizeof p->rows, &p->rows},           {sizeof rounds, &rounds},
        {sizeof p->x_stride, &p->x_stride},   {sizeof p->z_stride, &p->z_stride},
        {sizeof p->dy_stride, &p->dy_stride}, {sizeof p->residual_stride, &p->residual_stride},
        real_constant(p, &weight_offset),     real_constant(p, &kept_scale),
        {sizeof threshold, &threshold},       {0, NULL},
    };
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_norm_backward_sums,
        .kernel = "norm_backward_sums",
        .any = !spec.element_aligned,
        .spec = &spec,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = work,
        .groups = (size_t)cln_divide_up(work, rounds),
        .items = c.lanes,
        .constant = constant,
        .seeded = p->dropout > 0,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* norm_backward.cl's kernel that opens all locks and empties all boxes. */
static clnorm_status add_clear(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout) {
    const struct cln_spec spec = spec_of(p, &plan->context->device, &plan->config, layout);
    const cl_ulong work = layout->lock_words;
    const size_t items = (size_t)plan->config.lanes * plan->config.segments;
    const struct cln_constant constant[] = {{0, NULL}};
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_norm_backward,
        .kernel = "norm_backward_clear",
        .spec = &spec,
        .binding = &layout->locks,
        .tensors = 1,
        .work = work,
        .groups = (size_t)cln_smaller(cln_divide_up(work, items), 1024),
        .items = items,
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* norm_backward.cl over all rows. */
static clnorm_status add_walk(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout) {
    const clnorm_config *c = &plan->config;
    const struct cln_spec spec = spec_of(p, &plan->context->device, c, layout);
    const struct cln_binding binding[] = {
        {.role = cln_backward_role_of_x(p)},
        cln_role_if(p->z_dtype || p->x_scale_dtype, role_of_z(p)),
        {.role = CLN_DY},
        cln_role_if(p->weight_dtype, CLN_WEIGHT),
        cln_role_if(p->bias_dtype, CLN_BIAS),
        cln_binding_if(p->norm == CLNORM_LAYER_NORM && !p->y_given, given_or(p->mean_given, CLN_MEAN, layout->mean)),
        given_or(p->rstd_given, CLN_RSTD, layout->rstd),
        cln_binding_if(layout->split, layout->sums),
        cln_role_if(p->dx_dtype, CLN_DX),
        cln_role_if(p->dz_dtype, CLN_DZ),
        cln_role_if(p->y_dtype, CLN_Y),
        cln_binding_if(p->dweight_dtype, given_or(layout->columns, CLN_DWEIGHT, layout->dweight)),
        cln_binding_if(p->dbias_dtype, given_or(layout->columns, CLN_DBIAS, layout->dbias)),
        cln_binding_if(layout->locked || layout->exchanged, layout->locks),
        cln_role_if(p->residual_dtype, CLN_RESIDUAL),
        cln_role_if(p->row_scale, CLN_ROW_SCALE),
        cln_role_if(p->dresidual_out_dtype, CLN_DRESIDUAL_OUT),
        cln_role_if(p->dresidual_dtype, CLN_DRESIDUAL),
        cln_role_if(p->y_given, CLN_FAULT),
    };
    const cl_ulong share = layout->share, slots = layout->slots;
    const struct real weight_offset = real_of(p->weight_offset), kept_scale = real_of(cln_dropout_scale(p->dropout));
    const cl_uint threshold = cln_dropout_threshold(p->dropout);
    const struct cln_constant constant[] = {
        number_if(slots, &slots),
        number_if(true, &p->x_stride),
        number_if(p->z_dtype || p->x_scale_dtype, &p->z_stride),
        number_if(true, &p->dy_stride),
        number_if(p->dx_dtype, &p->dx_stride),
        number_if(p->dz_dtype, &p->dz_stride),
        number_if(p->y_dtype, &p->y_stride),
        number_if(p->residual_dtype, &p->residual_stride),
        number_if(p->dresidual_out_dtype, &p->dresidual_out_stride),
        number_if(p->dresidual_dtype, &p->dresidual_stride),
        real_if(p->weight_offset != 0, p, &weight_offset),
        real_if(p->dropout > 0, p, &kept_scale),
        {p->dropout > 0 ? sizeof threshold : 0, &threshold},
        number_if(true, &share),
        {0, NULL},
    };
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_norm_backward,
        .kernel = "norm_backward",
        .any = !spec.element_aligned,
        .spec = &spec,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = p->rows,
        .groups = (size_t)(layout->columns + layout->blocks * layout->walkers),
        .items = (size_t)c->lanes * c->segments,
        .readers = (size_t)layout->columns,
        .constant = constant,
        .seeded = p->dropout > 0,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* norm_backward_reduce.cl over the columns. */
static clnorm_status add_reduce(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout) {
    const clnorm_device_info *device = &plan->context->device;
    const bool cpu = cln_config_element_aligned(device, &plan->config);
    const uint64_t most_items = cln_power_of_two_at_most(device->max_work_group_size);
    const uint64_t lanes = cpu ? 1 : cln_smaller(8, most_items);
    const struct cln_spec spec = {
        .family = CLN_NORM_BACKWARD_REDUCE,
        .group_size = p->cols,
        .x_dtype = p->x_dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32,
        .dweight_dtype = p->dweight_dtype,
        .dbias_dtype = p->dbias_dtype,
        .accumulate = p->accumulate,
        .vec = layout->reduce_vec,
        .lanes = lanes,
        .segments = cpu ? 1 : cln_smaller(64, most_items / lanes),
        .unroll = 4,
        .stores = plan->config.stores,
        .isa = plan->config.isa,
        .element_aligned = cpu,
        .opencl_c = 120,
    };
    const struct cln_binding binding[] = {layout->dweight, layout->dbias, {.role = CLN_DWEIGHT}, {.role = CLN_DBIAS}};
    const uint64_t tiles = cln_divide_up(p->cols, spec.vec * lanes);
    const cl_ulong slots = layout->slots;
    const struct cln_constant constant[] = {{sizeof slots, &slots}, {0, NULL}};
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_norm_backward_reduce,
        .kernel = "norm_backward_reduce",
        .any = !cpu,
        .spec = &spec,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = p->cols,
        .groups = (size_t)(tiles * (p->dweight_dtype && p->dbias_dtype ? 2 : 1)),
        .items = (size_t)(lanes * spec.segments),
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

clnorm_status cln_backward_add_stages(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout) {
    const bool gathers = p->dweight_dtype || p->dbias_dtype;
    const bool walks = p->rows > 0;
    clnorm_status status = CLNORM_SUCCESS;
    if (p->y_given)
        status = cln_backward_add_check(plan, p);
    if (!status && walks && !p->rstd_given)
        status = cln_norm_add_statistics(plan, p, layout->mean, layout->rstd);
    if (!status && walks && layout->split)
        status = add_sums(plan, p, layout);
    if (!status && walks && layout->lock_words)
        status = add_clear(plan, p, layout);
    if (!status && walks)
        status = add_walk(plan, p, layout);
    if (!status && gathers && (walks ? !layout->columns : !p->accumulate))
        status = add_reduce(plan, p, layout);
    return status;
}
