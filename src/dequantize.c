#include "arithmetic.h"
#include "context.h"
#include "dtype.h"
#include "fp8.h"
#include "one_call.h"
#include "scaling.h"
#include "status.h"
#include "tensor.h"

/* From here on a descriptor is a problem: validated, with no default left in it. */
typedef clnorm_dequantize_desc problem;

_Static_assert(sizeof(clnorm_dequantize_desc) ==
                   sizeof(size_t) + 5 * sizeof(uint64_t) + 4 * sizeof(clnorm_dtype) + sizeof(clnorm_config),
               "a descriptor has no gap");
_Static_assert(sizeof(clnorm_dequantize_desc) <= CLN_DESCRIPTOR_MOST, "a descriptor can be copied");
static const struct cln_descriptor descriptor = {"CLNORM_DEQUANTIZE_DESC_INIT", sizeof(clnorm_dequantize_desc), 0, 0};

static clnorm_status validate(const clnorm_dequantize_desc *desc, problem *p) {
    clnorm_status status = cln_descriptor_check(&descriptor, desc);
    if (status)
        return status;
    *p = *desc;
    if (!cln_dtype_fp8(desc->q_dtype))
        return cln_dtype_refuse("q_dtype", desc->q_dtype, "CLNORM_F8_E4M3 or CLNORM_F8_E5M2");
    if (!cln_dtype_valid(desc->x_dtype) || desc->x_dtype == CLNORM_F64)
        return cln_dtype_refuse("x_dtype", desc->x_dtype, "CLNORM_F32, CLNORM_F16 or CLNORM_BF16");
    if ((status = cln_fp8_check_scale_dtype("scale_dtype", desc->scale_dtype)) ||
        (status = cln_scaling_check(desc->scaling, desc->rows, desc->cols, desc->group_size)))
        return status;
    p->x_stride = cln_or_else(desc->x_stride, desc->cols);
    p->q_stride = cln_or_else(desc->q_stride, desc->cols);
    p->group_size = desc->scaling == CLNORM_SCALING_GROUP ? desc->group_size : desc->cols;
    if ((status = cln_fp8_check_stride("x_stride", p->x_stride, "cols", p->cols)))
        return status;
    return cln_fp8_check_stride("q_stride", p->q_stride, "cols", p->cols);
}

static clnorm_status describe_tensors(const problem *p, uint32_t vec, struct cln_tensor tensor[CLN_ROLES]) {
    clnorm_status status;
    if ((status = cln_tensor_matrix(&tensor[CLN_X], "x", p->rows, p->cols, p->x_stride, p->x_dtype, vec)) ||
        (status = cln_tensor_matrix(&tensor[CLN_Q], "q", p->rows, p->cols, p->q_stride, p->q_dtype, vec)))
        return status;
    return cln_tensor_vector(&tensor[CLN_SCALE], "scale", cln_scaling_count(p->scaling, p->rows, p->cols, p->group_size),
                             clnorm_dtype_size(p->scale_dtype), 0);
}

/* A work-group takes rows; vectors are of one scale each. */
static struct cln_workload workload_of(const problem *p) {
    return (struct cln_workload){
        .rows = p->rows,
        .groups = 1,
        .group_size = p->cols,
        .alignment = cln_lowest_bit(p->cols | p->group_size | p->x_stride | p->q_stride),
        .x_size = clnorm_dtype_size(p->x_dtype),
        .held_size = clnorm_dtype_size(p->x_dtype),
        .norm = CLNORM_RMS_NORM,
        .real_size = sizeof(cl_float),
    };
}

static clnorm_status add_rows(clnorm_plan *plan, const problem *p) {
    const struct cln_fp8_share share = cln_fp8_share_of(&plan->config, p->rows);
    struct cln_spec spec = cln_fp8_spec(&plan->context->device, &plan->config);
    spec.x_dtype = p->x_dtype;
    spec.q_dtype = p->q_dtype;
    spec.scale_dtype = p->scale_dtype;
    spec.scaling = p->scaling;
    if (p->scaling == CLNORM_SCALING_GROUP) { /* else kernels of all widths are the same */
        spec.group_size = p->group_size;
        spec.groups = cln_divide_up(p->cols, p->group_size);
    }
    const struct cln_binding binding[] = {{.role = CLN_Q}, {.role = CLN_SCALE}, {.role = CLN_X}};
    const struct cln_constant constant[] = {
        {sizeof share.rounds, &share.rounds},
        {sizeof p->cols, &p->cols},
        {sizeof p->q_stride, &p->q_stride},
        {sizeof p->x_stride, &p->x_stride},
        {0, NULL},
    };
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_dequantize,
        .kernel = "dequantize",
        .any = !spec.element_aligned,
        .spec = &spec,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = p->rows,
        .groups = share.groups,
        .items = share.items,
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

clnorm_status clnorm_dequantize_plan_create(clnorm_context *context, const clnorm_dequantize_desc *desc,
                                            clnorm_plan **plan) {
    if (!context || !plan)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    problem p;
    clnorm_status status = validate(desc, &p);
    if (status)
        return status;
    clnorm_plan *made = NULL;
    if ((status = cln_plan_create(context, &made)))
        return status;
    struct cln_tensor unsized[CLN_ROLES] = {{0}};
    if (!(status = describe_tensors(&p, 1, unsized))) { /* before the config: its arithmetic relies on sizes that fit */
        const struct cln_workload work = workload_of(&p);
        status = cln_fp8_config(&context->device, &work, p.cols | p.group_size, &p.config, &made->config);
    }
    if (!status)
        status = describe_tensors(&p, made->config.vec, made->tensor);
    if (!status && p.rows)
        status = add_rows(made, &p);
    if (status)
        clnorm_plan_destroy(made);
    else
        *plan = made;
    return status;
}

static clnorm_status make_dequantize(clnorm_context *context, const void *desc, clnorm_plan **plan) {
    return clnorm_dequantize_plan_create(context, desc, plan);
}

clnorm_status clnorm_dequantize(clnorm_context *context, cl_command_queue queue, const clnorm_dequantize_desc *desc,
                                const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    return cln_one_call(context, &descriptor, make_dequantize, desc, queue, args, num_wait, wait_list, event);
}
