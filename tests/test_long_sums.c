/* Sums of rows so long that a lane of a CPU adds up a million vectors. Equal terms make every rounding error of a chain of
 * additions point the same way for a while, so that a long chain loses the most. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "plan_run.h"
#include "reference/format.h"

enum { COLS = 1 << 24 };

/* The chains of a lane have fewer than 1024 terms together, with an error of 2^-24 of the sum each. */
static const double most = 0x1p-14;

/* A row whose first element is another one. */
static struct tensor row_of(const struct fixture *fixture, double first, double others) {
    struct tensor x = tensor_make(CLNORM_F32, 1, COLS, COLS, 0, TENSOR_NAN);
    for (uint64_t i = 0; i < COLS; i++)
        ref_store(CLNORM_F32, tensor_elements(&x), i, i ? others : first);
    tensor_upload(fixture, &x);
    return x;
}

static void norms_are_accurate(void **state) {
    const struct fixture *fixture = *state;
    const double one = (double)1.1F, squares = COLS * (one * one);
    struct tensor x = row_of(fixture, one, one), length = tensor_make(CLNORM_F32, 1, 1, 1, 0, TENSOR_CANARY);
    clnorm_l2_norm_desc l2 = CLNORM_L2_NORM_DESC_INIT;
    l2.rows = 1;
    l2.cols = COLS;
    l2.save_norm = 1;
    l2.config = config_of("chunks=1");
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_l2_norm_plan_create(fixture->context, &l2, &plan), CLNORM_SUCCESS);
    struct tensor workspace = plan_workspace(plan);
    tensor_upload(fixture, &length);
    tensor_upload(fixture, &workspace);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = args.y = tensor_buffer(&x);
    args.norm = tensor_buffer(&length);
    args.workspace = tensor_buffer(&workspace);
    assert_int_equal(plan_run(fixture, plan, &args), CLNORM_SUCCESS);
    assert_true(tensor_receive(fixture, &length, "norm"));
    assert_true(tensor_holds(&length, "norm", 0, 0, sqrt(squares), most / 2 * sqrt(squares)));
    tensor_free(&x);
    tensor_free(&length);
    tensor_free(&workspace);
}

/* Terms of e^-0.1 beside one of 1. */
static void softmax_is_accurate(void **state) {
    const struct fixture *fixture = *state;
    const double x_of_others = (double)-0.1F, expected = 1 / (1 + (COLS - 1) * exp(x_of_others));
    struct tensor x = row_of(fixture, 0, x_of_others);
    clnorm_softmax_desc desc = CLNORM_SOFTMAX_DESC_INIT;
    desc.rows = 1;
    desc.cols = COLS;
    desc.config = config_of("chunks=1");
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_softmax_forward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
    struct tensor workspace = plan_workspace(plan);
    tensor_upload(fixture, &workspace);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = args.y = tensor_buffer(&x);
    args.workspace = tensor_buffer(&workspace);
    assert_int_equal(plan_run(fixture, plan, &args), CLNORM_SUCCESS);
    assert_true(tensor_receive(fixture, &x, "y"));
    assert_true(tensor_holds(&x, "y", 0, 0, expected, most * expected));
    tensor_free(&x);
    tensor_free(&workspace);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(norms_are_accurate), cmocka_unit_test(softmax_is_accurate)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
