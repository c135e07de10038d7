#include "norm_backward.h"

#include <inttypes.h>
#include <math.h>

#include "arithmetic.h"
#include "context.h"
#include "dropout.h"
#include "dtype.h"
#include "fp8.h"
#include "one_call.h"
#include "status.h"
#include "tensor.h"
#include "tuning.h"

typedef cln_backward_problem problem;

/* ------------------------------------------------------------------------------------------- descriptor to problem */

/* The only gap between a descriptor's fields. */
enum {
    GAP = offsetof(clnorm_norm_backward_desc, row_scale) + sizeof(bool),
    GAP_END = offsetof(clnorm_norm_backward_desc, eps)
};
_Static_assert(sizeof(clnorm_norm_backward_desc) == sizeof(size_t) + 13 * sizeof(uint64_t) + 18 * sizeof(clnorm_norm) +
                                                        sizeof(uint32_t) + 7 * sizeof(bool) + (GAP_END - GAP) +
                                                        5 * sizeof(double) + sizeof(clnorm_config),
               "a descriptor has one gap");
_Static_assert(sizeof(clnorm_norm_backward_desc) <= CLN_DESCRIPTOR_MOST, "a descriptor can be copied");
static const struct cln_descriptor descriptor = {"CLNORM_NORM_BACKWARD_DESC_INIT", sizeof(clnorm_norm_backward_desc), GAP,
                                                 GAP_END};

static clnorm_status check_enums(const clnorm_norm_backward_desc *desc) {
    if (desc->norm != CLNORM_LAYER_NORM && desc->norm != CLNORM_RMS_NORM)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.norm is %d: expected a clnorm_norm", (int)desc->norm);
    if ((unsigned)desc->gate > CLNORM_GATE_SIGMOID)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.gate is %d: expected a clnorm_gate", (int)desc->gate);
    if ((unsigned)desc->activation > CLNORM_ACTIVATION_SILU)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.activation is %d: expected a clnorm_activation", (int)desc->activation);
    if ((unsigned)desc->reduction > CLNORM_REDUCTION_LOCKED)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.reduction is %d: expected a clnorm_reduction", (int)desc->reduction);
    if (!cln_dtype_valid(desc->x_dtype) && !cln_dtype_fp8(desc->x_dtype))
        return cln_dtype_refuse("x_dtype", desc->x_dtype, "a clnorm_dtype");
    const struct {
        const char *name;
        clnorm_dtype dtype;
    } dtypes[] = {
        {"z_dtype", desc->z_dtype},
        {"dy_dtype", desc->dy_dtype},
        {"weight_dtype", desc->weight_dtype},
        {"bias_dtype", desc->bias_dtype},
        {"dx_dtype", desc->dx_dtype},
        {"dz_dtype", desc->dz_dtype},
        {"dweight_dtype", desc->dweight_dtype},
        {"dbias_dtype", desc->dbias_dtype},
        {"y_dtype", desc->y_dtype},
        {"residual_dtype", desc->residual_dtype},
        {"dresidual_out_dtype", desc->dresidual_out_dtype},
        {"dresidual_dtype", desc->dresidual_dtype},
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (dtypes[i].dtype != CLNORM_DTYPE_NONE && !cln_dtype_valid(dtypes[i].dtype))
            return cln_dtype_refuse(dtypes[i].name, dtypes[i].dtype,
                                    "CLNORM_DTYPE_NONE or a clnorm_dtype of 16 bits or more");
    return CLNORM_SUCCESS;
}

static clnorm_status check_statistics(const clnorm_norm_backward_desc *desc) {
    if (desc->norm == CLNORM_RMS_NORM && desc->mean_given)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.mean_given is true: expected false, RMS norm has no mean");
    if (desc->norm == CLNORM_LAYER_NORM && !desc->y_given && desc->mean_given != desc->rstd_given)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.mean_given is %s, desc.rstd_given is %s: expected both or neither",
                        desc->mean_given ? "true" : "false", desc->rstd_given ? "true" : "false");
    if (!(desc->eps >= 0) || isinf(desc->eps))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.eps is %g: expected a finite number, 0 or more", desc->eps);
    return CLNORM_SUCCESS;
}

static clnorm_status check_values(const clnorm_norm_backward_desc *desc) {
    if (!isfinite(desc->weight_offset))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_offset is %g: expected a finite number", desc->weight_offset);
    if (desc->weight_offset != 0 && !desc->weight_dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_offset is %g: expected 0 without a weight", desc->weight_offset);
    if (desc->gate_first && !desc->gate)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.gate_first is true: expected false without a gate");
    if (desc->dz_dtype && !desc->gate)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.dz_dtype is %s: expected none without a gate",
                        clnorm_dtype_name(desc->dz_dtype));
    if (!desc->dx_dtype && !desc->dz_dtype && !desc->dweight_dtype && !desc->dbias_dtype && !desc->y_dtype &&
        !desc->dresidual_dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc asks for no output: expected one of dx_dtype, dz_dtype, dweight_dtype, "
                                              "dbias_dtype, y_dtype, dresidual_dtype");
    if (desc->accumulate && !desc->dweight_dtype && !desc->dbias_dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.accumulate is true: expected a dweight_dtype or dbias_dtype with it");
    if (!desc->slots)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.slots is 0: expected 1 or more");
    return CLNORM_SUCCESS;
}

/* What goes with an 8-bit x, and with no other. */
static clnorm_status check_scales(const clnorm_norm_backward_desc *desc) {
    if (!cln_dtype_fp8(desc->x_dtype) && (desc->x_scale_dtype || desc->x_group_size))
        return cln_fail(CLNORM_INVALID_VALUE,
                        "desc.x_scale_dtype is %s, desc.x_group_size %" PRIu64 ": expected none and 0, x has no 8 bits",
                        clnorm_dtype_name(desc->x_scale_dtype), desc->x_group_size);
    if (!cln_dtype_fp8(desc->x_dtype))
        return CLNORM_SUCCESS;
    const uint64_t group_size = cln_or_else(desc->group_size, desc->cols);
    clnorm_status status = cln_fp8_check_scale_dtype("x_scale_dtype", desc->x_scale_dtype);
    if (!status)
        status = cln_fp8_check_group("x_group_size", group_size, desc->x_group_size);
    if (status)
        return status;
    if (!desc->dy_dtype || desc->dy_dtype == CLNORM_F64)
        return cln_dtype_refuse("dy_dtype", desc->dy_dtype, "CLNORM_F32, CLNORM_F16 or CLNORM_BF16 with an 8-bit x");
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
                   {"s_given", desc->s_given}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].asked)
            return cln_fail(CLNORM_UNSUPPORTED, "desc.%s is set: expected none with an 8-bit x", options[i].name);
    if (!desc->rstd_given)
        return cln_fail(CLNORM_UNSUPPORTED, "desc.rstd_given is false: expected true with an 8-bit x");
    return CLNORM_SUCCESS;
}

/* What was added to x before the norm, and what comes back by way of it. */
static clnorm_status check_sum(const clnorm_norm_backward_desc *desc) {
    const struct {
        const char *name;
        bool asked;
    } options[] = {{"residual_dtype", desc->residual_dtype != CLNORM_DTYPE_NONE},
                   {"dresidual_out_dtype", desc->dresidual_out_dtype != CLNORM_DTYPE_NONE},
                   {"dresidual_dtype", desc->dresidual_dtype != CLNORM_DTYPE_NONE},
                   {"dropout", desc->dropout != 0},
                   {"row_scale", desc->row_scale},
                   {"s_given", desc->s_given}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].asked && desc->gate_first)
            return cln_fail(CLNORM_INVALID_VALUE, "desc.gate_first is true: expected false with desc.%s", options[i].name);
    if (desc->residual_dtype && desc->s_given)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.residual_dtype is %s: expected none with s_given, x has it in it",
                        clnorm_dtype_name(desc->residual_dtype));
    if (desc->dresidual_dtype && !desc->residual_dtype && !desc->s_given)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.dresidual_dtype is %s: expected none without a residual or s_given",
                        clnorm_dtype_name(desc->dresidual_dtype));
    return cln_dropout_check(desc->dropout, desc->rows, desc->cols);
}

static const char *name_of_x(const problem *p) {
    return p->y_given ? "y" : "x";
}

static clnorm_status check_double(const clnorm_device_info *device, const problem *p) {
    const struct {
        const char *name;
        clnorm_dtype dtype;
    } others[] = {{"dy", p->dy_dtype},
                  {"z", p->z_dtype},
                  {"weight", p->weight_dtype},
                  {"bias", p->bias_dtype},
                  {"dx", p->dx_dtype},
                  {"dz", p->dz_dtype},
                  {"dweight", p->dweight_dtype},
                  {"dbias", p->dbias_dtype},
                  {"y", p->y_dtype},
                  {"residual", p->residual_dtype},
                  {"dresidual_out", p->dresidual_out_dtype},
                  {"dresidual", p->dresidual_dtype}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].dtype && (others[i].dtype == CLNORM_F64) != (p->x_dtype == CLNORM_F64))
            return cln_fail(CLNORM_UNSUPPORTED,
                            "desc.%s_dtype is %s, desc.%s_dtype is %s: expected f64 for all or for none", others[i].name,
                            clnorm_dtype_name(others[i].dtype), name_of_x(p), clnorm_dtype_name(p->x_dtype));
    if (p->x_dtype == CLNORM_F64 && !device->fp64)
        return cln_fail(CLNORM_UNSUPPORTED, "desc.%s_dtype is f64: the device %s has no double precision", name_of_x(p),
                        device->name);
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
    } strides[] = {{p->y_given ? "y_stride" : "x_stride", p->x_stride},
                   {"z_stride", p->z_stride},
                   {"dy_stride", p->dy_stride},
                   {"dx_stride", p->dx_stride},
                   {"dz_stride", p->dz_stride},
                   {"y_stride", p->y_stride},
                   {"residual_stride", p->residual_stride},
                   {"dresidual_out_stride", p->dresidual_out_stride},
                   {"dresidual_stride", p->dresidual_stride}};
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++)
        if (strides[i].stride < p->cols)
            return cln_fail(CLNORM_INVALID_SHAPE, "desc.%s is %" PRIu64 ": expected at least cols, %" PRIu64,
                            strides[i].name, strides[i].stride, p->cols);
    return CLNORM_SUCCESS;
}

/* The stride of a tensor that may be absent. */
static uint64_t stride_of(uint64_t stride, clnorm_dtype dtype, uint64_t cols) {
    return cln_or_else(dtype ? stride : 0, cols);
}

static clnorm_status validate(const clnorm_device_info *device, const clnorm_norm_backward_desc *given, problem *p) {
    clnorm_status status = cln_descriptor_check(&descriptor, given);
    if (status)
        return status;
    clnorm_norm_backward_desc taken = *given;
    const clnorm_norm_backward_desc *desc = &taken;
    if ((status = cln_backward_take_y(&taken)) || (status = check_enums(desc)) || (status = check_statistics(desc)) ||
        (status = check_values(desc)) || (status = check_sum(desc)) || (status = check_scales(desc)))
        return status;
    *p = *desc;
    p->group_size = cln_or_else(desc->group_size, desc->cols);
    p->reduction = desc->reduction ? desc->reduction : CLNORM_REDUCTION_PARTIAL;
    p->dy_dtype = desc->dy_dtype ? desc->dy_dtype : desc->x_dtype;
    p->z_dtype = !desc->gate ? CLNORM_DTYPE_NONE : desc->z_dtype ? desc->z_dtype : desc->x_dtype;
    p->x_stride = cln_or_else(desc->x_stride, desc->cols);
    p->dy_stride = cln_or_else(desc->dy_stride, desc->cols);
    p->z_stride = stride_of(desc->z_stride, p->z_dtype, desc->cols);
    p->dx_stride = stride_of(desc->dx_stride, desc->dx_dtype, desc->cols);
    p->dz_stride = stride_of(desc->dz_stride, desc->dz_dtype, desc->cols);
    p->y_stride = stride_of(desc->y_stride, desc->y_dtype, desc->cols);
    p->residual_stride = stride_of(desc->residual_stride, desc->residual_dtype, desc->cols);
    p->dresidual_out_stride = stride_of(desc->dresidual_out_stride, desc->dresidual_out_dtype, desc->cols);
    p->dresidual_stride = stride_of(desc->dresidual_stride, desc->dresidual_dtype, desc->cols);
    if ((status = check_shape(p)))
        return status;
    return check_double(device, p);
}

/* --------------------------------------------------------------------------------------- tensors, config, workspace */

/* What each argument has to be like, but for the workspace. */
static clnorm_status describe_tensors(const problem *p, uint32_t vec, struct cln_tensor tensor[CLN_ROLES]) {
    const struct {
        enum cln_role role;
        const char *name;
        uint64_t stride;
        clnorm_dtype dtype;
    } matrices[] = {{cln_backward_role_of_x(p), name_of_x(p), p->x_stride, p->x_dtype},
                    {CLN_Z, "z", p->z_stride, p->z_dtype},
                    {CLN_DY, "dy", p->dy_stride, p->dy_dtype},
                    {CLN_DX, "dx", p->dx_stride, p->dx_dtype},
                    {CLN_DZ, "dz", p->dz_stride, p->dz_dtype},
                    {CLN_Y, "y", p->y_stride, p->y_dtype},
                    {CLN_RESIDUAL, "residual", p->residual_stride, p->residual_dtype},
                    {CLN_DRESIDUAL_OUT, "dresidual_out", p->dresidual_out_stride, p->dresidual_out_dtype},
                    {CLN_DRESIDUAL, "dresidual", p->dresidual_stride, p->dresidual_dtype}};
    clnorm_status status = CLNORM_SUCCESS;
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0] && !status; i++)
        status = cln_tensor_matrix(&tensor[matrices[i].role], matrices[i].name, p->rows, p->cols, matrices[i].stride,
                                   matrices[i].dtype, vec);
    if (!status && p->x_scale_dtype)
        status = cln_tensor_matrix(&tensor[CLN_X_SCALE], "x_scale", p->rows, p->cols / p->x_group_size,
                                   p->cols / p->x_group_size, p->x_scale_dtype, 0);
    uint64_t statistics = 0;
    if (!status && __builtin_mul_overflow(p->rows, p->cols / p->group_size, &statistics))
        status = cln_fail(CLNORM_OVERFLOW, "desc.rows is %" PRIu64 ", groups %" PRIu64 ": expected a product below 2^63",
                          p->rows, p->cols / p->group_size);
    const uint64_t columns = p->rows || p->y_given ? p->cols : 0; /* without rows only a check reads them */
    const struct {
        enum cln_role role;
        const char *name;
        uint64_t elements, size;
        uint32_t vec;
    } vectors[] = {{CLN_WEIGHT, "weight", columns, clnorm_dtype_size(p->weight_dtype), vec},
                   {CLN_BIAS, "bias", columns, clnorm_dtype_size(p->bias_dtype), vec},
                   {CLN_DWEIGHT, "dweight", p->cols, clnorm_dtype_size(p->dweight_dtype), vec},
                   {CLN_DBIAS, "dbias", p->cols, clnorm_dtype_size(p->dbias_dtype), vec},
                   {CLN_MEAN, "mean", statistics, p->mean_given ? cln_backward_real_size(p) : 0, 0},
                   {CLN_RSTD, "rstd", statistics, p->rstd_given ? cln_backward_real_size(p) : 0, 0},
                   {CLN_ROW_SCALE, "row_scale", p->rows, p->row_scale ? cln_backward_real_size(p) : 0, 0},
                   {CLN_FAULT, "fault", 1, p->y_given ? sizeof(cl_uint) : 0, 0}};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0] && !status; i++)
        if (vectors[i].size)
            status = cln_tensor_vector(&tensor[vectors[i].role], vectors[i].name, vectors[i].elements, vectors[i].size,
                                       vectors[i].vec);
    return status;
}

/* What a tuning file tells apart. */
static struct cln_tuning_key tuning_key_of(const problem *p) {
    return (struct cln_tuning_key){
        .norm = p->norm,
        .residual = p->residual_dtype || p->dresidual_dtype,
        .dropout = p->dropout > 0,
        .gated = p->gate != CLNORM_GATE_NONE,
        .activated = p->activation != CLNORM_ACTIVATION_NONE,
        .backward = true,
        .dtype = p->x_dtype,
        .group_size = p->group_size,
    };
}

clnorm_status clnorm_norm_backward_plan_create(clnorm_context *context, const clnorm_norm_backward_desc *desc,
                                               clnorm_plan **plan) {
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
    struct cln_backward_layout layout = {0};
    if (!(status = describe_tensors(&p, 1, unsized))) { /* before the config: its arithmetic relies on sizes that fit */
        const struct cln_workload work = cln_backward_workload(&p);
        const struct cln_tuning_key key = tuning_key_of(&p);
        status = cln_tuning_choose(made, &key, cln_config_choose_backward, &work, &p.config);
    }
    if (!status)
        status = cln_backward_lay_out(&context->device, &p, &made->config, &layout);
    if (!status)
        status = describe_tensors(&p, made->config.vec, made->tensor);
    const uint64_t sum_vec = layout.columns ? 1 : layout.reduce_vec;
    made->tensor[CLN_DWEIGHT].vector = sum_vec * made->tensor[CLN_DWEIGHT].element;
    made->tensor[CLN_DBIAS].vector = sum_vec * made->tensor[CLN_DBIAS].element;
    made->seeded = p.dropout > 0;
    if (layout.size)
        cln_plan_set_workspace(made, layout.size);
    if (!status)
        status = cln_backward_add_stages(made, &p, &layout);
    if (status)
        clnorm_plan_destroy(made);
    else
        *plan = made;
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- one call */

static clnorm_status make_backward(clnorm_context *context, const void *desc, clnorm_plan **plan) {
    return clnorm_norm_backward_plan_create(context, desc, plan);
}

clnorm_status clnorm_norm_backward(clnorm_context *context, cl_command_queue queue, const clnorm_norm_backward_desc *desc,
                                   const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    return cln_one_call(context, &descriptor, make_backward, desc, queue, args, num_wait, wait_list, event);
}
