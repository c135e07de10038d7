#include "norm_slices_case.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "knob.h"
#include "norm_slices_verify.h"
#include "plan_run.h"
#include "reference/reference.h"

/* --------------------------------------------------------------------------------------------------------- tensors */

uint64_t slices_column(const struct slices_run *run, const struct slice *slice, uint64_t column) {
    if (run->c->whole)
        return slice->begin * run->c->whole + column;
    return column / slice->group_size * run->group_size + slice->begin + column % slice->group_size;
}

uint64_t slices_row(const struct slices_case *c, uint64_t row) {
    return c->views ? row % c->views * (c->rows / c->views) + row / c->views : row;
}

static void take_columns(const struct slices_run *run, const struct slice *slice, const struct tensor *from,
                         struct tensor *to) {
    for (uint64_t row = 0; row < to->rows; row++)
        for (uint64_t column = 0; column < to->cols && to->dtype; column++)
            ref_store(to->dtype, tensor_elements(to), slices_row(run->c, row) * to->stride + column,
                      ref_load(from->dtype, tensor_elements(from), row * from->stride + slices_column(run, slice, column)));
}

static void make_slice(const struct slices_run *run, struct slice *slice) {
    const struct slices_case *const c = run->c;
    const clnorm_dtype real = c->x == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    const clnorm_dtype out = c->in_place ? CLNORM_DTYPE_NONE : (clnorm_dtype)c->out;
    const uint64_t stride = slice->cols + c->gap;
    slice->x = tensor_make((clnorm_dtype)c->x, c->rows, slice->cols, stride, c->shift, TENSOR_NAN);
    slice->dy = tensor_make((clnorm_dtype)c->out, c->rows, slice->cols, stride, c->shift, TENSOR_NAN);
    slice->weight = tensor_make((clnorm_dtype)c->weight, 1, slice->cols, slice->cols, c->shift, TENSOR_NAN);
    slice->bias = tensor_make((clnorm_dtype)c->weight, 1, slice->cols, slice->cols, 0, TENSOR_NAN);
    slice->moments = tensor_make(real, c->rows * slice->groups, 3, 3, 1, TENSOR_CANARY);
    slice->sums = tensor_make(real, c->rows * slice->groups, 2, 2, 1, TENSOR_CANARY);
    slice->y = tensor_make(out, c->rows, slice->cols, stride, 0, TENSOR_CANARY);
    slice->dx = tensor_make(out, c->rows, slice->cols, stride, 1, TENSOR_CANARY);
    slice->dweight = tensor_make((clnorm_dtype)c->out, 1, slice->cols, slice->cols, 1, TENSOR_CANARY);
    slice->dbias = tensor_make((clnorm_dtype)c->out, 1, slice->cols, slice->cols, 0, TENSOR_CANARY);
    take_columns(run, slice, &run->x, &slice->x);
    take_columns(run, slice, &run->dy, &slice->dy);
    take_columns(run, slice, &run->weight, &slice->weight);
    take_columns(run, slice, &run->bias, &slice->bias);
}

struct slices_run slices_run_make(const struct slices_case *c) {
    struct slices_run run = {.c = c, .width = INFINITY};
    uint64_t parts = 0;
    for (; run.slices < SLICES_MOST && c->parts[run.slices]; run.slices++)
        parts += c->parts[run.slices];
    run.group_size = c->whole ? c->whole : parts;
    run.cols = parts * (c->whole ? c->whole : c->groups);
    run.x = tensor_make((clnorm_dtype)c->x, c->rows, run.cols, run.cols, 0, TENSOR_NAN);
    run.dy = tensor_make((clnorm_dtype)c->out, c->rows, run.cols, run.cols, 0, TENSOR_NAN);
    run.weight = tensor_make((clnorm_dtype)c->weight, 1, run.cols, run.cols, 0, TENSOR_NAN);
    run.bias = tensor_make((clnorm_dtype)c->weight, 1, run.cols, run.cols, 0, TENSOR_NAN);
    tensor_fill(&run.x, (enum input)c->input, run.group_size, 1);
    tensor_fill(&run.dy, INPUT_NORMAL, run.group_size, 2);
    tensor_fill(&run.weight, INPUT_UNIFORM, run.group_size, 3);
    tensor_fill(&run.bias, INPUT_NORMAL, run.group_size, 4);
    for (unsigned s = 0; s < run.slices; s++) {
        struct slice *const slice = &run.slice[s];
        slice->begin = s ? run.slice[s - 1].begin + c->parts[s - 1] : 0;
        slice->groups = c->whole ? c->parts[s] : c->groups;
        slice->group_size = c->whole ? c->whole : c->parts[s];
        slice->cols = slice->groups * slice->group_size;
        make_slice(&run, slice);
    }
    return run;
}

void slices_run_free(struct slices_run *run) {
    struct tensor *const whole[] = {&run->x, &run->dy, &run->weight, &run->bias};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        tensor_free(whole[i]);
    for (unsigned s = 0; s < run->slices; s++) {
        struct slice *const slice = &run->slice[s];
        struct tensor *const all[] = {&slice->x, &slice->dy,   &slice->weight, &slice->bias,    &slice->moments,
                                      &slice->y, &slice->sums, &slice->dx,     &slice->dweight, &slice->dbias};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            tensor_free(all[i]);
    }
}

/* ------------------------------------------------------------------------------------------------------- operations */

static clnorm_tensor vector_desc(const struct tensor *tensor) {
    clnorm_tensor desc = CLNORM_TENSOR_NONE;
    desc.dtype = tensor->dtype;
    return desc;
}

static clnorm_tensor matrix_desc(const struct slices_case *c, const struct tensor *tensor) {
    clnorm_tensor desc = vector_desc(tensor);
    if (!c->views) {
        desc.stride = tensor->stride;
        return desc;
    }
    desc.outer[0] = (clnorm_dim){c->rows / c->views, tensor->stride};
    desc.outer[1] = (clnorm_dim){c->views, c->rows / c->views * tensor->stride};
    return desc;
}

static const struct tensor *slices_y(const struct slices_run *run, const struct slice *slice) {
    return run->c->in_place ? &slice->x : &slice->y;
}

const struct tensor *slices_dx(const struct slices_run *run, const struct slice *slice) {
    return run->c->in_place ? &slice->dy : &slice->dx;
}

/* Runs a plan with a workspace of its own. */
static bool run_plan(const struct fixture *fixture, clnorm_status made, clnorm_plan *plan, clnorm_args args) {
    if (made) {
        print_error("no plan: %s\n", clnorm_error_detail());
        return false;
    }
    struct tensor workspace = plan_workspace(plan);
    tensor_upload(fixture, &workspace);
    args.workspace = tensor_buffer(&workspace);
    const clnorm_status status = plan_run(fixture, plan, &args);
    if (status)
        print_error("%s\n", clnorm_error_detail());
    const bool kept = tensor_receive(fixture, &workspace, "workspace");
    tensor_free(&workspace);
    return !status && kept;
}

static bool take_moments(const struct fixture *fixture, struct slices_run *run, struct slice *slice) {
    clnorm_norm_statistics_desc desc = CLNORM_NORM_STATISTICS_DESC_INIT;
    clnorm_args args = CLNORM_ARGS_INIT;
    clnorm_plan *plan = NULL;
    desc.rows = run->c->rows;
    desc.cols = slice->cols;
    desc.group_size = slice->group_size;
    desc.norm = (clnorm_norm)run->c->norm;
    desc.x = matrix_desc(run->c, &slice->x);
    desc.config = config_of(run->c->config);
    args.x = tensor_buffer(&slice->x);
    args.moments = tensor_buffer(&slice->moments);
    const clnorm_status status = clnorm_norm_statistics_plan_create(fixture->context, &desc, &plan);
    if (!status)
        run->width = fmin(run->width, (double)chosen_knobs(plan).vec * chosen_knobs(plan).lanes);
    return run_plan(fixture, status, plan, args) && tensor_receive(fixture, &slice->moments, "moments");
}

static bool apply(const struct fixture *fixture, const struct slices_run *run, struct slice *slice) {
    clnorm_norm_apply_desc desc = CLNORM_NORM_APPLY_DESC_INIT;
    clnorm_args args = CLNORM_ARGS_INIT;
    clnorm_plan *plan = NULL;
    desc.rows = run->c->rows;
    desc.cols = slice->cols;
    desc.group_size = slice->group_size;
    desc.norm = (clnorm_norm)run->c->norm;
    desc.x = matrix_desc(run->c, &slice->x);
    desc.y = matrix_desc(run->c, slices_y(run, slice));
    desc.weight = vector_desc(&slice->weight);
    desc.bias = vector_desc(&slice->bias);
    desc.config = config_of(run->c->config);
    args.x = tensor_buffer(&slice->x);
    args.y = tensor_buffer(slices_y(run, slice));
    args.weight = tensor_buffer(&slice->weight);
    args.bias = tensor_buffer(&slice->bias);
    args.moments = tensor_buffer(&slice->moments);
    const clnorm_status status = clnorm_norm_apply_plan_create(fixture->context, &desc, &plan);
    return run_plan(fixture, status, plan, args) &&
           tensor_receive(fixture, run->c->in_place ? &slice->x : &slice->y, "y") &&
           tensor_unchanged(fixture, &slice->moments, "moments");
}

static bool take_sums(const struct fixture *fixture, const struct slices_run *run, struct slice *slice) {
    clnorm_norm_backward_statistics_desc desc = CLNORM_NORM_BACKWARD_STATISTICS_DESC_INIT;
    clnorm_args args = CLNORM_ARGS_INIT;
    clnorm_plan *plan = NULL;
    desc.rows = run->c->rows;
    desc.cols = slice->cols;
    desc.group_size = slice->group_size;
    desc.norm = (clnorm_norm)run->c->norm;
    desc.x = matrix_desc(run->c, &slice->x);
    desc.dy = matrix_desc(run->c, &slice->dy);
    desc.weight = vector_desc(&slice->weight);
    desc.config = config_of(run->c->config);
    args.x = tensor_buffer(&slice->x);
    args.dy = tensor_buffer(&slice->dy);
    args.weight = tensor_buffer(&slice->weight);
    args.moments = tensor_buffer(&slice->moments);
    args.sums = tensor_buffer(&slice->sums);
    const clnorm_status status = clnorm_norm_backward_statistics_plan_create(fixture->context, &desc, &plan);
    return run_plan(fixture, status, plan, args) && tensor_receive(fixture, &slice->sums, "sums");
}

static bool apply_backward(const struct fixture *fixture, const struct slices_run *run, struct slice *slice) {
    clnorm_norm_backward_apply_desc desc = CLNORM_NORM_BACKWARD_APPLY_DESC_INIT;
    clnorm_args args = CLNORM_ARGS_INIT;
    clnorm_plan *plan = NULL;
    desc.rows = run->c->rows;
    desc.cols = slice->cols;
    desc.group_size = slice->group_size;
    desc.norm = (clnorm_norm)run->c->norm;
    desc.x = matrix_desc(run->c, &slice->x);
    desc.dy = matrix_desc(run->c, &slice->dy);
    desc.weight = vector_desc(&slice->weight);
    desc.dx = matrix_desc(run->c, slices_dx(run, slice));
    desc.dweight = vector_desc(&slice->dweight);
    desc.dbias = vector_desc(&slice->dbias);
    desc.config = config_of(run->c->apply_config);
    args.x = tensor_buffer(&slice->x);
    args.dy = tensor_buffer(&slice->dy);
    args.weight = tensor_buffer(&slice->weight);
    args.moments = tensor_buffer(&slice->moments);
    args.sums = tensor_buffer(&slice->sums);
    args.dx = tensor_buffer(slices_dx(run, slice));
    args.dweight = tensor_buffer(&slice->dweight);
    args.dbias = tensor_buffer(&slice->dbias);
    const clnorm_status status = clnorm_norm_backward_apply_plan_create(fixture->context, &desc, &plan);
    return run_plan(fixture, status, plan, args) &&
           tensor_receive(fixture, run->c->in_place ? &slice->dy : &slice->dx, "dx") &&
           tensor_receive(fixture, &slice->dweight, "dweight") && tensor_receive(fixture, &slice->dbias, "dbias") &&
           tensor_unchanged(fixture, &slice->x, "x") && tensor_unchanged(fixture, &slice->weight, "weight") &&
           (run->c->in_place || tensor_unchanged(fixture, &slice->dy, "dy")) &&
           tensor_unchanged(fixture, &slice->bias, "bias") && tensor_unchanged(fixture, &slice->moments, "moments") &&
           tensor_unchanged(fixture, &slice->sums, "sums");
}

/* ---------------------------------------------------------------------------------------------------------- exchange */

/* Copies a tensor of the first slice to the other slices. offset: the tensor's in struct slice. */
static void give_to_all(struct slices_run *run, struct tensor *of_first, size_t offset) {
    const size_t bytes = (size_t)(of_first->rows * of_first->cols) * clnorm_dtype_size(of_first->dtype);
    for (unsigned s = 1; s < run->slices && of_first->rows; s++)
        memcpy(tensor_elements((const struct tensor *)((const char *)&run->slice[s] + offset)), tensor_elements(of_first),
               bytes);
}

static void merge_moments(struct slices_run *run) {
    struct tensor *const first = &run->slice[0].moments;
    for (unsigned s = 1; s < run->slices; s++)
        assert_int_equal(clnorm_moments_merge(first->dtype, tensor_elements(first), tensor_elements(&run->slice[s].moments),
                                              first->rows),
                         CLNORM_SUCCESS);
    give_to_all(run, first, offsetof(struct slice, moments));
}

static void add_sums(struct slices_run *run) {
    struct tensor *const first = &run->slice[0].sums;
    for (unsigned s = 1; s < run->slices; s++)
        for (uint64_t i = 0; i < first->rows * first->cols; i++)
            ref_store(first->dtype, tensor_elements(first), i,
                      ref_load(first->dtype, tensor_elements(first), i) +
                          ref_load(first->dtype, tensor_elements(&run->slice[s].sums), i));
    give_to_all(run, first, offsetof(struct slice, sums));
}

/* In place, y has overwritten x: keeps y in host memory, and uploads x for the backward. */
static void restore_x(const struct fixture *fixture, const struct slices_run *run, struct slice *slice) {
    const struct slices_case *const c = run->c;
    slice->y = tensor_make((clnorm_dtype)c->out, c->rows, slice->cols, slice->x.stride, c->shift, TENSOR_CANARY);
    memcpy(slice->y.host, slice->x.host, slice->x.size);
    take_columns(run, slice, &run->x, &slice->x);
    tensor_upload(fixture, &slice->x);
}

bool slices_run_execute(const struct fixture *fixture, struct slices_run *run) {
    bool good = true;
    for (unsigned s = 0; s < run->slices && good; s++) {
        struct slice *const slice = &run->slice[s];
        struct tensor *const all[] = {&slice->x, &slice->dy,   &slice->weight, &slice->bias,    &slice->moments,
                                      &slice->y, &slice->sums, &slice->dx,     &slice->dweight, &slice->dbias};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            tensor_upload(fixture, all[i]);
        good = take_moments(fixture, run, slice) && tensor_unchanged(fixture, &slice->x, "x");
    }
    if (!run->c->whole && good)
        merge_moments(run);
    for (unsigned s = 0; s < run->slices && good; s++) {
        tensor_upload(fixture, &run->slice[s].moments);
        good = apply(fixture, run, &run->slice[s]);
        if (good && run->c->in_place)
            restore_x(fixture, run, &run->slice[s]);
        good = good && take_sums(fixture, run, &run->slice[s]);
    }
    if (!run->c->whole && good)
        add_sums(run);
    for (unsigned s = 0; s < run->slices && good; s++) {
        tensor_upload(fixture, &run->slice[s].sums);
        good = apply_backward(fixture, run, &run->slice[s]);
    }
    return good;
}

unsigned slices_cases_are_right(const struct fixture *fixture, const struct slices_case *cases, size_t count) {
    unsigned ran = 0;
    for (size_t i = 0; i < count; i++) {
        if (!fixture_takes(i))
            continue;
        struct slices_run run = slices_run_make(&cases[i]);
        const bool wide = cases[i].x == (int)CLNORM_F64 && !fixture->device.fp64;
        const bool runs = !wide && cases[i].rows * run.cols <= fixture_element_limit(fixture);
        ran += runs;
        if (!runs) {
            slices_run_free(&run);
            continue;
        }
        if (!slices_run_execute(fixture, &run) || !slices_run_is_right(&run))
            fail_msg("case %zu: %" PRIu64 " x %" PRIu64 " in %u slices on %s", i, cases[i].rows, run.cols, run.slices,
                     fixture->device.name);
        slices_run_free(&run);
    }
    return ran;
}
