#include "rows_case.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "knob.h"
#include "plan_run.h"
#include "reference/reference.h"

/* -------------------------------------------------------------------------------------------------------- the case */

bool rows_backward(enum rows_operation operation) {
    return operation == ROWS_GELU_BACKWARD || operation == ROWS_SOFTMAX_BACKWARD;
}

const char *rows_name(enum rows_operation operation) {
    static const char *const names[] = {"gelu", "gelu_backward", "softmax", "softmax_backward"};
    return names[operation];
}

struct rows_case rows_case_of(enum rows_operation operation, uint64_t rows, uint64_t cols) {
    return (struct rows_case){
        .operation = operation, .rows = rows, .cols = cols, .dtype = {CLNORM_F32}, .form = CLNORM_GELU_ERF};
}

static clnorm_dtype dtype_of(const struct rows_case *rows_case, int tensor) {
    if (tensor == ROWS_DY && !rows_backward(rows_case->operation))
        return CLNORM_DTYPE_NONE;
    return rows_case->dtype[tensor] ? rows_case->dtype[tensor] : rows_case->dtype[ROWS_FIRST];
}

static uint64_t stride_of(const struct rows_case *rows_case, int tensor) {
    return rows_case->cols + rows_case->gap[tensor];
}

/* 0, the default, where there is no gap. */
static uint64_t stride_field(const struct rows_case *rows_case, int tensor) {
    return rows_case->gap[tensor] ? stride_of(rows_case, tensor) : 0;
}

static clnorm_gelu_desc gelu_desc(const struct rows_case *rows_case) {
    clnorm_gelu_desc desc = CLNORM_GELU_DESC_INIT;
    desc.rows = rows_case->rows;
    desc.cols = rows_case->cols;
    desc.x.stride = stride_field(rows_case, ROWS_FIRST);
    desc.y.stride = stride_field(rows_case, ROWS_OUT);
    desc.x.dtype = rows_case->dtype[ROWS_FIRST];
    desc.y.dtype = rows_case->dtype[ROWS_OUT];
    desc.form = rows_case->form;
    desc.config = forced(rows_case->config);
    return desc;
}

static clnorm_gelu_backward_desc gelu_backward_desc(const struct rows_case *rows_case) {
    clnorm_gelu_backward_desc desc = CLNORM_GELU_BACKWARD_DESC_INIT;
    desc.rows = rows_case->rows;
    desc.cols = rows_case->cols;
    desc.x.stride = stride_field(rows_case, ROWS_FIRST);
    desc.dy.stride = stride_field(rows_case, ROWS_DY);
    desc.dx.stride = stride_field(rows_case, ROWS_OUT);
    desc.x.dtype = rows_case->dtype[ROWS_FIRST];
    desc.dy.dtype = rows_case->dtype[ROWS_DY];
    desc.dx.dtype = rows_case->dtype[ROWS_OUT];
    desc.form = rows_case->form;
    desc.config = forced(rows_case->config);
    return desc;
}

static clnorm_softmax_desc softmax_desc(const struct rows_case *rows_case) {
    clnorm_softmax_desc desc = CLNORM_SOFTMAX_DESC_INIT;
    desc.rows = rows_case->rows;
    desc.cols = rows_case->cols;
    desc.x.stride = stride_field(rows_case, ROWS_FIRST);
    desc.y.stride = stride_field(rows_case, ROWS_OUT);
    desc.x.dtype = rows_case->dtype[ROWS_FIRST];
    desc.y.dtype = rows_case->dtype[ROWS_OUT];
    desc.config = forced(rows_case->config);
    return desc;
}

static clnorm_softmax_backward_desc softmax_backward_desc(const struct rows_case *rows_case) {
    clnorm_softmax_backward_desc desc = CLNORM_SOFTMAX_BACKWARD_DESC_INIT;
    desc.rows = rows_case->rows;
    desc.cols = rows_case->cols;
    desc.y.stride = stride_field(rows_case, ROWS_FIRST);
    desc.dy.stride = stride_field(rows_case, ROWS_DY);
    desc.dx.stride = stride_field(rows_case, ROWS_OUT);
    desc.y.dtype = rows_case->dtype[ROWS_FIRST];
    desc.dy.dtype = rows_case->dtype[ROWS_DY];
    desc.dx.dtype = rows_case->dtype[ROWS_OUT];
    desc.config = forced(rows_case->config);
    return desc;
}

clnorm_status rows_case_plan(clnorm_context *context, const struct rows_case *rows_case, clnorm_plan **plan) {
    const clnorm_gelu_desc gelu = gelu_desc(rows_case);
    const clnorm_gelu_backward_desc gelu_backward = gelu_backward_desc(rows_case);
    const clnorm_softmax_desc softmax = softmax_desc(rows_case);
    const clnorm_softmax_backward_desc softmax_backward = softmax_backward_desc(rows_case);
    switch (rows_case->operation) {
    case ROWS_GELU:
        return clnorm_gelu_forward_plan_create(context, &gelu, plan);
    case ROWS_GELU_BACKWARD:
        return clnorm_gelu_backward_plan_create(context, &gelu_backward, plan);
    case ROWS_SOFTMAX:
        return clnorm_softmax_forward_plan_create(context, &softmax, plan);
    default:
        return clnorm_softmax_backward_plan_create(context, &softmax_backward, plan);
    }
}

static clnorm_status call(clnorm_context *context, cl_command_queue queue, const struct rows_case *rows_case,
                          const clnorm_args *args) {
    const clnorm_gelu_desc gelu = gelu_desc(rows_case);
    const clnorm_gelu_backward_desc gelu_backward = gelu_backward_desc(rows_case);
    const clnorm_softmax_desc softmax = softmax_desc(rows_case);
    const clnorm_softmax_backward_desc softmax_backward = softmax_backward_desc(rows_case);
    switch (rows_case->operation) {
    case ROWS_GELU:
        return clnorm_gelu_forward(context, queue, &gelu, args, 0, NULL, NULL);
    case ROWS_GELU_BACKWARD:
        return clnorm_gelu_backward(context, queue, &gelu_backward, args, 0, NULL, NULL);
    case ROWS_SOFTMAX:
        return clnorm_softmax_forward(context, queue, &softmax, args, 0, NULL, NULL);
    default:
        return clnorm_softmax_backward(context, queue, &softmax_backward, args, 0, NULL, NULL);
    }
}

static void print_case(const struct rows_case *rows_case) {
    print_error("case: %s %" PRIu64 "x%" PRIu64 ", %s %s, seed %" PRIu64 "%s%s\n", rows_name(rows_case->operation),
                rows_case->rows, rows_case->cols, rows_case->form == CLNORM_GELU_TANH ? "tanh" : "erf",
                input_name(rows_case->input), rows_case->seed,
                rows_case->special ? ", special"
                : rows_case->zeros ? ", zeros"
                                   : "",
                rows_case->in_place ? ", in place" : "");
    for (int i = 0; i < ROWS_TENSORS; i++)
        print_error("  tensor %d: %s + %" PRIu64 ", gap %" PRIu64 "\n", i, clnorm_dtype_name(dtype_of(rows_case, i)),
                    rows_case->shift[i], rows_case->gap[i]);
    const struct cln_config *const c = &rows_case->config;
    print_error("  config %u %u %u %u keep %u unroll %u reduce %u stores %u isa %u chunks %u\n", c->vec, c->lanes,
                c->segments, c->iterations, c->keep, c->unroll, c->reduce, c->stores, c->isa, c->chunks);
}

/* -------------------------------------------------------------------------------------------------------- the run */

struct run {
    const struct rows_case *rows_case;
    struct cln_config config; /* the plan's */
    struct tensor tensor[ROWS_TENSORS];
    struct tensor workspace; /* the plan's; absent in the one-call form */
};

/* Special values, and numbers at which exponentials overflow, vanish or are near 1. */
static void fill_special(struct tensor *tensor, uint64_t seed) {
    static const double numbers[] = {INFINITY, -INFINITY, NAN,   0, -0.0, 1e4, -1e4, 6e4,
                                     -6e4,     1e-7,      -1e-7, 9, -9,   -13, 30,   -30};
    struct random random = {seed};
    for (uint64_t row = 0; row < tensor->rows; row++)
        for (uint64_t column = 0; column < tensor->cols; column++)
            if (random_below(&random, 2))
                ref_store(tensor->dtype, tensor_elements(tensor), row * tensor->stride + column,
                          numbers[random_below(&random, sizeof numbers / sizeof *numbers)]);
}

static void fill_masked(struct tensor *tensor, uint64_t seed) {
    struct random random = {seed};
    for (uint64_t row = 0; row < tensor->rows; row++)
        for (uint64_t column = 0; column < tensor->cols; column++)
            if (row % 3 == 1 || random_below(&random, 2))
                ref_store(tensor->dtype, tensor_elements(tensor), row * tensor->stride + column, -INFINITY);
}

static void fill_zeros(struct tensor *tensor, uint64_t seed) {
    struct random random = {seed};
    for (uint64_t row = 0; row < tensor->rows; row++)
        for (uint64_t column = 0; column < tensor->cols; column++)
            ref_store(tensor->dtype, tensor_elements(tensor), row * tensor->stride + column,
                      random_below(&random, 2) ? -0.0 : 0.0);
}

static void fill_halves(struct tensor *tensor) {
    unsigned short *const elements = tensor_elements(tensor);
    for (uint64_t i = 0; i < tensor->cols; i++)
        elements[i] = (unsigned short)i;
}

static void fill(struct tensor *tensor, const struct rows_case *rows_case, int i) {
    const bool first = i == ROWS_FIRST;
    tensor_fill(tensor, first ? rows_case->input : INPUT_NORMAL, rows_case->cols, rows_case->seed + (uint64_t)i);
    if (first && rows_case->special)
        fill_special(tensor, rows_case->seed);
    if (first && rows_case->masked)
        fill_masked(tensor, rows_case->seed);
    if (first && rows_case->zeros)
        fill_zeros(tensor, rows_case->seed);
    if (first && rows_case->every_half)
        fill_halves(tensor);
}

static struct run run_make(const struct rows_case *rows_case) {
    struct run run = {.rows_case = rows_case};
    for (int i = 0; i < ROWS_TENSORS; i++) {
        const bool output = i == ROWS_OUT;
        if (output && rows_case->in_place) {
            run.tensor[i] = tensor_view(&run.tensor[rows_case->place], run.tensor[rows_case->place].dtype);
            break;
        }
        run.tensor[i] = tensor_make(dtype_of(rows_case, i), rows_case->rows, rows_case->cols, stride_of(rows_case, i),
                                    rows_case->shift[i], output ? TENSOR_CANARY : TENSOR_NAN);
        if (!output)
            fill(&run.tensor[i], rows_case, i);
    }
    return run;
}

static void run_free(struct run *run) {
    for (int i = 0; i < ROWS_TENSORS; i++)
        tensor_free(&run->tensor[i]);
    tensor_free(&run->workspace);
}

static void upload(const struct fixture *fixture, struct run *run) {
    tensor_upload(fixture, &run->workspace);
    if (run->rows_case->in_place)
        tensor_share(fixture, &run->tensor[run->rows_case->place], &run->tensor[ROWS_OUT]);
    for (int i = 0; i < ROWS_TENSORS; i++)
        tensor_upload(fixture, &run->tensor[i]);
}

static clnorm_args args_of(const struct run *run) {
    clnorm_args args = CLNORM_ARGS_INIT;
    const bool backward = rows_backward(run->rows_case->operation);
    *(run->rows_case->operation == ROWS_SOFTMAX_BACKWARD ? &args.y : &args.x) = tensor_buffer(&run->tensor[ROWS_FIRST]);
    args.dy = tensor_buffer(&run->tensor[ROWS_DY]);
    *(backward ? &args.dx : &args.y) = tensor_buffer(&run->tensor[ROWS_OUT]);
    args.workspace = tensor_buffer(&run->workspace);
    return args;
}

static clnorm_status go(const struct fixture *fixture, struct run *run) {
    clnorm_plan *plan = NULL;
    clnorm_status status = rows_case_plan(fixture->context, run->rows_case, &plan);
    if (status)
        return status;
    run->config = chosen_knobs(plan);
    if (!run->rows_case->one_call)
        run->workspace = plan_workspace(plan);
    upload(fixture, run);
    const clnorm_args args = args_of(run);
    if (!run->rows_case->one_call)
        return plan_run(fixture, plan, &args);
    status = call(fixture->context, fixture->queue, run->rows_case, &args);
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    clnorm_plan_destroy(plan);
    return status;
}

/* ---------------------------------------------------------------------------------------------------- verification */

static double load(const struct tensor *tensor, uint64_t row, uint64_t column) {
    return tensor->dtype ? ref_load(tensor->dtype, tensor_elements(tensor), row * tensor->stride + column) : 0;
}

/* Rows in double, [cols] each, in one block of memory. */
struct reference {
    double *first, *dy;
    struct ref_value *out;
};

static struct reference reference_make(uint64_t cols) {
    struct reference reference = {.out = malloc(cols * (sizeof *reference.out + 2 * sizeof *reference.first))};
    assert_non_null(reference.out);
    reference.first = (double *)(reference.out + cols);
    reference.dy = reference.first + cols;
    return reference;
}

static void compute_row(const struct run *run, const struct ref_arithmetic *arithmetic, uint64_t row,
                        struct reference *reference) {
    const struct rows_case *const c = run->rows_case;
    for (uint64_t i = 0; i < c->cols; i++) {
        reference->first[i] = load(&run->tensor[ROWS_FIRST], row, i);
        reference->dy[i] = load(&run->tensor[ROWS_DY], row, i);
    }
    if (c->operation == ROWS_SOFTMAX)
        ref_softmax(arithmetic, reference->first, c->cols, reference->out);
    else if (c->operation == ROWS_SOFTMAX_BACKWARD)
        ref_softmax_backward(arithmetic, reference->first, reference->dy, c->cols, reference->out);
    else
        for (uint64_t i = 0; i < c->cols; i++)
            reference->out[i] = c->operation == ROWS_GELU
                                    ? ref_gelu(arithmetic, c->form, reference->first[i])
                                    : ref_gelu_backward(arithmetic, c->form, reference->first[i], reference->dy[i]);
}

/* Whether a zero has the expected sign. In softmax's gradient, roundings decide the sign unless all of y is 0. */
static bool same_sign(const struct rows_case *rows_case, double result, double expected) {
    const bool is_defined = rows_case->operation != ROWS_SOFTMAX_BACKWARD || rows_case->zeros;
    return !is_defined || result != 0 || expected != 0 || !signbit(result) == !signbit(expected);
}

static bool check_row(const struct run *run, uint64_t row, const struct reference *reference) {
    const struct tensor *const out = &run->tensor[ROWS_OUT];
    for (uint64_t i = 0; i < run->rows_case->cols; i++) {
        const double result = load(out, row, i);
        if (ref_within(out->dtype, result, reference->out[i]) && same_sign(run->rows_case, result, reference->out[i].value))
            continue;
        print_error("[%" PRIu64 ", %" PRIu64 "] of %g and %g is %.9g, but should be %.9g within %.3g\n", row, i,
                    reference->first[i], reference->dy[i], result, reference->out[i].value, reference->out[i].error);
        return false;
    }
    return true;
}

/* Roundings of a sum over a row. Each vector element of a lane has a chain of additions, whose roundings add up like a
 * random walk, or in one direction where nearly the same number is added again and again. Lanes and elements are then
 * merged in pairs. */
static double sum_roundings(const struct run *run) {
    const double width = (double)run->config.vec * run->config.lanes;
    const double chain = ceil((double)run->rows_case->cols / width);
    return 4 + log2(width) + (run->rows_case->input >= INPUT_SPIKES ? chain : 2 * sqrt(chain));
}

static bool check(const struct run *run) {
    struct ref_arithmetic arithmetic = ref_arithmetic_of(run->rows_case->dtype[ROWS_FIRST]);
    arithmetic.sum = sum_roundings(run);
    struct reference reference = reference_make(run->rows_case->cols);
    bool good = true;
    for (uint64_t row = 0; good && row < run->rows_case->rows; row++) {
        compute_row(run, &arithmetic, row, &reference);
        good = check_row(run, row, &reference);
    }
    free(reference.out);
    return good;
}

/* Reads the output and checks it, and that no other byte was written. In place, host memory still has the overwritten
 * input. */
static bool verify(const struct fixture *fixture, struct run *run) {
    for (int i = 0; i < ROWS_OUT; i++)
        if (!(run->rows_case->in_place && i == run->rows_case->place) &&
            !tensor_unchanged(fixture, &run->tensor[i], i == ROWS_DY ? "dy" : "the first input"))
            return false;
    return tensor_receive(fixture, &run->tensor[ROWS_OUT], "the output") &&
           tensor_receive(fixture, &run->workspace, "workspace") && check(run);
}

static bool run_passes(const struct fixture *fixture, struct run *run) {
    const clnorm_status status = go(fixture, run);
    bool good = status == CLNORM_SUCCESS;
    if (good)
        good = verify(fixture, run);
    else
        print_error("%s: %s\n", clnorm_status_text(status), clnorm_error_detail());
    if (!good)
        print_case(run->rows_case);
    return good;
}

bool rows_case_passes(const struct fixture *fixture, const struct rows_case *rows_case) {
    return rows_case_output(fixture, rows_case, NULL);
}

bool rows_case_output(const struct fixture *fixture, const struct rows_case *rows_case, void *bytes) {
    struct run run = run_make(rows_case);
    const bool good = run_passes(fixture, &run);
    const struct tensor *const out = &run.tensor[ROWS_OUT];
    const size_t size = clnorm_dtype_size(out->dtype);
    for (uint64_t row = 0; good && bytes && row < rows_case->rows; row++)
        memcpy((char *)bytes + row * rows_case->cols * size, (char *)tensor_elements(out) + row * out->stride * size,
               rows_case->cols * size);
    run_free(&run);
    return good;
}
