#include <math.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/context.h"
#include "clnorm/l2_norm.h"
#include "config/config.h"
#include "config/facts.h"
#include "norm/l2_norm_args.h"
#include "operation/launch.h"
#include "operation/operations.h"
#include "operation/weight_map.h"
#include "plan/stage.h"
#include "plan/tensor.h"

typedef clnorm_l2_norm_desc forward_desc;
typedef clnorm_l2_norm_backward_desc backward_desc;

_Static_assert(offsetof(forward_desc, weight_repeat) == offsetof(forward_desc, weight_rows) + sizeof(uint64_t), "adjacent");
_Static_assert(offsetof(backward_desc, weight_repeat) == offsetof(backward_desc, weight_rows) + sizeof(uint64_t),
               "adjacent");

static const struct cln_tensor_rule forward_tensors[] = {
    {"x", CLN_X, offsetof(forward_desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"y", CLN_Y, offsetof(forward_desc, y), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(forward_desc, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
};
static const struct cln_tensor_rule backward_tensors[] = {
    {"x", CLN_X, offsetof(backward_desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"dy", CLN_DY, offsetof(backward_desc, dy), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, false, CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(backward_desc, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"dx", CLN_DX, offsetof(backward_desc, dx), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
    {"dweight", CLN_DWEIGHT, offsetof(backward_desc, dweight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
};
static const struct cln_field_rule forward_fields[] = {
    {"eps_mode", offsetof(forward_desc, eps_mode), CLNORM_EPS_ADD, CLNORM_EPS_FLOOR, "clnorm_eps_mode"},
    {"save_norm", offsetof(forward_desc, save_norm), 0, 1, NULL},
    {"batch_invariant", offsetof(forward_desc, batch_invariant), 0, 1, NULL},
    {"reserved", offsetof(forward_desc, reserved), 0, 0, NULL},
};
static const struct cln_field_rule backward_fields[] = {
    {"eps_mode", offsetof(backward_desc, eps_mode), CLNORM_EPS_ADD, CLNORM_EPS_FLOOR, "clnorm_eps_mode"},
    {"batch_invariant", offsetof(backward_desc, batch_invariant), 0, 1, NULL},
};
static const struct cln_statistic_rule statistics[] = {{"norm", CLN_NORM, offsetof(forward_desc, save_norm), true, 1}};
static const struct cln_enum_option eps_mode = {"eps-mode",
                                                "L2 norm: add eps to the sum of squares, or floor the length at it (add)",
                                                "eps_mode",
                                                {{"add", CLNORM_EPS_ADD}, {"floor", CLNORM_EPS_FLOOR}}};

/* The members that both descriptors have. */
struct problem {
    uint64_t rows, cols, group_size, weight_rows, weight_repeat;
    double eps;
    clnorm_eps_mode eps_mode;
    clnorm_tensor x, weight;
};

static struct problem problem_of(const struct cln_operation *operation, const void *desc) {
    const forward_desc *const f = desc;
    const backward_desc *const b = desc;
    return operation == &cln_l2_norm
               ? (struct problem){f->rows, f->cols,     f->group_size, f->weight_rows, f->weight_repeat,
                                  f->eps,  f->eps_mode, f->x,          f->weight}
               : (struct problem){b->rows, b->cols,     b->group_size, b->weight_rows, b->weight_repeat,
                                  b->eps,  b->eps_mode, b->x,          b->weight};
}

static struct cln_workload workload_of(const struct cln_operation *operation, const void *desc) {
    const struct problem p = problem_of(operation, desc);
    return (struct cln_workload){
        .users = CLN_KNOBS_L2,
        .rows = p.rows,
        .groups = p.cols / p.group_size,
        .group_size = p.group_size,
        .alignment = cln_lowest_bit(p.group_size | cln_operation_strides(operation, desc)),
        .x_size = clnorm_dtype_size(p.x.dtype),
        .held_size = clnorm_dtype_size(p.x.dtype),
        .norm = CLNORM_RMS_NORM,
        .real_size = cln_operation_real_size(operation, desc),
    };
}

static const struct cln_kernel forward_kernel = CLN_KERNEL_PAIR(l2_norm, l2_norm, L2_NORM_ARGS);
static const struct cln_kernel backward_kernel = CLN_KERNEL_PAIR(l2_norm, l2_norm_backward, L2_NORM_BACKWARD_ARGS);
static const struct cln_kernel slots_kernel = CLN_KERNEL(l2_norm, l2_norm_slots, L2_NORM_SLOTS_ARGS);
static const struct cln_kernel dweight_kernel = CLN_KERNEL(l2_norm, l2_norm_dweight, L2_NORM_DWEIGHT_ARGS);

static struct cln_spec spec_of(const clnorm_plan *plan, const void *desc) {
    const struct problem p = problem_of(plan->operation, desc);
    const forward_desc *const f = desc;
    const backward_desc *const b = desc;
    const bool backward = plan->operation == &cln_l2_norm_backward;
    struct cln_spec spec = {
        .family = backward ? CLN_NORM_BACKWARD : CLN_NORM_FORWARD,
        .group_size = p.group_size,
        .groups = p.cols / p.group_size,
        .x_dtype = p.x.dtype,
        .weight_dtype = p.weight.dtype,
        .y_dtype = backward ? CLNORM_DTYPE_NONE : f->y.dtype,
        .dy_dtype = backward ? b->dy.dtype : CLNORM_DTYPE_NONE,
        .dx_dtype = backward ? b->dx.dtype : CLNORM_DTYPE_NONE,
        .dweight_dtype = backward ? b->dweight.dtype : CLNORM_DTYPE_NONE,
        .save_rstd = !backward && f->save_norm,
        .weight_map = p.weight_rows > 1,
    };
    cln_launch_spec(&plan->context->device, &plan->config, &spec);
    spec.unroll = 1;
    return spec;
}

/* Adds the kernel that goes through segments. */
static clnorm_status add_segments(clnorm_plan *plan, const void *desc, const struct cln_workload *work,
                                  const struct cln_kernel *kernel, struct cln_argument norm) {
    const struct problem p = problem_of(plan->operation, desc);
    const struct cln_spec spec = spec_of(plan, desc);
    const uint64_t segments = work->rows * work->groups;
    const struct cln_launch launch = cln_launch_of(&plan->config, segments);
    const struct cln_arguments map = cln_weight_map_arguments(p.weight_rows, p.weight_repeat, p.weight.stride, 0);
    const struct cln_argument arguments[] = {cln_integer("iterations", launch.iterations),
                                             cln_integer("rows", p.rows),
                                             cln_integer("floor", p.eps_mode == CLNORM_EPS_FLOOR),
                                             cln_include(map.list),
                                             cln_real("eps", p.eps),
                                             norm,
                                             {0}};
    const struct cln_stage_recipe recipe = {
        .kernel = kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = segments,
        .groups = launch.groups,
        .items = launch.items,
    };
    return cln_plan_add_stage(plan, &recipe);
}

static clnorm_status add_forward(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    return work->rows ? add_segments(plan, desc, work, &forward_kernel, (struct cln_argument){0}) : CLNORM_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- dweight */

/* The rows that use one row of weights are summed into slots, which are added up then. */
struct slots {
    uint64_t share;             /* rows of a slot */
    uint64_t count;             /* slots of a row of weights */
    uint64_t vec, unroll;       /* columns of a vector, vectors of a work-item */
    uint64_t spans, items;      /* work-items of a row, of a work-group */
    struct cln_binding lengths; /* [groups, rows] of the workspace */
    struct cln_binding sums;    /* [weight_rows, count, cols] of the workspace */
};

static uint64_t most_items(const clnorm_device_info *device) {
    return cln_smaller(256, cln_power_of_two_at_most(device->max_work_group_size));
}

static clnorm_status lay_out(clnorm_plan *plan, const backward_desc *d, const struct cln_workload *work,
                             struct slots *slots) {
    const clnorm_device_info *const device = &plan->context->device;
    const bool alone = cln_facts_of(device).alone; /* each work-item reads whole lines */
    slots->vec = alone ? plan->config.vec : 1;
    slots->unroll = alone ? 16 : 1;
    slots->spans = work->groups * cln_divide_up(work->group_size, slots->vec * slots->unroll);
    slots->items = alone ? 1 : most_items(device);
    const uint64_t rows = d->rows / d->weight_rows, blocks = cln_divide_up(slots->spans, slots->items) * d->weight_rows;
    const uint64_t wanted = cln_divide_up(8 * (uint64_t)cln_larger(device->compute_units, 1), blocks);
    slots->share = cln_larger(cln_divide_up(rows, wanted), 1);
    slots->count = cln_divide_up(rows, slots->share);
    const uint64_t sums = cln_product(slots->count * d->weight_rows, d->cols);
    const clnorm_status status = cln_plan_add_part(plan, d->rows * work->groups, work->real_size, &slots->lengths);
    return status ? status : cln_plan_add_part(plan, sums, work->real_size, &slots->sums);
}

/* A kernel over columns, with work-items for work parts of them, times as many work-groups as those fill. */
struct columns {
    const struct cln_kernel *kernel;
    const struct cln_argument *arguments;
    uint64_t vec, unroll, work, items, times;
};

static clnorm_status add_columns(clnorm_plan *plan, const void *desc, const struct columns *columns) {
    struct cln_spec spec = spec_of(plan, desc);
    spec.vec = columns->vec;
    spec.unroll = columns->unroll;
    spec.lanes = columns->items;
    spec.segments = 1;
    spec.reduce = CLN_REDUCE_TREE;
    spec.opencl_c = 120;
    const struct cln_stage_recipe recipe = {
        .kernel = columns->kernel,
        .spec = &spec,
        .arguments = columns->arguments,
        .work = columns->work,
        .groups = (size_t)(cln_divide_up(columns->work, columns->items) * columns->times),
        .items = (size_t)columns->items,
    };
    return cln_plan_add_stage(plan, &recipe);
}

static clnorm_status add_dweight(clnorm_plan *plan, const void *desc, const struct slots *slots) {
    const backward_desc *const d = desc;
    const struct cln_arguments map = cln_weight_map_arguments(d->weight_rows, d->weight_repeat, 0, 0);
    const struct cln_argument of_slots[] = {cln_integer("rows", d->rows),
                                            cln_integer("share", slots->share),
                                            cln_integer("count", slots->count),
                                            cln_include(map.list),
                                            cln_bind("norm", slots->lengths),
                                            cln_bind("slots", slots->sums),
                                            {0}};
    const struct cln_argument of_sum[] = {cln_integer("count", slots->count),
                                          cln_integer("weight_rows", d->weight_rows),
                                          cln_integer("dweight_stride", d->dweight.stride),
                                          cln_integer("dbias_stride", 0),
                                          cln_bind("slots", slots->sums),
                                          {0}};
    const struct columns sums = {
        &slots_kernel, of_slots, slots->vec, slots->unroll, slots->spans, slots->items, slots->count * d->weight_rows};
    const uint64_t items = most_items(&plan->context->device);
    const struct columns dweight = {&dweight_kernel, of_sum, 1, 1, d->cols, items, d->weight_rows};
    const clnorm_status status = sums.times ? add_columns(plan, desc, &sums) : CLNORM_SUCCESS;
    return status ? status : add_columns(plan, desc, &dweight);
}

static clnorm_status add_backward(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const backward_desc *const d = desc;
    struct slots slots = {.count = 0};
    clnorm_status status = d->dweight.dtype ? lay_out(plan, d, work, &slots) : CLNORM_SUCCESS;
    if (status)
        return status;
    plan->tensor[CLN_DWEIGHT].vector = 0;
    plan->late_x = plan->late_dy = d->dweight.dtype != CLNORM_DTYPE_NONE; /* dweight is computed after dx */
    if (d->rows)
        status = add_segments(plan, desc, work, &backward_kernel, cln_bind("norm", slots.lengths));
    return status || !d->dweight.dtype ? status : add_dweight(plan, desc, &slots);
}

static const forward_desc initial_forward = CLNORM_L2_NORM_DESC_INIT;
static const backward_desc initial_backward = CLNORM_L2_NORM_BACKWARD_DESC_INIT;

const struct cln_operation cln_l2_norm = {
    .name = "l2_norm",
    .summary = "x / length * weight, with the length sqrt(sum of squares + eps)",
    .init = "CLNORM_L2_NORM_DESC_INIT",
    .initial = &initial_forward,
    .size = sizeof initial_forward,
    .config = offsetof(forward_desc, config),
    .tensors = forward_tensors,
    .tensor_count = sizeof forward_tensors / sizeof *forward_tensors,
    .fields = forward_fields,
    .field_count = sizeof forward_fields / sizeof *forward_fields,
    .choices = {&eps_mode},
    .outer = true,
    .weight_map = offsetof(forward_desc, weight_rows),
    .group_size = offsetof(forward_desc, group_size),
    .batch_invariant = offsetof(forward_desc, batch_invariant),
    .eps = offsetof(forward_desc, eps),
    .statistics = statistics,
    .statistic_count = sizeof statistics / sizeof *statistics,
    .workload = workload_of,
    .choose = cln_config_choose_reread, /* segments are read twice, a vector at a time */
    .add_stages = add_forward,
};

const struct cln_operation cln_l2_norm_backward = {
    .name = "l2_norm_backward",
    .summary = "the gradients of l2_norm",
    .init = "CLNORM_L2_NORM_BACKWARD_DESC_INIT",
    .initial = &initial_backward,
    .size = sizeof initial_backward,
    .config = offsetof(backward_desc, config),
    .tensors = backward_tensors,
    .tensor_count = sizeof backward_tensors / sizeof *backward_tensors,
    .fields = backward_fields,
    .field_count = sizeof backward_fields / sizeof *backward_fields,
    .choices = {&eps_mode},
    .outer = true,
    .weight_map = offsetof(backward_desc, weight_rows),
    .group_size = offsetof(backward_desc, group_size),
    .batch_invariant = offsetof(backward_desc, batch_invariant),
    .eps = offsetof(backward_desc, eps),
    .workload = workload_of,
    .choose = cln_config_choose_reread, /* segments are read twice, a vector at a time */
    .add_stages = add_backward,
};
