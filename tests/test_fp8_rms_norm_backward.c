/* The gradients of RMS norm on 8-bit x, against the formulas in double. */
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
#include "fp8_tensor.h"
#include "plan_run.h"
#include "reference.h"

struct backward_case {
    uint64_t rows, cols, group_size;
    clnorm_dtype x, x_scale, weight, dy, dx, dweight;
    clnorm_reduction reduction;
    uint64_t gap, shift; /* elements */
    clnorm_config config;
};

struct backward_run {
    clnorm_norm_backward_desc desc;
    clnorm_config config; /* the plan's */
    struct tensor x, x_scale, weight, rstd, dy, dx, dweight, workspace;
};

enum { TENSORS = 8 };

static void list(struct backward_run *run, struct tensor *tensors[TENSORS]) {
    struct tensor *const all[TENSORS] = {&run->x,  &run->x_scale, &run->weight,  &run->rstd,
                                         &run->dy, &run->dx,      &run->dweight, &run->workspace};
    memcpy(tensors, all, sizeof all);
}

static double load(const struct tensor *tensor, uint64_t index) {
    return ref_load(tensor->dtype, tensor_elements(tensor), index);
}

static double v_of(const struct backward_run *run, uint64_t row, uint64_t column) {
    return (double)fp8_scaled(&run->x, &run->x_scale, run->desc.x_group_size, row, column);
}

static void fill(struct backward_run *run) {
    fp8_fill(&run->x, false);
    fp8_fill_scales(&run->x_scale);
    tensor_fill(&run->weight, INPUT_NORMAL, run->x.cols, 3);
    tensor_fill(&run->dy, INPUT_NORMAL, run->x.cols, 4);
    for (uint64_t row = 0; row < run->x.rows; row++) {
        double sum = 0;
        for (uint64_t column = 0; column < run->x.cols; column++)
            sum += v_of(run, row, column) * v_of(run, row, column);
        ref_store(CLNORM_F32, tensor_elements(&run->rstd), row, 1 / sqrt(sum / (double)run->x.cols + 1e-5));
    }
}

static struct backward_run make(const struct backward_case *c) {
    struct backward_run run = {.desc = CLNORM_NORM_BACKWARD_DESC_INIT};
    clnorm_norm_backward_desc *desc = &run.desc;
    desc->norm = CLNORM_RMS_NORM;
    desc->rows = c->rows;
    desc->cols = c->cols;
    desc->x_group_size = c->group_size;
    desc->x_stride = c->cols + c->gap;
    desc->dy_stride = c->cols + 2 * c->gap;
    desc->dx_stride = c->dx ? c->cols + 3 * c->gap : 0;
    desc->x_dtype = c->x;
    desc->x_scale_dtype = c->x_scale;
    desc->weight_dtype = c->weight;
    desc->dy_dtype = c->dy;
    desc->dx_dtype = c->dx;
    desc->dweight_dtype = c->dweight;
    desc->reduction = c->reduction;
    desc->slots = 3;
    desc->rstd_given = true;
    desc->config = c->config;
    const uint64_t groups = c->cols / c->group_size;
    run.x = tensor_make(c->x, c->rows, c->cols, desc->x_stride, c->shift, TENSOR_NAN);
    run.x_scale = tensor_make(c->x_scale, c->rows, groups, groups, c->shift, TENSOR_NAN);
    run.weight = tensor_make(c->weight, 1, c->cols, c->cols, c->shift, TENSOR_NAN);
    run.rstd = tensor_make(CLNORM_F32, 1, c->rows, c->rows, c->shift, TENSOR_NAN);
    run.dy = tensor_make(c->dy, c->rows, c->cols, desc->dy_stride, c->shift, TENSOR_NAN);
    run.dx = tensor_make(c->dx, c->rows, c->cols, desc->dx_stride, c->shift, TENSOR_CANARY);
    run.dweight = tensor_make(c->dweight, 1, c->cols, c->cols, c->shift, TENSOR_CANARY);
    fill(&run);
    return run;
}

static void free_run(struct backward_run *run) {
    struct tensor *tensors[TENSORS];
    list(run, tensors);
    for (int i = 0; i < TENSORS; i++)
        tensor_free(tensors[i]);
}

static clnorm_status go(const struct fixture *fixture, struct backward_run *run) {
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_norm_backward_plan_create(fixture->context, &run->desc, &plan);
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
    args.rstd = tensor_buffer(&run->rstd);
    args.dy = tensor_buffer(&run->dy);
    args.dx = tensor_buffer(&run->dx);
    args.dweight = tensor_buffer(&run->dweight);
    args.workspace = tensor_buffer(&run->workspace);
    return plan_run(fixture, plan, &args);
}

/* --------------------------------------------------------------------------------------------------- verification */

static const double unit = 0x1p-24;

/* Whether a stored result is a rounding of something within error of what is expected. */
static bool close_enough(const struct tensor *tensor, uint64_t index, double expected, double error, const char *name) {
    const double actual = load(tensor, index);
    if (ref_round(tensor->dtype, expected - error) <= actual && actual <= ref_round(tensor->dtype, expected + error))
        return true;
    print_error("%s: element %" PRIu64 " is %.9g, but should be %.9g within %.3g\n", name, index, actual, expected, error);
    return false;
}

static bool check_row(const struct backward_run *run, uint64_t row) {
    const uint64_t cols = run->desc.cols;
    const double rstd = load(&run->rstd, row);
    double c1 = 0, magnitude = 0;
    for (uint64_t i = 0; i < cols; i++) {
        const double product =
            v_of(run, row, i) * rstd * load(&run->weight, i) * load(&run->dy, row * run->dy.stride + i) / (double)cols;
        c1 += product;
        magnitude += fabs(product);
    }
    const double width = (double)run->config.vec * run->config.lanes;
    const double c1_error = ((double)cols / width + log2(width) + 8) * unit * magnitude;
    for (uint64_t i = 0; i < cols; i++) {
        const double x_hat = v_of(run, row, i) * rstd;
        const double wdn = load(&run->weight, i) * load(&run->dy, row * run->dy.stride + i);
        const double error = rstd * (8 * unit * (fabs(wdn) + fabs(x_hat * c1)) + fabs(x_hat) * c1_error);
        if (!close_enough(&run->dx, row * run->dx.stride + i, rstd * (wdn - x_hat * c1), error, "dx"))
            return false;
    }
    return true;
}

static bool check_column(const struct backward_run *run, uint64_t column) {
    double sum = 0, magnitude = 0;
    for (uint64_t row = 0; row < run->desc.rows; row++) {
        const double product =
            v_of(run, row, column) * load(&run->rstd, row) * load(&run->dy, row * run->dy.stride + column);
        sum += product;
        magnitude += fabs(product);
    }
    return close_enough(&run->dweight, column, sum, ((double)run->desc.rows + 8) * unit * magnitude, "dweight");
}

static bool verify(const struct fixture *fixture, struct backward_run *run) {
    bool good = tensor_unchanged(fixture, &run->x, "x") && tensor_unchanged(fixture, &run->x_scale, "x_scale") &&
                tensor_unchanged(fixture, &run->dy, "dy") && tensor_receive(fixture, &run->dx, "dx") &&
                tensor_receive(fixture, &run->dweight, "dweight") && tensor_receive(fixture, &run->workspace, "workspace");
    for (uint64_t row = 0; good && run->dx.host && row < run->desc.rows; row++)
        good = check_row(run, row);
    for (uint64_t column = 0; good && run->dweight.host && column < run->desc.cols; column++)
        good = check_column(run, column);
    return good;
}

static bool passes(const struct fixture *fixture, const struct backward_case *c) {
    struct backward_run run = make(c);
    bool good = go(fixture, &run) == CLNORM_SUCCESS;
    if (!good)
        print_error("%s\n", clnorm_error_detail());
    good = good && verify(fixture, &run);
    if (!good)
        print_error("in %" PRIu64 " x %" PRIu64 " in groups of %" PRIu64 "\n", c->rows, c->cols, c->group_size);
    free_run(&run);
    return good;
}

/* ---------------------------------------------------------------------------------------------------------- cases */

#define E4M3 CLNORM_F8_E4M3
#define E5M2 CLNORM_F8_E5M2
#define F32 CLNORM_F32
#define F16 CLNORM_F16
#define BF16 CLNORM_BF16
#define NONE CLNORM_DTYPE_NONE

static const struct backward_case cases[] = {
    {37, 160, 16, E4M3, F32, F32, BF16, BF16, F32, CLNORM_REDUCTION_PARTIAL, 0, 0, {0}},
    {0, 160, 16, E4M3, F32, F32, BF16, BF16, F32, CLNORM_REDUCTION_PARTIAL, 0, 0, {0}},
    {9, 384, 128, E5M2, BF16, BF16, F32, F32, NONE, CLNORM_REDUCTION_PARTIAL, 5, 1, {0}},
    {21, 96, 32, E4M3, BF16, F16, F16, NONE, F16, CLNORM_REDUCTION_PARTIAL, 0, 3, {0}},
    {9,
     256,
     64,
     E5M2,
     F32,
     F32,
     BF16,
     F16,
     F32,
     CLNORM_REDUCTION_PARTIAL,
     0,
     0,
     {.vec = 4,
      .lanes = 16,
      .keep = CLNORM_KEEP_REGISTERS,
      .gather = CLNORM_GATHER_REGISTERS,
      .reduce = CLNORM_REDUCE_TREE,
      .rounds = 3}},
    {6, 512, 16, E4M3, F32, F32, BF16, BF16, F32, CLNORM_REDUCTION_PARTIAL, 0, 0, {.vec = 8, .tile = 256}},
};

static void gradients_are_those_of_the_formulas(void **state) {
    const struct fixture *fixture = *state;
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        failed += !passes(fixture, &cases[i]);
    assert_int_equal(failed, 0);
}

static void locked_sums_are_right_too(void **state) {
    const struct fixture *fixture = *state;
    struct backward_case c = {50, 96, 16, E4M3, F32, F32, BF16, BF16, F32, CLNORM_REDUCTION_LOCKED, 0, 0, {.rounds = 2}};
    struct backward_run run = make(&c);
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_norm_backward_plan_create(fixture->context, &run.desc, &plan);
    clnorm_plan_destroy(plan);
    free_run(&run);
    if (status == CLNORM_UNSUPPORTED)
        skip();
    assert_true(passes(fixture, &c));
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    const struct {
        clnorm_dtype x, x_scale, dy;
        uint64_t group_size;
        clnorm_gate gate;
        bool rstd_given;
        clnorm_status status;
        const char *said;
    } rows[] = {
        {F32, F32, F32, 0, CLNORM_GATE_NONE, true, CLNORM_INVALID_VALUE, "desc.x_scale_dtype is f32"},
        {F32, NONE, F32, 16, CLNORM_GATE_NONE, true, CLNORM_INVALID_VALUE, "desc.x_group_size 16"},
        {E4M3, NONE, F32, 16, CLNORM_GATE_NONE, true, CLNORM_INVALID_ENUM, "desc.x_scale_dtype is 0"},
        {E4M3, F32, NONE, 16, CLNORM_GATE_NONE, true, CLNORM_INVALID_ENUM, "desc.dy_dtype is 0"},
        {E4M3, F32, E4M3, 16, CLNORM_GATE_NONE, true, CLNORM_UNSUPPORTED, "desc.dy_dtype is f8e4m3"},
        {E4M3, F32, F32, 24, CLNORM_GATE_NONE, true, CLNORM_INVALID_SHAPE, "desc.x_group_size is 24: expected 16"},
        {E4M3, F32, F32, 128, CLNORM_GATE_NONE, true, CLNORM_INVALID_SHAPE, "expected a divisor of 64 columns"},
        {E4M3, F32, F32, 16, CLNORM_GATE_SILU, true, CLNORM_UNSUPPORTED, "desc.gate is set"},
        {E4M3, F32, F32, 16, CLNORM_GATE_NONE, false, CLNORM_UNSUPPORTED, "desc.rstd_given is false"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
        desc.norm = CLNORM_RMS_NORM;
        desc.rows = 4;
        desc.cols = 64;
        desc.x_dtype = rows[i].x;
        desc.x_scale_dtype = rows[i].x_scale;
        desc.dy_dtype = rows[i].dy;
        desc.x_group_size = rows[i].group_size;
        desc.gate = rows[i].gate;
        desc.rstd_given = rows[i].rstd_given;
        desc.dx_dtype = F32;
        clnorm_plan *plan = NULL;
        assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), rows[i].status);
        assert_null(plan);
        if (!strstr(clnorm_error_detail(), rows[i].said))
            fail_msg("'%s' does not say '%s'", clnorm_error_detail(), rows[i].said);
    }
}

/* What the norms have besides goes with wider types alone. */
static void options_are_refused(void **state) {
    const struct fixture *fixture = *state;
    static const char *const names[] = {"activation", "residual_dtype", "dropout", "row_scale", "s_given"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
        desc.norm = CLNORM_RMS_NORM;
        desc.rows = 4;
        desc.cols = 64;
        desc.x_dtype = E4M3;
        desc.x_scale_dtype = desc.dy_dtype = desc.dx_dtype = F32;
        desc.x_group_size = 16;
        desc.rstd_given = true;
        desc.activation = i == 0 ? CLNORM_ACTIVATION_GELU : CLNORM_ACTIVATION_NONE;
        desc.residual_dtype = i == 1 ? F32 : NONE;
        desc.dropout = i == 2 ? 0.5 : 0;
        desc.row_scale = i == 3;
        desc.s_given = i == 4;
        clnorm_plan *plan = NULL;
        assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_UNSUPPORTED);
        assert_null(plan);
        if (!strstr(clnorm_error_detail(), names[i]))
            fail_msg("'%s' does not say '%s'", clnorm_error_detail(), names[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_formulas),
        cmocka_unit_test(locked_sums_are_right_too),
        cmocka_unit_test(bad_descriptors_are_refused),
        cmocka_unit_test(options_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
