#include <inttypes.h>

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/status.h"
#include "operation/dropout.h"
#include "operation/fp8.h"
#include "operation/norm_checks.h"
#include "operation/norm_stages.h"
#include "operation/norm_tiles.h"
#include "operation/operations.h"
#include "operation/outer.h"
#include "operation/rope.h"
#include "plan/tensor.h"

typedef clnorm_norm_desc problem;

_Static_assert(offsetof(problem, weight_repeat) == offsetof(problem, weight_rows) + sizeof(uint64_t), "adjacent");

static const struct cln_tensor_rule tensors[] = {
    {"x", CLN_X, offsetof(problem, x), CLN_MATRIX, CLN_REALS | CLN_CODES, CLN_REFUSED, false, CLN_X_SCALE},
    {"y", CLN_Y, offsetof(problem, y), CLN_MATRIX, CLN_REALS | CLN_CODES, CLN_ABSENT, true, CLN_Y_SCALE},
    {"y_t", CLN_Y_T, offsetof(problem, y_t), CLN_TRANSPOSED, CLN_CODES, CLN_ABSENT, true, CLN_Y_SCALE},
    {"z", CLN_Z, offsetof(problem, z), CLN_MATRIX, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(problem, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"bias", CLN_BIAS, offsetof(problem, bias), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"residual", CLN_RESIDUAL, offsetof(problem, residual), CLN_MATRIX, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"residual_out", CLN_RESIDUAL_OUT, offsetof(problem, residual_out), CLN_MATRIX, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
    {"rope_cos", CLN_ROPE_COS, offsetof(problem, rope_cos), CLN_OWN, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"rope_sin", CLN_ROPE_SIN, offsetof(problem, rope_sin), CLN_OWN, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
};
static const struct cln_field_rule fields[] = {
    {"norm", offsetof(problem, norm), CLNORM_LAYER_NORM, CLNORM_RMS_NORM, "clnorm_norm"},
    {"gate", offsetof(problem, gate), CLNORM_GATE_NONE, CLNORM_GATE_SIGMOID, "clnorm_gate"},
    {"activation", offsetof(problem, activation), CLNORM_ACTIVATION_NONE, CLNORM_ACTIVATION_SILU, "clnorm_activation"},
    {"rope", offsetof(problem, rope), CLNORM_ROPE_NONE, CLNORM_ROPE_INTERLEAVED, "clnorm_rope"},
    {"position_given", offsetof(problem, position_given), 0, 1, NULL},
    {"accuracy", offsetof(problem, accuracy), CLNORM_FP8_FUSED, CLNORM_FP8_COMPATIBLE, "clnorm_fp8_accuracy"},
    {"gate_first", offsetof(problem, gate_first), 0, 1, NULL},
    {"save_mean", offsetof(problem, save_mean), 0, 1, NULL},
    {"save_rstd", offsetof(problem, save_rstd), 0, 1, NULL},
    {"save_mask", offsetof(problem, save_mask), 0, 1, NULL},
    {"row_scale", offsetof(problem, row_scale), 0, 1, NULL},
    {"save_y_row_scale", offsetof(problem, save_y_row_scale), 0, 1, NULL},
    {"batch_invariant", offsetof(problem, batch_invariant), 0, 1, NULL},
    {"reserved", offsetof(problem, reserved), 0, 0, NULL},
};
static const struct cln_statistic_rule statistics[] = {
    {"mean", CLN_MEAN, offsetof(problem, save_mean), true, 1},
    {"rstd", CLN_RSTD, offsetof(problem, save_rstd), true, 1},
};

/* y has x's dtype by default, unless y_t is written instead. COAT's scales are BF16. */
static clnorm_status prepare(void *desc) {
    problem *const p = desc;
    if (!p->y.dtype && !p->y_t.dtype)
        p->y.dtype = p->x.dtype;
    clnorm_tensor *const y = p->y.dtype ? &p->y : &p->y_t;
    if (p->accuracy == CLNORM_FP8_COMPATIBLE && cln_dtype_fp8(y->dtype) && !y->scale_dtype)
        y->scale_dtype = CLNORM_BF16;
    cln_norm_complete_z(p->gate, p->x.dtype, &p->z);
    if (p->rope)
        cln_rope_complete(cln_or_else(p->group_size, p->cols), &p->rope_dims, &p->rope_repeat, &p->rope_cos, &p->rope_sin);
    return CLNORM_SUCCESS;
}

static clnorm_status check_values(const problem *p) {
    clnorm_status status = cln_norm_check_weight_offset(p->weight_offset, p->weight.dtype, p->x.dtype);
    if (!status)
        status = cln_norm_check_gate(p->gate, p->gate_first, p->z.dtype);
    if (status)
        return status;
    if (p->save_mean && p->norm == CLNORM_RMS_NORM)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.save_mean is 1: expected 0, RMS norm has no mean");
    return CLNORM_SUCCESS;
}

/* Checks the sum that is normalised: x with dropout and row_scale, and the residual. */
static clnorm_status check_sum(const problem *p) {
    const struct cln_option options[] = {{"residual", p->residual.dtype != CLNORM_DTYPE_NONE},
                                         {"dropout", p->dropout != 0},
                                         {"row_scale", p->row_scale},
                                         {NULL, false}};
    const clnorm_status refused =
        p->gate_first ? cln_refuse_options(options, CLNORM_INVALID_VALUE, "desc.gate_first") : CLNORM_SUCCESS;
    if (refused)
        return refused;
    if (p->residual_out.dtype && !p->residual.dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.residual_out.dtype is %s: expected none without a residual",
                        clnorm_dtype_name(p->residual_out.dtype));
    const clnorm_status status = cln_dropout_check(p->dropout, p->rows, p->cols);
    if (status)
        return status;
    if (p->save_mask && !(p->dropout > 0))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.save_mask is 1: expected 0 without dropout");
    return CLNORM_SUCCESS;
}

static clnorm_status check_transposed(const problem *p) {
    if (!p->y_t.dtype)
        return CLNORM_SUCCESS;
    if (p->y.dtype && !cln_dtype_fp8(p->y.dtype))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.y_t.dtype is %s: expected none with a y of %s",
                        clnorm_dtype_name(p->y_t.dtype), clnorm_dtype_name(p->y.dtype));
    if (p->y.dtype && p->y_t.dtype != p->y.dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.y_t.dtype is %s: expected desc.y.dtype, %s, or none",
                        clnorm_dtype_name(p->y_t.dtype), clnorm_dtype_name(p->y.dtype));
    if (p->y.dtype && p->y_t.scaling)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.y_t.scaling is %d: expected 0, its scales are those of y",
                        (int)p->y_t.scaling);
    if (!p->y.dtype && !p->y_t.scaling)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.y_t.scaling is 0: expected a clnorm_scaling without a y");
    if (cln_outer_given(&p->y))
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.y.outer gives rows more than one stride: expected one with a y_t");
    return CLNORM_SUCCESS;
}

/* Checks an 8-bit output. name: the tensor with its scales. Segments are computed apart from each other, so that scales of
 * whole rows need rows of one segment. */
static clnorm_status check_codes(const problem *p, const char *name, const clnorm_tensor *y) {
    if (p->accuracy && !y->scaling)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.accuracy is %d: expected 0 without a y of 8 bits", (int)p->accuracy);
    if (p->save_y_row_scale && (y->scaling != CLNORM_SCALING_TENSOR || y->scale != 0 || p->group_size != p->cols))
        return cln_fail(
            CLNORM_INVALID_VALUE,
            "desc.save_y_row_scale is 1: expected 0, or desc.%s.scaling CLNORM_SCALING_TENSOR, desc.%s.scale 0 and "
            "desc.group_size cols",
            name, name);
    if (p->batch_invariant && y->scaling == CLNORM_SCALING_TENSOR && y->scale == 0)
        return cln_fail(
            CLNORM_INVALID_VALUE,
            "desc.batch_invariant is 1: expected 0 with one measured scale of desc.%s, which depends on every row", name);
    if (y->scaling == CLNORM_SCALING_ROW && p->group_size != p->cols)
        return cln_fail(CLNORM_UNSUPPORTED,
                        "desc.group_size is %" PRIu64 ": expected cols, %" PRIu64
                        ", with a desc.%s.scaling of CLNORM_SCALING_ROW",
                        p->group_size, p->cols, name);
    return cln_fp8_check_segments(name, y, p->group_size, p->cols);
}

static clnorm_status check_scales(const problem *p) {
    clnorm_status status = check_transposed(p);
    if (!status)
        status = cln_fp8_check_segments("x", &p->x, p->group_size, p->cols);
    return status ? status : check_codes(p, p->y.dtype ? "y" : "y_t", cln_norm_codes(p));
}

static clnorm_status check_rope(const problem *p) {
    const clnorm_tensor *const codes = cln_norm_codes(p);
    const struct cln_option options[] = {{"activation", p->activation != CLNORM_ACTIVATION_NONE},
                                         {"gate", p->gate && !p->gate_first},
                                         {p->y.dtype ? "y.scaling" : "y_t.scaling", codes->scaling && codes->scale == 0},
                                         {NULL, false}};
    const struct cln_rope rope = CLN_ROPE_OF(p);
    const clnorm_status status = cln_rope_check(&rope);
    return status || !p->rope ? status : cln_refuse_options(options, CLNORM_UNSUPPORTED, "desc.rope");
}

static clnorm_status check(const clnorm_device_info *device, void *desc) {
    (void)device;
    clnorm_status status = check_values(desc);
    if (!status)
        status = check_sum(desc);
    if (!status)
        status = check_rope(desc);
    return status ? status : check_scales(desc);
}

static clnorm_status describe(const void *desc, struct cln_tensor tensor[CLN_ROLES]) {
    const problem *const p = desc;
    clnorm_status status = CLNORM_SUCCESS;
    if (p->row_scale)
        status = cln_tensor_vector(&tensor[CLN_ROW_SCALE], "row_scale", p->rows, cln_dtype_real_size(p->x.dtype), 0);
    if (!status && p->save_y_row_scale)
        status = cln_tensor_vector(&tensor[CLN_Y_ROW_SCALE], "y_row_scale", p->rows,
                                   clnorm_dtype_size(cln_norm_codes(p)->scale_dtype), 0);
    if (!status && p->save_mask)
        status = cln_tensor_vector(&tensor[CLN_DROPOUT_MASK], "dropout_mask", p->rows * p->cols, 1, 0);
    const struct cln_rope rope = CLN_ROPE_OF(p);
    return status ? status : cln_rope_describe(&rope, tensor);
}

static void tuning_key(const void *desc, struct cln_tuning_key *key) {
    const problem *const p = desc;
    *key = (struct cln_tuning_key){
        .norm = p->norm,
        .residual = p->residual.dtype != CLNORM_DTYPE_NONE,
        .dropout = p->dropout > 0,
        .gated = p->gate != CLNORM_GATE_NONE,
        .activated = p->activation != CLNORM_ACTIVATION_NONE,
        .rope = p->rope != CLNORM_ROPE_NONE,
        .quantized = cln_norm_codes(p)->scaling != 0,
        .backward = false,
        .dtype = p->x.dtype,
        .group_size = p->group_size,
    };
}

static const clnorm_norm_desc initial = CLNORM_NORM_DESC_INIT;

const struct cln_operation cln_norm_forward = {
    .name = "norm_forward",
    .init = "CLNORM_NORM_DESC_INIT",
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
    .workload = cln_norm_workload,
    .tuning_key = tuning_key,
    .choose = cln_norm_choose,
    .add_stages = cln_norm_add_stages,
};
