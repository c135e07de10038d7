#include "group_norm_case.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "device/driver_defects.h"
#include "fp8_tensor.h"
#include "plan_run.h"

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
    const bool in_turn = fixture_takes(i + (layout == (int)CLNORM_LAYOUT_LAST));
    if (!in_turn || (c->layout && c->layout != layout) || !runs_here(fixture, c))
        return false;
    c->layout = layout;
    return true;
}

bool group_case_takes_gradient(const struct fixture *fixture, struct group_case *c, int layout, size_t i, bool given) {
    const bool in_turn = given == ((i / 2 + (layout == (int)CLNORM_LAYOUT_LAST)) % 4 != 0);
    return in_turn && group_case_takes(fixture, c, layout, i);
}

bool group_case_in_place(const struct fixture *fixture, size_t i, const char *held, struct group_case *c) {
    const struct {
        uint64_t channels, spatial;
        const char *config;
    } own[GROUP_CASES_IN_PLACE / 2] = {{64, 16, ""},         {64, 16, "chunks=8"}, {64, 16, held}, {52, 19, ""},
                                       {52, 19, "chunks=8"}, {64, 1, ""},          {12, 1369, ""}};
    const int layout = i % 2 ? CLNORM_LAYOUT_LAST : CLNORM_LAYOUT_FIRST;
    *c = (struct group_case){.rows = 2,
                             .cols = own[i / 2].channels,
                             .spatial = own[i / 2].spatial,
                             .groups = 4,
                             .layout = layout,
                             .x = CLNORM_F32,
                             .out = CLNORM_F32,
                             .affine = CLNORM_F32,
                             .input = INPUT_NORMAL,
                             .config = own[i / 2].config};
    return group_case_takes(fixture, c, layout, i);
}

struct group_case group_case_with_row_split(const struct group_case *c, const char *row_split, char *config, size_t size) {
    struct group_case own = *c;
    (void)snprintf(config, size, "%s,row_split=%s", c->config, row_split);
    own.config = config;
    return own;
}

bool group_samples_equal(const struct group_case *c, const struct tensor *a, const struct tensor *b) {
    const size_t element = clnorm_dtype_size(a->dtype), bytes = (size_t)(c->cols * c->spatial) * element;
    const size_t stride = bytes + (size_t)c->gap * element;
    bool equal = true;
    for (size_t i = 0; i < c->rows && equal && a->dtype; i++)
        equal = memcmp((char *)tensor_elements(a) + i * stride, (char *)tensor_elements(b) + i * stride, bytes) == 0;
    return equal;
}

void group_case_fail(const struct fixture *fixture, const struct group_case *c, size_t i) {
    fail_msg("case %zu, layout %d: %" PRIu64 " x %" PRIu64 " x %" PRIu64 " on %s", i, c->layout, c->rows, c->cols,
             c->spatial, fixture->device.name);
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
    desc.save_mean = run->mean.dtype != CLNORM_DTYPE_NONE;
    desc.save_rstd = run->rstd.dtype != CLNORM_DTYPE_NONE;
    desc.config = config_of(c->config);
    return desc;
}

static bool receive_residual(const struct fixture *fixture, struct group_run *run) {
    return run->more.residual_in_place ? tensor_receive(fixture, &run->residual, "residual_out")
                                       : tensor_unchanged(fixture, &run->residual, "residual") &&
                                             tensor_receive(fixture, &run->residual_out, "residual_out");
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
    args.residual_out = run->more.residual_in_place ? args.residual : tensor_buffer(&run->residual_out);
    args.weight = tensor_buffer(&run->weight);
    args.bias = tensor_buffer(&run->bias);
    args.mean = tensor_buffer(&run->mean);
    args.rstd = tensor_buffer(&run->rstd);
    args.workspace = tensor_buffer(&run->workspace);
    if (plan_run(fixture, plan, &args))
        fail_msg("%s", clnorm_error_detail());
    const bool workspace_fits = tensor_receive(fixture, &run->workspace, "workspace");
    tensor_free(&run->workspace);
    return workspace_fits && (in_place || tensor_unchanged(fixture, &run->x, "x")) &&
           tensor_unchanged(fixture, &run->weight, "weight") && tensor_unchanged(fixture, &run->bias, "bias") &&
           tensor_receive(fixture, in_place ? &run->x : &run->y, "y") && tensor_receive(fixture, &run->mean, "mean") &&
           tensor_receive(fixture, &run->rstd, "rstd") && receive_residual(fixture, run) &&
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

/* dx lies over dy, over x, or apart. */
static bool receive_dx(const struct fixture *fixture, struct group_run *run, bool over_dy) {
    const bool over_x = run->more.dx_over_x;
    struct tensor *const dx = over_dy ? &run->dy : over_x ? &run->x : &run->dx;
    return (over_x || tensor_unchanged(fixture, &run->x, "x")) && (over_dy || tensor_unchanged(fixture, &run->dy, "dy")) &&
           tensor_receive(fixture, dx, "dx");
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
    args.dx = in_place ? args.dy : run->more.dx_over_x ? args.x : tensor_buffer(&run->dx);
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
    const bool workspace_fits = tensor_receive(fixture, &run->workspace, "workspace");
    tensor_free(&run->workspace);
    return workspace_fits && receive_dx(fixture, run, in_place) && tensor_unchanged(fixture, &run->weight, "weight") &&
           tensor_unchanged(fixture, &run->bias, "bias") && tensor_unchanged(fixture, &run->mean, "mean") &&
           tensor_unchanged(fixture, &run->rstd, "rstd") && tensor_receive(fixture, &run->dweight, "dweight") &&
           tensor_receive(fixture, &run->dbias, "dbias") && tensor_unchanged(fixture, &run->x_scale, "x_scale") &&
           receive_dresidual(fixture, run, in_place);
}
