#include <inttypes.h>

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/status.h"
#include "config/resources.h"
#include "device/driver_defects.h"
#include "operation/fp8.h"
#include "operation/operations.h"
#include "plan/stage.h"
#include "plan/tensor.h"
#include "quantize/quantize_args.h"

typedef clnorm_quantize_desc problem;

enum { WORD = 4, AT_ONCE = 4 }; /* of windows.h, codes; of quantize_segments.cl, groups of a lane */

static const struct cln_tensor_rule tensors[] = {
    {"x", CLN_X, offsetof(problem, x), CLN_MATRIX, CLN_F32_OR_LESS, CLN_REFUSED, false, CLN_ROLES},
    {"q", CLN_Q, offsetof(problem, q), CLN_MATRIX, CLN_CODES, CLN_REFUSED, true, CLN_SCALE},
    {"q_t", CLN_Q_T, offsetof(problem, q_t), CLN_TRANSPOSED, CLN_CODES, CLN_ABSENT, true, CLN_ROLES},
};
static const struct cln_field_rule fields[] = {
    {"stochastic", offsetof(problem, stochastic), 0, 1, NULL},
    {"save_amax", offsetof(problem, save_amax), 0, 1, NULL},
};

static bool transposes(const problem *p) {
    return p->q_t.dtype != CLNORM_DTYPE_NONE;
}

/* The problem, and the rows in which kernels take it. */
struct job {
    const problem *p;
    struct cln_fp8_rows rows;
    uint64_t group;  /* elements of a row that share a scale */
    uint64_t groups; /* of a row */
};

static struct job job_of(const void *desc) {
    const problem *const p = desc;
    struct job job = {.p = p};
    job.rows = cln_fp8_rows_of(desc, &p->x, &p->q, p->q.scaling == CLNORM_SCALING_TENSOR && !transposes(p));
    job.group = p->q.scaling == CLNORM_SCALING_GROUP ? p->q.scale_group : job.rows.cols;
    job.groups = cln_divide_up(job.rows.cols, job.group);
    return job;
}

static clnorm_status check(const clnorm_device_info *device, void *desc) {
    const problem *const p = desc;
    if (transposes(p) && p->q_t.dtype != p->q.dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.q_t.dtype is %s: expected desc.q.dtype, %s, or none",
                        clnorm_dtype_name(p->q_t.dtype), clnorm_dtype_name(p->q.dtype));
    if (!p->stochastic && p->seed)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.seed is %" PRIu64 ": expected 0 where desc.stochastic is 0", p->seed);
    return cln_refuse_defect(device, CLN_DEFECT_QUANTIZE);
}

/* amax has the shape of the scales, also where the scale is given. */
static clnorm_status describe(const void *desc, struct cln_tensor tensor[CLN_ROLES]) {
    const problem *const p = desc;
    const uint64_t scales = p->q.scaling == CLNORM_SCALING_TENSOR ? p->rows > 0 : p->rows * job_of(desc).groups;
    return p->save_amax ? cln_tensor_vector(&tensor[CLN_AMAX], "amax", scales, sizeof(cl_float), 0) : CLNORM_SUCCESS;
}

static void tuning_key(const void *desc, struct cln_tuning_key *key) {
    key->group_size = job_of(desc).group;
}

/* A vector has one scale. Where random words are drawn for four neighbours, vectors begin at a multiple of four in x. */
static struct cln_workload workload_of(const struct cln_operation *operation, const void *desc) {
    const problem *const p = desc;
    const struct job job = job_of(desc);
    const bool grouped = p->q.scaling == CLNORM_SCALING_GROUP, divided = p->stochastic && !job.rows.cut;
    const uint64_t divisor = (grouped ? job.group : 0) | (divided ? p->cols : 0);
    struct cln_workload work = cln_fp8_rows_workload(&job.rows, p->x.dtype, divisor, !divided && !transposes(p));
    (void)operation;
    work.groups = job.groups;
    work.group_size = job.group;
    return work;
}

/* A GPU's lane loads a vector of each of several groups at once. */
static clnorm_status choose_lanes(const clnorm_device_info *device, const struct cln_workload *work,
                                  const struct cln_config *forced, struct cln_config *config) {
    enum { ITEMS = 64, MOST_LANES = 32 };
    const clnorm_status status = cln_fp8_config(device, work, forced, config);
    const bool free = !forced->lanes && !forced->segments && !forced->reduce && !forced->iterations;
    if (status || !free || work->groups == 1 || device->kind != CLNORM_DEVICE_GPU)
        return status;
    const uint64_t vectors = cln_divide_up(work->group_size, config->vec);
    if (vectors > cln_smaller(MOST_LANES, device->max_work_group_size))
        return status;
    struct cln_config wish = *forced;
    wish.lanes = (uint32_t)cln_power_of_two_at_least(vectors);
    wish.segments = (uint32_t)cln_larger(cln_smaller(ITEMS, device->max_work_group_size) / wish.lanes, 1);
    wish.iterations = AT_ONCE;
    return cln_fp8_config(device, work, &wish, config);
}

/* Bytes of local memory for the codes of a work-group's windows, and for its sums. */
static uint64_t window_bytes(const struct cln_workload *work, const struct cln_config *config) {
    const uint64_t windows = AT_ONCE * (uint64_t)config->lanes * config->segments;
    return (windows + 2) * config->vec + WORD + cln_scratch_bytes(work, config);
}

/* Whether each lane takes a window of a group that begins anywhere (cl/quantize/windows.h). Aligned vectors of half the
 * size are preferred, unless a size is forced. */
static bool takes_windows(const clnorm_device_info *device, const struct cln_workload *work,
                          const struct cln_config *forced, const struct cln_config *config) {
    const bool gains = forced->vec || 2 * work->alignment < config->vec;
    return gains && config->vec >= WORD && (uint64_t)config->lanes * config->vec == work->group_size &&
           window_bytes(work, config) <= device->local_memory;
}

/* Groups that begin anywhere get the config of aligned ones, if its lanes can take windows. Else they get the config of
 * their own alignment, without windows. */
static clnorm_status choose(const clnorm_device_info *device, const struct cln_workload *work,
                            const struct cln_config *forced, struct cln_config *config) {
    const bool grouped = work->whole > 0; /* or random words are drawn, without leads */
    if (!grouped || !work->lead_vec)
        return choose_lanes(device, work, forced, config);
    struct cln_workload even = *work;
    even.lead_vec = 0;
    even.alignment = cln_larger(work->alignment, work->lead_vec);
    const clnorm_status status = choose_lanes(device, &even, forced, config);
    if (!status && (!cln_leads(work, config) || takes_windows(device, work, forced, config)))
        return status;
    even.alignment = work->alignment;
    return choose_lanes(device, &even, forced, config);
}

static struct cln_spec spec_of(const clnorm_plan *plan, const struct job *job) {
    const problem *const p = job->p;
    struct cln_spec spec = cln_fp8_spec(&plan->context->device, &plan->config);
    cln_fp8_spec_rows(plan, &job->rows, &spec);
    spec.x_dtype = p->x.dtype;
    spec.q_dtype = p->q.dtype;
    if (p->q.scaling == CLNORM_SCALING_GROUP) { /* else kernels of all widths are the same */
        spec.group_size = job->group;
        spec.groups = job->groups;
    }
    spec.scaling = p->q.scaling;
    spec.stochastic = p->stochastic;
    spec.write_q = true;
    return spec;
}

static struct cln_launch launch_of(const clnorm_plan *plan, const struct job *job) {
    const uint64_t segments = job->rows.rows * job->groups;
    return job->p->q.scaling == CLNORM_SCALING_TENSOR
               ? cln_fp8_launch_of_largest(&plan->context->device, &plan->config, segments)
               : cln_launch_of(&plan->config, segments);
}

static const struct cln_kernel segments_kernel =
    CLN_KERNEL_PAIR(quantize_segments, quantize_segments, QUANTIZE_SEGMENTS_ARGS);
static const struct cln_kernel tile_kernel = CLN_KERNEL_PAIR(quantize_tile, quantize_tile, QUANTIZE_TILE_ARGS);

/* The arguments of both kernels. */
static struct cln_arguments arguments_of(const struct cln_fp8_rows *rows) {
    return (struct cln_arguments){{
        cln_bind_part("x", (struct cln_binding){.role = CLN_X}, rows->x_stride),
        cln_bind_part("q", (struct cln_binding){.role = CLN_Q}, rows->q_stride),
        cln_integer("cols", rows->cols),
        cln_integer("elements", rows->elements),
    }};
}

/* quantize_segments.cl over all rows or groups. With CLNORM_SCALING_TENSOR each work-group's largest magnitude goes to
 * magnitudes. */
static clnorm_status add_segments(clnorm_plan *plan, const struct job *job, const struct cln_launch *launch,
                                  struct cln_binding magnitudes) {
    const problem *const p = job->p;
    const bool whole = p->q.scaling == CLNORM_SCALING_TENSOR;
    const struct cln_arguments common = arguments_of(&job->rows);
    struct cln_spec spec = spec_of(plan, job);
    spec.scale_dtype = whole ? CLNORM_DTYPE_NONE : p->q.scale_dtype;
    spec.amax = whole || p->save_amax;
    spec.write_q = !whole && !transposes(p);
    const struct cln_binding amax = {.role = CLN_AMAX};
    const struct cln_argument arguments[] = {
        cln_bind("amax", whole ? magnitudes : amax),
        cln_integer("iterations", launch->iterations),
        cln_include(common.list),
        {0},
    };
    const struct cln_stage_recipe recipe = {
        .kernel = &segments_kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = job->rows.rows * job->groups,
        .groups = launch->groups,
        .items = launch->items,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* quantize_tile.cl. count: the magnitudes that each work-group searches; 0: the scale is given or already written. */
static clnorm_status add_tiles(clnorm_plan *plan, const struct job *job, const struct cln_fp8_tile *tile,
                               struct cln_binding magnitudes, cl_ulong count) {
    const problem *const p = job->p;
    const struct cln_arguments common = arguments_of(&job->rows);
    struct cln_spec spec = spec_of(plan, job);
    spec.scale_dtype = p->q.scale != 0 ? CLNORM_DTYPE_NONE : p->q.scale_dtype;
    spec.transposed = transposes(p);
    spec.amax = count > 0 && p->save_amax;
    cln_fp8_spec_tile(&spec, tile);
    const struct cln_argument arguments[] = {
        cln_bind("magnitudes", magnitudes), cln_integer("rows", job->rows.rows), cln_include(common.list),
        cln_real("given", p->q.scale),      cln_integer("count", count),         {0},
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

static clnorm_status add_stages(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const problem *const p = desc;
    const struct job job = job_of(desc);
    (void)work;
    const struct cln_fp8_tile tile = cln_fp8_tile_of(&plan->context->device, &plan->config, job.rows.rows,
                                                     cln_fp8_reach(plan, &job.rows), transposes(p), p->q_t.stride);
    plan->seeding = p->stochastic ? CLN_SEED_OWN : CLN_SEED_NONE;
    plan->seed.seed = p->seed;
    plan->tensor[CLN_Q_T].vector = tile.row_vec * plan->tensor[CLN_Q_T].element;
    if (!p->rows)
        return CLNORM_SUCCESS;
    const bool whole = p->q.scaling == CLNORM_SCALING_TENSOR;
    const struct cln_launch launch = launch_of(plan, &job);
    const bool searched = p->q.scale == 0 || p->save_amax;
    struct cln_binding magnitudes = {.role = CLN_WORKSPACE};
    clnorm_status status =
        searched && whole ? cln_plan_add_part(plan, launch.groups, sizeof(cl_float), &magnitudes) : CLNORM_SUCCESS;
    const struct cln_fp8_largest largest = {
        .magnitudes = magnitudes,
        .count = launch.groups,
        .q_dtype = p->q.dtype,
        .scale_dtype = p->q.scale != 0 ? CLNORM_DTYPE_NONE : p->q.scale_dtype,
        .scale = CLN_SCALE,
        .amax = p->save_amax,
    };
    const bool tiles_search = whole && p->q.scale == 0 && cln_fp8_tiles_search(&tile, largest.count);
    if (!status && searched)
        status = add_segments(plan, &job, &launch, magnitudes);
    if (!status && searched && whole && !tiles_search)
        status = cln_fp8_add_largest(plan, &largest);
    if (!status && (whole || transposes(p)))
        status = add_tiles(plan, &job, &tile, magnitudes, tiles_search ? largest.count : 0);
    return status;
}

static const clnorm_quantize_desc initial = CLNORM_QUANTIZE_DESC_INIT;

const struct cln_operation cln_quantize = {
    .name = "quantize",
    .init = "CLNORM_QUANTIZE_DESC_INIT",
    .initial = &initial,
    .size = sizeof initial,
    .config = offsetof(clnorm_quantize_desc, config),
    .tensors = tensors,
    .tensor_count = sizeof tensors / sizeof *tensors,
    .fields = fields,
    .field_count = sizeof fields / sizeof *fields,
    .check = check,
    .describe = describe,
    .workload = workload_of,
    .tuning_key = tuning_key,
    .choose = choose,
    .add_stages = add_stages,
};
