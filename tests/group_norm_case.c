#include "group_norm_case.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codes_check.h"
#include "device/driver_defects.h"
#include "fp8_tensor.h"
#include "plan_run.h"
#include "reference/format.h"
#include "reference/group_norm.h"

static clnorm_dtype statistics_of(const struct group_case *c) {
    return c->x == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
}

static struct tensor scales_make(const clnorm_tensor *of, int dtype, uint64_t rows, uint64_t cols, unsigned char surround) {
    const struct scales shape = fp8_scales_of(of, rows, cols);
    return tensor_make(shape.rows ? (clnorm_dtype)dtype : CLNORM_DTYPE_NONE, 1, shape.rows, shape.rows, 1, surround);
}

static void fill(struct group_run *run, uint64_t segment) {
    const struct group_case *const c = run->c;
    if (run->more.x_scaling) {
        fp8_fill(&run->x, false);
        fp8_fill_scales(&run->x_scale);
    } else
        tensor_fill(&run->x, (enum input)c->input, segment, 1);
    tensor_fill(&run->dy, INPUT_NORMAL, segment, 2);
    tensor_fill(&run->residual, INPUT_NORMAL, segment, 3);
    tensor_fill(&run->weight, INPUT_NORMAL, c->cols, 4);
    tensor_fill(&run->bias, INPUT_NORMAL, c->cols, 5);
    tensor_fill(&run->dresidual_out, INPUT_NORMAL, segment, 6);
    if (!run->more.accumulate)
        return;
    tensor_fill(&run->dweight, INPUT_NORMAL, c->cols, 7);
    tensor_fill(&run->dbias, INPUT_NORMAL, c->cols, 8);
    tensor_fill(&run->dweight_before, INPUT_NORMAL, c->cols, 7);
    tensor_fill(&run->dbias_before, INPUT_NORMAL, c->cols, 8);
}

struct group_run group_run_make_more(const struct group_case *c, const struct group_more *more) {
    const uint64_t sample = c->cols * c->spatial, stride = sample + c->gap;
    const clnorm_dtype x = (clnorm_dtype)c->x, out = (clnorm_dtype)c->out, affine = (clnorm_dtype)c->affine;
    const clnorm_dtype residual = (clnorm_dtype)c->residual, sums = more->accumulate ? affine : CLNORM_DTYPE_NONE;
    const clnorm_tensor of_x = {.scaling = (clnorm_scaling)more->x_scaling};
    const clnorm_tensor of_y = {.scaling = more->y_given == 0 ? (clnorm_scaling)more->y_scaling : CLNORM_SCALING_NONE};
    struct group_run run = {.c = c, .more = *more};
    run.x = tensor_make(x, c->rows, sample, stride, c->shift, TENSOR_NAN);
    run.x_scale = scales_make(&of_x, more->x_scale, c->rows, sample, TENSOR_NAN);
    run.dy = tensor_make(out, c->rows, sample, stride, c->shift, TENSOR_NAN);
    run.residual = tensor_make(residual, c->rows, sample, stride, 0, TENSOR_NAN);
    run.weight = tensor_make(affine, 1, c->cols, c->cols, c->shift, TENSOR_NAN);
    run.bias = tensor_make(affine, 1, c->cols, c->cols, 1, TENSOR_NAN);
    run.y = tensor_make(more->y ? (clnorm_dtype)more->y : out, c->rows, sample, stride, c->shift, TENSOR_CANARY);
    run.y_scale = scales_make(&of_y, more->y_scale, c->rows, sample, TENSOR_CANARY);
    run.dx = tensor_make(out, c->rows, sample, stride, c->shift, TENSOR_CANARY);
    run.residual_out = tensor_make(residual, c->rows, sample, stride, 0, TENSOR_CANARY);
    run.dresidual_out = tensor_make((clnorm_dtype)more->dresidual_out, c->rows, sample, stride, 1, TENSOR_NAN);
    run.dresidual = tensor_make((clnorm_dtype)more->dresidual, c->rows, sample, stride, 0, TENSOR_CANARY);
    run.mean = tensor_make(statistics_of(c), c->rows, c->groups, c->groups, 1, TENSOR_CANARY);
    run.rstd = tensor_make(statistics_of(c), c->rows, c->groups, c->groups, 0, TENSOR_CANARY);
    run.dweight = tensor_make(affine, 1, c->cols, c->cols, 0, TENSOR_CANARY);
    run.dbias = tensor_make(affine, 1, c->cols, c->cols, 1, TENSOR_CANARY);
    run.dweight_before = tensor_make(sums, 1, c->cols, c->cols, 0, TENSOR_CANARY);
    run.dbias_before = tensor_make(sums, 1, c->cols, c->cols, 0, TENSOR_CANARY);
    fill(&run, c->layout == CLNORM_LAYOUT_FIRST ? sample / c->groups : sample);
    return run;
}

struct group_run group_run_make(const struct group_case *c) {
    const struct group_more none = {0};
    return group_run_make_more(c, &none);
}

void group_run_free(struct group_run *run) {
    struct tensor *const all[] = {&run->x,         &run->residual,       &run->weight,       &run->bias,
                                  &run->y,         &run->mean,           &run->rstd,         &run->dy,
                                  &run->dx,        &run->workspace,      &run->residual_out, &run->dbias,
                                  &run->dweight,   &run->x_scale,        &run->y_scale,      &run->dresidual_out,
                                  &run->dresidual, &run->dweight_before, &run->dbias_before};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tensor_free(all[i]);
}

static bool runs_here(const struct fixture *fixture, const struct group_case *c) {
    const uint64_t elements = c->rows * c->cols * c->spatial;
    const bool cpu = fixture->device.kind == CLNORM_DEVICE_CPU && fixture->device.family != CLNORM_PLATFORM_MESA;
    const bool lanes_may_idle = !cln_driver_defect(&fixture->device, CLN_DEFECT_IDLE_LANES);
    return (c->x != CLNORM_F64 || fixture->device.fp64) &&
           (lanes_may_idle || !strstr(c->config, "lanes=") || strstr(c->config, "lanes=1,")) &&
           (cpu || !*c->config || (c->cols % 16 == 0 && c->spatial % 4 == 0)) &&
           (elements <= fixture_element_limit(fixture) || !fixture_is_slow(fixture));
}

bool group_case_takes(const struct fixture *fixture, struct group_case *c, int layout, size_t i) {
    const bool in_turn = !fixture_is_quick() || (i % 2 == 0) == (layout == (int)CLNORM_LAYOUT_FIRST);
    if ((c->layout ? c->layout != layout : !in_turn) || !runs_here(fixture, c))
        return false;
    c->layout = layout;
    return true;
}

void group_case_fail(const struct fixture *fixture, const struct group_case *c, size_t i) {
    fail_msg("case %zu, layout %d: %" PRIu64 " x %" PRIu64 " x %" PRIu64 " on %s", i, c->layout, c->rows, c->cols,
             c->spatial, fixture->device.name);
}

static clnorm_config config_of(const char *text) {
    clnorm_config config;
    if (clnorm_config_parse(text, &config))
        fail_msg("%s: %s", text, clnorm_error_detail());
    return config;
}

static clnorm_tensor tensor_of(const struct tensor *tensor) {
    return (clnorm_tensor){.dtype = tensor->dtype, .stride = tensor->stride};
}

static clnorm_tensor x_of(const struct group_run *run) {
    clnorm_tensor x = tensor_of(&run->x);
    x.scaling = (clnorm_scaling)run->more.x_scaling;
    x.scale_dtype = run->x_scale.dtype;
    return x;
}

clnorm_group_norm_desc group_forward_desc(const struct group_run *run) {
    const struct group_case *const c = run->c;
    clnorm_group_norm_desc desc = CLNORM_GROUP_NORM_DESC_INIT;
    desc.rows = c->rows;
    desc.cols = c->cols;
    desc.spatial = c->spatial;
    desc.groups = c->groups;
    desc.layout = (clnorm_layout)c->layout;
    desc.activation = (clnorm_activation)c->activation;
    desc.x = x_of(run);
    desc.y = tensor_of(&run->y);
    desc.y.scaling = (clnorm_scaling)run->more.y_scaling;
    desc.y.scale_dtype = run->y_scale.dtype;
    desc.y.scale = run->more.y_given;
    desc.weight.dtype = run->weight.dtype;
    desc.bias.dtype = run->bias.dtype;
    if (c->residual) {
        desc.residual = tensor_of(&run->residual);
        desc.residual_out = tensor_of(&run->residual_out);
    }
    desc.save_mean = desc.save_rstd = 1;
    desc.config = config_of(c->config);
    return desc;
}

bool group_forward_execute(const struct fixture *fixture, struct group_run *run, bool in_place) {
    const clnorm_group_norm_desc desc = group_forward_desc(run);
    clnorm_plan *plan = NULL;
    if (clnorm_group_norm_plan_create(fixture->context, &desc, &plan))
        fail_msg("%s", clnorm_error_detail());
    run->workspace = plan_workspace(plan);
    struct tensor *const all[] = {&run->x,         &run->residual,     &run->weight, &run->bias,
                                  &run->y,         &run->residual_out, &run->mean,   &run->rstd,
                                  &run->workspace, &run->x_scale,      &run->y_scale};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tensor_upload(fixture, all[i]);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&run->x);
    args.x_scale = tensor_buffer(&run->x_scale);
    args.y_scale = tensor_buffer(&run->y_scale);
    args.y = in_place ? args.x : tensor_buffer(&run->y);
    args.residual = tensor_buffer(&run->residual);
    args.residual_out = tensor_buffer(&run->residual_out);
    args.weight = tensor_buffer(&run->weight);
    args.bias = tensor_buffer(&run->bias);
    args.mean = tensor_buffer(&run->mean);
    args.rstd = tensor_buffer(&run->rstd);
    args.workspace = tensor_buffer(&run->workspace);
    if (plan_run(fixture, plan, &args))
        fail_msg("%s", clnorm_error_detail());
    tensor_free(&run->workspace);
    return (in_place || tensor_unchanged(fixture, &run->x, "x")) && tensor_unchanged(fixture, &run->weight, "weight") &&
           tensor_unchanged(fixture, &run->bias, "bias") && tensor_unchanged(fixture, &run->residual, "residual") &&
           tensor_receive(fixture, in_place ? &run->x : &run->y, "y") && tensor_receive(fixture, &run->mean, "mean") &&
           tensor_receive(fixture, &run->rstd, "rstd") && tensor_receive(fixture, &run->residual_out, "residual_out") &&
           tensor_unchanged(fixture, &run->x_scale, "x_scale") && tensor_receive(fixture, &run->y_scale, "y_scale");
}

clnorm_group_norm_backward_desc group_backward_desc(const struct group_run *run, bool statistics_given) {
    const struct group_case *const c = run->c;
    clnorm_group_norm_backward_desc desc = CLNORM_GROUP_NORM_BACKWARD_DESC_INIT;
    desc.rows = c->rows;
    desc.cols = c->cols;
    desc.spatial = c->spatial;
    desc.groups = c->groups;
    desc.layout = (clnorm_layout)c->layout;
    desc.activation = (clnorm_activation)c->activation;
    desc.x = x_of(run);
    desc.dy = tensor_of(&run->dy);
    desc.dx = tensor_of(&run->dx);
    desc.weight.dtype = run->weight.dtype;
    desc.bias.dtype = run->bias.dtype;
    desc.dweight.dtype = run->dweight.dtype;
    desc.dbias.dtype = run->dbias.dtype;
    if (run->dresidual_out.dtype)
        desc.dresidual_out = tensor_of(&run->dresidual_out);
    if (run->dresidual.dtype)
        desc.dresidual = tensor_of(&run->dresidual);
    desc.accumulate = run->more.accumulate;
    desc.statistics_given = statistics_given;
    desc.config = config_of(c->config);
    return desc;
}

static bool receive_dresidual(const struct fixture *fixture, struct group_run *run, bool in_place) {
    return in_place ? tensor_receive(fixture, &run->dresidual_out, "dresidual")
                    : tensor_unchanged(fixture, &run->dresidual_out, "dresidual_out") &&
                          tensor_receive(fixture, &run->dresidual, "dresidual");
}

bool group_backward_execute(const struct fixture *fixture, struct group_run *run, bool statistics_given, bool in_place) {
    const clnorm_group_norm_backward_desc desc = group_backward_desc(run, statistics_given);
    clnorm_plan *plan = NULL;
    if (clnorm_group_norm_backward_plan_create(fixture->context, &desc, &plan))
        fail_msg("%s", clnorm_error_detail());
    run->workspace = plan_workspace(plan);
    struct tensor *const all[] = {&run->x,         &run->dy,      &run->weight,       &run->bias, &run->mean,
                                  &run->dx,        &run->dweight, &run->dbias,        &run->rstd, &run->workspace,
                                  &run->dresidual, &run->x_scale, &run->dresidual_out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tensor_upload(fixture, all[i]);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&run->x);
    args.x_scale = tensor_buffer(&run->x_scale);
    args.dresidual_out = tensor_buffer(&run->dresidual_out);
    args.dresidual = in_place && run->dresidual_out.dtype ? args.dresidual_out : tensor_buffer(&run->dresidual);
    args.dy = tensor_buffer(&run->dy);
    args.dx = in_place ? args.dy : tensor_buffer(&run->dx);
    args.weight = tensor_buffer(&run->weight);
    args.bias = tensor_buffer(&run->bias);
    args.dweight = tensor_buffer(&run->dweight);
    args.dbias = tensor_buffer(&run->dbias);
    if (statistics_given) {
        args.mean = tensor_buffer(&run->mean);
        args.rstd = tensor_buffer(&run->rstd);
    }
    args.workspace = tensor_buffer(&run->workspace);
    if (plan_run(fixture, plan, &args))
        fail_msg("%s", clnorm_error_detail());
    tensor_free(&run->workspace);
    return tensor_unchanged(fixture, &run->x, "x") && (in_place || tensor_unchanged(fixture, &run->dy, "dy")) &&
           tensor_unchanged(fixture, &run->weight, "weight") && tensor_unchanged(fixture, &run->bias, "bias") &&
           tensor_unchanged(fixture, &run->mean, "mean") && tensor_unchanged(fixture, &run->rstd, "rstd") &&
           tensor_receive(fixture, in_place ? &run->dy : &run->dx, "dx") &&
           tensor_receive(fixture, &run->dweight, "dweight") && tensor_receive(fixture, &run->dbias, "dbias") &&
           tensor_unchanged(fixture, &run->x_scale, "x_scale") && receive_dresidual(fixture, run, in_place);
}

/* ------------------------------------------------------------------------------------------------------ comparison */

/* Roundings of a sum over a group: of a run of 64 from a pivot, of a chain of runs and of a chain of chunks, whose squares
 * are at most four times those about the mean; of positions of a vector and of lanes. */
static struct ref_arithmetic arithmetic_of(const struct group_case *c) {
    const uint64_t size = c->cols / c->groups * c->spatial;
    const double n = (double)size;
    struct ref_arithmetic arithmetic = ref_arithmetic_of((clnorm_dtype)c->x);
    arithmetic.statistics = arithmetic.sum = 4 * fmin(n, 64) + n / 64 + 32;
    return arithmetic;
}

static struct ref_tensor operand(const struct tensor *tensor) {
    return (struct ref_tensor){.elements = tensor_elements(tensor), .dtype = tensor->dtype, .stride = tensor->stride};
}

static struct ref_tensor x_operand(const struct group_run *run) {
    struct ref_tensor x = operand(&run->x);
    x.scales = tensor_elements(&run->x_scale);
    x.scale_dtype = run->x_scale.dtype;
    x.scaling = (clnorm_scaling)run->more.x_scaling;
    return x;
}

static struct ref_group_norm reference_of(const struct group_run *run) {
    const struct group_case *const c = run->c;
    return (struct ref_group_norm){
        .rows = c->rows,
        .cols = c->cols,
        .spatial = c->spatial,
        .groups = c->groups,
        .layout = (clnorm_layout)c->layout,
        .x = x_operand(run),
        .dresidual_out = operand(&run->dresidual_out),
        .residual = operand(&run->residual),
        .dy = operand(&run->dy),
        .weight = operand(&run->weight),
        .bias = operand(&run->bias),
        .activation = (clnorm_activation)c->activation,
        .eps = c->x == CLNORM_F64 ? 1e-5 : (double)1e-5F,
    };
}

static bool is_near(const struct tensor *tensor, const char *name, uint64_t row, uint64_t column,
                    struct ref_value expected) {
    if (!tensor->dtype)
        return true;
    const double found = ref_load(tensor->dtype, tensor_elements(tensor), row * tensor->stride + column);
    if (ref_within(tensor->dtype, found, expected))
        return true;
    print_error("%s[%" PRIu64 ", %" PRIu64 "] is %.9g: expected %.9g +- %.3g\n", name, row, column, found, expected.value,
                expected.error);
    return false;
}

/* y's scale of a sample, as it was given or measured. */
static double y_scale_of(const struct group_run *run, uint64_t row) {
    if (run->more.y_given != 0)
        return (double)(float)run->more.y_given;
    const bool own = run->more.y_scaling == CLNORM_SCALING_ROW;
    return ref_load(run->y_scale.dtype, tensor_elements(&run->y_scale), own ? row : 0);
}

/* Codes are in the order of what they stand for. */
static bool code_is_right(const struct group_run *run, uint64_t row, uint64_t column, struct ref_value y) {
    const clnorm_dtype dtype = run->y.dtype;
    const unsigned code = ((const unsigned char *)tensor_elements(&run->y))[row * run->y.stride + column];
    const double scale = y_scale_of(run, row), slack = isfinite(y.value) ? y.error : 0;
    const double value = ref_code_value(dtype, code);
    if (isnan(y.value) ? code == 0x7f
                       : value >= codes_value(dtype, y.value - slack, scale, -1) &&
                             value <= codes_value(dtype, y.value + slack, scale, 1))
        return true;
    print_error("y[%" PRIu64 ", %" PRIu64 "] is code %02x, %g of %g: expected %.9g +- %.3g\n", row, column, code, value,
                scale, y.value, slack);
    return false;
}

static bool y_is_right(const struct group_run *run, uint64_t row, uint64_t column, struct ref_value y) {
    return run->more.y_scaling ? code_is_right(run, row, column, y) : is_near(&run->y, "y", row, column, y);
}

static bool group_is_right(const struct group_run *run, const struct ref_group_norm *norm, uint64_t row, uint64_t group,
                           const struct ref_gathered *gathered, struct magnitude *magnitude) {
    const struct ref_arithmetic arithmetic = arithmetic_of(run->c);
    const struct ref_segment *const s = &gathered->gradients.forward;
    const struct ref_norm_error error = ref_norm_error_of(&gathered->norm.forward, &arithmetic, s);
    bool right = is_near(&run->mean, "mean", row, group, (struct ref_value){s->mean, error.mean}) &&
                 is_near(&run->rstd, "rstd", row, group, (struct ref_value){s->rstd, error.rstd});
    for (uint64_t i = 0; i < ref_group_norm_size(norm) && right; i++) {
        const uint64_t at = ref_group_norm_at(norm, group, i);
        const struct ref_value y = {s->y[i], ref_y_error(&error, i)};
        magnitude_add(magnitude, y.value, y.error);
        right = y_is_right(run, row, at, y) &&
                is_near(&run->residual_out, "residual_out", row, at, (struct ref_value){s->s[i], ref_s_error(&error, i)});
    }
    return right;
}

bool group_forward_is_right(const struct group_run *run) {
    const struct ref_group_norm norm = reference_of(run);
    struct ref_gathered gathered = ref_gathered_make(&norm);
    assert_non_null(gathered.memory);
    bool right = true;
    struct magnitude magnitude = {0, 0};
    for (uint64_t row = 0; row < norm.rows && right; row++) {
        for (uint64_t group = 0; group < norm.groups && right; group++) {
            ref_group_norm_segment(&norm, row, group, &gathered);
            right = group_is_right(run, &norm, row, group, &gathered, &magnitude);
        }
        const bool own = run->more.y_scaling == CLNORM_SCALING_ROW;
        if (right && run->y_scale.dtype && (own || row + 1 == norm.rows)) {
            right = codes_scale_is_right(run->y.dtype, "y_scale", &run->y_scale, own ? row : 0, magnitude);
            magnitude = (struct magnitude){0, 0};
        }
    }
    ref_gathered_free(&gathered);
    return right;
}

/* before: what the sum is added to, where there is one. */
static bool sum_is_right(const struct tensor *tensor, const struct tensor *before, const char *name, uint64_t channel,
                         const struct ref_row_sum *sum, double roundings) {
    const double old = before->dtype ? ref_load(before->dtype, tensor_elements(before), channel) : 0;
    const double value = old + ref_sum_value(&sum->sum), unit = ref_arithmetic_of(tensor->dtype).unit;
    const double error = ref_sum_value(&sum->error) + roundings * ref_sum_value(&sum->magnitude);
    return is_near(tensor, name, 0, channel, (struct ref_value){value, error + (old != 0 ? unit * fabs(value) : 0)});
}

bool group_backward_is_right(const struct group_run *run, bool statistics_given) {
    const struct ref_arithmetic arithmetic = arithmetic_of(run->c);
    struct ref_group_norm norm = reference_of(run);
    norm.residual.elements = NULL;
    if (statistics_given) {
        norm.mean = operand(&run->mean);
        norm.rstd = operand(&run->rstd);
    }
    struct ref_gathered gathered = ref_gathered_make(&norm);
    struct ref_row_sum *const dweight = calloc(norm.cols, sizeof *dweight);
    struct ref_row_sum *const dbias = calloc(norm.cols, sizeof *dbias);
    assert_true(gathered.memory && dweight && dbias);
    bool right = true;
    for (uint64_t row = 0; row < norm.rows && right; row++)
        for (uint64_t group = 0; group < norm.groups && right; group++) {
            ref_group_norm_gradients(&norm, &arithmetic, row, group, &gathered);
            ref_group_norm_add(&norm, group, &gathered, dweight, dbias);
            for (uint64_t i = 0; i < ref_group_norm_size(&norm) && right; i++) {
                const uint64_t at = ref_group_norm_at(&norm, group, i);
                const struct ref_value ds = {gathered.gradients.ds[i], gathered.errors.dresidual[i]};
                right = is_near(&run->dx, "dx", row, at, ds) && is_near(&run->dresidual, "dresidual", row, at, ds);
            }
        }
    const double roundings = arithmetic.sum * arithmetic.unit;
    for (uint64_t channel = 0; channel < norm.cols && right; channel++)
        right = sum_is_right(&run->dweight, &run->dweight_before, "dweight", channel, &dweight[channel], roundings) &&
                sum_is_right(&run->dbias, &run->dbias_before, "dbias", channel, &dbias[channel], roundings);
    free(dweight);
    free(dbias);
    ref_gathered_free(&gathered);
    return right;
}
