#include <string.h>

#include "base/arithmetic.h"
#include "base/context.h"
#include "config/config.h"
#include "gelu/gelu_args.h"
#include "operation/launch.h"
#include "operation/operations.h"
#include "operation/outer.h"
#include "plan/stage.h"

/* The output is the last. */
static const struct cln_tensor_rule forward_tensors[] = {
    {"x", CLN_X, offsetof(clnorm_gelu_desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"y", CLN_Y, offsetof(clnorm_gelu_desc, y), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
};
static const struct cln_tensor_rule backward_tensors[] = {
    {"x", CLN_X, offsetof(clnorm_gelu_backward_desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"dy", CLN_DY, offsetof(clnorm_gelu_backward_desc, dy), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, false, CLN_ROLES},
    {"dx", CLN_DX, offsetof(clnorm_gelu_backward_desc, dx), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
};
static const struct cln_field_rule forward_fields[] = {
    {"form", offsetof(clnorm_gelu_desc, form), CLNORM_GELU_ERF, CLNORM_GELU_TANH, "clnorm_gelu_form"},
    {"reserved", offsetof(clnorm_gelu_desc, reserved), 0, 0, NULL},
};
static const struct cln_field_rule backward_fields[] = {
    {"form", offsetof(clnorm_gelu_backward_desc, form), CLNORM_GELU_ERF, CLNORM_GELU_TANH, "clnorm_gelu_form"},
    {"reserved", offsetof(clnorm_gelu_backward_desc, reserved), 0, 0, NULL},
};
static const struct cln_enum_option form = {
    "approximate", "GELU by erf or by tanh (none)", "form", {{"none", CLNORM_GELU_ERF}, {"tanh", CLNORM_GELU_TANH}}};

/* The part of a descriptor, forward or backward, that the kernel needs. */
struct problem {
    uint64_t rows, cols;
    const clnorm_tensor *x, *dy, *out; /* dy: out itself in a forward, which reads no dy */
    clnorm_gelu_form form;
};

static bool is_flat(const clnorm_tensor *tensor, uint64_t cols) {
    return tensor->stride == cols && !cln_outer_given(tensor);
}

/* Contiguous tensors are treated as one long row. */
static struct problem problem_of(const struct cln_operation *operation, const void *desc) {
    const struct cln_desc_head *const head = desc;
    struct problem p = {
        .x = cln_operation_tensor(&operation->tensors[0], desc),
        .dy = cln_operation_tensor(&operation->tensors[1], desc),
        .out = cln_operation_tensor(&operation->tensors[operation->tensor_count - 1], desc),
    };
    memcpy(&p.form, (const char *)desc + operation->fields[0].offset, sizeof p.form);
    const bool flat = is_flat(p.x, head->cols) && is_flat(p.dy, head->cols) && is_flat(p.out, head->cols);
    p.rows = flat ? head->rows > 0 : head->rows;
    p.cols = flat ? cln_larger(head->rows, 1) * head->cols : head->cols;
    return p;
}

static struct cln_workload workload_of(const struct cln_operation *operation, const void *desc) {
    enum { ANY = 16 };
    const struct problem p = problem_of(operation, desc);
    return (struct cln_workload){
        .users = CLN_KNOBS_ELEMENTS,
        .rows = p.rows,
        .groups = 1,
        .group_size = p.cols,
        .alignment = p.rows > 1 ? cln_lowest_bit(cln_operation_strides(operation, desc)) : ANY,
        .x_size = clnorm_dtype_size(p.x->dtype),
        .real_size = cln_operation_real_size(operation, desc),
    };
}

static struct cln_spec spec_of(const clnorm_plan *plan, const struct problem *p) {
    const bool backward = plan->operation == &cln_gelu_backward;
    struct cln_spec spec = {
        .family = CLN_GELU,
        .gelu = p->form,
        .x_dtype = p->x->dtype,
        .y_dtype = backward ? CLNORM_DTYPE_NONE : p->out->dtype,
        .dy_dtype = backward ? p->dy->dtype : CLNORM_DTYPE_NONE,
        .dx_dtype = backward ? p->out->dtype : CLNORM_DTYPE_NONE,
    };
    cln_launch_spec(&plan->context->device, &plan->config, &spec);
    return spec;
}

static const struct cln_kernel kernel = CLN_KERNEL_PAIR(gelu, gelu_rows, GELU_ARGS);

static clnorm_status add_stage(clnorm_plan *plan, const void *desc, const struct cln_workload *work_of_all) {
    (void)work_of_all;
    const struct problem p = problem_of(plan->operation, desc);
    if (!p.rows)
        return CLNORM_SUCCESS;
    const struct cln_config *const c = &plan->config;
    const struct cln_spec spec = spec_of(plan, &p);
    const struct cln_binding out = {.role = plan->operation->tensors[plan->operation->tensor_count - 1].role};
    const cl_ulong blocks = cln_divide_up(p.cols, (uint64_t)c->vec * c->lanes * c->unroll);
    const cl_ulong work = p.rows * blocks;
    const cl_ulong iterations = cln_launch_iterations(c->iterations, work, CLN_MOST_GROUPS);
    const struct cln_argument arguments[] = {
        cln_bind("out", out),
        cln_integer("iterations", iterations),
        cln_integer("blocks", blocks),
        cln_integer("cols", p.cols),
        {0},
    };
    const struct cln_stage_recipe recipe = {
        .kernel = &kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = work,
        .groups = (size_t)cln_divide_up(work, iterations),
        .items = c->lanes,
    };
    return cln_plan_add_stage(plan, &recipe);
}

static const clnorm_gelu_desc initial_forward = CLNORM_GELU_DESC_INIT;
static const clnorm_gelu_backward_desc initial_backward = CLNORM_GELU_BACKWARD_DESC_INIT;

const struct cln_operation cln_gelu_forward = {
    .name = "gelu",
    .summary = "x times the normal distribution function of x",
    .init = "CLNORM_GELU_DESC_INIT",
    .initial = &initial_forward,
    .outer = true,
    .size = sizeof initial_forward,
    .tensors = forward_tensors,
    .tensor_count = sizeof forward_tensors / sizeof *forward_tensors,
    .fields = forward_fields,
    .field_count = sizeof forward_fields / sizeof *forward_fields,
    .choices = {&form},
    .config = offsetof(clnorm_gelu_desc, config),
    .workload = workload_of,
    .choose = cln_config_choose,
    .add_stages = add_stage,
};

const struct cln_operation cln_gelu_backward = {
    .name = "gelu_backward",
    .summary = "the gradient of gelu",
    .init = "CLNORM_GELU_BACKWARD_DESC_INIT",
    .initial = &initial_backward,
    .outer = true,
    .size = sizeof initial_backward,
    .tensors = backward_tensors,
    .tensor_count = sizeof backward_tensors / sizeof *backward_tensors,
    .fields = backward_fields,
    .field_count = sizeof backward_fields / sizeof *backward_fields,
    .choices = {&form},
    .config = offsetof(clnorm_gelu_backward_desc, config),
    .workload = workload_of,
    .choose = cln_config_choose,
    .add_stages = add_stage,
};
