/* Plans: refused descriptors, each with its status and error message, and the facts that a plan reports. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/context.h"
#include "desc_change.h"
#include "fixture.h"
#include "knob.h"
#include "norm_case.h"

/* ------------------------------------------------------------------------------------------------- bad descriptors */

#define FIELD(name) offsetof(clnorm_norm_desc, name)

/* Changes that make a valid descriptor of 4 x 64 in f32 wrong, and the field and value that the error message must name. */
static const struct {
    clnorm_status status;
    const char *field, *value;
    struct change change[4];
} wrongs[] = {
    {CLNORM_INVALID_ARGUMENT, "desc.size is 8", "expected", {{WIDE, FIELD(size), 8, 0}}},
    {CLNORM_INVALID_ARGUMENT, "desc.size is 8192", "expected", {{WIDE, FIELD(size), 8192, 0}}},
    {CLNORM_INVALID_ENUM, "desc.norm", "0", {{ENUM, FIELD(norm), 0, 0}}},
    {CLNORM_INVALID_ENUM, "desc.norm", "3", {{ENUM, FIELD(norm), 3, 0}}},
    {CLNORM_INVALID_ENUM, "desc.x.dtype", "0", {{ENUM, FIELD(x.dtype), 0, 0}}},
    {CLNORM_INVALID_ENUM, "desc.x.dtype", "77", {{ENUM, FIELD(x.dtype), 77, 0}}},
    {CLNORM_INVALID_ENUM, "desc.y.dtype", "7", {{ENUM, FIELD(y.dtype), 7, 0}}},
    {CLNORM_INVALID_ENUM, "desc.z.dtype", "-1", {{ENUM, FIELD(z.dtype), UINT32_MAX, 0}}},
    {CLNORM_INVALID_ENUM, "desc.weight.dtype", "99", {{ENUM, FIELD(weight.dtype), 99, 0}}},
    {CLNORM_INVALID_ENUM, "desc.bias.dtype", "1000", {{ENUM, FIELD(bias.dtype), 1000, 0}}},
    {CLNORM_INVALID_ENUM, "desc.gate", "3", {{ENUM, FIELD(gate), 3, 0}}},
    {CLNORM_INVALID_VALUE, "desc.eps", "-0.5", {{REAL, FIELD(eps), 0, -0.5}}},
    {CLNORM_INVALID_VALUE, "desc.eps", "nan", {{REAL, FIELD(eps), 0, NAN}}},
    {CLNORM_INVALID_VALUE, "desc.eps", "inf", {{REAL, FIELD(eps), 0, INFINITY}}},
    {CLNORM_INVALID_VALUE, "desc.weight_offset", "1", {{REAL, FIELD(weight_offset), 0, 1}}},
    {CLNORM_INVALID_VALUE,
     "desc.weight_offset",
     "nan",
     {{REAL, FIELD(weight_offset), 0, NAN}, {ENUM, FIELD(weight.dtype), CLNORM_F32, 0}}},
    {CLNORM_INVALID_VALUE, "desc.gate_first", "is 1", {{FLAG, FIELD(gate_first), 1, 0}}},
    {CLNORM_INVALID_VALUE,
     "desc.save_mean",
     "is 1",
     {{FLAG, FIELD(save_mean), 1, 0}, {ENUM, FIELD(norm), CLNORM_RMS_NORM, 0}}},
    {CLNORM_INVALID_SHAPE, "desc.cols", "0", {{WIDE, FIELD(cols), 0, 0}}},
    {CLNORM_INVALID_SHAPE, "desc.group_size", "48", {{WIDE, FIELD(group_size), 48, 0}}},
    {CLNORM_INVALID_SHAPE, "desc.group_size", "65", {{WIDE, FIELD(group_size), 65, 0}}},
    {CLNORM_INVALID_SHAPE, "desc.x.stride", "63", {{WIDE, FIELD(x.stride), 63, 0}}},
    {CLNORM_INVALID_SHAPE, "desc.y.stride", "1", {{WIDE, FIELD(y.stride), 1, 0}}},
    {CLNORM_INVALID_SHAPE,
     "desc.z.stride",
     "60",
     {{WIDE, FIELD(z.stride), 60, 0}, {ENUM, FIELD(gate), CLNORM_GATE_SILU, 0}}},
    {CLNORM_INVALID_ENUM, "desc.residual.dtype", "77", {{ENUM, FIELD(residual.dtype), 77, 0}}},
    {CLNORM_INVALID_ENUM, "desc.residual_out.dtype", "78", {{ENUM, FIELD(residual_out.dtype), 78, 0}}},
    {CLNORM_INVALID_ENUM, "desc.activation", "4", {{ENUM, FIELD(activation), 4, 0}}},
    {CLNORM_INVALID_VALUE, "desc.residual_out.dtype", "bf16", {{ENUM, FIELD(residual_out.dtype), CLNORM_BF16, 0}}},
    {CLNORM_INVALID_VALUE, "desc.dropout", "is 1:", {{REAL, FIELD(dropout), 0, 1}}},
    {CLNORM_INVALID_VALUE, "desc.dropout", "-0.1", {{REAL, FIELD(dropout), 0, -0.1}}},
    {CLNORM_INVALID_VALUE, "desc.dropout", "nan", {{REAL, FIELD(dropout), 0, NAN}}},
    {CLNORM_INVALID_VALUE, "desc.save_mask", "is 1", {{FLAG, FIELD(save_mask), 1, 0}}},
    {CLNORM_INVALID_VALUE,
     "desc.gate_first",
     "desc.residual is set",
     {{FLAG, FIELD(gate_first), 1, 0},
      {ENUM, FIELD(gate), CLNORM_GATE_SILU, 0},
      {ENUM, FIELD(residual.dtype), CLNORM_F32, 0}}},
    {CLNORM_INVALID_VALUE,
     "desc.gate_first",
     "desc.dropout",
     {{FLAG, FIELD(gate_first), 1, 0}, {ENUM, FIELD(gate), CLNORM_GATE_SILU, 0}, {REAL, FIELD(dropout), 0, 0.5}}},
    {CLNORM_INVALID_VALUE,
     "desc.gate_first",
     "desc.row_scale",
     {{FLAG, FIELD(gate_first), 1, 0}, {ENUM, FIELD(gate), CLNORM_GATE_SILU, 0}, {FLAG, FIELD(row_scale), 1, 0}}},
    {CLNORM_INVALID_SHAPE,
     "desc.residual.stride",
     "63",
     {{WIDE, FIELD(residual.stride), 63, 0}, {ENUM, FIELD(residual.dtype), CLNORM_F32, 0}}},
    {CLNORM_INVALID_SHAPE,
     "desc.residual_out.stride",
     "2",
     {{WIDE, FIELD(residual_out.stride), 2, 0},
      {ENUM, FIELD(residual.dtype), CLNORM_F32, 0},
      {ENUM, FIELD(residual_out.dtype), CLNORM_F32, 0}}},
    {CLNORM_INVALID_SHAPE,
     "desc.rows",
     "4294967297",
     {{WIDE, FIELD(rows), (UINT64_C(1) << 32) + 1, 0}, {REAL, FIELD(dropout), 0, 0.5}}},
    {CLNORM_UNSUPPORTED, "f64", "residual.dtype is f64", {{ENUM, FIELD(residual.dtype), CLNORM_F64, 0}}},
    {CLNORM_OVERFLOW, "rows", HUGE_TEXT, {{WIDE, FIELD(rows), HUGE_COUNT, 0}}},
    {CLNORM_OVERFLOW, "stride", HUGE_TEXT, {{WIDE, FIELD(x.stride), HUGE_COUNT, 0}}},
    {CLNORM_OVERFLOW, "stride", HUGE_TEXT, {{WIDE, FIELD(y.stride), HUGE_COUNT, 0}}},
    {CLNORM_OVERFLOW, "rows", "18446744073709551615", {{WIDE, FIELD(rows), UINT64_MAX, 0}}},
    {CLNORM_OVERFLOW,
     "weight",
     "2305843009213693952",
     {{WIDE, FIELD(rows), 1, 0},
      {WIDE, FIELD(cols), HUGE_COUNT / 2, 0},
      {ENUM, FIELD(x.dtype), CLNORM_BF16, 0},
      {ENUM, FIELD(weight.dtype), CLNORM_F32, 0}}},
    {CLNORM_UNSUPPORTED,
     "f64",
     "weight.dtype is bf16",
     {{ENUM, FIELD(x.dtype), CLNORM_F64, 0}, {ENUM, FIELD(weight.dtype), CLNORM_BF16, 0}}},
    {CLNORM_INVALID_ENUM, "desc.x.scaling", "f8e4m3", {{ENUM, FIELD(x.dtype), CLNORM_F8_E4M3, 0}}},
    {CLNORM_UNSUPPORTED, "desc.bias.dtype", "f8e5m2", {{ENUM, FIELD(bias.dtype), CLNORM_F8_E5M2, 0}}},
    {CLNORM_UNSUPPORTED, "f64", "x.dtype is f32", {{ENUM, FIELD(y.dtype), CLNORM_F64, 0}}},
    {CLNORM_UNSUPPORTED,
     "f64",
     "y.dtype is bf16",
     {{ENUM, FIELD(x.dtype), CLNORM_F64, 0}, {ENUM, FIELD(y.dtype), CLNORM_BF16, 0}}},
};

static clnorm_norm_desc wrong_desc(size_t i) {
    clnorm_norm_desc desc = norm_desc_of(CLNORM_LAYER_NORM, 4, 64);
    for (size_t j = 0; j < sizeof wrongs[i].change / sizeof *wrongs[i].change; j++)
        change_apply(&wrongs[i].change[j], &desc);
    return desc;
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        const clnorm_norm_desc desc = wrong_desc(i);
        clnorm_plan *plan = NULL;
        const clnorm_status status = clnorm_norm_forward_plan_create(fixture->context, &desc, &plan);
        if (status != wrongs[i].status || plan != NULL) {
            fail_msg("%s = %s gave \"%s\", not \"%s\"", wrongs[i].field, wrongs[i].value, clnorm_status_text(status),
                     clnorm_status_text(wrongs[i].status));
        }
        assert_says(wrongs[i].field, wrongs[i].value);
        assert_int_equal(clnorm_error_opencl(), CL_SUCCESS);
    }
}

/* The one-call form refuses the same, and touches nothing. */
static void one_call_refuses_bad_descriptors(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_args args = CLNORM_ARGS_INIT;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        const clnorm_norm_desc desc = wrong_desc(i);
        cl_event event = NULL;
        assert_int_equal(clnorm_norm_forward(fixture->context, fixture->queue, &desc, &args, 0, NULL, &event),
                         wrongs[i].status);
        assert_null(event);
        assert_says(wrongs[i].field, wrongs[i].value);
    }
}

/* A descriptor of a newer header, whose members this library does not know. */
struct newer_desc {
    clnorm_norm_desc known;
    uint64_t added[2];
};

static void other_sizes_are_understood(void **state) {
    const struct fixture *fixture = *state;
    struct newer_desc newer = {CLNORM_NORM_DESC_INIT, {0, 0}};
    newer.known.size = sizeof newer;
    newer.known.rows = 4;
    newer.known.cols = 64;
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &newer.known, &plan), CLNORM_SUCCESS);
    clnorm_plan_destroy(plan);
    newer.added[1] = 1;
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &newer.known, &plan), CLNORM_INVALID_ARGUMENT);
    assert_says("desc.size", "zeros");

    clnorm_norm_desc older = newer.known; /* of a header that ended before the gate: later fields are not read */
    older.size = FIELD(gate);
    older.gate = (clnorm_gate)77;
    older.save_rstd = 77;
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &older, &plan), CLNORM_SUCCESS);
    clnorm_plan_destroy(plan);
}

static void missing_arguments_are_refused(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_norm_desc desc = norm_desc_of(CLNORM_LAYER_NORM, 4, 64);
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_forward_plan_create(NULL, &desc, &plan), CLNORM_INVALID_ARGUMENT);
    assert_says("context", "NULL");
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, NULL, &plan), CLNORM_INVALID_ARGUMENT);
    assert_says("desc", "NULL");
    assert_null(plan);
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, NULL), CLNORM_INVALID_ARGUMENT);
    assert_says("plan", "NULL");
    assert_int_equal(clnorm_norm_forward(NULL, fixture->queue, &desc, NULL, 0, NULL, NULL), CLNORM_INVALID_ARGUMENT);
    assert_says("context", "NULL");
    assert_int_equal(clnorm_norm_forward(fixture->context, fixture->queue, NULL, NULL, 0, NULL, NULL),
                     CLNORM_INVALID_ARGUMENT);
    assert_says("desc", "NULL");
    assert_int_equal(clnorm_norm_forward(fixture->context, fixture->queue, &desc, NULL, 0, NULL, NULL),
                     CLNORM_INVALID_ARGUMENT);
    assert_says("args", "NULL");
    clnorm_plan_destroy(NULL);
}

static void f64_needs_a_device_with_fp64(void **state) {
    const struct fixture *fixture = *state;
    const bool fp64 = fixture->context->device.fp64;
    clnorm_norm_desc desc = norm_desc_of(CLNORM_LAYER_NORM, 4, 64);
    desc.x.dtype = CLNORM_F64;
    clnorm_plan *plan = NULL;
    fixture->context->device.fp64 = false;
    const clnorm_status status = clnorm_norm_forward_plan_create(fixture->context, &desc, &plan);
    fixture->context->device.fp64 = fp64;
    assert_int_equal(status, CLNORM_UNSUPPORTED);
    assert_null(plan);
    assert_says("x.dtype", "f64");
}

/* ------------------------------------------------------------------------------------------------ valid descriptors */

static clnorm_plan *plan_of(const struct fixture *fixture, const clnorm_norm_desc *desc) {
    clnorm_plan *plan = NULL;
    if (clnorm_norm_forward_plan_create(fixture->context, desc, &plan) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    return plan;
}

/* A plan can have unused fields with any valid value, and tensors that no memory holds. */
static void odd_but_valid_descriptors_are_planned(void **state) {
    const struct fixture *fixture = *state;
    const struct change changes[] = {
        {WIDE, FIELD(z.stride), 60, 0},
        {ENUM, FIELD(z.dtype), CLNORM_BF16, 0},
        {REAL, FIELD(eps), 0, 0},
        {REAL, FIELD(eps), 0, 1e30},
        {WIDE, FIELD(rows), UINT64_C(1) << 40, 0},
        {WIDE, FIELD(x.stride), UINT64_C(1) << 50, 0},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        clnorm_norm_desc desc = norm_desc_of(CLNORM_LAYER_NORM, 4, 64);
        change_apply(&changes[i], &desc);
        clnorm_plan_destroy(plan_of(fixture, &desc));
    }
}

static void description_is_cut_like_snprintf_does(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_norm_desc desc = norm_desc_of(CLNORM_LAYER_NORM, 4, 64);
    clnorm_plan *plan = plan_of(fixture, &desc);
    const size_t length = clnorm_plan_describe(plan, NULL, 0);
    assert_in_range(length, 20, 10000);
    char *whole = malloc(length + 1);
    char *part = malloc(length + 2);
    assert_non_null(whole);
    assert_non_null(part);
    assert_int_equal(clnorm_plan_describe(plan, whole, length + 1), length);
    assert_int_equal(strlen(whole), length);
    assert_non_null(strstr(whole, "norm_forward"));
    assert_non_null(strstr(whole, "-D"));
    for (size_t capacity = 1; capacity <= length + 1; capacity++) {
        memset(part, '#', length + 2);
        assert_int_equal(clnorm_plan_describe(plan, part, capacity), length);
        assert_memory_equal(part, whole, capacity - 1);
        assert_int_equal(part[capacity - 1], '\0');
        assert_int_equal(part[capacity], '#');
    }
    free(whole);
    free(part);
    clnorm_plan_destroy(plan);
}

/* Every knob of the chosen config has a value, and the plan needs no workspace. */
static void plan_reports_its_config_and_workspace(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_norm_desc desc = norm_desc_of(CLNORM_RMS_NORM, 4, 1000);
    clnorm_plan *plan = plan_of(fixture, &desc);
    const struct cln_config config = chosen_knobs(plan);
    assert_in_range(config.vec, 1, 16);
    assert_in_range(config.lanes, 1, 1024);
    assert_true(config.segments > 0 && config.iterations > 0 && config.keep > 0 && config.unroll > 0);
    assert_true(config.reduce > 0 && config.stores > 0 && config.isa > 0);
    assert_int_equal(clnorm_plan_workspace_size(plan), 0);
    clnorm_plan_destroy(plan);
}

/* The name, the grid, the bytes moved, and the cl_kernel. */
static void plan_reports_its_kernels(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_desc desc = norm_desc_of(CLNORM_RMS_NORM, 4, 1000);
    desc.weight.dtype = CLNORM_BF16;
    clnorm_plan *plan = plan_of(fixture, &desc);
    const struct cln_config config = chosen_knobs(plan);
    assert_int_equal(clnorm_plan_kernel_count(plan), 1);
    clnorm_kernel_info info = CLNORM_KERNEL_INFO_INIT;
    assert_int_equal(clnorm_plan_kernel(plan, 0, &info), CLNORM_SUCCESS);
    assert_string_equal(info.name, "norm_forward");
    assert_int_equal(info.items, config.lanes * config.segments);
    assert_in_range(info.groups, 1, 4);
    assert_int_equal(info.bytes, 4 * 1000 * (4 + 4) + 1000 * 2);
    char name[64];
    assert_int_equal(clGetKernelInfo(info.kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL), CL_SUCCESS);
    assert_string_equal(name, info.name);
    assert_int_equal(clnorm_plan_kernel(plan, 1, &info), CLNORM_INVALID_VALUE);
    assert_says("index is 1", "1 kernels");
    assert_int_equal(clnorm_plan_kernel(NULL, 0, &info), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_plan_kernel(plan, 0, NULL), CLNORM_INVALID_ARGUMENT);
    info.size--;
    assert_int_equal(clnorm_plan_kernel(plan, 0, &info), CLNORM_INVALID_ARGUMENT);
    assert_says("info.size", "CLNORM_KERNEL_INFO_INIT");
    clnorm_plan_destroy(plan);
}

struct journal {
    unsigned built;
    unsigned remembered;
    unsigned newlines;
};

static void note(const char *line, void *user) {
    struct journal *journal = user;
    journal->built += strstr(line, "built") != NULL;
    journal->remembered += strstr(line, "from memory") != NULL;
    journal->newlines += strchr(line, '\n') != NULL;
}

/* A second plan of the same descriptor builds nothing, and the log says so. */
static void programs_are_kept_and_logged(void **state) {
    const struct fixture *fixture = *state;
    struct journal journal = {0};
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.cache_dir = "";
    options.log = note;
    options.log_user = &journal;
    clnorm_context *context = NULL;
    assert_int_equal(clnorm_context_create(fixture->cl, fixture->device.device, &options, &context), CLNORM_SUCCESS);
    const clnorm_norm_desc desc = norm_desc_of(CLNORM_LAYER_NORM, 4, 64);
    clnorm_plan *plans[2] = {NULL};
    assert_int_equal(clnorm_norm_forward_plan_create(context, &desc, &plans[0]), CLNORM_SUCCESS);
    assert_true(journal.built == 1 && journal.remembered == 0);
    assert_int_equal(clnorm_norm_forward_plan_create(context, &desc, &plans[1]), CLNORM_SUCCESS);
    assert_true(journal.built == 1 && journal.remembered == 1 && journal.newlines == 0);
    clnorm_plan_destroy(plans[0]);
    clnorm_plan_destroy(plans[1]);
    clnorm_context_destroy(context);
}

/* Each can be forced. A smaller capacity cuts the last one off, and does not change their number. */
static void candidates_can_be_forced(void **state) {
    enum { MOST = 64 };
    const struct fixture *fixture = *state;
    clnorm_norm_desc desc = norm_desc_of(CLNORM_RMS_NORM, 512, 1024);
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
    clnorm_config all[MOST], fewer[MOST], untouched;
    memset(fewer, 0xa5, sizeof fewer);
    memset(&untouched, 0xa5, sizeof untouched);
    const size_t count = clnorm_plan_candidates(plan, all, MOST);
    assert_in_range(count, 1, MOST);
    assert_int_equal(clnorm_plan_candidates(plan, fewer, count - 1), count);
    assert_memory_equal(fewer, all, (count - 1) * sizeof *all);
    assert_memory_equal(&fewer[count - 1], &untouched, sizeof untouched);
    assert_int_equal(clnorm_plan_candidates(NULL, all, MOST), 0);
    for (size_t i = 0; i < count; i++) {
        desc.config = all[i];
        if (clnorm_norm_forward_validate(fixture->context, &desc, NULL))
            fail_msg("candidate %zu: %s", i, clnorm_error_detail());
    }
    clnorm_plan_destroy(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_descriptors_are_refused),
        cmocka_unit_test(one_call_refuses_bad_descriptors),
        cmocka_unit_test(other_sizes_are_understood),
        cmocka_unit_test(missing_arguments_are_refused),
        cmocka_unit_test(f64_needs_a_device_with_fp64),
        cmocka_unit_test(odd_but_valid_descriptors_are_planned),
        cmocka_unit_test(description_is_cut_like_snprintf_does),
        cmocka_unit_test(plan_reports_its_config_and_workspace),
        cmocka_unit_test(plan_reports_its_kernels),
        cmocka_unit_test(candidates_can_be_forced),
        cmocka_unit_test(programs_are_kept_and_logged),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
