/* Sums of squares beyond the range of f32: results are those that the headers give at eps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

enum { COLS = 4096 };

/* Normalises the row x into y, with its statistic, rstd or length, in args.norm. */
typedef clnorm_status (*run_fn)(const struct fixture *fixture, const clnorm_args *args);

static clnorm_status run_rms_norm(const struct fixture *fixture, const clnorm_args *args) {
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.norm = CLNORM_RMS_NORM;
    desc.rows = 1;
    desc.cols = COLS;
    desc.eps = 0;
    desc.save_rstd = 1;
    clnorm_args own = *args;
    own.rstd = own.norm;
    own.norm.mem = NULL;
    return clnorm_norm_forward(fixture->context, fixture->queue, &desc, &own, 0, NULL, NULL);
}

static clnorm_status run_l2_norm(const struct fixture *fixture, const clnorm_args *args) {
    clnorm_l2_norm_desc desc = CLNORM_L2_NORM_DESC_INIT;
    desc.rows = 1;
    desc.cols = COLS;
    desc.eps = 0;
    desc.save_norm = 1;
    return clnorm_l2_norm(fixture->context, fixture->queue, &desc, args, 0, NULL, NULL);
}

/* Every |y| and the statistic of a row of ±value. */
static void check(const struct fixture *fixture, run_fn run, float value, float statistic, float y) {
    float x[COLS], got[COLS], of_row = 0;
    cl_int code;
    for (size_t i = 0; i < COLS; i++)
        x[i] = i % 2 ? -value : value;
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = clCreateBuffer(fixture->cl, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof x, x, &code);
    assert_int_equal(code, CL_SUCCESS);
    args.y.mem = fixture_buffer(fixture, CL_MEM_WRITE_ONLY, sizeof x);
    args.norm.mem = fixture_buffer(fixture, CL_MEM_WRITE_ONLY, sizeof of_row);
    if (run(fixture, &args))
        fail_msg("%s", clnorm_error_detail());
    assert_int_equal(clEnqueueReadBuffer(fixture->queue, args.y.mem, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL),
                     CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(fixture->queue, args.norm.mem, CL_TRUE, 0, sizeof of_row, &of_row, 0, NULL, NULL),
                     CL_SUCCESS);
    for (size_t i = 0; i < COLS; i++)
        if (fabsf(got[i]) != y || of_row != statistic)
            fail_msg("|x| %g: y %g, expected %g; statistic %g, expected %g", (double)value, (double)got[i], (double)y,
                     (double)of_row, (double)statistic);
    clReleaseMemObject(args.x.mem);
    clReleaseMemObject(args.y.mem);
    clReleaseMemObject(args.norm.mem);
}

static void sums_of_squares_overflow_and_vanish(void **state) {
    const struct fixture *fixture = *state;
    check(fixture, run_rms_norm, 0x1p50F, 0x1p-50F, 1); /* a sum of 2^112, within the range */
    check(fixture, run_rms_norm, 1e30F, 0, 0);
    check(fixture, run_rms_norm, 1e18F, 0, 0);
    check(fixture, run_rms_norm, 1e-23F, INFINITY, INFINITY);
    check(fixture, run_l2_norm, 0x1p50F, 0x1p56F, 0x1p-6F);
    check(fixture, run_l2_norm, 1e30F, INFINITY, 0);
    check(fixture, run_l2_norm, 1e18F, INFINITY, 0);
    check(fixture, run_l2_norm, 1e-23F, 0, INFINITY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_squares_overflow_and_vanish),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
