/* Softmax and GELU: refusals that test_operations.c does not have, each with its status and error message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "knob.h"
#include "rows_case.h"

static const enum rows_operation operations[] = {ROWS_GELU, ROWS_GELU_BACKWARD, ROWS_SOFTMAX, ROWS_SOFTMAX_BACKWARD};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static void assert_refused(const struct fixture *fixture, const struct rows_case *rows_case, clnorm_status expected,
                           const char *words) {
    clnorm_plan *plan = NULL;
    assert_int_equal(rows_case_plan(fixture->context, rows_case, &plan), expected);
    assert_null(plan);
    if (!strstr(clnorm_error_detail(), words))
        fail_msg("%s: \"%s\" does not say %s", rows_name(rows_case->operation), clnorm_error_detail(), words);
}

static void descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    for (int i = 0; i < OPERATIONS; i++) {
        const struct rows_case sound = rows_case_of(operations[i], 4, 40);
        struct rows_case c = sound;
        c.dtype[ROWS_FIRST] = CLNORM_DTYPE_NONE;
        assert_refused(fixture, &c, CLNORM_INVALID_ENUM,
                       operations[i] == ROWS_SOFTMAX_BACKWARD ? "desc.y.dtype" : "desc.x.dtype");
        c = sound;
        c.rows = c.cols = UINT64_C(1) << 40;
        assert_refused(fixture, &c, CLNORM_OVERFLOW, "expected less than 2^63 bytes");
        c = sound;
        c.config.tile = 8;
        assert_refused(fixture, &c, CLNORM_INVALID_VALUE, "desc.config.tile is 8");
        if (operations[i] == ROWS_SOFTMAX || operations[i] == ROWS_SOFTMAX_BACKWARD)
            continue;
        c = sound;
        c.form = (clnorm_gelu_form)3;
        assert_refused(fixture, &c, CLNORM_INVALID_ENUM, "desc.form is 3");
        c = sound;
        c.config.keep = CLN_KEEP_REREAD;
        assert_refused(fixture, &c, CLNORM_INVALID_VALUE, "desc.config.keep is reread");
    }
}

/* A wrong size, and no descriptor. */
static void sizes_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_context *const context = fixture->context;
    clnorm_gelu_desc gelu = CLNORM_GELU_DESC_INIT;
    clnorm_gelu_backward_desc gelu_backward = CLNORM_GELU_BACKWARD_DESC_INIT;
    clnorm_softmax_desc softmax = CLNORM_SOFTMAX_DESC_INIT;
    clnorm_softmax_backward_desc softmax_backward = CLNORM_SOFTMAX_BACKWARD_DESC_INIT;
    gelu.size = gelu_backward.size = softmax.size = softmax_backward.size = 7;
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_gelu_forward_plan_create(context, &gelu, &plan), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_gelu_backward_plan_create(context, &gelu_backward, &plan), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_softmax_forward_plan_create(context, &softmax, &plan), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_softmax_backward_plan_create(context, &softmax_backward, &plan), CLNORM_INVALID_ARGUMENT);
    assert_non_null(strstr(clnorm_error_detail(), "desc.size is 7"));
    assert_int_equal(clnorm_gelu_forward_plan_create(context, NULL, &plan), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_gelu_backward_plan_create(context, NULL, &plan), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_softmax_forward_plan_create(context, NULL, &plan), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_softmax_backward_plan_create(NULL, NULL, &plan), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_gelu_forward(context, fixture->queue, &gelu, NULL, 0, NULL, NULL), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_gelu_backward(NULL, fixture->queue, NULL, NULL, 0, NULL, NULL), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_softmax_forward(context, fixture->queue, NULL, NULL, 0, NULL, NULL), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_softmax_backward(context, fixture->queue, &softmax_backward, NULL, 0, NULL, NULL),
                     CLNORM_INVALID_ARGUMENT);
    assert_null(plan);
}

/* An output lies over an input of another element size. */
static void arguments_are_refused(void **state) {
    const struct fixture *fixture = *state;
    struct tensor large = tensor_make(CLNORM_F32, 4, 40, 40, 0, TENSOR_NAN);
    tensor_upload(fixture, &large);
    struct rows_case c = rows_case_of(ROWS_SOFTMAX_BACKWARD, 4, 40);
    c.dtype[ROWS_OUT] = CLNORM_F16;
    clnorm_plan *plan = NULL;
    assert_int_equal(rows_case_plan(fixture->context, &c, &plan), CLNORM_SUCCESS);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.y = args.dy = args.dx = tensor_buffer(&large);
    assert_int_equal(clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL), CLNORM_INVALID_BUFFER);
    assert_non_null(strstr(clnorm_error_detail(), "args.dx is args."));
    clnorm_plan_destroy(plan);
    assert_true(tensor_unchanged(fixture, &large, "large"));
    tensor_free(&large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_are_refused),
        cmocka_unit_test(sizes_are_refused),
        cmocka_unit_test(arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
