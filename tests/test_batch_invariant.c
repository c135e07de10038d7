/* With batch_invariant a row's bits depend neither on the number of rows in the call, nor on where its tensors lie. The
 * knobs that fix the order of sums must be the same for 1 to 300 rows, and results for a few numbers of rows are compared
 * bit by bit. Only GPUs have other kernels for tensors that are not aligned. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "operation/operation.h"
#include "plan/plan.h"
#include "refusal.h"

enum { MOST_ROWS = 300 };

static const uint64_t widths[] = {100, 4096, 65536, 131072, 262144};

/* In rows of an odd width, each begins elsewhere within a vector. With streaming stores CPUs use vectors at aligned
 * addresses alone, as GPUs always do. */
static const struct shape {
    uint64_t rows, cols;
    const char *config;
} shapes[] = {{MOST_ROWS, 100, ""}, {MOST_ROWS, 4096, ""}, {33, 65536, ""}, {33, 131072, ""},
              {33, 262144, ""},     {40, 1001, ""},        {40, 1025, ""},  {40, 1001, "stores=streaming"}};

/* The matrix that an operation writes row by row. */
static enum cln_role output_of(const struct cln_operation *operation) {
    for (unsigned i = 0; i < operation->tensor_count; i++)
        if (operation->tensors[i].role == CLN_DX)
            return CLN_DX;
    return CLN_Y;
}

/* A descriptor of bf16 inputs, with a weight if the operation has one, and one output of f32, in which the order of sums
 * shows. */
static void describe(const struct cln_operation *operation, const struct shape *shape, unsigned char *desc) {
    const uint32_t invariant = 1;
    cln_operation_init(operation, desc);
    ((struct cln_desc_head *)(void *)desc)->rows = shape->rows;
    ((struct cln_desc_head *)(void *)desc)->cols = shape->cols;
    memcpy(desc + operation->batch_invariant, &invariant, sizeof invariant);
    *(clnorm_config *)(void *)(desc + operation->config) = config_of(shape->config);
    for (unsigned i = 0; i < operation->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &operation->tensors[i];
        clnorm_tensor *const tensor = (clnorm_tensor *)(void *)(desc + rule->offset);
        if (i == 0)
            tensor->dtype = CLNORM_BF16;
        else if (rule->role == CLN_WEIGHT || rule->role == output_of(operation))
            tensor->dtype = CLNORM_F32;
    }
}

static clnorm_plan *plan_of(const struct fixture *fixture, const struct cln_operation *operation,
                            const struct shape *shape) {
    _Alignas(max_align_t) unsigned char desc[CLN_DESC_MOST];
    clnorm_plan *plan = NULL;
    describe(operation, shape, desc);
    if (cln_operation_plan_create(operation, fixture->context, desc, &plan))
        fail_msg("%s: %s", operation->name, clnorm_error_detail());
    return plan;
}

/* The knobs that the order of a row's sums depends on. */
static struct cln_config order_of(const clnorm_plan *plan) {
    struct cln_config order = plan->config;
    order.iterations = order.run_length = 0;
    return order;
}

static void knobs_do_not_depend_on_rows(void **state) {
    const struct fixture *fixture = *state;
    for (size_t o = 0; cln_operations[o]; o++)
        for (size_t w = 0; cln_operations[o]->batch_invariant && w < sizeof widths / sizeof *widths; w++) {
            clnorm_plan *plan = plan_of(fixture, cln_operations[o], &(struct shape){MOST_ROWS, widths[w], ""});
            const struct cln_config expected = order_of(plan);
            clnorm_plan_destroy(plan);
            for (uint64_t rows = 1; rows < MOST_ROWS; rows++) {
                plan = plan_of(fixture, cln_operations[o], &(struct shape){rows, widths[w], ""});
                const struct cln_config order = order_of(plan);
                if (memcmp(&order, &expected, sizeof order) != 0)
                    fail_msg("%s, %" PRIu64 " x %" PRIu64 ": %s", cln_operations[o]->name, rows, widths[w], plan->note);
                clnorm_plan_destroy(plan);
            }
        }
}

/* ---------------------------------------------------------------------------------------------------------- results */

struct tensors {
    struct tensor input, weight, output;
};

/* shift: elements by which the tensors lie behind an aligned address. */
static struct tensors tensors_make(const struct fixture *fixture, uint64_t rows, uint64_t cols, uint64_t shift) {
    struct tensors tensors = {tensor_make(CLNORM_BF16, rows, cols, cols, shift, TENSOR_NAN),
                              tensor_make(CLNORM_F32, 1, cols, cols, shift, TENSOR_NAN),
                              tensor_make(CLNORM_F32, rows, cols, cols, shift, TENSOR_NAN)};
    tensor_fill(&tensors.input, INPUT_NORMAL, cols, 5);
    tensor_fill(&tensors.weight, INPUT_NORMAL, cols, 6);
    tensor_upload(fixture, &tensors.input);
    tensor_upload(fixture, &tensors.weight);
    return tensors;
}

static void tensors_free(struct tensors *tensors) {
    tensor_free(&tensors->input);
    tensor_free(&tensors->weight);
    tensor_free(&tensors->output);
}

/* Runs an operation over as many rows of the input as the shape has, and copies its output to bytes. The first one's result
 * is the first row of the output. */
static void run(const struct fixture *fixture, const struct cln_operation *operation, const struct shape *shape,
                uint64_t first, struct tensors *tensors, unsigned char *bytes) {
    struct tensor *const output = &tensors->output;
    clnorm_buffer input = tensor_buffer(&tensors->input);
    input.offset += 2 * first * output->cols;
    clnorm_plan *plan = plan_of(fixture, operation, shape);
    clnorm_args args = CLNORM_ARGS_INIT;
    tensor_upload(fixture, output); /* NaNs in place of an earlier run's results */
    if (plan->tensor[CLN_X].element)
        args.x = input;
    if (plan->tensor[CLN_DY].element)
        args.dy = input;
    if (plan->tensor[CLN_WEIGHT].element)
        args.weight = tensor_buffer(&tensors->weight);
    if (plan->tensor[CLN_Y].element)
        args.y = plan->tensor[CLN_Y].written ? tensor_buffer(output) : input;
    if (plan->tensor[CLN_DX].element)
        args.dx = tensor_buffer(output);
    if (clnorm_plan_workspace_size(plan))
        args.workspace.mem = fixture_buffer(fixture, CL_MEM_READ_WRITE, (size_t)clnorm_plan_workspace_size(plan));
    if (clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL))
        fail_msg("%s: %s", operation->name, clnorm_error_detail());
    assert_int_equal(clEnqueueReadBuffer(fixture->queue, output->mem, CL_TRUE, output->first,
                                         (size_t)(4 * shape->rows * output->cols), bytes, 0, NULL, NULL),
                     CL_SUCCESS);
    if (args.workspace.mem)
        clReleaseMemObject(args.workspace.mem);
    clnorm_plan_destroy(plan);
}

/* Fails where rows from first on, run alone, have other bits than among all rows of the shape. */
static void check_rows(const struct fixture *fixture, const struct cln_operation *operation, const struct shape *shape,
                       uint64_t first, uint64_t rows, struct tensors *tensors, const unsigned char *all) {
    const size_t row = (size_t)(4 * shape->cols), bytes = (size_t)rows * row;
    const struct shape part = {rows, shape->cols, shape->config};
    unsigned char *const few = malloc(bytes);
    assert_non_null(few);
    run(fixture, operation, &part, first, tensors, few);
    if (memcmp(few, all + (size_t)first * row, bytes) != 0)
        fail_msg("%s, %" PRIu64 " columns, '%s': %" PRIu64 "%s rows from %" PRIu64 " on have other bits than all %" PRIu64,
                 operation->name, shape->cols, shape->config, rows, rows < shape->rows ? "" : " shifted", first,
                 shape->rows);
    free(few);
}

/* Compares results for fewer rows, for rows alone, and for shifted tensors, with those for all rows. */
static void check_bits(const struct fixture *fixture, const struct cln_operation *operation, const struct shape *shape,
                       struct tensors *aligned, struct tensors *shifted) {
    const uint64_t most = shape->rows, rows[] = {1, 2, 17, most - 1}, alone[] = {1, 2, 3, most - 1};
    unsigned char *const all = malloc((size_t)(4 * most * shape->cols));
    assert_non_null(all);
    run(fixture, operation, shape, 0, aligned, all);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_rows(fixture, operation, shape, 0, rows[i], aligned, all);
    for (size_t i = 0; shape->cols % 2 && i < sizeof alone / sizeof *alone; i++) /* other rows begin at vectors */
        check_rows(fixture, operation, shape, alone[i], 1, aligned, all);
    check_rows(fixture, operation, shape, 0, most, shifted, all);
    free(all);
}

static void rows_have_the_same_bits(void **state) {
    const struct fixture *fixture = *state;
    unsigned operations = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (fixture->device.family == CLNORM_PLATFORM_MESA && *shapes[i].config) /* it has no streaming stores */
            continue;
        struct tensors aligned = tensors_make(fixture, shapes[i].rows, shapes[i].cols, 0);
        struct tensors shifted = tensors_make(fixture, shapes[i].rows, shapes[i].cols, 3);
        for (size_t o = 0; cln_operations[o]; o++)
            if (cln_operations[o]->batch_invariant) {
                check_bits(fixture, cln_operations[o], &shapes[i], &aligned, &shifted);
                operations++;
            }
        tensors_free(&aligned);
        tensors_free(&shifted);
    }
    assert_true(operations > 0);
}

/* Statistics that a backward computes itself are summed as its config says, though streaming many rows would be faster. */
static void statistics_are_summed_alike(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t rows[] = {8, 9000}; /* of 1001 floats: 34 MiB */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
        clnorm_plan *plan = NULL;
        char text[8192];
        desc.rows = rows[i];
        desc.cols = 1001;
        desc.dx.dtype = CLNORM_F32;
        desc.batch_invariant = 1;
        assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
        assert_true(clnorm_plan_describe(plan, text, sizeof text) < sizeof text);
        assert_null(strstr(text, "LEADS=1"));
        clnorm_plan_destroy(plan);
    }
}

/* One measured scale of y depends on every row; scales of rows, and a given one, do not. */
static void a_scale_of_every_row_is_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.rows = 4;
    desc.cols = 64;
    desc.batch_invariant = 1;
    desc.y = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_TENSOR};
    assert_int_equal(clnorm_norm_forward_validate(fixture->context, &desc, NULL), CLNORM_INVALID_VALUE);
    assert_detail("desc.batch_invariant is 1: expected 0 with one measured scale of desc.y");
    desc.y.scale = 0.5;
    assert_int_equal(clnorm_norm_forward_validate(fixture->context, &desc, NULL), CLNORM_SUCCESS);
    desc.y.scale = 0;
    desc.y.scaling = CLNORM_SCALING_ROW;
    assert_int_equal(clnorm_norm_forward_validate(fixture->context, &desc, NULL), CLNORM_SUCCESS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knobs_do_not_depend_on_rows),
        cmocka_unit_test(rows_have_the_same_bits),
        cmocka_unit_test(statistics_are_summed_alike),
        cmocka_unit_test(a_scale_of_every_row_is_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
