#include "arithmetic.h"
#include "config.h"
#include "context.h"
#include "one_call.h"
#include "plan.h"
#include "rowwise.h"
#include "status.h"
#include "tuning.h"

/* A kernel over all rows, or over all of their chunks. */
struct kernel {
    const struct cln_source *source;
    const char *name;
};

/* Forward or backward: the tensors in the order of the kernels' arguments, the output last. */
struct problem {
    struct cln_rowwise tensors;
    struct kernel whole_rows, chunk_sums, chunk_apply;
    uint64_t sums; /* that the kernel of chunks leaves of each */
};

/* Bytes behind the last field say nothing; there are none between fields. */
enum { BACKWARD_END = offsetof(clnorm_softmax_backward_desc, config) + sizeof(clnorm_config) };
_Static_assert(BACKWARD_END == sizeof(size_t) + 5 * sizeof(uint64_t) + 3 * sizeof(clnorm_dtype) + sizeof(clnorm_config),
               "a descriptor has no gap");
_Static_assert(sizeof(clnorm_softmax_desc) ==
                   sizeof(size_t) + 4 * sizeof(uint64_t) + 2 * sizeof(clnorm_dtype) + sizeof(clnorm_config),
               "a descriptor has no gap");
_Static_assert(sizeof(clnorm_softmax_desc) <= CLN_DESCRIPTOR_MOST &&
                   sizeof(clnorm_softmax_backward_desc) <= CLN_DESCRIPTOR_MOST,
               "a descriptor can be copied");
static const struct cln_descriptor forward_descriptor = {"CLNORM_SOFTMAX_DESC_INIT", sizeof(clnorm_softmax_desc), 0, 0};
static const struct cln_descriptor backward_descriptor = {"CLNORM_SOFTMAX_BACKWARD_DESC_INIT",
                                                          sizeof(clnorm_softmax_backward_desc), BACKWARD_END,
                                                          sizeof(clnorm_softmax_backward_desc)};

/* A forward's registers hold exponentials, a backward's both of its inputs. */
static struct cln_workload workload_of(const struct problem *p) {
    const struct cln_rowwise *const tensors = &p->tensors;
    const uint64_t first = clnorm_dtype_size(tensors->tensor[0].dtype), real = cln_rowwise_real_size(tensors);
    return (struct cln_workload){
        .rows = tensors->rows,
        .groups = 1,
        .group_size = tensors->cols,
        .alignment = cln_lowest_bit(tensors->cols | cln_rowwise_strides(tensors)),
        .x_size = first,
        .held_size = tensors->tensors == 2 ? real : first + clnorm_dtype_size(tensors->tensor[1].dtype),
        .real_size = real,
        .work = tensors->tensors == 2 ? CLN_WORK_SOFTMAX : CLN_WORK_SOFTMAX_BACKWARD,
        .splits = true,
    };
}

static clnorm_status choose(const clnorm_device_info *device, const struct cln_workload *work, const clnorm_config *forced,
                            clnorm_config *config) {
    if (forced->weights)
        return cln_config_refuse("weights", forced->weights, "0, softmax has no weights");
    const clnorm_status status = cln_config_choose(device, work, forced, config);
    if (!status)
        config->weights = 0;
    return status;
}

static struct cln_spec spec_of(const struct problem *p, const clnorm_device_info *device, const clnorm_config *c) {
    const struct cln_rowwise_tensor *const tensor = p->tensors.tensor;
    const bool backward = p->tensors.tensors == 3;
    return (struct cln_spec){
        .family = backward ? CLN_SOFTMAX_BACKWARD : CLN_SOFTMAX,
        .group_size = p->tensors.cols,
        .x_dtype = tensor[0].dtype,
        .y_dtype = backward ? tensor[0].dtype : tensor[1].dtype,
        .dy_dtype = backward ? tensor[1].dtype : CLNORM_DTYPE_NONE,
        .dx_dtype = backward ? tensor[2].dtype : CLNORM_DTYPE_NONE,
        .vec = c->vec,
        .lanes = c->lanes,
        .segments = c->segments,
        .keep = c->keep,
        .unroll = c->unroll,
        .chunks = cln_larger(c->chunks, 1),
        .reduce = c->reduce,
        .stores = c->stores,
        .isa = c->isa,
        .element_aligned = cln_config_element_aligned(device, c),
        .opencl_c = c->reduce == CLNORM_REDUCE_SUBGROUP ? device->opencl_c_version : 120,
    };
}

/* The first so many of the tensors, with a part of the workspace behind the inputs where there is one. */
static clnorm_status add_kernel(clnorm_plan *plan, const struct problem *p, const struct kernel *kernel, unsigned tensors,
                                const struct cln_binding *part) {
    const clnorm_config *const c = &plan->config;
    const cl_ulong work = p->tensors.rows * cln_larger(c->chunks, 1);
    const cl_ulong blocks = cln_divide_up(work, c->segments);
    const cl_ulong rounds = cln_larger(c->rounds, cln_divide_up(blocks, CLN_MOST_GROUPS));
    const struct cln_spec spec = spec_of(p, &plan->context->device, c);
    struct cln_binding binding[CLN_ROWWISE_TENSORS + 1];
    struct cln_constant constant[1 + CLN_ROWWISE_TENSORS + 1] = {{sizeof rounds, &rounds}};
    unsigned bindings = 0;
    for (unsigned i = 0; i < p->tensors.tensors; i++) {
        const struct cln_rowwise_tensor *const tensor = &p->tensors.tensor[i];
        if (part && i + 1 == p->tensors.tensors)
            binding[bindings++] = *part;
        if (i < tensors) {
            binding[bindings++] = (struct cln_binding){.role = tensor->role};
            constant[1 + i] = (struct cln_constant){sizeof tensor->stride, &tensor->stride};
        }
    }
    const struct cln_stage_recipe recipe = {
        .source = kernel->source,
        .kernel = kernel->name,
        .spec = &spec,
        .any = !spec.element_aligned,
        .binding = binding,
        .tensors = bindings,
        .work = work,
        .groups = (size_t)cln_divide_up(blocks, rounds),
        .items = (size_t)c->lanes * c->segments,
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

/* Rows in chunks: the workspace holds the sums of each, [rows, chunks, sums]. */
static clnorm_status add_chunks(clnorm_plan *plan, const struct problem *p) {
    struct cln_binding part;
    const clnorm_status sized =
        cln_plan_set_chunks(plan, p->tensors.rows, 1, p->sums, cln_rowwise_real_size(&p->tensors), &part);
    if (sized)
        return sized;
    const clnorm_status status = add_kernel(plan, p, &p->chunk_sums, p->tensors.tensors - 1, &part);
    return status ? status : add_kernel(plan, p, &p->chunk_apply, p->tensors.tensors, &part);
}

static clnorm_status add_stages(clnorm_plan *plan, const struct problem *p) {
    return plan->config.chunks > 1 ? add_chunks(plan, p) : add_kernel(plan, p, &p->whole_rows, p->tensors.tensors, NULL);
}

static clnorm_status make_plan(clnorm_context *context, struct problem *p, const clnorm_config *forced,
                               clnorm_plan **plan) {
    clnorm_status status = cln_rowwise_validate(&context->device, &p->tensors);
    clnorm_plan *made = NULL;
    if (status || (status = cln_plan_create(context, &made)))
        return status;
    const struct cln_workload work = workload_of(p);
    const struct cln_tuning_key key = {
        .name = p->whole_rows.name, .dtype = p->tensors.tensor[0].dtype, .group_size = p->tensors.cols};
    status = cln_tuning_choose(made, &key, choose, &work, forced);
    if (!status)
        status = cln_rowwise_describe(&p->tensors, made->config.vec, made->tensor);
    if (!status && p->tensors.rows)
        status = add_stages(made, p);
    if (status)
        clnorm_plan_destroy(made);
    else
        *plan = made;
    return status;
}

clnorm_status clnorm_softmax_forward_plan_create(clnorm_context *context, const clnorm_softmax_desc *desc,
                                                 clnorm_plan **plan) {
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
        .whole_rows = {&cln_source_softmax, "softmax"},
        .chunk_sums = {&cln_source_softmax_chunks, "softmax_totals"},
        .chunk_apply = {&cln_source_softmax_chunks, "softmax_apply"},
        .sums = 2,
    };
    return make_plan(context, &p, &desc->config, plan);
}

clnorm_status clnorm_softmax_backward_plan_create(clnorm_context *context, const clnorm_softmax_backward_desc *desc,
                                                  clnorm_plan **plan) {
    if (!context || !plan)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    const clnorm_status status = cln_descriptor_check(&backward_descriptor, desc);
    if (status)
        return status;
    struct problem p = {
        .tensors = {.rows = desc->rows,
                    .cols = desc->cols,
                    .tensor = {{"y", CLN_Y, desc->y_dtype, desc->y_stride},
                               {"dy", CLN_DY, desc->dy_dtype, desc->dy_stride},
                               {"dx", CLN_DX, desc->dx_dtype, desc->dx_stride}},
                    .tensors = 3},
        .whole_rows = {&cln_source_softmax_backward, "softmax_backward"},
        .chunk_sums = {&cln_source_softmax_backward_chunks, "softmax_backward_sums"},
        .chunk_apply = {&cln_source_softmax_backward_chunks, "softmax_backward_apply"},
        .sums = 1,
    };
    return make_plan(context, &p, &desc->config, plan);
}

static clnorm_status make_forward(clnorm_context *context, const void *desc, clnorm_plan **plan) {
    return clnorm_softmax_forward_plan_create(context, desc, plan);
}

static clnorm_status make_backward(clnorm_context *context, const void *desc, clnorm_plan **plan) {
    return clnorm_softmax_backward_plan_create(context, desc, plan);
}

clnorm_status clnorm_softmax_forward(clnorm_context *context, cl_command_queue queue, const clnorm_softmax_desc *desc,
                                     const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                     cl_event *event) {
    return cln_one_call(context, &forward_descriptor, make_forward, desc, queue, args, num_wait, wait_list, event);
}

clnorm_status clnorm_softmax_backward(clnorm_context *context, cl_command_queue queue,
                                      const clnorm_softmax_backward_desc *desc, const clnorm_args *args, cl_uint num_wait,
                                      const cl_event *wait_list, cl_event *event) {
    return cln_one_call(context, &backward_descriptor, make_backward, desc, queue, args, num_wait, wait_list, event);
}
