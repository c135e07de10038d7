/* Backward normalisations that are refused by their descriptors, each with its status and error message; and the size of
 * the workspace. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/context.h"
#include "desc_change.h"
#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"

#define FIELD(name) offsetof(clnorm_norm_backward_desc, name)
#define SET_WIDE(name, value) \
    { WIDE, FIELD(name), value, 0 }
#define SET_ENUM(name, value) \
    { ENUM, FIELD(name), value, 0 }
#define SET_REAL(name, value) \
    { REAL, FIELD(name), 0, value }
#define SET_FLAG(name) \
    { FLAG, FIELD(name), 1, 0 }

/* y in f32, as every other tensor. */
#define SET_Y SET_FLAG(y_given), SET_ENUM(y.dtype, CLNORM_F32)

/* Changes that make a valid descriptor, of 4 x 64 in f32 with dx, wrong, and the words that the error message must have. */
static const struct {
    clnorm_status status;
    const char *field, *value;
    struct change change[5];
} wrongs[] = {
    {CLNORM_INVALID_ARGUMENT, "desc.size is 8", "expected", {SET_WIDE(size, 8)}},
    {CLNORM_INVALID_ARGUMENT, "desc.size is 8192", "expected", {SET_WIDE(size, 8192)}},
    {CLNORM_INVALID_ENUM, "desc.norm", "0", {SET_ENUM(norm, 0)}},
    {CLNORM_INVALID_ENUM, "desc.norm", "3", {SET_ENUM(norm, 3)}},
    {CLNORM_INVALID_ENUM, "desc.x.dtype", "0", {SET_ENUM(x.dtype, 0)}},
    {CLNORM_INVALID_ENUM, "desc.x.dtype", "77", {SET_ENUM(x.dtype, 77)}},
    {CLNORM_INVALID_ENUM, "desc.z.dtype", "-1", {SET_ENUM(z.dtype, UINT32_MAX)}},
    {CLNORM_INVALID_ENUM, "desc.dy.dtype", "7", {SET_ENUM(dy.dtype, 7)}},
    {CLNORM_INVALID_ENUM, "desc.weight.dtype", "99", {SET_ENUM(weight.dtype, 99)}},
    {CLNORM_INVALID_ENUM, "desc.bias.dtype", "1000", {SET_ENUM(bias.dtype, 1000)}},
    {CLNORM_INVALID_ENUM, "desc.dx.dtype", "9", {SET_ENUM(dx.dtype, 9)}},
    {CLNORM_INVALID_ENUM, "desc.dz.dtype", "7", {SET_ENUM(dz.dtype, 7)}},
    {CLNORM_INVALID_ENUM, "desc.dweight.dtype", "8", {SET_ENUM(dweight.dtype, 8)}},
    {CLNORM_INVALID_ENUM, "desc.dbias.dtype", "9", {SET_ENUM(dbias.dtype, 9)}},
    {CLNORM_INVALID_ENUM, "desc.y.dtype", "10", {SET_ENUM(y.dtype, 10)}},
    {CLNORM_INVALID_ENUM, "desc.gate", "3", {SET_ENUM(gate, 3)}},
    {CLNORM_INVALID_ENUM, "desc.reduction", "3", {SET_ENUM(reduction, 3)}},
    {CLNORM_INVALID_VALUE, "desc.eps", "-0.5", {SET_REAL(eps, -0.5)}},
    {CLNORM_INVALID_VALUE, "desc.eps", "nan", {SET_REAL(eps, NAN)}},
    {CLNORM_INVALID_VALUE, "desc.eps", "inf", {SET_REAL(eps, INFINITY)}},
    {CLNORM_INVALID_VALUE, "desc.eps", "1e+39", {SET_REAL(eps, 1e39)}},
    {CLNORM_INVALID_VALUE, "desc.weight_offset", "1", {SET_REAL(weight_offset, 1)}},
    {CLNORM_INVALID_VALUE, "desc.weight_offset", "nan", {SET_REAL(weight_offset, NAN), SET_ENUM(weight.dtype, CLNORM_F32)}},
    {CLNORM_INVALID_VALUE, "desc.gate_first", "is 1", {SET_FLAG(gate_first)}},
    {CLNORM_INVALID_ENUM, "desc.activation", "-1", {SET_ENUM(activation, UINT32_MAX)}},
    {CLNORM_INVALID_ENUM, "desc.residual.dtype", "77", {SET_ENUM(residual.dtype, 77)}},
    {CLNORM_INVALID_ENUM, "desc.dresidual.dtype", "78", {SET_ENUM(dresidual.dtype, 78)}},
    {CLNORM_INVALID_ENUM, "desc.dresidual_out.dtype", "79", {SET_ENUM(dresidual_out.dtype, 79)}},
    {CLNORM_INVALID_VALUE, "desc.dropout", "is 1:", {SET_REAL(dropout, 1)}},
    {CLNORM_INVALID_VALUE, "desc.dropout", "nan", {SET_REAL(dropout, NAN)}},
    {CLNORM_INVALID_VALUE, "desc.dresidual.dtype", "without a residual", {SET_ENUM(dresidual.dtype, CLNORM_F32)}},
    {CLNORM_INVALID_VALUE, "desc.residual.dtype", "s_given", {SET_ENUM(residual.dtype, CLNORM_F32), SET_FLAG(s_given)}},
    {CLNORM_INVALID_VALUE,
     "desc.gate_first",
     "s_given",
     {SET_ENUM(gate, CLNORM_GATE_SILU), SET_FLAG(gate_first), SET_FLAG(s_given)}},
    {CLNORM_INVALID_VALUE,
     "desc.gate_first",
     "desc.dresidual_out is set",
     {SET_ENUM(gate, CLNORM_GATE_SILU), SET_FLAG(gate_first), SET_ENUM(dresidual_out.dtype, CLNORM_F32)}},
    {CLNORM_INVALID_SHAPE,
     "desc.residual.stride",
     "63",
     {SET_WIDE(residual.stride, 63), SET_ENUM(residual.dtype, CLNORM_F32)}},
    {CLNORM_INVALID_SHAPE,
     "desc.dresidual_out.stride",
     "7",
     {SET_WIDE(dresidual_out.stride, 7), SET_ENUM(dresidual_out.dtype, CLNORM_F32)}},
    {CLNORM_INVALID_SHAPE, "desc.rows", "4294967297", {SET_WIDE(rows, (UINT64_C(1) << 32) + 1), SET_REAL(dropout, 0.5)}},
    {CLNORM_UNSUPPORTED, "desc.residual.dtype", "f64", {SET_ENUM(residual.dtype, CLNORM_F64)}},
    {CLNORM_INVALID_VALUE, "desc.dz.dtype", "gate", {SET_ENUM(dz.dtype, CLNORM_F32)}},
    {CLNORM_INVALID_VALUE, "mean_given", "rstd_given", {SET_FLAG(mean_given)}},
    {CLNORM_INVALID_VALUE, "mean_given", "rstd_given", {SET_FLAG(rstd_given)}},
    {CLNORM_INVALID_VALUE, "desc.mean_given", "RMS", {SET_FLAG(mean_given), SET_ENUM(norm, CLNORM_RMS_NORM)}},
    {CLNORM_INVALID_VALUE,
     "desc.mean_given",
     "RMS",
     {SET_FLAG(mean_given), SET_FLAG(rstd_given), SET_ENUM(norm, CLNORM_RMS_NORM)}},
    {CLNORM_INVALID_VALUE, "desc.accumulate", "dweight", {SET_FLAG(accumulate)}},
    {CLNORM_INVALID_VALUE,
     "desc.slots",
     "0",
     {SET_ENUM(slots, 0), SET_ENUM(reduction, CLNORM_REDUCTION_LOCKED), SET_ENUM(dbias.dtype, CLNORM_F32)}},
    {CLNORM_INVALID_VALUE, "no output", "dweight", {SET_ENUM(dx.dtype, 0)}},
    {CLNORM_INVALID_SHAPE, "desc.cols", "0", {SET_WIDE(cols, 0)}},
    {CLNORM_INVALID_SHAPE, "desc.group_size", "48", {SET_WIDE(group_size, 48)}},
    {CLNORM_INVALID_SHAPE, "desc.x.stride", "63", {SET_WIDE(x.stride, 63)}},
    {CLNORM_INVALID_SHAPE, "desc.dy.stride", "62", {SET_WIDE(dy.stride, 62)}},
    {CLNORM_INVALID_SHAPE, "desc.dx.stride", "1", {SET_WIDE(dx.stride, 1)}},
    {CLNORM_INVALID_SHAPE, "desc.y.stride", "61", {SET_WIDE(y.stride, 61), SET_ENUM(y.dtype, CLNORM_F32)}},
    {CLNORM_INVALID_SHAPE, "desc.z.stride", "60", {SET_WIDE(z.stride, 60), SET_ENUM(gate, CLNORM_GATE_SILU)}},
    {CLNORM_INVALID_SHAPE,
     "desc.dz.stride",
     "59",
     {SET_WIDE(dz.stride, 59), SET_ENUM(gate, CLNORM_GATE_SILU), SET_ENUM(dz.dtype, CLNORM_BF16)}},
    {CLNORM_OVERFLOW, "rows", HUGE_TEXT, {SET_WIDE(rows, HUGE_COUNT)}},
    {CLNORM_OVERFLOW, "rows", "18446744073709551615", {SET_WIDE(rows, UINT64_MAX)}},
    {CLNORM_OVERFLOW, "x has", HUGE_TEXT, {SET_WIDE(x.stride, HUGE_COUNT)}},
    {CLNORM_OVERFLOW, "dy has", HUGE_TEXT, {SET_WIDE(dy.stride, HUGE_COUNT)}},
    {CLNORM_OVERFLOW, "dx has", HUGE_TEXT, {SET_WIDE(dx.stride, HUGE_COUNT)}},
    {CLNORM_OVERFLOW,
     "dweight",
     "2305843009213693952",
     {SET_WIDE(rows, 0), SET_WIDE(cols, HUGE_COUNT / 2), SET_ENUM(dweight.dtype, CLNORM_F32)}},
    {CLNORM_UNSUPPORTED, "f64", "x.dtype is f32", {SET_ENUM(y.dtype, CLNORM_F64)}},
    {CLNORM_UNSUPPORTED, "dx.dtype is f32", "f64", {SET_ENUM(x.dtype, CLNORM_F64)}},
    {CLNORM_UNSUPPORTED, "dy.dtype is bf16", "f64", {SET_ENUM(x.dtype, CLNORM_F64), SET_ENUM(dy.dtype, CLNORM_BF16)}},
    {CLNORM_INVALID_VALUE, "desc.weight_bound is 1", "y_given", {SET_REAL(weight_bound, 1)}},
    {CLNORM_INVALID_VALUE, "bias_bound nan", "y_given", {SET_REAL(bias_bound, NAN)}},
    {CLNORM_INVALID_ENUM, "desc.y.dtype is 0", "y_given", {SET_FLAG(y_given), SET_FLAG(rstd_given)}},
    {CLNORM_UNSUPPORTED, "desc.y.dtype is f8e5m2", "y_given", {SET_FLAG(y_given), SET_ENUM(y.dtype, CLNORM_F8_E5M2)}},
    {CLNORM_INVALID_VALUE, "desc.rstd_given", "y_given", {SET_Y}},
    {CLNORM_INVALID_VALUE, "desc.mean_given", "y_given", {SET_Y, SET_FLAG(rstd_given), SET_FLAG(mean_given)}},
    {CLNORM_INVALID_VALUE, "no output", "dx", {SET_Y, SET_FLAG(rstd_given), SET_ENUM(dx.dtype, 0)}},
    {CLNORM_INVALID_VALUE, "desc.gate", "y_given", {SET_Y, SET_FLAG(rstd_given), SET_ENUM(gate, CLNORM_GATE_SILU)}},
    {CLNORM_INVALID_VALUE,
     "desc.activation",
     "y_given",
     {SET_Y, SET_FLAG(rstd_given), SET_ENUM(activation, CLNORM_ACTIVATION_GELU)}},
    {CLNORM_INVALID_VALUE,
     "desc.residual is set",
     "y_given",
     {SET_Y, SET_FLAG(rstd_given), SET_ENUM(residual.dtype, CLNORM_F32)}},
    {CLNORM_INVALID_VALUE, "desc.dropout", "y_given", {SET_Y, SET_FLAG(rstd_given), SET_REAL(dropout, 0.5)}},
    {CLNORM_INVALID_VALUE, "desc.row_scale", "y_given", {SET_Y, SET_FLAG(rstd_given), SET_FLAG(row_scale)}},
    {CLNORM_INVALID_VALUE, "desc.s_given", "y_given", {SET_Y, SET_FLAG(rstd_given), SET_FLAG(s_given)}},
    {CLNORM_INVALID_VALUE,
     "desc.y.scale_dtype is f32",
     "expected none",
     {SET_Y, SET_FLAG(rstd_given), SET_ENUM(y.scale_dtype, CLNORM_F32)}},
    {CLNORM_INVALID_ENUM,
     "desc.y.scale_dtype is 99",
     "expected none",
     {SET_Y, SET_FLAG(rstd_given), SET_ENUM(y.scale_dtype, 99)}},
    {CLNORM_INVALID_VALUE,
     "desc.y.scaling is 1",
     "expected 0",
     {SET_Y, SET_FLAG(rstd_given), SET_ENUM(y.scaling, CLNORM_SCALING_TENSOR)}},
    {CLNORM_OVERFLOW,
     "y has 4 rows of stride 4611686018427387904",
     "less than 2^63",
     {SET_Y, SET_FLAG(rstd_given), SET_WIDE(y.stride, UINT64_C(1) << 62)}},
    {CLNORM_INVALID_SHAPE, "desc.cols", "4294967296", {SET_Y, SET_FLAG(rstd_given), SET_WIDE(cols, UINT64_C(1) << 32)}},
    {CLNORM_INVALID_SHAPE, "desc.y.stride", "63", {SET_Y, SET_FLAG(rstd_given), SET_WIDE(y.stride, 63)}},
    {CLNORM_INVALID_VALUE, "desc.weight_bound", "1e-31", {SET_Y, SET_FLAG(rstd_given), SET_REAL(weight_bound, 1e-31)}},
    {CLNORM_INVALID_VALUE, "desc.weight_bound", "inf", {SET_Y, SET_FLAG(rstd_given), SET_REAL(weight_bound, INFINITY)}},
    {CLNORM_INVALID_VALUE, "desc.bias_bound", "-1", {SET_Y, SET_FLAG(rstd_given), SET_REAL(bias_bound, -1)}},
    {CLNORM_INVALID_VALUE, "desc.bias_bound", "2e+06", {SET_Y, SET_FLAG(rstd_given), SET_REAL(bias_bound, 2e6)}},
    {CLNORM_UNSUPPORTED,
     "dx.dtype is f32",
     "y.dtype is f64",
     {SET_FLAG(y_given), SET_ENUM(y.dtype, CLNORM_F64), SET_FLAG(rstd_given)}},
};

static clnorm_norm_backward_desc wrong_desc(size_t i) {
    clnorm_norm_backward_desc desc = norm_backward_desc_of(CLNORM_LAYER_NORM, 4, 64);
    for (size_t j = 0; j < sizeof wrongs[i].change / sizeof *wrongs[i].change; j++)
        change_apply(&wrongs[i].change[j], &desc);
    return desc;
}

/* A plan and the one-call form refuse them. */
static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_args args = CLNORM_ARGS_INIT;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        const clnorm_norm_backward_desc desc = wrong_desc(i);
        clnorm_plan *plan = NULL;
        cl_event event = NULL;
        const clnorm_status status = clnorm_norm_backward_plan_create(fixture->context, &desc, &plan);
        if (status != wrongs[i].status || plan != NULL)
            fail_msg("%s = %s gave \"%s\", not \"%s\"", wrongs[i].field, wrongs[i].value, clnorm_status_text(status),
                     clnorm_status_text(wrongs[i].status));
        assert_says(wrongs[i].field, wrongs[i].value);
        assert_int_equal(clnorm_error_opencl(), CL_SUCCESS);
        assert_int_equal(clnorm_norm_backward(fixture->context, fixture->queue, &desc, &args, 0, NULL, &event),
                         wrongs[i].status);
        assert_null(event);
        assert_says(wrongs[i].field, wrongs[i].value);
    }
}

static void missing_arguments_are_refused(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_norm_backward_desc desc = norm_backward_desc_of(CLNORM_LAYER_NORM, 4, 64);
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_backward_plan_create(NULL, &desc, &plan), CLNORM_INVALID_ARGUMENT);
    assert_says("context", "NULL");
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, NULL, &plan), CLNORM_INVALID_ARGUMENT);
    assert_says("desc", "NULL");
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, NULL), CLNORM_INVALID_ARGUMENT);
    assert_says("plan", "NULL");
    assert_null(plan);
    assert_int_equal(clnorm_norm_backward(NULL, fixture->queue, &desc, NULL, 0, NULL, NULL), CLNORM_INVALID_ARGUMENT);
    assert_says("context", "NULL");
    assert_int_equal(clnorm_norm_backward(fixture->context, fixture->queue, NULL, NULL, 0, NULL, NULL),
                     CLNORM_INVALID_ARGUMENT);
    assert_says("desc", "NULL");
    assert_int_equal(clnorm_norm_backward(fixture->context, fixture->queue, &desc, NULL, 0, NULL, NULL),
                     CLNORM_INVALID_ARGUMENT);
    assert_says("args", "NULL");
}

/* The library is told that the device lacks a feature. */
static void missing_features_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_device_info *device = &fixture->context->device;
    const clnorm_device_info kept = *device;
    clnorm_norm_backward_desc desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 4, 64, CLNORM_F64);
    clnorm_plan *plan = NULL;
    device->fp64 = false;
    const clnorm_status wide = clnorm_norm_backward_plan_create(fixture->context, &desc, &plan);
    *device = kept;
    assert_int_equal(wide, CLNORM_UNSUPPORTED);
    assert_says("x.dtype", "f64");
    desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 4, 64, CLNORM_F32);
    desc.reduction = CLNORM_REDUCTION_LOCKED;
    KNOB(desc.config, isa) = CLN_ISA_PORTABLE;
    device->family = CLNORM_PLATFORM_OTHER;
    device->device_fences = false;
    const clnorm_status locked = clnorm_norm_backward_plan_create(fixture->context, &desc, &plan);
    *device = kept;
    assert_int_equal(locked, CLNORM_UNSUPPORTED);
    assert_says("desc.reduction", "fence");
    assert_null(plan);
}

/* ------------------------------------------------------------------------------------------------------- workspace */

static uint64_t workspace_of(const struct fixture *fixture, const clnorm_norm_backward_desc *desc) {
    clnorm_plan *plan = NULL;
    if (clnorm_norm_backward_plan_create(fixture->context, desc, &plan) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    const uint64_t size = clnorm_plan_workspace_size(plan);
    clnorm_plan_destroy(plan);
    return size;
}

/* With locks the workspace has slots of cols floats for dweight and for dbias, and up to 64 bytes a lock, however many rows
 * there are. Statistics that are not given are in it too. An output that is not requested takes no space. */
static void workspace_is_bounded(void **state) {
    const struct fixture *fixture = *state;
    const uint32_t slots[] = {1, 3, 128};
    const uint64_t cols = 1000;
    clnorm_norm_backward_desc desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 1, cols, CLNORM_F32);
    desc.mean_given = desc.rstd_given = true;
    desc.reduction = CLNORM_REDUCTION_LOCKED;
    for (int i = 0; i < 6 && norm_backward_locks(fixture); i++) {
        desc.slots = slots[i % 3];
        desc.rows = i < 3 ? 1 : 100000;
        const uint64_t row = cols * sizeof(float) + 64;
        desc.dbias.dtype = CLNORM_F32;
        assert_in_range(workspace_of(fixture, &desc), 1, (2 * row + 64) * desc.slots + 64);
        desc.dbias.dtype = CLNORM_DTYPE_NONE;
        assert_in_range(workspace_of(fixture, &desc), 1, (row + 64) * desc.slots + 64);
    }
    desc.dweight.dtype = desc.dbias.dtype = CLNORM_DTYPE_NONE;
    assert_int_equal(workspace_of(fixture, &desc), 0);
    desc.mean_given = desc.rstd_given = false;
    assert_in_range(workspace_of(fixture, &desc), 2 * desc.rows * sizeof(float), 2 * desc.rows * sizeof(float) + 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_descriptors_are_refused),
        cmocka_unit_test(missing_arguments_are_refused),
        cmocka_unit_test(missing_features_are_refused),
        cmocka_unit_test(workspace_is_bounded),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
