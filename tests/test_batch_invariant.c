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

/* The matrix that an operation writes row by row. */
static enum cln_role output_of(const struct cln_operation *operation) {
    for (unsigned i = 0; i < operation->tensor_count; i++)
        if (operation->tensors[i].role == CLN_DX)
            return CLN_DX;
    return CLN_Y;
}

/* A descriptor of bf16 inputs, with a weight if the operation has one, and one output of f32, in which the order of sums
 * shows. */
static void describe(const struct cln_operation *operation, uint64_t rows, uint64_t cols, unsigned char *desc) {
    const uint32_t invariant = 1;
    cln_operation_init(operation, desc);
    ((struct cln_desc_head *)(void *)desc)->rows = rows;
    ((struct cln_desc_head *)(void *)desc)->cols = cols;
    memcpy(desc + operation->batch_invariant, &invariant, sizeof invariant);
    for (unsigned i = 0; i < operation->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &operation->tensors[i];
        clnorm_tensor *const tensor = (clnorm_tensor *)(void *)(desc + rule->offset);
        if (i == 0)
            tensor->dtype = CLNORM_BF16;
        else if (rule->role == CLN_WEIGHT || rule->role == output_of(operation))
            tensor->dtype = CLNORM_F32;
    }
}

static clnorm_plan *plan_of(const struct fixture *fixture, const struct cln_operation *operation, uint64_t rows,
                            uint64_t cols) {
    _Alignas(max_align_t) unsigned char desc[CLN_DESC_MOST];
    clnorm_plan *plan = NULL;
    describe(operation, rows, cols, desc);
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
            clnorm_plan *plan = plan_of(fixture, cln_operations[o], MOST_ROWS, widths[w]);
            const struct cln_config expected = order_of(plan);
            clnorm_plan_destroy(plan);
            for (uint64_t rows = 1; rows < MOST_ROWS; rows++) {
                plan = plan_of(fixture, cln_operations[o], rows, widths[w]);
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

/* Runs an operation over the first rows, and copies its output to bytes. */
static void run(const struct fixture *fixture, const struct cln_operation *operation, uint64_t rows,
                struct tensors *tensors, unsigned char *bytes) {
    struct tensor *const output = &tensors->output;
    clnorm_plan *plan = plan_of(fixture, operation, rows, output->cols);
    clnorm_args args = CLNORM_ARGS_INIT;
    tensor_upload(fixture, output); /* NaNs in place of an earlier run's results */
    if (plan->tensor[CLN_X].element)
        args.x = tensor_buffer(&tensors->input);
    if (plan->tensor[CLN_DY].element)
        args.dy = tensor_buffer(&tensors->input);
    if (plan->tensor[CLN_WEIGHT].element)
        args.weight = tensor_buffer(&tensors->weight);
    if (plan->tensor[CLN_Y].element)
        args.y = tensor_buffer(plan->tensor[CLN_Y].written ? output : &tensors->input);
    if (plan->tensor[CLN_DX].element)
        args.dx = tensor_buffer(output);
    if (clnorm_plan_workspace_size(plan))
        args.workspace.mem = fixture_buffer(fixture, CL_MEM_READ_WRITE, (size_t)clnorm_plan_workspace_size(plan));
    if (clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL))
        fail_msg("%s: %s", operation->name, clnorm_error_detail());
    assert_int_equal(clEnqueueReadBuffer(fixture->queue, output->mem, CL_TRUE, output->first,
                                         (size_t)(4 * rows * output->cols), bytes, 0, NULL, NULL),
                     CL_SUCCESS);
    if (args.workspace.mem)
        clReleaseMemObject(args.workspace.mem);
    clnorm_plan_destroy(plan);
}

/* Compares results for fewer rows, and for shifted tensors, with those for all rows. */
static void check_bits(const struct fixture *fixture, const struct cln_operation *operation, struct tensors *aligned,
                       struct tensors *shifted) {
    const uint64_t most = aligned->output.rows, cols = aligned->output.cols;
    const uint64_t rows[] = {1, 2, 17, most - 1, most};
    unsigned char *const all = malloc((size_t)(4 * most * cols)), *const few = malloc((size_t)(4 * most * cols));
    assert_true(all && few);
    run(fixture, operation, most, aligned, all);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run(fixture, operation, rows[i], rows[i] < most ? aligned : shifted, few);
        if (memcmp(few, all, (size_t)(4 * rows[i] * cols)) != 0)
            fail_msg("%s, %" PRIu64 " columns: %" PRIu64 "%s rows have other bits than %" PRIu64, operation->name, cols,
                     rows[i], rows[i] < most ? "" : " shifted", most);
    }
    free(all);
    free(few);
}

static void rows_have_the_same_bits(void **state) {
    const struct fixture *fixture = *state;
    unsigned operations = 0;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        const uint64_t most = widths[w] > 4096 ? 33 : MOST_ROWS;
        struct tensors aligned = tensors_make(fixture, most, widths[w], 0);
        struct tensors shifted = tensors_make(fixture, most, widths[w], 3);
        for (size_t o = 0; cln_operations[o]; o++)
            if (cln_operations[o]->batch_invariant) {
                check_bits(fixture, cln_operations[o], &aligned, &shifted);
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
