/* Descriptors and buffers of quantize that are refused, each with its status and error message. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "refusal.h"

static void check_refused(const struct fixture *fixture, const clnorm_quantize_desc *desc, clnorm_status status,
                          const char *said) {
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_quantize_plan_create(fixture->context, desc, &plan), status);
    assert_null(plan);
    assert_detail(said);
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_quantize_desc good = CLNORM_QUANTIZE_DESC_INIT;
    good.rows = 4;
    good.cols = 64;
    clnorm_quantize_desc desc = good;
    desc.size = 8;
    check_refused(fixture, &desc, CLNORM_INVALID_ARGUMENT, "desc.size is 8");
    desc = good;
    desc.cols = 0;
    check_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.cols is 0");
    desc = good;
    desc.x.dtype = CLNORM_F8_E4M3;
    check_refused(fixture, &desc, CLNORM_UNSUPPORTED, "desc.x.dtype is f8e4m3: expected f32");
    desc = good;
    desc.q.dtype = CLNORM_F16;
    check_refused(fixture, &desc, CLNORM_UNSUPPORTED, "desc.q.dtype is f16: expected f8e4m3");
    desc = good;
    desc.q.scale_dtype = (clnorm_dtype)77;
    check_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.q.scale_dtype is 77");
    desc = good;
    desc.q.scaling = (clnorm_scaling)9;
    check_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.q.scaling is 9");
    desc = good;
    desc.q.scale_group = 16;
    check_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.q.scale_group is 16");
    desc.q.scale_group = 0;
    desc.q.scaling = CLNORM_SCALING_GROUP;
    check_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.q.scale_group is 0");
    desc = good;
    desc.x.stride = 63;
    check_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.x.stride is 63");
    desc = good;
    desc.q_t.dtype = desc.q.dtype;
    desc.q_t.stride = 3;
    check_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.q_t.stride is 3: expected at least rows");
    desc.q_t.stride = 0;
    desc.q_t.scaling = CLNORM_SCALING_TENSOR;
    check_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.q_t.scaling is 1: expected 0, its scales are those of q");
    const double scales[] = {-1, INFINITY, NAN, 1e-300, 1e300};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        desc = good;
        desc.q.scale = scales[i];
        check_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.q.scale is ");
    }
    desc = good;
    desc.q.scale = 1;
    desc.q.scaling = CLNORM_SCALING_ROW;
    check_refused(fixture, &desc, CLNORM_INVALID_VALUE, "without CLNORM_SCALING_TENSOR");
    desc = good;
    desc.seed = 1;
    check_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.seed is 1");
    desc = good;
    desc.cols = 63;
    desc.q.scaling = CLNORM_SCALING_GROUP;
    desc.q.scale_group = 21;
    KNOB(desc.config, vec) = 2;
    check_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.config.vec is 2");
    desc = good;
    KNOB(desc.config, keep) = CLN_KEEP_REGISTERS;
    check_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.config.keep is registers");
    KNOB(desc.config, keep) = CLN_KEEP_LOCAL;
    check_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.config.keep is local");
    desc = good;
    desc.rows = UINT64_MAX / 2;
    check_refused(fixture, &desc, CLNORM_OVERFLOW, "x has");
}

/* A scale for each column, in a buffer of one scale. */
static void small_buffers_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_quantize_desc desc = CLNORM_QUANTIZE_DESC_INIT;
    desc.rows = 5;
    desc.cols = 96;
    desc.q.scaling = CLNORM_SCALING_GROUP;
    desc.q.scale_group = 1;
    struct tensor x = tensor_make(CLNORM_F32, 5, 96, 96, 0, TENSOR_NAN);
    struct tensor q = tensor_make(CLNORM_F8_E4M3, 5, 96, 96, 0, TENSOR_CANARY);
    struct tensor scale = tensor_make(CLNORM_F32, 1, 1, 1, 0, TENSOR_CANARY);
    struct tensor *const all[] = {&x, &q, &scale};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tensor_upload(fixture, all[i]);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&x);
    args.q = tensor_buffer(&q);
    args.scale = tensor_buffer(&scale);
    assert_int_equal(clnorm_quantize(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL), CLNORM_INVALID_BUFFER);
    assert_non_null(strstr(clnorm_error_detail(), "args.scale.mem has "));
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(tensor_unchanged(fixture, all[i], "a tensor"));
        tensor_free(all[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_descriptors_are_refused),
        cmocka_unit_test(small_buffers_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
