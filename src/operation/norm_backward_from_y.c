/* A backward that reads y in x's place: the descriptors that allow it, and the check of every column. */
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/dtype.h"
#include "base/status.h"
#include "config/config.h"
#include "norm/norm_backward_args.h"
#include "operation/norm_backward_from_y.h"
#include "operation/norm_backward_layout.h"
#include "operation/operation_scales.h"
#include "operation/operations.h"
#include "operation/outer.h"
#include "plan/stage.h"

typedef cln_backward_problem problem;

/* Limits of y's dtype, within which x̂ is exact enough. */
static const struct precision {
    double unit;         /* half a step at 1 */
    double least_weight; /* half a step of its denormals, divided by the unit; more for devices without denormals */
    double largest;
} precisions[] = {
    [CLNORM_F32] = {0x1p-24, 0x1p-100, FLT_MAX},
    [CLNORM_F16] = {0x1p-11, 0x1p-14, 65504},
    [CLNORM_BF16] = {0x1p-8, 0x1p-100, 0x1.fep127},
    [CLNORM_F64] = {0x1p-53, 0x1p-960, DBL_MAX},
};

/* Refuses what keeps x̂ from being recovered from y. */
static clnorm_status check_alone(const clnorm_norm_backward_desc *desc) {
    const struct cln_option options[] = {{"gate", desc->gate != CLNORM_GATE_NONE},
                                         {"activation", desc->activation != CLNORM_ACTIVATION_NONE},
                                         {"residual", desc->residual.dtype != CLNORM_DTYPE_NONE},
                                         {"dresidual_out", desc->dresidual_out.dtype != CLNORM_DTYPE_NONE},
                                         {"dresidual", desc->dresidual.dtype != CLNORM_DTYPE_NONE},
                                         {"dropout", desc->dropout != 0},
                                         {"row_scale", desc->row_scale},
                                         {"s_given", desc->s_given},
                                         {"rope", desc->rope != CLNORM_ROPE_NONE},
                                         {"mean_given", desc->mean_given},
                                         {"weight_rows", desc->weight_rows > 1},
                                         {NULL, false}};
    const clnorm_status status = cln_refuse_options(options, CLNORM_INVALID_VALUE, "y_given");
    if (status)
        return status;
    if (!desc->rstd_given)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.rstd_given is 0: expected 1 with y_given");
    if (desc->cols > UINT32_MAX)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.cols is %" PRIu64 ": expected below 2^32 with y_given", desc->cols);
    return CLNORM_SUCCESS;
}

static clnorm_status check_bounds(const clnorm_norm_backward_desc *desc, const struct precision *precision) {
    const double most_bias = 1 / (16 * precision->unit);
    const bool weight = desc->weight_bound >= precision->least_weight && desc->weight_bound <= precision->largest;
    if (desc->weight_bound != 0 && !weight)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_bound is %g: expected 0, or %g to %g for a y in %s",
                        desc->weight_bound, precision->least_weight, precision->largest, clnorm_dtype_name(desc->y.dtype));
    if (!(desc->bias_bound >= 0 && desc->bias_bound <= most_bias))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.bias_bound is %g: expected 0, or up to %g for a y in %s",
                        desc->bias_bound, most_bias, clnorm_dtype_name(desc->y.dtype));
    return CLNORM_SUCCESS;
}

/* Checks y by its own name: the rules of tensors would name x, whose place it takes. */
static clnorm_status check_y(const clnorm_norm_backward_desc *desc) {
    static const struct cln_tensor_rule rule = {.name = "y"};
    struct cln_tensor described;
    clnorm_tensor y = desc->y;
    y.stride = cln_or_else(y.stride, desc->cols);
    if (!cln_dtype_real(y.dtype))
        return cln_dtype_refuse("y.dtype", y.dtype, "f32, f16, bf16 or f64 with y_given");
    if (y.stride < desc->cols)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.y.stride is %" PRIu64 ": expected at least cols, %" PRIu64, y.stride,
                        desc->cols);
    clnorm_status status = cln_operation_check_scales(&rule, &y, false);
    if (!status)
        status = cln_outer_check("y", &desc->y, desc->rows, desc->cols, false);
    return status ? status : cln_tensor_rows(&described, "y", desc->rows, desc->cols, &y, 1);
}

/* Compares dtypes with that of y, which takes x's place: the rules of tensors would name x. */
static clnorm_status check_doubles(const clnorm_norm_backward_desc *desc) {
    for (unsigned i = 1; i < cln_norm_backward.tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &cln_norm_backward.tensors[i];
        const clnorm_dtype dtype = cln_operation_tensor(rule, desc)->dtype;
        if (cln_dtype_real(dtype) && (dtype == CLNORM_F64) != (desc->y.dtype == CLNORM_F64))
            return cln_fail(CLNORM_UNSUPPORTED,
                            "desc.%s.dtype is %s, desc.y.dtype is %s: expected f64 for all tensors or for none", rule->name,
                            clnorm_dtype_name(dtype), clnorm_dtype_name(desc->y.dtype));
    }
    return CLNORM_SUCCESS;
}

clnorm_status cln_backward_take_y(clnorm_norm_backward_desc *desc) {
    if (!desc->y_given && (desc->weight_bound != 0 || desc->bias_bound != 0))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_bound is %g, desc.bias_bound %g: expected 0 without y_given",
                        desc->weight_bound, desc->bias_bound);
    if (!desc->y_given)
        return CLNORM_SUCCESS;
    clnorm_status status = check_y(desc);
    if (status)
        return status;
    const struct precision *const precision = &precisions[desc->y.dtype];
    status = check_alone(desc);
    if (!status)
        status = check_bounds(desc, precision);
    if (!status)
        status = check_doubles(desc);
    if (desc->weight_bound == 0)
        desc->weight_bound = precision->least_weight;
    if (desc->bias_bound == 0)
        desc->bias_bound = 4;
    desc->x = desc->y;
    desc->y = (clnorm_tensor)CLNORM_TENSOR_NONE;
    return status;
}

static const struct cln_kernel check_kernel =
    CLN_KERNEL(norm_backward_check, norm_backward_check, NORM_BACKWARD_CHECK_ARGS);

clnorm_status cln_backward_add_check(clnorm_plan *plan, const problem *p) {
    const clnorm_device_info *device = &plan->context->device;
    const bool cpu = cln_config_element_aligned(device, &plan->config);
    const struct cln_spec spec = {
        .family = CLN_NORM_BACKWARD_CHECK,
        .x_dtype = p->x.dtype,
        .weight_dtype = p->weight.dtype,
        .bias_dtype = p->bias.dtype,
        .vec = 1,
        .lanes = cpu ? 1 : cln_smaller(512, cln_power_of_two_at_most(device->max_work_group_size)),
        .stores = CLN_STORES_CACHED,
        .isa = CLN_ISA_PORTABLE,
        .element_aligned = cpu,
        .opencl_c = 120,
    };
    const struct cln_argument arguments[] = {
        cln_real("weight_offset", p->weight_offset),
        cln_real("weight_bound", p->weight_bound),
        cln_real("bias_bound", p->bias_bound),
        cln_real("x_hat_bound", sqrt((double)p->group_size)),
        cln_real("y_bound", precisions[p->x.dtype].largest),
        {0},
    };
    const struct cln_stage_recipe recipe = {
        .kernel = &check_kernel,
        .spec = &spec,
        .arguments = arguments,
        .work = p->cols,
        .groups = 1,
        .items = (size_t)spec.lanes,
    };
    return cln_plan_add_stage(plan, &recipe);
}

clnorm_status clnorm_norm_backward_check(cl_command_queue queue, const clnorm_args *args, cl_uint num_wait,
                                         const cl_event *wait_list) {
    clnorm_args taken;
    clnorm_status status = cln_args_take(args, &taken);
    if (status)
        return status;
    if (!taken.fault.mem)
        return cln_fail(CLNORM_INVALID_BUFFER,
                        "args.fault.mem is NULL: expected the buffer that a backward with y_given wrote");
    cl_context context = NULL;
    cl_int code =
        queue ? clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL) : CL_INVALID_COMMAND_QUEUE;
    if (code == CL_INVALID_COMMAND_QUEUE)
        return cln_fail_code(CLNORM_INVALID_QUEUE, code, "queue is not an OpenCL command queue");
    if (code)
        return cln_fail_opencl(code, "clGetCommandQueueInfo");
    status = cln_wait_list_check(context, num_wait, wait_list);
    if (status)
        return status;
    cl_uint columns = 0;
    code = taken.fault.offset > SIZE_MAX
               ? CL_INVALID_VALUE
               : clEnqueueReadBuffer(queue, taken.fault.mem, CL_TRUE, (size_t)taken.fault.offset, sizeof columns, &columns,
                                     num_wait, num_wait ? wait_list : NULL, NULL);
    if (code == CL_INVALID_CONTEXT || code == CL_INVALID_MEM_OBJECT)
        return cln_fail_code(CLNORM_INVALID_BUFFER, code, "args.fault.mem is not a buffer of the queue's context");
    if (code == CL_INVALID_VALUE)
        return cln_fail_code(CLNORM_INVALID_BUFFER, code,
                             "args.fault.offset is %" PRIu64 ": expected 4 bytes of the buffer from there",
                             taken.fault.offset);
    if (code)
        return cln_fail_opencl(code, "clEnqueueReadBuffer");
    if (columns)
        return cln_fail(CLNORM_NOT_EXACT,
                        "args.fault is %u: expected 0 columns with a weight or bias outside weight_bound and bias_bound; "
                        "the gradients are NaN",
                        columns);
    return CLNORM_SUCCESS;
}
