#include "arithmetic.h"
#include "config.h"
#include "context.h"
#include "one_call.h"
#include "plan.h"
#include "rowwise.h"
#include "status.h"
#include "tuning.h"

/* What is asked for, forward or backward: x first, the output last. */
struct problem {
    struct cln_rowwise tensors;
    uint64_t rows, cols; /* as they are worked on: tensors without gaps are one long row */
    clnorm_gelu_form form;
};

/* Bytes behind the last field say nothing; there are none between fields. */
enum { FORWARD_END = offsetof(clnorm_gelu_desc, config) + sizeof(clnorm_config) };
_Static_assert(FORWARD_END == sizeof(size_t) + 4 * sizeof(uint64_t) + 3 * sizeof(clnorm_dtype) + sizeof(clnorm_config),
               "a descriptor has no gap");
_Static_assert(sizeof(clnorm_gelu_backward_desc) ==
                   sizeof(size_t) + 5 * sizeof(uint64_t) + 4 * sizeof(clnorm_dtype) + sizeof(clnorm_config),
               "a descriptor has no gap");
_Static_assert(sizeof(clnorm_gelu_desc) <= CLN_DESCRIPTOR_MOST && sizeof(clnorm_gelu_backward_desc) <= CLN_DESCRIPTOR_MOST,
               "a descriptor can be copied");
static const struct cln_descriptor forward_descriptor = {"CLNORM_GELU_DESC_INIT", sizeof(clnorm_gelu_desc), FORWARD_END,
                                                         sizeof(clnorm_gelu_desc)};
static const struct cln_descriptor backward_descriptor = {"CLNORM_GELU_BACKWARD_DESC_INIT",
                                                          sizeof(clnorm_gelu_backward_desc), 0, 0};

static clnorm_status validate(const clnorm_device_info *device, struct problem *p) {
    if (p->form != CLNORM_GELU_ERF && p->form != CLNORM_GELU_TANH)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.form is %d: expected a clnorm_gelu_form", (int)p->form);
    const clnorm_status status = cln_rowwise_validate(device, &p->tensors);
    if (status)
        return status;
    const bool flat = cln_rowwise_contiguous(&p->tensors);
    p->rows = flat ? p->tensors.rows > 0 : p->tensors.rows;
    p->cols = flat ? cln_larger(p->tensors.rows, 1) * p->tensors.cols : p->tensors.cols;
    return CLNORM_SUCCESS;
}

static struct cln_workload workload_of(const struct problem *p) {
    enum { ANY = 16 };
    return (struct cln_workload){
        .rows = p->rows,
        .groups = 1,
        .group_size = p->cols,
        .alignment = p->rows > 1 ? cln_lowest_bit(cln_rowwise_strides(&p->tensors)) : ANY,
        .x_size = clnorm_dtype_size(p->tensors.tensor[0].dtype),
        .real_size = cln_rowwise_real_size(&p->tensors),
    };
}

static struct cln_spec spec_of(const struct problem *p, const clnorm_device_info *device, const clnorm_config *c) {
    struct cln_spec spec = {
        .family = CLN_GELU,
        .gelu = p->form,
        .vec = c->vec,
        .lanes = c->lanes,
        .unroll = c->unroll,
        .stores = c->stores,
        .isa = c->isa,
        .element_aligned = cln_config_element_aligned(device, c),
        .opencl_c = 120,
    };
    for (unsigned i = 0; i < p->tensors.tensors; i++) {
        const struct cln_rowwise_tensor *const tensor = &p->tensors.tensor[i];
        uint64_t *const dtype = tensor->role == CLN_X    ? &spec.x_dtype
                                : tensor->role == CLN_DY ? &spec.dy_dtype
                                : tensor->role == CLN_Y  ? &spec.y_dtype
                                                         : &spec.dx_dtype;
        *dtype = tensor->dtype;
    }
    return spec;
}

static clnorm_status add_stage(clnorm_plan *plan, const struct problem *p) {
    const clnorm_config *const c = &plan->config;
    const struct cln_rowwise_tensor *const x = &p->tensors.tensor[0], *const out = x + p->tensors.tensors - 1;
    const struct cln_rowwise_tensor *const dy = x + 1; /* the output itself in a forward, where nothing is read from it */
    const bool backward = dy != out;
    const struct cln_binding binding[] = {{.role = CLN_X}, {.role = CLN_DY}, {.role = out->role}};
    const cl_ulong blocks = cln_divide_up(p->cols, (uint64_t)c->vec * c->lanes * c->unroll);
    const cl_ulong work = p->rows * blocks;
    const cl_ulong rounds = cln_larger(c->rounds, cln_divide_up(work, CLN_MOST_GROUPS));
    const cl_ulong dy_stride = backward ? dy->stride : 0;
    const struct cln_spec spec = spec_of(p, &plan->context->device, c);
    const struct cln_constant constant[] = {
        {sizeof rounds, &rounds},
        {sizeof blocks, &blocks},
        {sizeof p->cols, &p->cols},
        {sizeof x->stride, &x->stride},
        {sizeof dy_stride, &dy_stride},
        {sizeof out->stride, &out->stride},
        {0, NULL},
    };
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_gelu,
        .kernel = "gelu_rows",
        .spec = &spec,
        .any = !spec.element_aligned,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = work,
        .groups = (size_t)cln_divide_up(work, rounds),
        .items = c->lanes,
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

static clnorm_status make_plan(clnorm_context *context, struct problem *p, const clnorm_config *forced,
                               clnorm_plan **plan) {
    clnorm_status status = validate(&context->device, p);
    clnorm_plan *made = NULL;
    if (status || (status = cln_plan_create(context, &made)))
        return status;
    const struct cln_workload work = workload_of(p);
    const struct cln_tuning_key key = {.name = p->tensors.tensors == 3 ? "gelu_backward" : "gelu",
                                       .dtype = p->tensors.tensor[0].dtype,
                                       .group_size = p->tensors.cols};
    status = cln_tuning_choose(made, &key, cln_config_choose_elements, &work, forced);
    if (!status)
        status = cln_rowwise_describe(&p->tensors, made->config.vec, made->tensor);
    if (!status && p->rows)
        status = add_stage(made, p);
    if (status)
        clnorm_plan_destroy(made);
    else
        *plan = made;
    return status;
}

clnorm_status clnorm_gelu_forward_plan_create(clnorm_context *context, const clnorm_gelu_desc *desc, clnorm_plan **plan) {
    if (!context || !plan)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    const clnorm_status status = cln_descriptor_check(&forward_descriptor, desc);
    if (status)
        return status;
    struct problem p = {
        .tensors = {.rows = desc->rows,
                    .cols = desc->cols,
                    .tensor = {{"x", CLN_X, desc->x_dtype, desc->x_stride}, {"y", CLN_Y, desc->y_dtype, desc->y_stride}},
                    .tensors = 2},
        .form = desc->form,
    };
    return make_plan(context, &p, &desc->config, plan);
}

clnorm_status clnorm_gelu_backward_plan_create(clnorm_context *context, const clnorm_gelu_backward_desc *desc,
                                               clnorm_plan **plan) {
    if (!context || !plan)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    const clnorm_status status = cln_descriptor_check(&backward_descriptor, desc);
    if (status)
        return status;
    struct problem p = {
        .tensors = {.rows = desc->rows,
                    .cols = desc->cols,
                    .tensor = {{"x", CLN_X, desc->x_dtype, desc->x_stride},
                               {"dy", CLN_DY, desc->dy_dtype, desc->dy_stride},
                               {"dx", CLN_DX, desc->dx_dtype, desc->dx_stride}},
                    .tensors = 3},
        .form = desc->form,
    };
    return make_plan(context, &p, &desc->config, plan);
}

static clnorm_status make_forward(clnorm_context *context, const void *desc, clnorm_plan **plan) {
    return clnorm_gelu_forward_plan_create(context, desc, plan);
}

static clnorm_status make_backward(clnorm_context *context, const void *desc, clnorm_plan **plan) {
    return clnorm_gelu_backward_plan_create(context, desc, plan);
}

clnorm_status clnorm_gelu_forward(clnorm_context *context, cl_command_queue queue, const clnorm_gelu_desc *desc,
                                  const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    return cln_one_call(context, &forward_descriptor, make_forward, desc, queue, args, num_wait, wait_list, event);
}

clnorm_status clnorm_gelu_backward(clnorm_context *context, cl_command_queue queue, const clnorm_gelu_backward_desc *desc,
                                   const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    return cln_one_call(context, &backward_descriptor, make_backward, desc, queue, args, num_wait, wait_list, event);
}
