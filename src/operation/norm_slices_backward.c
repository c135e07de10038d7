#include "base/arithmetic.h"
#include "base/context.h"
#include "norm/norm_slices_args.h"
#include "operation/norm_backward_stages.h"
#include "operation/norm_slices.h"
#include "plan/stage.h"

typedef clnorm_norm_backward_statistics_desc statistics_desc;
typedef clnorm_norm_backward_apply_desc apply_desc;
typedef cln_backward_problem problem;

static const struct cln_tensor_rule statistics_tensors[] = {
    {"x", CLN_X, offsetof(statistics_desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"dy", CLN_DY, offsetof(statistics_desc, dy), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, false, CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(statistics_desc, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
};
static const struct cln_tensor_rule apply_tensors[] = {
    {"x", CLN_X, offsetof(apply_desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"dy", CLN_DY, offsetof(apply_desc, dy), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, false, CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(apply_desc, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"dx", CLN_DX, offsetof(apply_desc, dx), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
    {"dweight", CLN_DWEIGHT, offsetof(apply_desc, dweight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
    {"dbias", CLN_DBIAS, offsetof(apply_desc, dbias), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
};
static const struct cln_field_rule statistics_fields[] = {
    {"norm", offsetof(statistics_desc, norm), CLNORM_LAYER_NORM, CLNORM_RMS_NORM, "clnorm_norm"},
    {"reserved", offsetof(statistics_desc, reserved), 0, 0, NULL},
};
static const struct cln_field_rule apply_fields[] = {
    {"norm", offsetof(apply_desc, norm), CLNORM_LAYER_NORM, CLNORM_RMS_NORM, "clnorm_norm"},
    {"reserved", offsetof(apply_desc, reserved), 0, 0, NULL},
};
static const struct cln_statistic_rule of_statistics[] = {
    {"moments", CLN_MOMENTS, 0, false, CLN_MOMENTS_NUMBERS},
    {"sums", CLN_SUMS, 0, true, CLN_SUMS_NUMBERS},
};
static const struct cln_statistic_rule of_apply[] = {
    {"moments", CLN_MOMENTS, 0, false, CLN_MOMENTS_NUMBERS},
    {"sums", CLN_SUMS, 0, false, CLN_SUMS_NUMBERS},
};

/* The fused norm whose macros and arguments these kernels have. */
static problem problem_of(const struct cln_operation *operation, const void *desc) {
    problem p = CLNORM_NORM_BACKWARD_DESC_INIT;
    const bool apply = operation == &cln_norm_backward_apply;
    const statistics_desc *const s = desc;
    const apply_desc *const a = desc;
    p.reduction = CLNORM_REDUCTION_PARTIAL;
    p.weight_rows = p.weight_repeat = 1;
    p.norm = apply ? a->norm : s->norm;
    p.rows = apply ? a->rows : s->rows;
    p.cols = apply ? a->cols : s->cols;
    p.group_size = apply ? a->group_size : s->group_size;
    p.eps = apply ? a->eps : s->eps;
    p.x = apply ? a->x : s->x;
    p.dy = apply ? a->dy : s->dy;
    p.weight = apply ? a->weight : s->weight;
    if (apply) {
        p.dx = a->dx;
        p.dweight = a->dweight;
        p.dbias = a->dbias;
    }
    return p;
}

/* ----------------------------------------------------------------------------------------------------------- kernels */

static const struct cln_kernel open_kernel = CLN_KERNEL(norm_slices_backward, norm_open_moments, NORM_OPEN_MOMENTS_ARGS);
static const struct cln_kernel merge_kernel = CLN_KERNEL(norm_slices_backward, norm_merge_sums, NORM_MERGE_SUMS_ARGS);

/* Adds a kernel of norm_slices_backward.cl, with one work-item per segment. */
static clnorm_status add_items(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout, bool has_sums,
                               const struct cln_kernel *kernel, const struct cln_argument *arguments) {
    enum { ITEMS = 256 };
    const clnorm_device_info *const device = &plan->context->device;
    const uint64_t segments = p->rows * (p->cols / p->group_size);
    struct cln_config c = plan->config;
    c.vec = 1;
    c.lanes = (uint32_t)cln_smaller(ITEMS, cln_power_of_two_at_most(device->max_work_group_size));
    c.segments = 1;
    c.reduce = CLN_REDUCE_TREE;
    struct cln_spec spec = cln_backward_spec(p, device, &c, layout);
    spec.has_sums = has_sums;
    const struct cln_stage_recipe recipe = {
        .kernel = kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = segments,
        .groups = (size_t)cln_divide_up(segments, c.lanes),
        .items = c.lanes,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* Converts moments of the arguments to statistics in the workspace. has_sums: and sums, as norm_backward.cl reads them. */
static clnorm_status add_open(clnorm_plan *plan, const problem *p, const struct cln_backward_layout *layout,
                              bool has_sums) {
    const struct cln_argument arguments[] = {cln_real("eps", p->eps),
                                             cln_bind("mean", layout->mean),
                                             cln_bind("rstd", layout->rstd),
                                             cln_bind("chunk_sums", layout->sums),
                                             {0}};
    return add_items(plan, p, layout, has_sums, &open_kernel, arguments);
}

static clnorm_status add_statistics(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const problem p = problem_of(plan->operation, desc);
    struct cln_backward_layout layout;
    if (!p.rows)
        return CLNORM_SUCCESS;
    clnorm_status status = cln_backward_lay_out_sums(&p, work, &plan->config, &layout);
    if (status)
        return status;
    cln_plan_set_workspace(plan, layout.size);
    const struct cln_argument arguments[] = {cln_bind("chunk_sums", layout.sums), {0}};
    status = add_open(plan, &p, &layout, false);
    if (!status)
        status = cln_backward_add_sums(plan, &p, &layout);
    return status ? status : add_items(plan, &p, &layout, false, &merge_kernel, arguments);
}

static clnorm_status add_apply(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const problem p = problem_of(plan->operation, desc);
    struct cln_backward_layout layout;
    clnorm_status status = cln_backward_prepare(plan, &p, work, &layout);
    if (!status && p.rows)
        status = add_open(plan, &p, &layout, true);
    return status ? status : cln_backward_add_outputs(plan, &p, &layout);
}

/* ----------------------------------------------------------------------------------------------------------- records */

static struct cln_workload workload_of_statistics(const struct cln_operation *operation, const void *desc) {
    const problem p = problem_of(operation, desc);
    struct cln_workload work = cln_backward_workload(&cln_norm_backward, &p);
    work.users = CLN_KNOBS_SLICES;
    work.held_size = clnorm_dtype_size(p.x.dtype) + clnorm_dtype_size(p.dy.dtype) + clnorm_dtype_size(p.weight.dtype);
    return work;
}

static struct cln_workload workload_of_apply(const struct cln_operation *operation, const void *desc) {
    const problem p = problem_of(operation, desc);
    struct cln_workload work = cln_backward_workload(&cln_norm_backward, &p);
    work.sums_given = true;
    return work;
}

/* No work-group needs another one's sums. */
static clnorm_status choose_apply(const clnorm_device_info *device, const struct cln_workload *work,
                                  const struct cln_config *forced, struct cln_config *config) {
    if (cln_exchanges(forced))
        return cln_config_refuse("row_split", forced->row_split, "two_passes or 0, the sums of rows are given");
    if (forced->chunks > 1)
        return cln_config_refuse("chunks", forced->chunks, "1 or 0, the sums of rows are given");
    return cln_config_choose(device, work, forced, config);
}

static const statistics_desc initial_statistics = CLNORM_NORM_BACKWARD_STATISTICS_DESC_INIT;
static const apply_desc initial_apply = CLNORM_NORM_BACKWARD_APPLY_DESC_INIT;

const struct cln_operation cln_norm_backward_statistics = {
    .name = "norm_backward_statistics",
    .summary = "the sums over a slice of the columns, for norm_backward_apply",
    .init = "CLNORM_NORM_BACKWARD_STATISTICS_DESC_INIT",
    .initial = &initial_statistics,
    .size = sizeof initial_statistics,
    .config = offsetof(statistics_desc, config),
    .tensors = statistics_tensors,
    .tensor_count = sizeof statistics_tensors / sizeof *statistics_tensors,
    .fields = statistics_fields,
    .field_count = sizeof statistics_fields / sizeof *statistics_fields,
    .choices = {&cln_norm_enum},
    .outer = true,
    .group_size = offsetof(statistics_desc, group_size),
    .eps = offsetof(statistics_desc, eps),
    .statistics = of_statistics,
    .statistic_count = sizeof of_statistics / sizeof *of_statistics,
    .workload = workload_of_statistics,
    .choose = cln_config_choose_reread,
    .add_stages = add_statistics,
};

const struct cln_operation cln_norm_backward_apply = {
    .name = "norm_backward_apply",
    .summary = "the gradients of norm_apply, by the sums over whole rows",
    .init = "CLNORM_NORM_BACKWARD_APPLY_DESC_INIT",
    .initial = &initial_apply,
    .size = sizeof initial_apply,
    .config = offsetof(apply_desc, config),
    .tensors = apply_tensors,
    .tensor_count = sizeof apply_tensors / sizeof *apply_tensors,
    .fields = apply_fields,
    .field_count = sizeof apply_fields / sizeof *apply_fields,
    .choices = {&cln_norm_enum},
    .outer = true,
    .group_size = offsetof(apply_desc, group_size),
    .eps = offsetof(apply_desc, eps),
    .statistics = of_apply,
    .statistic_count = sizeof of_apply / sizeof *of_apply,
    .workload = workload_of_apply,
    .choose = choose_apply,
    .add_stages = add_apply,
};
