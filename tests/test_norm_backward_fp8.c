/* The gradients of norms that read an x of 8 bits: of a plain RMS norm against the formulas in double, and of every two
 * options together. */
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
#include "knob.h"
#include "norm_backward_case.h"
#include "pairwise.h"
#include "plan_run.h"
#include "reference/reference.h"

struct backward_case {
    uint64_t rows, cols, group_size;
    clnorm_dtype x, x_scale, weight, dy, dx, dweight;
    clnorm_reduction reduction;
    uint64_t gap, shift; /* elements */
    struct cln_config config;
};

struct backward_run {
    clnorm_norm_backward_desc desc;
    struct cln_config config; /* the plan's */
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

static struct ref_norm_backward reference_of(const struct backward_run *run) {
    struct ref_norm_backward norm = ref_norm_backward_of(&run->desc);
    norm.forward.x = fp8_reference(&run->x, &run->x_scale, run->desc.x.scale_group);
    norm.forward.weight.elements = tensor_elements(&run->weight);
    norm.rstd.elements = tensor_elements(&run->rstd);
    norm.dy.elements = tensor_elements(&run->dy);
    return norm;
}

static void fill(struct backward_run *run) {
    fp8_fill(&run->x, false);
    fp8_fill_scales(&run->x_scale);
    tensor_fill(&run->weight, INPUT_NORMAL, run->x.cols, 3);
    tensor_fill(&run->dy, INPUT_NORMAL, run->x.cols, 4);
    const struct ref_norm_backward norm = reference_of(run);
    struct ref_segment segment = ref_segment_make(run->x.cols);
    for (uint64_t row = 0; row < run->x.rows; row++) {
        ref_norm_segment(&norm.forward, row, 0, &segment);
        ref_store(CLNORM_F32, tensor_elements(&run->rstd), row, segment.rstd);
    }
    ref_segment_free(&segment);
}

static struct backward_run make(const struct backward_case *c) {
    struct backward_run run = {.desc = CLNORM_NORM_BACKWARD_DESC_INIT};
    clnorm_norm_backward_desc *desc = &run.desc;
    desc->norm = CLNORM_RMS_NORM;
    desc->rows = c->rows;
    desc->cols = c->cols;
    desc->x.scaling = CLNORM_SCALING_GROUP;
    desc->x.scale_group = (uint32_t)c->group_size;
    desc->x.stride = c->cols + c->gap;
    desc->dy.stride = c->cols + 2 * c->gap;
    desc->dx.stride = c->dx ? c->cols + 3 * c->gap : 0;
    desc->x.dtype = c->x;
    desc->x.scale_dtype = c->x_scale;
    desc->weight.dtype = c->weight;
    desc->dy.dtype = c->dy;
    desc->dx.dtype = c->dx;
    desc->dweight.dtype = c->dweight;
    desc->reduction = c->reduction;
    desc->slots = 3;
    desc->rstd_given = true;
    desc->config = forced(c->config);
    const uint64_t groups = c->cols / c->group_size;
    run.x = tensor_make(c->x, c->rows, c->cols, desc->x.stride, c->shift, TENSOR_NAN);
    run.x_scale = tensor_make(c->x_scale, c->rows, groups, groups, c->shift, TENSOR_NAN);
    run.weight = tensor_make(c->weight, 1, c->cols, c->cols, c->shift, TENSOR_NAN);
    run.rstd = tensor_make(CLNORM_F32, 1, c->rows, c->rows, c->shift, TENSOR_NAN);
    run.dy = tensor_make(c->dy, c->rows, c->cols, desc->dy.stride, c->shift, TENSOR_NAN);
    run.dx = tensor_make(c->dx, c->rows, c->cols, desc->dx.stride, c->shift, TENSOR_CANARY);
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
    args.rstd = tensor_buffer(&run->rstd);
    args.dy = tensor_buffer(&run->dy);
    args.dx = tensor_buffer(&run->dx);
    args.dweight = tensor_buffer(&run->dweight);
    args.workspace = tensor_buffer(&run->workspace);
    return plan_run(fixture, plan, &args);
}

/* --------------------------------------------------------------------------------------------------- verification */

static const double unit = 0x1p-24;

static bool close_enough(const struct tensor *tensor, uint64_t index, double expected, double error, const char *name) {
    const double actual = load(tensor, index);
    if (ref_within(tensor->dtype, actual, (struct ref_value){expected, error}))
        return true;
    print_error("%s: element %" PRIu64 " is %.9g, but should be %.9g within %.3g\n", name, index, actual, expected, error);
    return false;
}

static bool check_row(const struct backward_run *run, uint64_t row, const struct ref_gradients *gradients) {
    const uint64_t cols = run->desc.cols;
    double magnitude = 0;
    for (uint64_t i = 0; i < cols; i++)
        magnitude += fabs(gradients->xhat[i] * gradients->wdn[i] / (double)cols);
    const double width = (double)run->config.vec * run->config.lanes;
    const double c1_error = ((double)cols / width + log2(width) + 8) * unit * magnitude;
    for (uint64_t i = 0; run->dx.host && i < cols; i++) {
        const double x_hat = gradients->xhat[i];
        const double error = gradients->forward.rstd *
                             (8 * unit * (fabs(gradients->wdn[i]) + fabs(x_hat * gradients->c1)) + fabs(x_hat) * c1_error);
        if (!close_enough(&run->dx, row * run->dx.stride + i, gradients->dx[i], error, "dx"))
            return false;
    }
    return true;
}

static bool check_columns(const struct backward_run *run, const struct ref_row_sum *sums) {
    for (uint64_t i = 0; run->dweight.host && i < run->desc.cols; i++) {
        const double error = ((double)run->desc.rows + 8) * unit * ref_sum_value(&sums[i].magnitude);
        if (!close_enough(&run->dweight, i, ref_sum_value(&sums[i].sum), error, "dweight"))
            return false;
    }
    return true;
}

static bool check_gradients(const struct backward_run *run) {
    const struct ref_norm_backward norm = reference_of(run);
    struct ref_gradients gradients = ref_gradients_make(run->desc.cols);
    struct ref_row_sum *sums = calloc(run->desc.cols, sizeof *sums);
    assert_non_null(sums);
    bool good = true;
    for (uint64_t row = 0; good && row < run->desc.rows; row++) {
        ref_norm_backward_segment(&norm, row, 0, &gradients);
        good = check_row(run, row, &gradients);
        for (uint64_t i = 0; i < run->desc.cols; i++)
            ref_row_sum_add(&sums[i], gradients.dn[i] * gradients.xhat[i], 0);
    }
    good = good && check_columns(run, sums);
    free(sums);
    ref_gradients_free(&gradients);
    return good;
}

static bool verify(const struct fixture *fixture, struct backward_run *run) {
    return tensor_unchanged(fixture, &run->x, "x") && tensor_unchanged(fixture, &run->x_scale, "x_scale") &&
           tensor_unchanged(fixture, &run->dy, "dy") && tensor_receive(fixture, &run->dx, "dx") &&
           tensor_receive(fixture, &run->dweight, "dweight") && tensor_receive(fixture, &run->workspace, "workspace") &&
           check_gradients(run);
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
      .keep = CLN_KEEP_REGISTERS,
      .accumulator = CLN_ACCUMULATOR_REGISTERS,
      .reduce = CLN_REDUCE_TREE,
      .run_length = 3}},
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
    struct backward_case c = {
        50, 96, 16, E4M3, F32, F32, BF16, BF16, F32, CLNORM_REDUCTION_LOCKED, 0, 0, {.run_length = 2}};
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
        {F32, F32, F32, 0, CLNORM_GATE_NONE, true, CLNORM_INVALID_VALUE, "desc.x.scale_dtype is f32"},
        {F32, NONE, F32, 16, CLNORM_GATE_NONE, true, CLNORM_INVALID_VALUE, "desc.x.scaling is 3: expected 0"},
        {E4M3, CLNORM_F16, F32, 16, CLNORM_GATE_NONE, true, CLNORM_UNSUPPORTED, "desc.x.scale_dtype is f16"},
        {E4M3, F32, F32, 0, CLNORM_GATE_NONE, true, CLNORM_INVALID_ENUM, "desc.x.scaling is 0"},
        {E4M3, F32, NONE, 16, CLNORM_GATE_NONE, true, CLNORM_UNSUPPORTED, "desc.dy.dtype is f8e4m3"},
        {E4M3, F32, E4M3, 16, CLNORM_GATE_NONE, true, CLNORM_UNSUPPORTED, "desc.dy.dtype is f8e4m3"},
        {E4M3, F32, F32, 24, CLNORM_GATE_NONE, true, CLNORM_INVALID_SHAPE, "desc.x.scale_group is 24: expected 16"},
        {E4M3, F32, F32, 32, CLNORM_GATE_NONE, true, CLNORM_UNSUPPORTED, "expected a divisor of group_size, 48"},
        {E4M3, F32, F32, 16, CLNORM_GATE_SILU, true, CLNORM_INVALID_ENUM, "desc.z.dtype is 0: expected f32, f16 or bf16"},
        {E4M3, F32, CLNORM_F64, 16, CLNORM_GATE_NONE, true, CLNORM_UNSUPPORTED, "desc.dy.dtype is f64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
        desc.norm = CLNORM_RMS_NORM;
        desc.rows = 4;
        desc.cols = 96;
        desc.group_size = 48;
        desc.x.dtype = rows[i].x;
        desc.x.scale_dtype = rows[i].x_scale;
        desc.dy.dtype = rows[i].dy;
        desc.x.scale_group = (uint32_t)rows[i].group_size;
        desc.x.scaling = rows[i].group_size ? CLNORM_SCALING_GROUP : CLNORM_SCALING_NONE;
        desc.gate = rows[i].gate;
        desc.rstd_given = rows[i].rstd_given;
        desc.dx.dtype = F32;
        clnorm_plan *plan = NULL;
        assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), rows[i].status);
        assert_null(plan);
        if (!strstr(clnorm_error_detail(), rows[i].said))
            fail_msg("'%s' does not say '%s'", clnorm_error_detail(), rows[i].said);
    }
}

/* -------------------------------------------------------------------------------------------- every two options together
 */

enum factor {
    SHAPE,
    X_DTYPE,
    X_SCALING,
    X_GROUP,
    X_SCALE_DTYPE,
    NORM,
    GATE,
    SUM,
    DROPOUT,
    ROW_SCALE,
    ACTIVATION,
    STATISTICS,
    OUTPUTS,
    CONFIG,
    LAYOUT,
    FACTORS
};

/* What x is to s. */
enum sum { ALONE, RESIDUAL, S_GIVEN, SUMS };

static const struct shape {
    uint64_t rows, cols, group_size;
} shapes[] = {{17, 192, 0}, {5, 131, 0}, {6, 256, 128}, {9, 16, 0}};

static const struct cln_config configs[] = {
    {0},
    {.vec = 4, .lanes = 16, .segments = 2, .keep = CLN_KEEP_REGISTERS, .accumulator = CLN_ACCUMULATOR_REGISTERS},
    {.vec = 2, .lanes = 4, .tile = 32, .chunks = 2, .keep = CLN_KEEP_REREAD, .accumulator = CLN_ACCUMULATOR_LOCAL},
    {.vec = 8, .lanes = 4, .keep = CLN_KEEP_REGISTERS, .accumulator = CLN_ACCUMULATOR_COLUMNS},
};

static const unsigned levels[FACTORS] = {
    [SHAPE] = sizeof shapes / sizeof *shapes,
    [X_DTYPE] = 2,
    [X_SCALING] = 3,
    [X_GROUP] = 3,
    [X_SCALE_DTYPE] = 2,
    [NORM] = 2,
    [GATE] = 3,
    [SUM] = SUMS,
    [DROPOUT] = 2,
    [ROW_SCALE] = 2,
    [ACTIVATION] = 3,
    [STATISTICS] = 2,
    [OUTPUTS] = 2,
    [CONFIG] = sizeof configs / sizeof *configs,
    [LAYOUT] = 3,
};

static void set_x(clnorm_norm_backward_desc *desc, const unsigned *level) {
    desc->x.dtype = level[X_DTYPE] ? E5M2 : E4M3;
    desc->x.scaling = (clnorm_scaling)(CLNORM_SCALING_TENSOR + level[X_SCALING]);
    desc->x.scale_group = desc->x.scaling == CLNORM_SCALING_GROUP ? (const uint32_t[]){16, 64, 128}[level[X_GROUP]] : 0;
    desc->x.scale_dtype = level[X_SCALE_DTYPE] ? BF16 : F32;
}

static void set_sum(clnorm_norm_backward_desc *desc, const unsigned *level) {
    if (desc->gate_first)
        return;
    desc->s_given = level[SUM] == S_GIVEN;
    desc->residual.dtype = level[SUM] == RESIDUAL ? F32 : NONE;
    desc->dresidual.dtype = level[SUM] != ALONE ? BF16 : NONE;
    desc->dresidual_out.dtype = level[SUM] == RESIDUAL ? BF16 : NONE;
    desc->dropout = level[DROPOUT] ? 0.3 : 0;
    desc->row_scale = level[ROW_SCALE];
}

static struct norm_backward_case case_of(const unsigned *level) {
    const struct shape *shape = &shapes[level[SHAPE]];
    const clnorm_norm norm = level[NORM] ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM;
    struct norm_backward_case made = {.desc = norm_backward_full_desc(norm, shape->rows, shape->cols, F32), .seed = 9};
    clnorm_norm_backward_desc *desc = &made.desc;
    desc->group_size = shape->group_size;
    set_x(desc, level);
    desc->dy.dtype = BF16;
    desc->gate = level[GATE] ? CLNORM_GATE_SILU : CLNORM_GATE_NONE;
    desc->gate_first = level[GATE] == 2;
    desc->z.dtype = desc->dz.dtype = desc->gate ? BF16 : NONE;
    desc->activation = (const clnorm_activation[]){0, CLNORM_ACTIVATION_GELU, CLNORM_ACTIVATION_SILU}[level[ACTIVATION]];
    desc->rstd_given = level[STATISTICS];
    desc->mean_given = desc->rstd_given && norm == CLNORM_LAYER_NORM;
    if (level[OUTPUTS]) {
        desc->dbias.dtype = NONE;
        desc->dx.dtype = F16;
    }
    set_sum(desc, level);
    desc->config = forced(configs[level[CONFIG]]);
    desc->x.stride = desc->cols + 16 * (uint64_t)level[LAYOUT];
    made.shift.x = 16 * level[LAYOUT] + level[LAYOUT] / 2; /* aligned ones, and ones that are not */
    made.shift.x_scale = level[LAYOUT];
    return made;
}

static void every_two_options_together(void **state) {
    const struct fixture *fixture = *state;
    struct pairwise *all = pairwise_make(levels, FACTORS, 5);
    unsigned level[PAIRWISE_FACTORS], count = 0, failed = 0;
    for (; failed < 10 && pairwise_next(all, level); count++) {
        struct norm_backward_case made = case_of(level);
        norm_backward_settle(fixture, &made.desc);
        failed += !norm_backward_case_passes(fixture, &made);
    }
    pairwise_free(all);
    print_message("%u cases\n", count);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_formulas),
        cmocka_unit_test(locked_sums_are_right_too),
        cmocka_unit_test(bad_descriptors_are_refused),
        cmocka_unit_test(every_two_options_together),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
