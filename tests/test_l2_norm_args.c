/* L2 norm: refused descriptors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "refusal.h"

static void refuse(const struct fixture *fixture, const clnorm_l2_norm_desc *desc, clnorm_status status, const char *said) {
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_l2_norm_plan_create(fixture->context, desc, &plan), status);
    assert_null(plan);
    assert_detail(said);
}

static void refuse_backward(const struct fixture *fixture, const clnorm_l2_norm_backward_desc *desc, clnorm_status status,
                            const char *said) {
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_l2_norm_backward_plan_create(fixture->context, desc, &plan), status);
    assert_null(plan);
    assert_detail(said);
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_l2_norm_desc good;
    clnorm_l2_norm_desc_init(&good);
    good.rows = 4;
    good.cols = 64;
    clnorm_l2_norm_desc desc = good;
    desc.eps = NAN;
    refuse(fixture, &desc, CLNORM_INVALID_VALUE, "desc.eps is nan");
    desc = good;
    desc.eps_mode = (clnorm_eps_mode)3;
    refuse(fixture, &desc, CLNORM_INVALID_ENUM, "desc.eps_mode is 3: expected a clnorm_eps_mode");
    desc = good;
    desc.weight_rows = 2;
    refuse(fixture, &desc, CLNORM_INVALID_VALUE, "desc.weight_rows is 2: expected 0 without weight");
    desc.weight.dtype = CLNORM_F32;
    desc.weight_repeat = 3;
    refuse(fixture, &desc, CLNORM_INVALID_SHAPE,
           "desc.rows is 4: expected a multiple of weight_rows x weight_repeat, 2 x 3");
    desc = good;
    desc.group_size = 48;
    refuse(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.group_size is 48: expected a divisor of cols, 64");
    desc = good;
    desc.save_norm = 2;
    refuse(fixture, &desc, CLNORM_INVALID_VALUE, "desc.save_norm is 2: expected 0 or 1");
    desc = good;
    desc.weight.dtype = CLNORM_F8_E4M3;
    refuse(fixture, &desc, CLNORM_UNSUPPORTED, "desc.weight.dtype is f8e4m3");
    desc = good;
    desc.config = config_of("tile=64");
    refuse(fixture, &desc, CLNORM_INVALID_VALUE, "desc.config.tile");
    desc = good;
    desc.rows = UINT64_MAX;
    refuse(fixture, &desc, CLNORM_OVERFLOW, "x has 18446744073709551615");
    clnorm_l2_norm_backward_desc backward = CLNORM_L2_NORM_BACKWARD_DESC_INIT;
    backward.rows = 4;
    backward.cols = 64;
    backward.norm_given = 2;
    refuse_backward(fixture, &backward, CLNORM_INVALID_VALUE, "desc.norm_given is 2: expected 0 or 1");
    backward.norm_given = 0;
    backward.rows = UINT64_C(1) << 61;
    backward.cols = 1;
    backward.x.dtype = CLNORM_F16;
    backward.dweight.dtype = CLNORM_F32;
    refuse_backward(fixture, &backward, CLNORM_UNSUPPORTED,
                    "desc.rows is 2305843009213693952, desc.cols is 1: expected fewer");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bad_descriptors_are_refused)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
