/* A backward that reads y in x's place: which descriptors it goes with, and the check of every column. */
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "arithmetic.h"
#include "config.h"
#include "context.h"
#include "dtype.h"
#include "norm_backward.h"
#include "status.h"

typedef cln_backward_problem problem;

/* What the exactness of x̂ depends on, by y's dtype. */
static const struct precision {
    double unit;         /* half a step at 1 */
    double least_weight; /* half a step of its denormals over the unit, or more for devices without denormals */
    double largest;
} precisions[] = {
    [CLNORM_F32] = {0x1p-24, 0x1p-100, FLT_MAX},
    [CLNORM_F16] = {0x1p-11, 0x1p-14, 65504},
    [CLNORM_BF16] = {0x1p-8, 0x1p-100, 0x1.fep127},
    [CLNORM_F64] = {0x1p-53, 0x1p-960, DBL_MAX},
};

/* What y would have to be taken apart for. */
static clnorm_status check_alone(const clnorm_norm_backward_desc *desc) {
    const struct {
        const char *name;
        bool asked;
    } options[] = {{"gate", desc->gate != CLNORM_GATE_NONE},
                   {"activation", desc->activation != CLNORM_ACTIVATION_NONE},
                   {"residual_dtype", desc->residual_dtype != CLNORM_DTYPE_NONE},
                   {"dresidual_out_dtype", desc->dresidual_out_dtype != CLNORM_DTYPE_NONE},
                   {"dresidual_dtype", desc->dresidual_dtype != CLNORM_DTYPE_NONE},
                   {"dropout", desc->dropout != 0},
                   {"row_scale", desc->row_scale},
                   {"s_given", desc->s_given},
                   {"mean_given", desc->mean_given}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].asked)
            return cln_fail(CLNORM_INVALID_VALUE, "desc.%s is set: expected none with y_given", options[i].name);
    if (!desc->rstd_given)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.rstd_given is false: expected true with y_given");
    if (desc->cols > UINT32_MAX)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.cols is %" PRIu64 ": expected below 2^32 with y_given", desc->cols);
    return CLNORM_SUCCESS;
}

static clnorm_status check_bounds(const clnorm_norm_backward_desc *desc, const struct precision *precision) {
    const double most_bias = 1 / (16 * precision->unit);
    const bool weight = desc->weight_bound >= precision->least_weight && desc->weight_bound <= precision->largest;
    if (desc->weight_bound != 0 && !weight)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_bound is %g: expected 0, or %g to %g for a y in %s",
                        desc->weight_bound, precision->least_weight, precision->largest, clnorm_dtype_name(desc->y_dtype));
    if (!(desc->bias_bound >= 0 && desc->bias_bound <= most_bias))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.bias_bound is %g: expected 0, or up to %g for a y in %s",
                        desc->bias_bound, most_bias, clnorm_dtype_name(desc->y_dtype));
    return CLNORM_SUCCESS;
}

clnorm_status cln_backward_take_y(clnorm_norm_backward_desc *desc) {
    if (!desc->y_given && (desc->weight_bound != 0 || desc->bias_bound != 0))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_bound is %g, desc.bias_bound %g: expected 0 without y_given",
                        desc->weight_bound, desc->bias_bound);
    if (!desc->y_given)
        return CLNORM_SUCCESS;
    if (!cln_dtype_valid(desc->y_dtype))
        return cln_dtype_refuse("y_dtype", desc->y_dtype, "a clnorm_dtype of 16 bits or more with y_given");
    const struct precision *precision = &precisions[desc->y_dtype];
    clnorm_status status = check_alone(desc);
    if (!status)
        status = check_bounds(desc, precision);
    if (desc->weight_bound == 0)
        desc->weight_bound = precision->least_weight;
    if (desc->bias_bound == 0)
        desc->bias_bound = 4;
    desc->x_dtype = desc->y_dtype;
    desc->x_stride = desc->y_stride;
    desc->y_dtype = CLNORM_DTYPE_NONE;
    desc->y_stride = 0;
    return status;
}

clnorm_status cln_backward_add_check(clnorm_plan *plan, const problem *p) {
    const clnorm_device_info *device = &plan->context->device;
    const bool cpu = cln_config_element_aligned(device, &plan->config);
    const struct cln_spec spec = {
        .family = CLN_NORM_BACKWARD_CHECK,
        .x_dtype = p->x_dtype,
        .weight_dtype = p->weight_dtype,
        .bias_dtype = p->bias_dtype,
        .vec = 1,
        .lanes = cpu ? 1 : cln_smaller(512, cln_power_of_two_at_most(device->max_work_group_size)),
        .unroll = 1,
        .stores = CLNORM_STORES_CACHED,
        .isa = CLNORM_ISA_PORTABLE,
        .element_aligned = cpu,
        .opencl_c = 120,
    };
    const struct cln_binding binding[] = {{.role = CLN_WEIGHT}, {.role = CLN_BIAS}, {.role = CLN_FAULT}};
    const double d[] = {p->weight_offset, p->weight_bound, p->bias_bound, sqrt((double)p->group_size),
                        precisions[p->x_dtype].largest};
    enum { NUMBERS = sizeof d / sizeof d[0] };
    float f[NUMBERS];
    struct cln_constant constant[NUMBERS + 1] = {{0, NULL}};
    for (int i = 0; i < NUMBERS; i++) {
        f[i] = (float)d[i];
        constant[i] = (struct cln_constant){cln_backward_real_size(p),
                                            p->x_dtype == CLNORM_F64 ? (const void *)&d[i] : (const void *)&f[i]};
    }
    const struct cln_stage_recipe recipe = {
        .source = &cln_source_norm_backward_check,
        .kernel = "norm_backward_check",
        .spec = &spec,
        .binding = binding,
        .tensors = sizeof binding / sizeof binding[0],
        .work = p->cols,
        .groups = 1,
        .items = (size_t)spec.lanes,
        .constant = constant,
    };
    return cln_plan_add_stage(plan, &recipe);
}

clnorm_status clnorm_norm_backward_check(cl_command_queue queue, const clnorm_args *args, cl_uint num_wait,
                                         const cl_event *wait_list) {
    if (!args)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "args is NULL");
    if (args->size != sizeof *args)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "args.size is %zu: expected %zu, start from CLNORM_ARGS_INIT", args->size,
                        sizeof *args);
    if (!args->fault.mem)
        return cln_fail(CLNORM_INVALID_BUFFER, "args.fault.mem is NULL: expected what a backward with y_given wrote");
    const clnorm_status status = cln_wait_list_check(num_wait, wait_list);
    if (status)
        return status;
    cl_uint columns = 0;
    const cl_int code = clEnqueueReadBuffer(queue, args->fault.mem, CL_TRUE, args->fault.offset, sizeof columns, &columns,
                                            num_wait, num_wait ? wait_list : NULL, NULL);
    if (code == CL_INVALID_COMMAND_QUEUE)
        return cln_fail_code(CLNORM_INVALID_QUEUE, code, "queue is not an OpenCL command queue");
    if (code == CL_INVALID_CONTEXT || code == CL_INVALID_MEM_OBJECT || code == CL_INVALID_VALUE)
        return cln_fail_code(CLNORM_INVALID_BUFFER, code,
                             "args.fault.offset is %" PRIu64
                             ": expected a buffer of the queue's context with 4 bytes from there",
                             args->fault.offset);
    if (code)
        return cln_fail_opencl(code, "clEnqueueReadBuffer");
    if (columns)
        return cln_fail(CLNORM_NOT_EXACT,
                        "args.fault is %u: expected 0 columns whose weight and bias are outside of weight_bound and "
                        "bias_bound; gradients are NaN",
                        columns);
    return CLNORM_SUCCESS;
}
