#include "operation/operation_scales.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/status.h"

/* Refuses what belongs to scales, where a tensor has none, or those of the tensor that it is a copy of. */
static clnorm_status check_no_scales(const struct cln_tensor_rule *rule, const clnorm_tensor *tensor) {
    const bool copy = rule->extent == CLN_TRANSPOSED;
    const int original = (int)strcspn(rule->name, "_"); /* the length of T in T_t, the name of T's transposed copy */
    char why[64], field[48], expected[80];
    (void)snprintf(why, sizeof why, copy ? "without desc.%s.scaling" : "with a dtype of %s",
                   copy ? rule->name : clnorm_dtype_name(tensor->dtype));
    if (tensor->scaling && copy)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.%s.scaling is %d: expected 0, its scales are those of %.*s", rule->name,
                        (int)tensor->scaling, original, rule->name);
    if (tensor->scaling)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.%s.scaling is %d: expected 0 %s", rule->name, (int)tensor->scaling,
                        why);
    if (tensor->scale_group)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.%s.scale_group is %" PRIu32 ": expected 0 %s", rule->name,
                        tensor->scale_group, why);
    if (tensor->scale != 0)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.%s.scale is %g: expected 0 %s", rule->name, tensor->scale, why);
    if (!tensor->scale_dtype)
        return CLNORM_SUCCESS;
    if (clnorm_dtype_size(tensor->scale_dtype))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.%s.scale_dtype is %s: expected none %s", rule->name,
                        clnorm_dtype_name(tensor->scale_dtype), why);
    (void)snprintf(field, sizeof field, "%s.scale_dtype", rule->name);
    (void)snprintf(expected, sizeof expected, "none %s", why);
    return cln_dtype_refuse(field, tensor->scale_dtype, expected);
}

static clnorm_status check_given_scale(const struct cln_tensor_rule *rule, const clnorm_tensor *tensor) {
    if (tensor->scale == 0)
        return CLNORM_SUCCESS;
    if (!rule->output)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.%s.scale is %g: expected 0, the scales of an input are read",
                        rule->name, tensor->scale);
    if (tensor->scaling != CLNORM_SCALING_TENSOR)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.%s.scale is %g: expected 0 without CLNORM_SCALING_TENSOR", rule->name,
                        tensor->scale);
    if (!(tensor->scale >= FLT_MIN && tensor->scale <= FLT_MAX))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.%s.scale is %g: expected 0, or a number from %g to %g", rule->name,
                        tensor->scale, (double)FLT_MIN, (double)FLT_MAX);
    return CLNORM_SUCCESS;
}

static clnorm_status check_scales_of_codes(const struct cln_tensor_rule *rule, const clnorm_tensor *tensor) {
    if (tensor->scaling != CLNORM_SCALING_TENSOR && tensor->scaling != CLNORM_SCALING_ROW &&
        tensor->scaling != CLNORM_SCALING_GROUP)
        return cln_fail(CLNORM_INVALID_ENUM, "desc.%s.scaling is %d: expected a clnorm_scaling with a dtype of %s",
                        rule->name, (int)tensor->scaling, clnorm_dtype_name(tensor->dtype));
    if (tensor->scaling == CLNORM_SCALING_GROUP && !tensor->scale_group)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.%s.scale_group is 0: expected 1 or more with CLNORM_SCALING_GROUP",
                        rule->name);
    if (tensor->scaling != CLNORM_SCALING_GROUP && tensor->scale_group)
        return cln_fail(CLNORM_INVALID_SHAPE, "desc.%s.scale_group is %" PRIu32 ": expected 0 without CLNORM_SCALING_GROUP",
                        rule->name, tensor->scale_group);
    if (tensor->scale_dtype && tensor->scale_dtype != CLNORM_F32 && tensor->scale_dtype != CLNORM_BF16) {
        char field[48];
        (void)snprintf(field, sizeof field, "%s.scale_dtype", rule->name);
        return cln_dtype_refuse(field, tensor->scale_dtype, "f32, bf16 or none");
    }
    return check_given_scale(rule, tensor);
}

clnorm_status cln_operation_check_scales(const struct cln_tensor_rule *rule, const clnorm_tensor *tensor, bool codes) {
    return codes ? check_scales_of_codes(rule, tensor) : check_no_scales(rule, tensor);
}

static uint64_t scale_count(const struct cln_desc_head *head, const clnorm_tensor *tensor, bool *overflow) {
    const uint64_t groups = cln_divide_up(head->cols, cln_or_else(tensor->scale_group, head->cols));
    uint64_t scales = head->rows;
    if (tensor->scaling == CLNORM_SCALING_TENSOR)
        return head->rows ? 1 : 0;
    *overflow = __builtin_mul_overflow(head->rows, groups, &scales);
    return scales;
}

clnorm_status cln_operation_describe_scales(const struct cln_tensor_rule *rule, const clnorm_tensor *tensor,
                                            const struct cln_desc_head *head, struct cln_tensor described[CLN_ROLES]) {
    if (!tensor->scaling || tensor->scale != 0)
        return CLNORM_SUCCESS;
    bool overflow = false;
    const uint64_t scales = scale_count(head, tensor, &overflow);
    if (overflow)
        return cln_fail(CLNORM_OVERFLOW,
                        "desc.rows is %" PRIu64 ", desc.%s.scale_group %" PRIu32 ": expected less than 2^63 scales",
                        head->rows, rule->name, tensor->scale_group);
    char name[48];
    (void)snprintf(name, sizeof name, "the tensor of %s's scales", rule->name);
    const clnorm_status status =
        cln_tensor_vector(&described[rule->scale], name, scales, clnorm_dtype_size(tensor->scale_dtype), 0);
    described[rule->scale].read = true; /* some configs divide by a scale after it is written */
    return status;
}
