#include "arithmetic.h"
#include "config.h"
#include "context.h"
#include "dropout.h"
#include "dtype.h"
#include "fp8.h"
#include "norm_quantized.h"
#include "norm_stages.h"
#include "one_call.h"
#include "plan.h"
#include "status.h"
#include "tensor.h"
#include "tuning.h"

#include <inttypes.h>
#include <math.h>

/* From here on a descriptor is a problem: validated, with no default left in it. */
typedef clnorm_norm_desc problem;

/* The only gap between a descriptor's fields. */
enum { GAP = offsetof(clnorm_norm_desc, row_scale) + sizeof(bool), GAP_END = offsetof(clnorm_norm_desc, eps) };
_Static_assert(sizeof(clnorm_norm_desc) == sizeof(size_t) + 9 * sizeof(uint64_t) + 11 * sizeof(clnorm_norm) +
                                               5 * sizeof(bool) + (GAP_END - GAP) + 4 * sizeof(double) +
                                               sizeof(clnorm_config),
               "a descriptor has one gap");
_Static_assert(sizeof(clnorm_norm_desc) <= CLN_DESCRIPTOR_MOST, "a descriptor can be copied");
static const struct cln_descriptor descriptor = {"CLNORM_NORM_DESC_INIT", sizeof(clnorm_norm_desc), GAP, GAP_END};

static clnorm_status check_enums(const clnorm_norm_desc *desc) {
    if (desc->norm != CLNORM_LAYER_NORM && desc->norm != CLNORM_RMS_NORM)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.norm is %d: expected a clnorm_norm", (int)desc->norm);
    if ((unsigned)desc->gate > CLNORM_GATE_SIGMOID)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.gate is %d: expected a clnorm_gate", (int)desc->gate);
    if ((unsigned)desc->activation > CLNORM_ACTIVATION_SILU)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.activation is %d: expected a clnorm_activation", (int)desc->activation);
    enum { Y = 1 };
    const struct {
        const char *name;
        clnorm_dtype dtype;
        bool optional;
    } dtypes[] = {
        {"x_dtype", desc->x_dtype, false},
        {"y_dtype", desc->y_dtype, true},
        {"z_dtype", desc->z_dtype, true},
        {"weight_dtype", desc->weight_dtype, true},
        {"bias_dtype", desc->bias_dtype, true},
        {"residual_dtype", desc->residual_dtype, true},
        {"residual_out_dtype", desc->residual_out_dtype, true},
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (!cln_dtype_valid(dtypes[i].dtype) && !(dtypes[i].optional && dtypes[i].dtype == CLNORM_DTYPE_NONE) &&
            !(i == Y && cln_dtype_fp8(desc->y_dtype)))
            return cln_dtype_refuse(dtypes[i].name, dtypes[i].dtype,
                                    dtypes[i].optional ? "CLNORM_DTYPE_NONE or a clnorm_dtype of 16 bits or more"
                                                       : "a clnorm_dtype of 16 bits or more");
    return CLNORM_SUCCESS;
}

static clnorm_status check_values(const clnorm_norm_desc *desc) {
    if (!(desc->eps >= 0) || isinf(desc->eps))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.eps is %g: expected a finite number, 0 or more", desc->eps);
    if (!isfinite(desc->weight_offset))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_offset is %g: expected a finite number", desc->weight_offset);
    if (desc->weight_offset != 0 && !desc->weight_dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_offset is %g: expected 0 without a weight", desc->weight_offset);
    if (desc->gate_first && !desc->gate)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.gate_first is true: expected false without a gate");
    if (desc->save_mean && desc->norm == CLNORM_RMS_NORM)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.save_mean is true: expected false, RMS norm has no mean");
    return CLNORM_SUCCESS;
}

/* What is added to x before the norm, and what is done to x for that. */
static clnorm_status check_sum(const clnorm_norm_desc *desc) {
    const struct {
        const char *name;
        bool asked;
    } options[] = {{"residual_dtype", desc->residual_dtype != CLNORM_DTYPE_NONE},
                   {"dropout", desc->dropout != 0},
                   {"row_scale", desc->row_scale}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].asked && desc->gate_first)
            return cln_fail(CLNORM_INVALID_VALUE, "desc.gate_first is true: expected false with desc.%s", options[i].name);
    if (desc->residual_out_dtype && !desc->residual_dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.residual_out_dtype is %s: expected none without a residual",
                        clnorm_dtype_name(desc->residual_out_dtype));
    const clnorm_status status = cln_dropout_check(desc->dropout, desc->rows, desc->cols);
    if (status)
        return status;
    if (desc->save_mask && !(desc->dropout > 0))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.save_mask is true: expected false without dropout");
    return CLNORM_SUCCESS;
}

static clnorm_status check_double(const clnorm_device_info *device, const problem *p) {
    const struct {
        const char *name;
        clnorm_dtype dtype;
    } others[] = {{"y", p->y_dtype},
                  {"z", p->z_dtype},
                  {"weight", p->weight_dtype},
                  {"bias", p->bias_dtype},
                  {"residual", p->residual_dtype},
                  {"residual_out", p->residual_out_dtype}};
    const bool any = p->x_dtype == CLNORM_F64;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].dtype && (others[i].dtype == CLNORM_F64) != any)
            return cln_fail(CLNORM_UNSUPPORTED, "desc.%s_dtype is %s, desc.x_dtype is %s: expected f64 for all or for none",
                            others[i].name, clnorm_dtype_name(others[i].dtype), clnorm_dtype_name(p->x_dtype));
    if (any && !device->fp64)
        return cln_fail(CLNORM_UNSUPPORTED, "desc.x_dtype is f64: the device %s has no double precision", device->name);
    return CLNORM_SUCCESS;
}

static clnorm_status check_shape(const problem *p) {
    if (!p->cols)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.cols is 0: expected 1 or more");
    if (p->cols % p->group_size)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.group_size is %" PRIu64 ": expected a divisor of cols, %" PRIu64,
                        p->group_size, p->cols);
    const struct {
        const char *name;
        uint64_t stride;
    } strides[] = {{"x_stride", p->x_stride},
                   {"y_stride", p->y_stride},
                   {"z_stride", p->z_stride},
                   {"residual_stride", p->residual_stride},
                   {"residual_out_stride", p->residual_out_stride}};
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++)
        if (strides[i].stride < p->cols)
            return cln_fail(CLNORM_INVALID_SHAPE, "desc.%s is %" PRIu64 ": expected at least cols, %" PRIu64,
                            strides[i].name, strides[i].stride, p->cols);
    return CLNORM_SUCCESS;
}

static clnorm_status validate(const clnorm_device_info *device, const clnorm_norm_desc *desc, problem *p) {
    clnorm_status status = cln_descriptor_check(&descriptor, desc);
    if (status)
        return status;
    if ((status = check_enums(desc)) || (status = check_values(desc)) || (status = check_sum(desc)))
        return status;
    *p = *desc;
    p->group_size = cln_or_else(desc->group_size, desc->cols);
    p->x_stride = cln_or_else(desc->x_stride, desc->cols);
    p->y_stride = cln_or_else(desc->y_stride, desc->cols);
    p->z_stride = cln_or_else(desc->gate ? desc->z_stride : 0, desc->cols);
    p->residual_stride = cln_or_else(desc->residual_dtype ? desc->residual_stride : 0, desc->cols);
    p->residual_out_stride = cln_or_else(desc->residual_out_dtype ? desc->residual_out_stride : 0, desc->cols);
    if (!p->y_dtype)
        p->y_dtype = p->x_dtype;
    if (!p->gate)
        p->z_dtype = CLNORM_DTYPE_NONE;
    else if (!p->z_dtype)
        p->z_dtype = p->x_dtype;
    if ((status = check_shape(p)) || (status = cln_norm_quantized_check(p)))
        return status;
    return check_double(device, p);
}

/* What each argument has to be like. */
static clnorm_status describe_tensors(const problem *p, uint32_t vec, struct cln_tensor tensor[CLN_ROLES]) {
    const uint64_t groups = p->cols / p->group_size;
    uint64_t statistics;
    if (__builtin_mul_overflow(p->rows, groups, &statistics))
        return cln_fail(CLNORM_OVERFLOW, "desc.rows is %" PRIu64 ", groups %" PRIu64 ": expected a product below 2^63",
                        p->rows, groups);
    const struct {
        enum cln_role role;
        const char *name;
        uint64_t stride;
        clnorm_dtype dtype;
    } matrices[] = {{CLN_X, "x", p->x_stride, p->x_dtype},
                    {CLN_Y, "y", p->y_stride, p->y_dtype},
                    {CLN_Z, "z", p->z_stride, p->z_dtype},
                    {CLN_RESIDUAL, "residual", p->residual_stride, p->residual_dtype},
                    {CLN_RESIDUAL_OUT, "residual_out", p->residual_out_stride, p->residual_out_dtype}};
    clnorm_status status = CLNORM_SUCCESS;
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0] && !status; i++)
        status = cln_tensor_matrix(&tensor[matrices[i].role], matrices[i].name, p->rows, p->cols, matrices[i].stride,
                                   matrices[i].dtype, vec);
    const uint64_t columns = p->rows ? p->cols : 0; /* without rows nothing is read */
    const struct {
        enum cln_role role;
        const char *name;
        uint64_t elements, size; /* size 0: absent */
        uint32_t vec;
    } vectors[] = {{CLN_WEIGHT, "weight", columns, clnorm_dtype_size(p->weight_dtype), vec},
                   {CLN_BIAS, "bias", columns, clnorm_dtype_size(p->bias_dtype), vec},
                   {CLN_MEAN, "mean", statistics, p->save_mean ? cln_norm_real_size(p) : 0, 0},
                   {CLN_RSTD, "rstd", statistics, p->save_rstd ? cln_norm_real_size(p) : 0, 0},
                   {CLN_ROW_SCALE, "row_scale", p->rows, p->row_scale ? cln_norm_real_size(p) : 0, 0},
                   {CLN_DROPOUT_MASK, "dropout_mask", p->rows * p->cols, p->save_mask, 0}};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0] && !status; i++)
        if (vectors[i].size)
            status = cln_tensor_vector(&tensor[vectors[i].role], vectors[i].name, vectors[i].elements, vectors[i].size,
                                       vectors[i].vec);
    return status ? status : cln_norm_quantized_describe(p, &tensor[CLN_Y_SCALE]);
}

/* What a tuning file tells apart. */
static struct cln_tuning_key tuning_key_of(const problem *p) {
    return (struct cln_tuning_key){
        .norm = p->norm,
        .residual = p->residual_dtype != CLNORM_DTYPE_NONE,
        .dropout = p->dropout > 0,
        .gated = p->gate != CLNORM_GATE_NONE,
        .activated = p->activation != CLNORM_ACTIVATION_NONE,
        .quantized = p->y_scaling != 0,
        .backward = false,
        .dtype = p->x_dtype,
        .group_size = p->group_size,
    };
}

clnorm_status clnorm_norm_forward_plan_create(clnorm_context *context, const clnorm_norm_desc *desc, clnorm_plan **plan) {
    if (!context || !plan)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    problem p;
    clnorm_status status = validate(&context->device, desc, &p);
    if (status)
        return status;
    clnorm_plan *made = NULL;
    if ((status = cln_plan_create(context, &made)))
        return status;
    struct cln_tensor unsized[CLN_ROLES] = {{0}};
    if (!(status = describe_tensors(&p, 1, unsized))) { /* before the config: its arithmetic relies on sizes that fit */
        struct cln_workload work = cln_norm_workload(&p);
        work.splits = true;
        const struct cln_tuning_key key = tuning_key_of(&p);
        status = cln_tuning_choose(made, &key, cln_config_choose, &work, &p.config);
    }
    if (!status)
        status = describe_tensors(&p, made->config.vec, made->tensor);
    made->seeded = p.dropout > 0;
    if (!status && p.rows)
        status = cln_norm_add_stages(made, &p);
    if (status)
        clnorm_plan_destroy(made);
    else
        *plan = made;
    return status;
}

static clnorm_status make_forward(clnorm_context *context, const void *desc, clnorm_plan **plan) {
    return clnorm_norm_forward_plan_create(context, desc, plan);
}

clnorm_status clnorm_norm_forward(clnorm_context *context, cl_command_queue queue, const clnorm_norm_desc *desc,
                                  const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    return cln_one_call(context, &descriptor, make_forward, desc, queue, args, num_wait, wait_list, event);
}
