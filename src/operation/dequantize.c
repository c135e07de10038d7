#include "base/arithmetic.h"
#include "base/context.h"
#include "operation/fp8.h"
#include "operation/operations.h"
#include "plan/stage.h"
#include "quantize/quantize_args.h"

typedef clnorm_dequantize_desc problem;

static const struct cln_tensor_rule tensors[] = {
    {"q", CLN_Q, offsetof(problem, q), CLN_MATRIX, CLN_CODES, CLN_REFUSED, false, CLN_SCALE},
    {"x", CLN_X, offsetof(problem, x), CLN_MATRIX, CLN_F32_OR_LESS, CLN_REFUSED, true, CLN_ROLES},
};

static struct cln_fp8_rows rows_of(const void *desc) {
    const problem *const p = desc;
    return cln_fp8_rows_of(desc, &p->x, &p->q, p->q.scaling == CLNORM_SCALING_TENSOR);
}

/* A work-group takes whole rows. A vector has one scale, and where rows of groups begin anywhere two. */
static struct cln_workload workload_of(const struct cln_operation *operation, const void *desc) {
    const problem *const p = desc;
    const struct cln_fp8_rows rows = rows_of(desc);
    (void)operation;
    return cln_fp8_rows_workload(&rows, p->x.dtype, p->q.scale_group, true);
}

static const struct cln_kernel kernel = CLN_KERNEL_PAIR(dequantize, dequantize, DEQUANTIZE_ARGS);

static clnorm_status add_stages(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const problem *const p = desc;
    const struct cln_fp8_rows rows = rows_of(desc);
    if (!work->rows)
        return CLNORM_SUCCESS;
    const struct cln_launch launch = cln_launch_of(&plan->config, rows.rows);
    struct cln_spec spec = cln_fp8_spec(&plan->context->device, &plan->config);
    cln_fp8_spec_rows(plan, &rows, &spec);
    spec.x_dtype = p->x.dtype;
    spec.q_dtype = p->q.dtype;
    spec.scale_dtype = p->q.scale_dtype;
    spec.scaling = p->q.scaling;
    if (p->q.scaling == CLNORM_SCALING_GROUP) { /* else kernels of all widths are the same */
        spec.group_size = p->q.scale_group;
        spec.groups = cln_divide_up(p->cols, p->q.scale_group);
    }
    const struct cln_argument arguments[] = {
        cln_bind_part("q", (struct cln_binding){.role = CLN_Q}, rows.q_stride),
        cln_bind_part("x", (struct cln_binding){.role = CLN_X}, rows.x_stride),
        cln_integer("iterations", launch.iterations),
        cln_integer("cols", rows.cols),
        cln_integer("elements", rows.elements),
        {0},
    };
    const struct cln_stage_recipe recipe = {
        .kernel = &kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = rows.rows,
        .groups = launch.groups,
        .items = launch.items,
    };
    return cln_plan_add_stage(plan, &recipe);
}

static const clnorm_dequantize_desc initial = CLNORM_DEQUANTIZE_DESC_INIT;

const struct cln_operation cln_dequantize = {
    .name = "dequantize",
    .init = "CLNORM_DEQUANTIZE_DESC_INIT",
    .initial = &initial,
    .size = sizeof initial,
    .config = offsetof(clnorm_dequantize_desc, config),
    .tensors = tensors,
    .tensor_count = sizeof tensors / sizeof *tensors,
    .workload = workload_of,
    .choose = cln_fp8_config,
    .add_stages = add_stages,
};
