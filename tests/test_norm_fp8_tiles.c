/* RMS norm of an 8-bit x with scales of groups, to a y with one measured scale, which has kernels of its own. Codes are
 * compared with those that follow from the device's rstd: CLNORM_FP8_COMPATIBLE bit by bit with the formulas in float,
 * CLNORM_FP8_FUSED with the formulas in double, within the roundings of its few operations. */
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

#include "device/driver_defects.h"
#include "fixture.h"
#include "fp8_tensor.h"
#include "knob.h"
#include "plan_run.h"
#include "reference/reference.h"

struct norm_case {
    clnorm_fp8_accuracy accuracy;
    uint64_t rows, cols, group_size;
    clnorm_dtype x, x_scale, weight, y, scale;
    bool write_y, write_y_t, special;
    uint64_t gap, shift; /* elements */
    struct cln_config config;
};

struct norm_run {
    clnorm_norm_desc desc;    /* complete */
    struct cln_config config; /* the plan's */
    struct tensor x, x_scale, weight, y, y_t, rstd, row_scale, y_scale, workspace;
};

enum { TENSORS = 9 };

static void list(struct norm_run *run, struct tensor *tensors[TENSORS]) {
    struct tensor *const all[TENSORS] = {&run->x,    &run->x_scale,   &run->weight,  &run->y,        &run->y_t,
                                         &run->rstd, &run->row_scale, &run->y_scale, &run->workspace};
    memcpy(tensors, all, sizeof all);
}

static struct norm_run make(const struct norm_case *c) {
    struct norm_run run = {.desc = CLNORM_NORM_DESC_INIT};
    clnorm_norm_desc *desc = &run.desc;
    desc->norm = CLNORM_RMS_NORM;
    desc->accuracy = c->accuracy;
    desc->rows = c->rows;
    desc->cols = c->cols;
    desc->save_rstd = 1;
    desc->x.scaling = CLNORM_SCALING_GROUP;
    desc->x.scale_group = (uint32_t)c->group_size;
    desc->x.stride = c->cols + c->gap;
    desc->y.stride = c->cols + 2 * c->gap;
    desc->y_t.stride = c->rows + 3 * c->gap;
    desc->x.dtype = c->x;
    desc->x.scale_dtype = c->x_scale;
    desc->weight.dtype = c->weight;
    desc->y.dtype = c->write_y ? c->y : CLNORM_DTYPE_NONE;
    desc->y_t.dtype = c->write_y_t ? c->y : CLNORM_DTYPE_NONE;
    clnorm_tensor *const scaled = c->write_y ? &desc->y : &desc->y_t;
    scaled->scaling = CLNORM_SCALING_TENSOR;
    scaled->scale_dtype = c->scale;
    desc->save_y_row_scale = true;
    desc->config = forced(c->config);
    const uint64_t groups = c->cols / c->group_size;
    run.x = tensor_make(c->x, c->rows, c->cols, desc->x.stride, c->shift, TENSOR_NAN);
    run.x_scale = tensor_make(c->x_scale, c->rows, groups, groups, c->shift, TENSOR_NAN);
    run.weight = tensor_make(c->weight, 1, c->cols, c->cols, c->shift, TENSOR_NAN);
    run.y = tensor_make(c->write_y ? c->y : CLNORM_DTYPE_NONE, c->rows, c->cols, desc->y.stride, c->shift, TENSOR_CANARY);
    run.y_t =
        tensor_make(c->write_y_t ? c->y : CLNORM_DTYPE_NONE, c->cols, c->rows, desc->y_t.stride, c->shift, TENSOR_CANARY);
    run.rstd = tensor_make(CLNORM_F32, 1, c->rows, c->rows, c->shift, TENSOR_CANARY);
    run.row_scale = tensor_make(c->scale, 1, c->rows, c->rows, c->shift, TENSOR_CANARY);
    run.y_scale = tensor_make(c->scale, 1, 1, 1, c->shift, TENSOR_CANARY);
    fp8_fill(&run.x, c->special);
    fp8_fill_scales(&run.x_scale);
    tensor_fill(&run.weight, INPUT_NORMAL, c->cols, 5);
    return run;
}

static void free_run(struct norm_run *run) {
    struct tensor *tensors[TENSORS];
    list(run, tensors);
    for (int i = 0; i < TENSORS; i++)
        tensor_free(tensors[i]);
}

static clnorm_status go(const struct fixture *fixture, struct norm_run *run) {
    clnorm_plan *plan = NULL;
    if (KNOB(run->desc.config, segments) > 1 && cln_driver_defect(&fixture->device, CLN_DEFECT_CODES_SEGMENTS))
        KNOB(run->desc.config, segments) = 1;
    const clnorm_status status = clnorm_norm_forward_plan_create(fixture->context, &run->desc, &plan);
    if (status)
        return status;
    run->config = chosen_knobs(plan);
    run->workspace = plan_workspace(plan);
    struct tensor *tensors[TENSORS];
    list(run, tensors);
    for (int i = 0; i < TENSORS; i++)
        tensor_upload(fixture, tensors[i]);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&run->x);
    args.x_scale = tensor_buffer(&run->x_scale);
    args.weight = tensor_buffer(&run->weight);
    args.y = tensor_buffer(&run->y);
    args.y_t = tensor_buffer(&run->y_t);
    args.rstd = tensor_buffer(&run->rstd);
    args.y_row_scale = tensor_buffer(&run->row_scale);
    args.y_scale = tensor_buffer(&run->y_scale);
    args.workspace = tensor_buffer(&run->workspace);
    return plan_run(fixture, plan, &args);
}

/* --------------------------------------------------------------------------------------------------- verification */

static const double unit = 0x1p-24;

static double load(const struct tensor *tensor, uint64_t index) {
    return ref_load(tensor->dtype, tensor_elements(tensor), index);
}

/* The dtype of y and y_t. */
static clnorm_dtype codes_of(const struct norm_run *run) {
    return run->desc.y.dtype ? run->desc.y.dtype : run->desc.y_t.dtype;
}

static struct ref_norm reference_of(const struct norm_run *run) {
    return (struct ref_norm){.norm = CLNORM_RMS_NORM,
                             .rows = run->desc.rows,
                             .cols = run->desc.cols,
                             .group_size = run->desc.cols,
                             .x = fp8_reference(&run->x, &run->x_scale, run->desc.x.scale_group),
                             .eps = run->desc.eps};
}

static float v_of(const struct norm_run *run, uint64_t row, uint64_t column) {
    const struct ref_norm norm = reference_of(run);
    return (float)ref_at(&norm.x, row, column);
}

/* x · rstd · weight, with a rounding to float after each product. */
static float n_of(const struct norm_run *run, uint64_t row, uint64_t column) {
    const float normed = v_of(run, row, column) * (float)load(&run->rstd, row);
    return run->weight.host ? normed * (float)load(&run->weight, column) : normed;
}

static bool near(double actual, double expected, double error, const char *name, uint64_t row) {
    if (isnan(expected) ? isnan(actual) : actual == expected || fabs(actual - expected) <= error)
        return true;
    print_error("%s[%" PRIu64 "] is %.9g, but should be %.9g within %.3g\n", name, row, actual, expected, error);
    return false;
}

/* Squares have one sign: each addition adds half a unit to the relative error of their sum. rstd has half of that error. */
static bool check_rstd(const struct norm_run *run, uint64_t row) {
    const struct ref_norm norm = reference_of(run);
    struct ref_segment segment = ref_segment_make(norm.cols);
    ref_norm_segment(&norm, row, 0, &segment);
    const double width = (double)run->config.vec * run->config.lanes;
    const double roundings = (double)run->desc.cols / width + log2(width) + 16;
    const double rstd = segment.rstd;
    ref_segment_free(&segment);
    return near(load(&run->rstd, row), rstd, roundings * unit * rstd, "rstd", row);
}

static double amax_of(const struct norm_run *run, uint64_t row) {
    double amax = 0;
    for (uint64_t column = 0; column < run->desc.cols; column++)
        amax = ref_amax(amax, (double)n_of(run, row, column));
    return amax;
}

/* CLNORM_FP8_FUSED multiplies in another order: its largest |n| is off by some roundings. */
static bool check_row_scale(const struct norm_run *run, uint64_t row) {
    const double expected = ref_scale(codes_of(run), run->row_scale.dtype, amax_of(run, row));
    const bool compatible = run->desc.accuracy == CLNORM_FP8_COMPATIBLE;
    const double step = run->row_scale.dtype == CLNORM_BF16 ? 0x1p-7 : 8 * unit;
    return near(load(&run->row_scale, row), expected, compatible ? 0 : step * expected, "row_scale", row);
}

static bool check_y_scale(const struct norm_run *run) {
    double largest = 0;
    for (uint64_t row = 0; row < run->desc.rows; row++)
        largest = fmax(largest, load(&run->row_scale, row));
    return near(load(&run->y_scale, 0), largest, 0, "y_scale", 0);
}

/* With CLNORM_FP8_FUSED the quotient may be off by some roundings: every code of such a quotient is right. */
static bool code_is_right(const struct norm_run *run, uint64_t row, uint64_t column, unsigned code) {
    const clnorm_dtype dtype = codes_of(run);
    const float n = n_of(run, row, column);
    const float scale = (float)load(&run->y_scale, 0);
    if (run->desc.accuracy == CLNORM_FP8_COMPATIBLE)
        return code == ref_code(dtype, (double)((float)ref_round(CLNORM_BF16, (double)n) / scale));
    const double quotient = (double)n / (double)scale;
    if (isnan(quotient))
        return code == 0x7f;
    const double low = ref_code_value(dtype, ref_code(dtype, quotient - 8 * unit * fabs(quotient)));
    const double high = ref_code_value(dtype, ref_code(dtype, quotient + 8 * unit * fabs(quotient)));
    return low <= ref_code_value(dtype, code) && ref_code_value(dtype, code) <= high;
}

static bool check_codes(const struct norm_run *run) {
    const unsigned char *y = tensor_elements(&run->y), *y_t = tensor_elements(&run->y_t);
    for (uint64_t row = 0; row < run->desc.rows; row++)
        for (uint64_t column = 0; column < run->desc.cols; column++) {
            const unsigned in_y_t = y_t ? y_t[column * run->y_t.stride + row] : y[row * run->y.stride + column];
            const unsigned in_y = y ? y[row * run->y.stride + column] : in_y_t;
            if (in_y == in_y_t && code_is_right(run, row, column, in_y))
                continue;
            print_error("y[%" PRIu64 ", %" PRIu64 "] is %02x, %02x transposed, for %.9g\n", row, column, in_y, in_y_t,
                        (double)n_of(run, row, column) / load(&run->y_scale, 0));
            return false;
        }
    return true;
}

static bool verify(const struct fixture *fixture, struct norm_run *run) {
    if (!tensor_unchanged(fixture, &run->x, "x") || !tensor_unchanged(fixture, &run->x_scale, "x_scale") ||
        !tensor_unchanged(fixture, &run->weight, "weight") || !tensor_receive(fixture, &run->y, "y") ||
        !tensor_receive(fixture, &run->y_t, "y_t") || !tensor_receive(fixture, &run->rstd, "rstd") ||
        !tensor_receive(fixture, &run->row_scale, "row_scale") || !tensor_receive(fixture, &run->y_scale, "y_scale") ||
        !tensor_receive(fixture, &run->workspace, "workspace"))
        return false;
    for (uint64_t row = 0; row < run->desc.rows; row++)
        if (!check_rstd(run, row) || !check_row_scale(run, row))
            return false;
    return run->desc.rows == 0 || (check_y_scale(run) && check_codes(run));
}

static bool passes(const struct fixture *fixture, const struct norm_case *c) {
    struct norm_run run = make(c);
    const clnorm_status status = go(fixture, &run);
    bool good = status == CLNORM_SUCCESS;
    const char *const defect = cln_driver_defect(&fixture->device, CLN_DEFECT_NARROW_TILES);
    if (status == CLNORM_UNSUPPORTED && defect && strstr(clnorm_error_detail(), defect)) {
        print_message("skipped: %s\n", clnorm_error_detail());
        free_run(&run);
        return true;
    }
    if (!good)
        print_error("%s\n", clnorm_error_detail());
    good = good && verify(fixture, &run);
    if (!good)
        print_error("in %" PRIu64 " x %" PRIu64 " in groups of %" PRIu64 ", accuracy %d\n", c->rows, c->cols, c->group_size,
                    (int)c->accuracy);
    free_run(&run);
    return good;
}

/* ---------------------------------------------------------------------------------------------------------- cases */

#define FUSED CLNORM_FP8_FUSED
#define COMPATIBLE CLNORM_FP8_COMPATIBLE
#define E4M3 CLNORM_F8_E4M3
#define E5M2 CLNORM_F8_E5M2
#define F32 CLNORM_F32
#define F16 CLNORM_F16
#define BF16 CLNORM_BF16
#define NONE CLNORM_DTYPE_NONE

static const struct norm_case cases[] = {
    {FUSED, 67, 160, 16, E4M3, F32, F32, E4M3, F32, true, true, true, 0, 0, {0}},
    {FUSED, 3, 4096, 16, E4M3, F32, F32, E4M3, F32, true, true, false, 16, 0, {0}},
    {FUSED, 20, 208, 16, E4M3, F32, F32, E4M3, F32, true, true, false, 3, 1, {0}},
    {FUSED, 1, 16, 16, E4M3, F32, F32, E4M3, F32, true, true, false, 0, 0, {0}},
    {FUSED, 0, 32, 16, E4M3, F32, F32, E4M3, F32, true, true, false, 0, 0, {0}},
    {FUSED, 5, 16, 16, E4M3, F32, F32, E4M3, F32, true, true, true, 0, 0, {0}},
    {FUSED, 5, 32, 16, E4M3, F32, F32, E4M3, F32, true, true, true, 0, 0, {.lanes = 1, .segments = 2}},
    {COMPATIBLE, 7, 48, 16, E4M3, BF16, BF16, E4M3, BF16, true, true, true, 0, 0, {.lanes = 1, .segments = 4}},
    {FUSED, 13, 384, 128, E5M2, BF16, NONE, E4M3, BF16, true, false, true, 0, 0, {0}},
    {FUSED, 130, 96, 32, E5M2, F32, F16, E5M2, F32, false, true, true, 0, 3, {0}},
    {COMPATIBLE, 67, 160, 16, E4M3, BF16, BF16, E4M3, BF16, true, true, true, 0, 0, {0}},
    {COMPATIBLE, 5, 1024, 16, E4M3, BF16, BF16, E4M3, BF16, true, true, false, 0, 0, {0}},
    {COMPATIBLE, 9, 192, 64, E5M2, F32, F32, E5M2, F32, true, false, true, 1, 1, {0}},
    {FUSED,
     9,
     512,
     16,
     E4M3,
     F32,
     F32,
     E4M3,
     F32,
     true,
     true,
     true,
     0,
     1,
     {.vec = 4, .lanes = 64, .segments = 2, .reduce = CLN_REDUCE_TREE, .stores = CLN_STORES_STREAMING}},
    {COMPATIBLE,
     21,
     96,
     32,
     E4M3,
     BF16,
     BF16,
     E4M3,
     BF16,
     true,
     true,
     true,
     0,
     0,
     {.vec = 1, .lanes = 8, .segments = 1, .iterations = 3, .reduce = CLN_REDUCE_TREE}},
};

static void numbers_are_those_of_the_formulas(void **state) {
    const struct fixture *fixture = *state;
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        failed += fixture_takes(i) && !passes(fixture, &cases[i]);
    assert_int_equal(failed, 0);
}

static const char *first_kernel(const struct fixture *fixture, const clnorm_norm_desc *desc, char *name, size_t capacity) {
    clnorm_plan *plan = NULL;
    clnorm_kernel_info info = CLNORM_KERNEL_INFO_INIT;
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, desc, &plan), CLNORM_SUCCESS);
    assert_int_equal(clnorm_plan_kernel(plan, 0, &info), CLNORM_SUCCESS);
    snprintf(name, capacity, "%s", info.name);
    clnorm_plan_destroy(plan);
    return name;
}

/* Other options, and keep=local, take the kernels of all norms. */
static void plain_norms_have_kernels_of_their_own(void **state) {
    const struct fixture *fixture = *state;
    char name[64];
    struct norm_run run = make(&cases[1]);
    clnorm_norm_desc desc = run.desc;
    assert_string_equal(first_kernel(fixture, &desc, name, sizeof name), "fp8_rms_norm_rows");
    KNOB(desc.config, keep) = CLN_KEEP_REREAD;
    assert_string_equal(first_kernel(fixture, &desc, name, sizeof name), "fp8_rms_norm_rows");
    KNOB(desc.config, keep) = CLN_KEEP_LOCAL;
    KNOB(desc.config, segments) = 1;
    assert_string_equal(first_kernel(fixture, &desc, name, sizeof name), "norm_forward");
    desc = run.desc;
    desc.weight_offset = 1;
    assert_string_equal(first_kernel(fixture, &desc, name, sizeof name), "norm_forward");
    desc = run.desc;
    desc.x.scaling = CLNORM_SCALING_ROW;
    desc.x.scale_group = 0;
    assert_string_equal(first_kernel(fixture, &desc, name, sizeof name), "norm_forward");
    desc = run.desc;
    desc.activation = CLNORM_ACTIVATION_SILU;
    assert_string_equal(first_kernel(fixture, &desc, name, sizeof name), "norm_forward");
    free_run(&run);
}

static void codes_do_not_depend_on_saved_rstd(void **state) {
    const struct fixture *fixture = *state;
    struct norm_run saved = make(&cases[0]), unsaved = make(&cases[0]);
    unsaved.desc.save_rstd = 0;
    tensor_free(&unsaved.rstd);
    unsaved.rstd = (struct tensor){.dtype = NONE};
    assert_int_equal(go(fixture, &saved), CLNORM_SUCCESS);
    assert_int_equal(go(fixture, &unsaved), CLNORM_SUCCESS);
    assert_true(tensor_receive(fixture, &saved.y, "y") && tensor_receive(fixture, &unsaved.y, "y"));
    assert_memory_equal(saved.y.host, unsaved.y.host, saved.y.size);
    free_run(&saved);
    free_run(&unsaved);
}

static void a_scale_of_the_wrong_size_is_refused(void **state) {
    const struct fixture *fixture = *state;
    struct norm_run run = make(&cases[0]);
    tensor_free(&run.x_scale);
    run.x_scale = tensor_make(F32, 1, 8, 8, 0, TENSOR_NAN);
    assert_int_equal(go(fixture, &run), CLNORM_INVALID_BUFFER);
    assert_non_null(strstr(clnorm_error_detail(), "args.x_scale.mem has "));
    free_run(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_formulas),
        cmocka_unit_test(plain_norms_have_kernels_of_their_own),
        cmocka_unit_test(codes_do_not_depend_on_saved_rstd),
        cmocka_unit_test(a_scale_of_the_wrong_size_is_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
