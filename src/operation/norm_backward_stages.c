#include "operation/norm_backward_stages.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "norm/norm_backward_args.h"
#include "operation/clear_words.h"
#include "operation/dropout.h"
#include "operation/fp8.h"
#include "operation/launch.h"
#include "operation/norm_backward_from_y.h"
#include "operation/norm_backward_layout.h"
#include "operation/norm_stages.h"
#include "operation/norm_statistics.h"
#include "operation/rope.h"
#include "operation/weight_map.h"
#include "plan/stage.h"

typedef cln_backward_problem problem;

/* The dtype to which norm_backward.cl writes a sum over rows: that of the slots, or of the output itself. */
static clnorm_dtype sums_dtype(const problem *p, clnorm_dtype dtype, const struct cln_backward_layout *layout) {
    if (!dtype || layout->columns)
        return dtype;
    return p->x.dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
}

/* The macros that follow from the problem and its layout. */
static struct cln_spec spec_of_problem(const problem *p, const struct cln_backward_layout *layout) {
    return (struct cln_spec){
        .family = CLN_NORM_BACKWARD,
        .group_size = p->group_size,
        .groups = p->cols / p->group_size,
        .x_dtype = p->x.dtype,
        .y_dtype = p->y.dtype,
        .x_scale_dtype = p->x.scale_dtype,
        .x_scaling = p->x.scaling,
        .x_group = p->x.scale_group,
        .z_dtype = p->z.dtype,
        .weight_dtype = p->weight.dtype,
        .bias_dtype = p->bias.dtype,
        .dy_dtype = p->dy.dtype,
        .dx_dtype = p->dx.dtype,
        .dz_dtype = p->dz.dtype,
        .gate = p->gate,
        .gate_first = p->gate_first,
        .weight_offset = p->weight_offset != 0,
        .weight_map = p->weight_rows > 1,
        .columns_of_weight = layout->columns_of_weight,
        .dweight_dtype = sums_dtype(p, p->dweight.dtype, layout),
        .dbias_dtype = sums_dtype(p, p->dbias.dtype, layout),
        .accumulate = layout->columns && p->accumulate,
        .reads_mean = p->norm == CLNORM_LAYER_NORM && !p->y_given,
        .has_sums = layout->split,
        .has_slots = layout->slots > 0,
        .exchanges = layout->exchanged,
        .locked = layout->locked,
        .residual_dtype = p->residual.dtype,
        .dresidual_out_dtype = p->dresidual_out.dtype,
        .dresidual_dtype = p->dresidual.dtype,
        .s_given = p->s_given,
        .y_given = p->y_given,
        .row_scale = p->row_scale,
        .dropout = p->dropout > 0,
        .activation = p->activation,
        .run_length = layout->run_length,
        .column_lanes = layout->column_lanes,
        .span = layout->span,
        .abreast = layout->abreast,
    };
}

struct cln_spec cln_backward_spec(const problem *p, const clnorm_device_info *device, const struct cln_config *c,
                                  const struct cln_backward_layout *layout) {
    const struct cln_rope rope = CLN_ROPE_OF(p);
    struct cln_spec spec = spec_of_problem(p, layout);
    cln_norm_spec_norm(p->norm, &spec);
    cln_launch_spec(device, c, &spec);
    spec.leads = layout->leads;
    spec.row_split = layout->exchanged ? c->row_split : CLN_ROW_SPLIT_TWO_PASSES;
    spec.fp8_isa = cln_fp8_isa(device, c);
    if (layout->locked && cln_fences_by_language(device, c))
        spec.opencl_c = device->opencl_c_version;
    cln_rope_spec(&rope, &spec);
    return spec;
}

static struct cln_binding x_of(const problem *p) {
    return (struct cln_binding){.role = cln_backward_role_of_x(p)};
}

static struct cln_binding given_or(bool given, enum cln_role role, struct cln_binding part) {
    const struct cln_binding argument = {.role = role};
    return given ? argument : part;
}

/* Adds a kernel with the arguments of NORM_BACKWARD_INPUTS, and its own ones. own: without a spec. */
static clnorm_status add_kernel(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout,
                                const struct cln_stage_recipe *own) {
    const struct cln_spec spec = cln_backward_spec(p, &plan->context->device, &plan->config, layout);
    const struct cln_arguments dropout = cln_dropout_arguments(p->dropout);
    const struct cln_arguments map =
        cln_weight_map_arguments(p->weight_rows, p->weight_repeat, p->weight.stride, p->bias.stride);
    const struct cln_argument arguments[] = {
        cln_bind("x", x_of(p)),
        cln_bind("mean", given_or(p->mean_given, CLN_MEAN, layout->mean)),
        cln_bind("rstd", given_or(p->rstd_given, cln_role_of_rstd(p->norm), layout->rstd)),
        cln_real("weight_offset", p->weight_offset),
        cln_real("eps", p->eps),
        cln_include(map.list),
        cln_include(dropout.list),
        cln_integer("rope_positions", p->rope_positions),
        cln_include(own->arguments),
        {0},
    };
    struct cln_stage_recipe recipe = *own;
    recipe.spec = &spec;
    recipe.arguments = arguments;
    return cln_plan_add_stage(plan, &recipe);
}

static const struct cln_kernel sums_kernel =
    CLN_KERNEL_PAIR(norm_backward_sums, norm_backward_sums, NORM_BACKWARD_SUMS_ARGS);
static const struct cln_kernel walk_kernel = CLN_KERNEL_PAIR(norm_backward, norm_backward, NORM_BACKWARD_ARGS);
static const struct cln_kernel reduce_kernel =
    CLN_KERNEL_PAIR(norm_backward_reduce, norm_backward_reduce, NORM_BACKWARD_REDUCE_ARGS);

clnorm_status cln_backward_add_sums(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout) {
    const struct cln_config *const c = &plan->config;
    const cl_ulong work = p->rows * (p->cols / p->group_size) * c->chunks;
    const struct cln_launch launch = cln_launch_of(c, work);
    const struct cln_argument arguments[] = {
        cln_bind("sums", layout->sums), cln_integer("rows", p->rows), cln_integer("iterations", launch.iterations), {0}};
    const struct cln_stage_recipe recipe = {
        .kernel = &sums_kernel,
        .arguments = arguments,
        .work = work,
        .groups = launch.groups,
        .items = launch.items,
    };
    return add_kernel(plan, p, layout, &recipe);
}

/* Adds the kernel that opens all locks. */
static clnorm_status add_clear(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout) {
    const struct cln_spec spec = cln_backward_spec(p, &plan->context->device, &plan->config, layout);
    return cln_add_clear_words(plan, &spec, &cln_source_norm_backward, layout->locks);
}

/* Adds norm_backward.cl over all rows. */
static clnorm_status add_walk(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout) {
    const struct cln_argument arguments[] = {
        cln_bind("sums", layout->sums),
        cln_bind("dweight", given_or(layout->columns, CLN_DWEIGHT, layout->dweight)),
        cln_bind("dbias", given_or(layout->columns, CLN_DBIAS, layout->dbias)),
        cln_bind("locks", layout->locks),
        cln_bind("messages", layout->messages),
        cln_integer("slots", layout->slots),
        cln_integer("share_rows", layout->share),
        {0},
    };
    const struct cln_stage_recipe recipe = {
        .kernel = &walk_kernel,
        .arguments = arguments,
        .work = p->rows,
        .groups = (size_t)(layout->columns + layout->work_groups),
        .items = (size_t)plan->config.lanes * plan->config.segments,
        .readers = (size_t)layout->columns,
    };
    return add_kernel(plan, p, layout, &recipe);
}

/* Neighbouring lanes in a work-group of norm_backward_reduce.cl, and lines of such lanes, which share the terms. Every line
 * has a term: a slot, or a position of one. */
static void share_out_slots(const clnorm_device_info *device, const problem *p, const struct cln_backward_layout *layout,
                            struct cln_spec *spec) {
    const uint64_t most_items = cln_power_of_two_at_most(device->max_work_group_size);
    const uint64_t vectors = cln_power_of_two_at_least(cln_divide_up(spec->group_size, spec->vec));
    const uint64_t terms = layout->slots * cln_larger(layout->columns_of_weight, 1);
    const uint64_t lines = cln_power_of_two_at_most(cln_smaller(cln_larger(terms, 1), 64));
    const uint64_t lanes = cln_larger(8, cln_smaller(64 / cln_smaller(lines, 8), vectors));
    /* PoCL 3.1 confuses the lanes' private arrays in tails. */
    const uint64_t of_cpu = p->weight_rows > 1 && spec->group_size % spec->vec == 0 ? cln_smaller(16, vectors) : 1;
    spec->lanes = cln_smaller(spec->element_aligned ? of_cpu : lanes, most_items);
    spec->segments = spec->element_aligned ? 1 : cln_smaller(lines, most_items / spec->lanes);
}

/* Adds norm_backward_reduce.cl over the columns of each row of weights. */
static clnorm_status add_reduce(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout) {
    const clnorm_device_info *device = &plan->context->device;
    const bool cpu = cln_config_element_aligned(device, &plan->config);
    const uint64_t columns = p->cols / cln_larger(layout->columns_of_weight, 1); /* of dweight and dbias */
    struct cln_spec spec = {
        .family = CLN_NORM_BACKWARD_REDUCE,
        .group_size = columns,
        .x_dtype = p->x.dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32,
        .dweight_dtype = p->dweight.dtype,
        .dbias_dtype = p->dbias.dtype,
        .accumulate = p->accumulate,
        .weight_map = p->weight_rows > 1,
        .columns_of_weight = layout->columns_of_weight,
        .vec = layout->reduce_vec,
        .unroll = 4,
        .stores = plan->config.stores,
        .isa = plan->config.isa,
        .element_aligned = cpu,
        .opencl_c = 120,
    };
    share_out_slots(device, p, layout, &spec);
    const uint64_t tiles = cln_divide_up(columns, spec.vec * spec.lanes) * p->weight_rows;
    const struct cln_argument arguments[] = {
        cln_bind("dweight_slots", layout->dweight),
        cln_bind("dbias_slots", layout->dbias),
        cln_integer("weight_rows", p->weight_rows),
        cln_integer("dweight_stride", p->dweight.stride),
        cln_integer("dbias_stride", p->dbias.stride),
        cln_integer("slots", layout->slots),
        {0},
    };
    const struct cln_stage_recipe recipe = {
        .kernel = &reduce_kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = columns,
        .groups = (size_t)(tiles * (p->dweight.dtype && p->dbias.dtype ? 2 : 1)),
        .items = (size_t)(spec.lanes * spec.segments),
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* The kernels whose results the kernels over all rows read: statistics, and sums over each row. */
static clnorm_status add_inputs(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout) {
    const bool walks = p->rows > 0;
    clnorm_status status = CLNORM_SUCCESS;
    if (p->y_given)
        status = cln_backward_add_check(plan, p);
    if (!status && walks && !p->rstd_given)
        status = cln_norm_add_statistics(plan, p, layout->mean, layout->rstd);
    if (!status && walks && layout->split)
        status = cln_backward_add_sums(plan, p, layout);
    return status;
}

clnorm_status cln_backward_prepare(clnorm_plan *plan, const problem *p, const struct cln_workload *work,
                                   struct cln_backward_layout *layout) {
    const clnorm_status status = cln_backward_lay_out(&plan->context->device, p, work, &plan->config, layout);
    if (status)
        return status;
    const uint64_t sum_vec = layout->columns ? 1 : layout->reduce_vec;
    plan->tensor[CLN_DWEIGHT].vector = sum_vec * plan->tensor[CLN_DWEIGHT].element;
    plan->tensor[CLN_DBIAS].vector = sum_vec * plan->tensor[CLN_DBIAS].element;
    plan->tensor[CLN_DWEIGHT].read = plan->tensor[CLN_DBIAS].read = p->accumulate;
    plan->seeding = p->dropout > 0 ? CLN_SEED_ARGS : CLN_SEED_NONE;
    plan->late_dy = p->rope != CLNORM_ROPE_NONE; /* a pair is read by the work-items of both of its columns */
    if (layout->size)
        cln_plan_set_workspace(plan, layout->size);
    return CLNORM_SUCCESS;
}

clnorm_status cln_backward_add_outputs(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout) {
    const bool sums_rows = p->dweight.dtype || p->dbias.dtype;
    const bool walks = p->rows > 0;
    clnorm_status status = CLNORM_SUCCESS;
    if (walks && layout->locked)
        status = add_clear(plan, p, layout);
    if (!status && walks)
        status = add_walk(plan, p, layout);
    if (!status && sums_rows && (walks ? !layout->columns : !p->accumulate))
        status = add_reduce(plan, p, layout);
    return status;
}

clnorm_status cln_backward_add_stages(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const problem *const p = desc;
    struct cln_backward_layout layout;
    clnorm_status status = cln_backward_prepare(plan, p, work, &layout);
    if (!status)
        status = add_inputs(plan, p, &layout);
    return status ? status : cln_backward_add_outputs(plan, p, &layout);
}
