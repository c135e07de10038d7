#include "operation/norm_slices.h"

#include "base/arithmetic.h"
#include "norm/norm_forward_args.h"
#include "norm/norm_slices_args.h"
#include "operation/fp8.h"
#include "operation/norm_stages.h"
#include "plan/stage.h"

typedef clnorm_norm_statistics_desc statistics_desc;
typedef clnorm_norm_apply_desc apply_desc;

const struct cln_enum_option cln_norm_enum = {"norm",
                                              "norms of slices: layer norm or RMS norm (layer)",
                                              "norm",
                                              {{"layer", CLNORM_LAYER_NORM}, {"rms", CLNORM_RMS_NORM}}};

static const struct cln_tensor_rule statistics_tensors[] = {
    {"x", CLN_X, offsetof(statistics_desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
};
static const struct cln_tensor_rule apply_tensors[] = {
    {"x", CLN_X, offsetof(apply_desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"y", CLN_Y, offsetof(apply_desc, y), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(apply_desc, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"bias", CLN_BIAS, offsetof(apply_desc, bias), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
};
static const struct cln_field_rule statistics_fields[] = {
    {"norm", offsetof(statistics_desc, norm), CLNORM_LAYER_NORM, CLNORM_RMS_NORM, "clnorm_norm"},
    {"reserved", offsetof(statistics_desc, reserved), 0, 0, NULL},
};
static const struct cln_field_rule apply_fields[] = {
    {"norm", offsetof(apply_desc, norm), CLNORM_LAYER_NORM, CLNORM_RMS_NORM, "clnorm_norm"},
    {"reserved", offsetof(apply_desc, reserved), 0, 0, NULL},
};
static const struct cln_statistic_rule moments_out = {"moments", CLN_MOMENTS, 0, true, CLN_MOMENTS_NUMBERS};
static const struct cln_statistic_rule moments_in = {"moments", CLN_MOMENTS, 0, false, CLN_MOMENTS_NUMBERS};

/* The fused norm whose macros and arguments these kernels have. */
static clnorm_norm_desc problem_of(const struct cln_operation *operation, const void *desc) {
    clnorm_norm_desc p = CLNORM_NORM_DESC_INIT;
    const bool apply = operation == &cln_norm_apply;
    const statistics_desc *const s = desc;
    const apply_desc *const a = desc;
    p.weight_rows = p.weight_repeat = 1;
    p.norm = apply ? a->norm : s->norm;
    p.rows = apply ? a->rows : s->rows;
    p.cols = apply ? a->cols : s->cols;
    p.group_size = apply ? a->group_size : s->group_size;
    p.x = apply ? a->x : s->x;
    if (apply) {
        p.y = a->y;
        p.weight = a->weight;
        p.bias = a->bias;
        p.eps = a->eps;
    }
    return p;
}

static struct cln_workload workload_of(const struct cln_operation *operation, const void *desc) {
    const clnorm_norm_desc p = problem_of(operation, desc);
    struct cln_workload work = cln_norm_workload(&cln_norm_forward, &p);
    work.users = CLN_KNOBS_SLICES;
    work.local_size = 0;
    return work;
}

static const struct cln_kernel statistics_kernel = CLN_KERNEL_PAIR(norm_slices, norm_statistics, NORM_FORWARD_MOMENTS_ARGS);
static const struct cln_kernel apply_kernel = CLN_KERNEL_PAIR(norm_slices, norm_apply, NORM_FORWARD_APPLY_ARGS);
static const struct cln_kernel merge_kernel = CLN_KERNEL(norm_slices, norm_merge_moments, NORM_MERGE_MOMENTS_ARGS);

/* Adds a kernel of norm_slices.cl over all segments, or their chunks. The number of chunks cannot overflow: each has
 * moments in the workspace or elements of y, of less than 2^63 bytes. */
static clnorm_status add_segments(clnorm_plan *plan, const clnorm_norm_desc *p, const struct cln_workload *work,
                                  const struct cln_kernel *kernel, struct cln_binding moments) {
    const uint64_t units = work->rows * work->groups * plan->config.chunks;
    const struct cln_launch launch = cln_launch_of(&plan->config, units);
    const struct cln_spec spec = cln_norm_spec(plan, p, work, launch.iterations);
    const struct cln_argument arguments[] = {cln_real("eps", p->eps),
                                             cln_integer("rows", p->rows),
                                             cln_integer("iterations", launch.iterations),
                                             cln_bind("moments", moments),
                                             {0}};
    const struct cln_stage_recipe recipe = {
        .kernel = kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = units,
        .groups = launch.groups,
        .items = launch.items,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* Merges the moments of chunks into those of their segments, with the same number of work-items per segment. */
static clnorm_status add_merge(clnorm_plan *plan, const clnorm_norm_desc *p, const struct cln_workload *work,
                               struct cln_binding chunks) {
    const uint64_t segments = work->rows * work->groups;
    const struct cln_launch of_chunks = cln_launch_of(&plan->config, segments * plan->config.chunks);
    const struct cln_launch launch = cln_launch_of(&plan->config, segments);
    const struct cln_spec spec = cln_norm_spec(plan, p, work, of_chunks.iterations);
    const struct cln_argument arguments[] = {
        cln_integer("rows", p->rows), cln_integer("iterations", launch.iterations), cln_bind("chunk_moments", chunks), {0}};
    const struct cln_stage_recipe recipe = {
        .kernel = &merge_kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = segments,
        .groups = launch.groups,
        .items = launch.items,
    };
    return cln_plan_add_stage(plan, &recipe);
}

static clnorm_status add_statistics(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const clnorm_norm_desc p = problem_of(plan->operation, desc);
    struct cln_binding moments = {.role = CLN_MOMENTS};
    if (!p.rows)
        return CLNORM_SUCCESS;
    if (plan->config.chunks == 1)
        return add_segments(plan, &p, work, &statistics_kernel, moments);
    clnorm_status status = cln_plan_add_chunks(plan, CLN_MOMENTS_NUMBERS, &moments);
    if (!status)
        status = add_segments(plan, &p, work, &statistics_kernel, moments);
    return status ? status : add_merge(plan, &p, work, moments);
}

static clnorm_status add_apply(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const clnorm_norm_desc p = problem_of(plan->operation, desc);
    const struct cln_binding moments = {.role = CLN_MOMENTS};
    return p.rows ? add_segments(plan, &p, work, &apply_kernel, moments) : CLNORM_SUCCESS;
}

static const statistics_desc initial_statistics = CLNORM_NORM_STATISTICS_DESC_INIT;
static const apply_desc initial_apply = CLNORM_NORM_APPLY_DESC_INIT;

const struct cln_operation cln_norm_statistics = {
    .name = "norm_statistics",
    .summary = "the moments of a slice of the columns, for norm_apply",
    .init = "CLNORM_NORM_STATISTICS_DESC_INIT",
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
    .statistics = &moments_out,
    .statistic_count = 1,
    .workload = workload_of,
    .choose = cln_config_choose_reread,
    .add_stages = add_statistics,
};

const struct cln_operation cln_norm_apply = {
    .name = "norm_apply",
    .summary = "the norm of a slice of the columns, by the moments of whole rows",
    .init = "CLNORM_NORM_APPLY_DESC_INIT",
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
    .statistics = &moments_in,
    .statistic_count = 1,
    .workload = workload_of,
    .choose = cln_config_choose_reread,
    .add_stages = add_apply,
};
