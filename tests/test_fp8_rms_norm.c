/* RMS norm on 8-bit x. Given the device's rstd, what is compatible is checked bit by bit against the formulas evaluated
 * step by step in float; what is fused against double, within the roundings of its few operations. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "fp8_model.h"
#include "fp8_tensor.h"
#include "plan_run.h"
#include "reference.h"

struct norm_case {
    clnorm_fp8_accuracy accuracy;
    uint64_t rows, cols, group_size;
    clnorm_dtype x, x_scale, weight, y, scale;
    bool write_y, write_y_t, special;
    uint64_t gap, shift; /* elements */
    clnorm_config config;
};

struct norm_run {
    clnorm_fp8_rms_norm_desc desc; /* complete */
    clnorm_config config;          /* the plan's */
    struct tensor x, x_scale, weight, y, y_t, rstd, row_scale, y_scale, workspace;
};

enum { TENSORS = 9 };

static void list(struct norm_run *run, struct tensor *tensors[TENSORS]) {
    struct tensor *const all[TENSORS] = {&run->x,    &run->x_scale,   &run->weight,  &run->y,        &run->y_t,
                                         &run->rstd, &run->row_scale, &run->y_scale, &run->workspace};
    memcpy(tensors, all, sizeof all);
}

static struct norm_run make(const struct norm_case *c) {
    struct norm_run run = {.desc = CLNORM_FP8_RMS_NORM_DESC_INIT};
    clnorm_fp8_rms_norm_desc *desc = &run.desc;
    desc->accuracy = c->accuracy;
    desc->rows = c->rows;
    desc->cols = c->cols;
    desc->group_size = c->group_size;
    desc->x_stride = c->cols + c->gap;
    desc->y_stride = c->cols + 2 * c->gap;
    desc->y_t_stride = c->rows + 3 * c->gap;
    desc->x_dtype = c->x;
    desc->x_scale_dtype = c->x_scale;
    desc->weight_dtype = c->weight;
    desc->y_dtype = c->y;
    desc->scale_dtype = c->scale;
    desc->write_y = c->write_y;
    desc->write_y_t = c->write_y_t;
    desc->save_row_scale = true;
    desc->config = c->config;
    const uint64_t groups = c->cols / c->group_size;
    run.x = tensor_make(c->x, c->rows, c->cols, desc->x_stride, c->shift, TENSOR_NAN);
    run.x_scale = tensor_make(c->x_scale, c->rows, groups, groups, c->shift, TENSOR_NAN);
    run.weight = tensor_make(c->weight, 1, c->cols, c->cols, c->shift, TENSOR_NAN);
    run.y = tensor_make(c->write_y ? c->y : CLNORM_DTYPE_NONE, c->rows, c->cols, desc->y_stride, c->shift, TENSOR_CANARY);
    run.y_t =
        tensor_make(c->write_y_t ? c->y : CLNORM_DTYPE_NONE, c->cols, c->rows, desc->y_t_stride, c->shift, TENSOR_CANARY);
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
    const clnorm_status status = clnorm_fp8_rms_norm_plan_create(fixture->context, &run->desc, &plan);
    if (status)
        return status;
    clnorm_plan_config(plan, &run->config);
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
    args.row_scale = tensor_buffer(&run->row_scale);
    args.y_scale = tensor_buffer(&run->y_scale);
    args.workspace = tensor_buffer(&run->workspace);
    return plan_run(fixture, plan, &args);
}

/* --------------------------------------------------------------------------------------------------- verification */

static const double unit = 0x1p-24;

static double load(const struct tensor *tensor, uint64_t index) {
    return ref_load(tensor->dtype, tensor_elements(tensor), index);
}

static float v_of(const struct norm_run *run, uint64_t row, uint64_t column) {
    return fp8_scaled(&run->x, &run->x_scale, run->desc.group_size, row, column);
}

/* x · rstd · weight, a rounding to float each. */
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

/* Squares are of one sign: each addition adds half a unit to the relative error of their sum, of which rstd takes half. */
static bool check_rstd(const struct norm_run *run, uint64_t row) {
    double sum = 0;
    for (uint64_t column = 0; column < run->desc.cols; column++)
        sum += (double)v_of(run, row, column) * (double)v_of(run, row, column);
    const double rstd = 1 / sqrt(sum / (double)run->desc.cols + run->desc.eps);
    const double width = (double)run->config.vec * run->config.lanes;
    const double roundings = (double)run->desc.cols / width + log2(width) + 16;
    return near(load(&run->rstd, row), rstd, roundings * unit * rstd, "rstd", row);
}

static float amax_of(const struct norm_run *run, uint64_t row) {
    float amax = 0;
    for (uint64_t column = 0; column < run->desc.cols; column++)
        if (isfinite(n_of(run, row, column)))
            amax = fmaxf(amax, fabsf(n_of(run, row, column)));
    return amax;
}

/* Fused, the largest |n| is that of products in another order: some roundings away. */
static bool check_row_scale(const struct norm_run *run, uint64_t row) {
    const double expected = (double)fp8_scale(run->desc.y_dtype, run->row_scale.dtype, amax_of(run, row));
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

/* Fused, the quotient may be off by some roundings, and a code by those that lie between. */
static bool code_is_right(const struct norm_run *run, uint64_t row, uint64_t column, unsigned code) {
    const clnorm_dtype dtype = run->desc.y_dtype;
    const float n = n_of(run, row, column);
    const float scale = (float)load(&run->y_scale, 0);
    if (run->desc.accuracy == CLNORM_FP8_COMPATIBLE)
        return code == fp8_code(dtype, (double)((float)ref_round(CLNORM_BF16, (double)n) / scale));
    const double quotient = (double)n / (double)scale;
    if (isnan(quotient))
        return code == 0x7f;
    const double low = fp8_value(dtype, fp8_code(dtype, quotient - 8 * unit * fabs(quotient)));
    const double high = fp8_value(dtype, fp8_code(dtype, quotient + 8 * unit * fabs(quotient)));
    return low <= fp8_value(dtype, code) && fp8_value(dtype, code) <= high;
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
    bool good = go(fixture, &run) == CLNORM_SUCCESS;
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
     {.vec = 4, .lanes = 64, .segments = 2, .reduce = CLNORM_REDUCE_TREE, .stores = CLNORM_STORES_STREAMING}},
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
     {.vec = 1, .lanes = 8, .segments = 1, .rounds = 3, .reduce = CLNORM_REDUCE_TREE}},
};

static void numbers_are_those_of_the_formulas(void **state) {
    const struct fixture *fixture = *state;
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        failed += !passes(fixture, &cases[i]);
    assert_int_equal(failed, 0);
}

static void check_refused(const struct fixture *fixture, const clnorm_fp8_rms_norm_desc *desc, clnorm_status status,
                          const char *said) {
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_fp8_rms_norm_plan_create(fixture->context, desc, &plan), status);
    assert_null(plan);
    if (!strstr(clnorm_error_detail(), said))
        fail_msg("'%s' does not say '%s'", clnorm_error_detail(), said);
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_fp8_rms_norm_desc good = CLNORM_FP8_RMS_NORM_DESC_INIT;
    good.rows = 4;
    good.cols = 64;
    clnorm_fp8_rms_norm_desc desc = good;
    desc.size = 4;
    check_refused(fixture, &desc, CLNORM_INVALID_ARGUMENT, "desc.size is 4");
    desc = good;
    desc.x_dtype = BF16;
    check_refused(fixture, &desc, CLNORM_UNSUPPORTED, "desc.x_dtype is bf16: expected CLNORM_F8_E4M3");
    desc = good;
    desc.y_dtype = F32;
    check_refused(fixture, &desc, CLNORM_UNSUPPORTED, "desc.y_dtype is f32");
    desc = good;
    desc.weight_dtype = E4M3;
    check_refused(fixture, &desc, CLNORM_UNSUPPORTED, "desc.weight_dtype is f8e4m3");
    desc = good;
    desc.x_scale_dtype = NONE;
    check_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.x_scale_dtype is 0");
    desc = good;
    desc.scale_dtype = F16;
    check_refused(fixture, &desc, CLNORM_UNSUPPORTED, "desc.scale_dtype is f16");
    desc = good;
    desc.accuracy = (clnorm_fp8_accuracy)3;
    check_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.accuracy is 3");
    desc = good;
    desc.write_y = desc.write_y_t = false;
    check_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.write_y and desc.write_y_t are false");
    desc = good;
    desc.eps = NAN;
    check_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.eps is nan");
    desc = good;
    desc.group_size = 8;
    check_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.group_size is 8: expected 16, 32, 64 or 128");
    desc = good;
    desc.group_size = 128;
    check_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.group_size is 128: expected a divisor of 64 columns");
    desc = good;
    desc.y_t_stride = 2;
    check_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.y_t_stride is 2: expected at least rows, 4");
    desc = good;
    desc.rows = UINT64_MAX / 32;
    check_refused(fixture, &desc, CLNORM_OVERFLOW, "x has");
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
        cmocka_unit_test(bad_descriptors_are_refused),
        cmocka_unit_test(a_scale_of_the_wrong_size_is_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
