#include <inttypes.h>

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/status.h"
#include "device/driver_defects.h"
#include "operation/dropout.h"
#include "operation/fp8.h"
#include "operation/norm_backward_from_y.h"
#include "operation/norm_backward_layout.h"
#include "operation/norm_backward_stages.h"
#include "operation/norm_checks.h"
#include "operation/operations.h"
#include "operation/rope.h"
#include "plan/tensor.h"

typedef cln_backward_problem problem;

_Static_assert(offsetof(problem, weight_repeat) == offsetof(problem, weight_rows) + sizeof(uint64_t), "adjacent");

static const struct cln_tensor_rule tensors[] = {
    {"x", CLN_X, offsetof(problem, x), CLN_MATRIX, CLN_REALS | CLN_CODES, CLN_REFUSED, false, CLN_X_SCALE},
    {"z", CLN_Z, offsetof(problem, z), CLN_MATRIX, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"dy", CLN_DY, offsetof(problem, dy), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, false, CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(problem, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"bias", CLN_BIAS, offsetof(problem, bias), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"dx", CLN_DX, offsetof(problem, dx), CLN_MATRIX, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
    {"dz", CLN_DZ, offsetof(problem, dz), CLN_MATRIX, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
    {"dweight", CLN_DWEIGHT, offsetof(problem, dweight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
    {"dbias", CLN_DBIAS, offsetof(problem, dbias), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
    {"y", CLN_Y, offsetof(problem, y), CLN_MATRIX, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
    {"residual", CLN_RESIDUAL, offsetof(problem, residual), CLN_MATRIX, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"dresidual_out", CLN_DRESIDUAL_OUT, offsetof(problem, dresidual_out), CLN_MATRIX, CLN_REALS, CLN_ABSENT, false,
     CLN_ROLES},
    {"dresidual", CLN_DRESIDUAL, offsetof(problem, dresidual), CLN_MATRIX, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
    {"rope_cos", CLN_ROPE_COS, offsetof(problem, rope_cos), CLN_OWN, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"rope_sin", CLN_ROPE_SIN, offsetof(problem, rope_sin), CLN_OWN, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
};
static const struct cln_field_rule fields[] = {
    {"norm", offsetof(problem, norm), CLNORM_LAYER_NORM, CLNORM_RMS_NORM, "clnorm_norm"},
    {"gate", offsetof(problem, gate), CLNORM_GATE_NONE, CLNORM_GATE_SIGMOID, "clnorm_gate"},
    {"activation", offsetof(problem, activation), CLNORM_ACTIVATION_NONE, CLNORM_ACTIVATION_SILU, "clnorm_activation"},
    {"rope", offsetof(problem, rope), CLNORM_ROPE_NONE, CLNORM_ROPE_INTERLEAVED, "clnorm_rope"},
    {"position_given", offsetof(problem, position_given), 0, 1, NULL},
    {"reduction", offsetof(problem, reduction), 0, CLNORM_REDUCTION_LOCKED, "clnorm_reduction"},
    {"slots", offsetof(problem, slots), 1, UINT32_MAX, NULL},
    {"gate_first", offsetof(problem, gate_first), 0, 1, NULL},
    {"mean_given", offsetof(problem, mean_given), 0, 1, NULL},
    {"rstd_given", offsetof(problem, rstd_given), 0, 1, NULL},
    {"accumulate", offsetof(problem, accumulate), 0, 1, NULL},
    {"s_given", offsetof(problem, s_given), 0, 1, NULL},
    {"y_given", offsetof(problem, y_given), 0, 1, NULL},
    {"row_scale", offsetof(problem, row_scale), 0, 1, NULL},
    {"batch_invariant", offsetof(problem, batch_invariant), 0, 1, NULL},
    {"reserved", offsetof(problem, reserved), 0, 0, NULL},
};
static const struct cln_statistic_rule statistics[] = {
    {"mean", CLN_MEAN, offsetof(problem, mean_given), false, 1},
    {"rstd", CLN_RSTD, offsetof(problem, rstd_given), false, 1},
};

/* With y_given, y takes x's place. */
static clnorm_status prepare(void *desc) {
    problem *const p = desc;
    const clnorm_status status = cln_backward_take_y(p);
    if (!p->reduction)
        p->reduction = CLNORM_REDUCTION_PARTIAL;
    cln_norm_complete_z(p->gate, p->x.dtype, &p->z);
    if (p->rope)
        cln_rope_complete(cln_or_else(p->group_size, p->cols), &p->rope_dims, &p->rope_repeat, &p->rope_cos, &p->rope_sin);
    return status;
}

static clnorm_status check_statistics(const problem *p) {
    if (p->norm == CLNORM_RMS_NORM && p->mean_given)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.mean_given is 1: expected 0, RMS norm has no mean");
    if (p->norm == CLNORM_LAYER_NORM && !p->y_given && p->mean_given != p->rstd_given)
        return cln_fail(CLNORM_INVALID_VALUE,
                        "desc.mean_given is %" PRIu32 ", desc.rstd_given is %" PRIu32 ": expected both or neither",
                        p->mean_given, p->rstd_given);
    return CLNORM_SUCCESS;
}

static clnorm_status check_values(const problem *p) {
    clnorm_status status = cln_norm_check_weight_offset(p->weight_offset, p->weight.dtype, p->x.dtype);
    if (!status)
        status = cln_norm_check_gate(p->gate, p->gate_first, p->z.dtype);
    if (status)
        return status;
    if (p->dz.dtype && !p->gate)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.dz.dtype is %s: expected none without a gate",
                        clnorm_dtype_name(p->dz.dtype));
    if (!p->dx.dtype && !p->dz.dtype && !p->dweight.dtype && !p->dbias.dtype && !p->y.dtype && !p->dresidual.dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc has no output: expected a dtype of dx, dz, dweight, dbias, y or "
                                              "dresidual");
    if (p->accumulate && !p->dweight.dtype && !p->dbias.dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.accumulate is 1: expected 0 without a dweight and a dbias");
    return CLNORM_SUCCESS;
}

/* Checks the sum that was normalised, and its gradients. */
static clnorm_status check_sum(const problem *p) {
    const struct cln_option options[] = {{"residual", p->residual.dtype != CLNORM_DTYPE_NONE},
                                         {"dresidual_out", p->dresidual_out.dtype != CLNORM_DTYPE_NONE},
                                         {"dresidual", p->dresidual.dtype != CLNORM_DTYPE_NONE},
                                         {"dropout", p->dropout != 0},
                                         {"row_scale", p->row_scale},
                                         {"s_given", p->s_given},
                                         {NULL, false}};
    const clnorm_status refused =
        p->gate_first ? cln_refuse_options(options, CLNORM_INVALID_VALUE, "desc.gate_first") : CLNORM_SUCCESS;
    if (refused)
        return refused;
    if (p->residual.dtype && p->s_given)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.residual.dtype is %s: expected none with s_given, x includes it",
                        clnorm_dtype_name(p->residual.dtype));
    if (p->dresidual.dtype && !p->residual.dtype && !p->s_given)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.dresidual.dtype is %s: expected none without a residual or s_given",
                        clnorm_dtype_name(p->dresidual.dtype));
    return cln_dropout_check(p->dropout, p->rows, p->cols);
}

static clnorm_status check_rope(const problem *p) {
    const struct cln_option options[] = {{"activation", p->activation != CLNORM_ACTIVATION_NONE},
                                         {"gate", p->gate && !p->gate_first},
                                         {"y", p->y.dtype != CLNORM_DTYPE_NONE},
                                         {NULL, false}};
    const struct cln_rope rope = CLN_ROPE_OF(p);
    const clnorm_status status = cln_rope_check(&rope);
    return status || !p->rope ? status : cln_refuse_options(options, CLNORM_UNSUPPORTED, "desc.rope");
}

static clnorm_status check_driver(const clnorm_device_info *device, const problem *p) {
    const clnorm_status status =
        cln_dtype_fp8(p->x.dtype) ? cln_refuse_defect(device, CLN_DEFECT_CODES_BACKWARD) : CLNORM_SUCCESS;
    return !status && p->dropout > 0 && p->activation ? cln_refuse_defect(device, CLN_DEFECT_DROPOUT_BACKWARD) : status;
}

static clnorm_status check(const clnorm_device_info *device, void *desc) {
    const problem *const p = desc;
    clnorm_status status = check_statistics(p);
    if (!status)
        status = check_values(p);
    if (!status)
        status = check_sum(p);
    if (!status)
        status = check_rope(p);
    if (!status)
        status = cln_fp8_check_segments("x", &p->x, p->group_size, p->cols);
    return status ? status : check_driver(device, p);
}

/* With y_given: the argument described as x is y, and the check reads weight and bias even of 0 rows. */
static clnorm_status describe_y(const problem *p, struct cln_tensor tensor[CLN_ROLES]) {
    tensor[CLN_Y] = tensor[CLN_X];
    tensor[CLN_X] = (struct cln_tensor){0};
    clnorm_status status = cln_tensor_vector(&tensor[CLN_FAULT], "fault", 1, sizeof(cl_uint), 0);
    if (!status && p->weight.dtype)
        status = cln_tensor_vector(&tensor[CLN_WEIGHT], "weight", p->cols, clnorm_dtype_size(p->weight.dtype), 1);
    if (!status && p->bias.dtype)
        status = cln_tensor_vector(&tensor[CLN_BIAS], "bias", p->cols, clnorm_dtype_size(p->bias.dtype), 1);
    return status;
}

static clnorm_status describe(const void *desc, struct cln_tensor tensor[CLN_ROLES]) {
    const problem *const p = desc;
    clnorm_status status = p->y_given ? describe_y(p, tensor) : CLNORM_SUCCESS;
    if (!status && p->row_scale)
        status = cln_tensor_vector(&tensor[CLN_ROW_SCALE], "row_scale", p->rows, cln_dtype_real_size(p->x.dtype), 0);
    const struct cln_rope rope = CLN_ROPE_OF(p);
    return status ? status : cln_rope_describe(&rope, tensor);
}

static void tuning_key(const void *desc, struct cln_tuning_key *key) {
    const problem *const p = desc;
    *key = (struct cln_tuning_key){
        .norm = p->norm,
        .residual = p->residual.dtype || p->dresidual.dtype,
        .dropout = p->dropout > 0,
        .gated = p->gate != CLNORM_GATE_NONE,
        .activated = p->activation != CLNORM_ACTIVATION_NONE,
        .rope = p->rope != CLNORM_ROPE_NONE,
        .backward = true,
        .dtype = p->x.dtype,
        .group_size = p->group_size,
    };
}

static const clnorm_norm_backward_desc initial = CLNORM_NORM_BACKWARD_DESC_INIT;

const struct cln_operation cln_norm_backward = {
    .name = "norm_backward",
    .init = "CLNORM_NORM_BACKWARD_DESC_INIT",
    .initial = &initial,
    .size = sizeof initial,
    .config = offsetof(problem, config),
    .tensors = tensors,
    .tensor_count = sizeof tensors / sizeof *tensors,
    .fields = fields,
    .field_count = sizeof fields / sizeof *fields,
    .mixed = true,
    .outer = true,
    .group_size = offsetof(problem, group_size),
    .weight_map = offsetof(problem, weight_rows),
    .batch_invariant = offsetof(problem, batch_invariant),
    .eps = offsetof(problem, eps),
    .statistics = statistics,
    .statistic_count = sizeof statistics / sizeof *statistics,
    .prepare = prepare,
    .check = check,
    .describe = describe,
    .workload = cln_backward_workload,
    .tuning_key = tuning_key,
    .choose = cln_config_choose,
    .add_stages = cln_backward_add_stages,
};
