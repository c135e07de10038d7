#include "base/arithmetic.h"
#include "base/context.h"
#include "common/exchange_sizes.h"
#include "config/cost.h"
#include "config/resources.h"
#include "operation/launch.h"
#include "operation/operations.h"
#include "plan/stage.h"
#include "softmax/softmax_args.h"

static const struct cln_tensor_rule forward_tensors[] = {
    {"x", CLN_X, offsetof(clnorm_softmax_desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"y", CLN_Y, offsetof(clnorm_softmax_desc, y), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
};
static const struct cln_tensor_rule backward_tensors[] = {
    {"y", CLN_Y, offsetof(clnorm_softmax_backward_desc, y), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"dy", CLN_DY, offsetof(clnorm_softmax_backward_desc, dy), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, false, CLN_ROLES},
    {"dx", CLN_DX, offsetof(clnorm_softmax_backward_desc, dx), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
};

static const struct cln_field_rule forward_fields[] = {
    {"batch_invariant", offsetof(clnorm_softmax_desc, batch_invariant), 0, 1, NULL},
    {"reserved", offsetof(clnorm_softmax_desc, reserved), 0, 0, NULL},
};
static const struct cln_field_rule backward_fields[] = {
    {"batch_invariant", offsetof(clnorm_softmax_backward_desc, batch_invariant), 0, 1, NULL},
    {"reserved", offsetof(clnorm_softmax_backward_desc, reserved), 0, 0, NULL},
};

static bool is_backward(const struct cln_operation *operation) {
    return operation == &cln_softmax_backward;
}

static clnorm_dtype dtype_of(const struct cln_operation *operation, const void *desc, unsigned tensor) {
    return cln_operation_tensor(&operation->tensors[tensor], desc)->dtype;
}

/* The registers of a forward hold exponentials, those of a backward both inputs. */
static struct cln_workload workload_of(const struct cln_operation *operation, const void *desc) {
    const struct cln_desc_head *const head = desc;
    const bool backward = is_backward(operation);
    const uint64_t first = clnorm_dtype_size(dtype_of(operation, desc, 0));
    const uint64_t real = cln_operation_real_size(operation, desc);
    return (struct cln_workload){
        .users = CLN_KNOBS_SOFTMAX,
        .rows = head->rows,
        .groups = 1,
        .group_size = head->cols,
        .alignment = cln_lowest_bit(head->cols | cln_operation_strides(operation, desc)),
        .lead_vec = cln_operation_lead_vec(operation, desc),
        .x_size = first,
        .held_size = backward ? first + clnorm_dtype_size(dtype_of(operation, desc, 1)) : real,
        .real_size = real,
        .kind = backward ? CLN_KIND_SOFTMAX_BACKWARD : CLN_KIND_SOFTMAX,
    };
}

static struct cln_spec spec_of(const clnorm_plan *plan, const void *desc) {
    const bool backward = is_backward(plan->operation);
    const clnorm_dtype second = dtype_of(plan->operation, desc, 1);
    struct cln_spec spec = {
        .family = backward ? CLN_SOFTMAX_BACKWARD : CLN_SOFTMAX,
        .group_size = ((const struct cln_desc_head *)desc)->cols,
        .x_dtype = dtype_of(plan->operation, desc, 0),
        .y_dtype = backward ? dtype_of(plan->operation, desc, 0) : second,
        .dy_dtype = backward ? second : CLNORM_DTYPE_NONE,
        .dx_dtype = backward ? dtype_of(plan->operation, desc, 2) : CLNORM_DTYPE_NONE,
    };
    cln_launch_spec(&plan->context->device, &plan->config, &spec);
    spec.leads = cln_leads(&plan->work, &plan->config);
    spec.row_split = cln_exchanges(&plan->config) ? plan->config.row_split : 0;
    spec.most_registers = cln_softmax_most_registers(&plan->work, &plan->config);
    return spec;
}

/* Kernels over all rows, or over all chunks of them. */
static const struct cln_kernel whole = CLN_KERNEL_PAIR(softmax, softmax, SOFTMAX_ARGS);
static const struct cln_kernel totals = CLN_KERNEL_PAIR(softmax_chunks, softmax_totals, SOFTMAX_TOTALS_ARGS);
static const struct cln_kernel apply = CLN_KERNEL_PAIR(softmax_chunks, softmax_apply, SOFTMAX_APPLY_ARGS);
static const struct cln_kernel exchange = CLN_KERNEL_PAIR(softmax_exchange, softmax_exchange, SOFTMAX_EXCHANGE_ARGS);
static const struct cln_kernel whole_backward = CLN_KERNEL_PAIR(softmax_backward, softmax_backward, SOFTMAX_BACKWARD_ARGS);
static const struct cln_kernel backward_sums =
    CLN_KERNEL_PAIR(softmax_backward_chunks, softmax_backward_sums, SOFTMAX_BACKWARD_SUMS_ARGS);
static const struct cln_kernel backward_apply =
    CLN_KERNEL_PAIR(softmax_backward_chunks, softmax_backward_apply, SOFTMAX_BACKWARD_APPLY_ARGS);
static const struct cln_kernel backward_exchange =
    CLN_KERNEL_PAIR(softmax_backward_exchange, softmax_backward_exchange, SOFTMAX_BACKWARD_EXCHANGE_ARGS);

/* part: the kernel's argument in the workspace, or all 0. Where work-groups exchange totals, each takes many chunks. */
static clnorm_status add_kernel(clnorm_plan *plan, const void *desc, const struct cln_kernel *kernel,
                                struct cln_argument part) {
    const struct cln_config *const c = &plan->config;
    const uint64_t work = ((const struct cln_desc_head *)desc)->rows * cln_larger(c->chunks, 1);
    struct cln_launch launch = cln_launch_of(c, work);
    if (cln_exchanges(c))
        launch.groups = (size_t)cln_smaller(cln_forward_at_once(&plan->context->device, &plan->work, c), work);
    const struct cln_spec spec = spec_of(plan, desc);
    const struct cln_argument arguments[] = {cln_integer("iterations", launch.iterations), part, {0}};
    const struct cln_stage_recipe recipe = {
        .kernel = kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = work,
        .groups = launch.groups,
        .items = launch.items,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* Adds the kernel whose work-groups exchange totals, by messages: HEADER_MESSAGES, then [rows, chunks]. */
static clnorm_status add_exchange(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const struct cln_kernel *const kernel = is_backward(plan->operation) ? &backward_exchange : &exchange;
    const uint64_t of_chunks = cln_product(work->rows, plan->config.chunks);
    struct cln_binding messages;
    const clnorm_status status = cln_plan_add_part(plan, cln_sum(HEADER_MESSAGES, of_chunks), sizeof(cl_uint4), &messages);
    return status ? status : add_kernel(plan, desc, kernel, cln_bind("messages", messages));
}

/* Adds the kernels for rows in chunks. The workspace holds the sums of each chunk, [rows, chunks, sums]. */
static clnorm_status add_chunks(clnorm_plan *plan, const void *desc) {
    const bool backward = is_backward(plan->operation);
    const uint64_t sums = backward ? 1 : 2;
    struct cln_binding binding;
    clnorm_status status = cln_plan_add_chunks(plan, sums, &binding);
    if (status)
        return status;
    const struct cln_argument part = cln_bind(backward ? "sums" : "totals", binding);
    status = add_kernel(plan, desc, backward ? &backward_sums : &totals, part);
    return status ? status : add_kernel(plan, desc, backward ? &backward_apply : &apply, part);
}

static clnorm_status add_stages(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    if (!work->rows)
        return CLNORM_SUCCESS;
    if (cln_exchanges(&plan->config))
        return add_exchange(plan, desc, work);
    if (plan->config.chunks > 1)
        return add_chunks(plan, desc);
    return add_kernel(plan, desc, is_backward(plan->operation) ? &whole_backward : &whole, (struct cln_argument){0});
}

static const clnorm_softmax_desc initial_forward = CLNORM_SOFTMAX_DESC_INIT;
static const clnorm_softmax_backward_desc initial_backward = CLNORM_SOFTMAX_BACKWARD_DESC_INIT;

const struct cln_operation cln_softmax_forward = {
    .name = "softmax",
    .summary = "exp(x - max) / sum of exp(x - max) over a row",
    .init = "CLNORM_SOFTMAX_DESC_INIT",
    .initial = &initial_forward,
    .outer = true,
    .size = sizeof initial_forward,
    .config = offsetof(clnorm_softmax_desc, config),
    .tensors = forward_tensors,
    .tensor_count = sizeof forward_tensors / sizeof *forward_tensors,
    .fields = forward_fields,
    .field_count = sizeof forward_fields / sizeof *forward_fields,
    .batch_invariant = offsetof(clnorm_softmax_desc, batch_invariant),
    .workload = workload_of,
    .choose = cln_config_choose,
    .add_stages = add_stages,
};

const struct cln_operation cln_softmax_backward = {
    .name = "softmax_backward",
    .summary = "the gradient of softmax, from its output",
    .init = "CLNORM_SOFTMAX_BACKWARD_DESC_INIT",
    .initial = &initial_backward,
    .outer = true,
    .size = sizeof initial_backward,
    .config = offsetof(clnorm_softmax_backward_desc, config),
    .tensors = backward_tensors,
    .tensor_count = sizeof backward_tensors / sizeof *backward_tensors,
    .fields = backward_fields,
    .field_count = sizeof backward_fields / sizeof *backward_fields,
    .batch_invariant = offsetof(clnorm_softmax_backward_desc, batch_invariant),
    .workload = workload_of,
    .choose = cln_config_choose,
    .add_stages = add_stages,
};
