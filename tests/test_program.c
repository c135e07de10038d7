/* Programs are built once, then come from memory; failed builds; build reports; threads. program_calls.c counts OpenCL's
 * calls on programs, and can refuse them. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program_case.h"
#include "scratch.h"

static void a_program_is_built_once(void **state) {
    struct fixture *const fixture = *state;
    const cl_program first = get(fixture, &program_source, program_seven);
    assert_non_null(strstr(fixture->log, "program fill.cl: built in "));
    assert_non_null(strstr(fixture->log, program_seven));
    const cl_program second = get(fixture, &program_source, program_seven);
    assert_non_null(strstr(fixture->log, "program fill.cl: from memory in "));
    assert_ptr_equal(first, second);
    const cl_program other = get(fixture, &program_source, "-cl-std=CL1.2 -D NUMBER=8");
    assert_non_null(strstr(fixture->log, "built in "));
    assert_ptr_not_equal(first, other);
    assert_int_equal(run(fixture, first), 7);
    assert_int_equal(run(fixture, other), 8);
    clReleaseProgram(first);
    clReleaseProgram(second);
    clReleaseProgram(other);
}

/* There are more programs than a store first has room for. */
static void many_programs_are_kept(void **state) {
    struct fixture *const fixture = *state;
    enum { PROGRAMS = 18 };
    clnorm_context_destroy(fixture->context);
    fixture->context = make_context(fixture, ""); /* no cache: fetching binaries takes as long as building */
    cl_program programs[PROGRAMS];
    char options[PROGRAMS][64];
    for (int i = 0; i < PROGRAMS; i++) {
        snprintf(options[i], sizeof options[i], "-cl-std=CL1.2 -D NUMBER=%d", 100 + i);
        programs[i] = get(fixture, &program_source, options[i]);
    }
    for (int i = 0; i < PROGRAMS; i++) {
        const cl_program again = get(fixture, &program_source, options[i]);
        assert_non_null(strstr(fixture->log, "from memory"));
        assert_ptr_equal(again, programs[i]);
        clReleaseProgram(again);
        clReleaseProgram(programs[i]);
    }
}

static void without_a_folder_nothing_is_kept(void **state) {
    struct fixture *const fixture = *state;
    for (unsigned i = 0; i < 2; i++) {
        clnorm_context_destroy(fixture->context);
        fixture->context = make_context(fixture, "");
        assert_true(comes(fixture, "built"));
    }
    assert_int_equal(scratch_count(fixture->dir), 0);
    assert_int_equal(driver.binaries, 0);
}

/* ---------------------------------------------------------------------------------------------------- failed builds */

static void a_failed_build_is_explained(void **state) {
    struct fixture *const fixture = *state;
    static const char wrong_text[] = "__kernel void fill(__global int *to) {\n    to[0] = undeclared_thing;\n}\n";
    const struct cln_source wrong = {"wrong.cl", wrong_text, sizeof wrong_text - 1, 3};
    cl_program program = NULL;
    assert_int_equal(cln_program_get(fixture->context, &wrong, program_seven, &program), CLNORM_BUILD_FAILED);
    assert_null(program);
    assert_int_equal(clnorm_error_opencl(), CL_BUILD_PROGRAM_FAILURE);
    assert_non_null(strstr(clnorm_error_detail(), "wrong.cl"));
    assert_non_null(strstr(clnorm_error_detail(), program_seven));
    assert_non_null(strstr(clnorm_error_detail(), "undeclared_thing"));
    assert_non_null(strstr(fixture->log, "program wrong.cl: "));
    assert_non_null(strstr(fixture->log, "undeclared_thing"));
    assert_int_equal(scratch_count(fixture->dir), 0);
    assert_int_equal(cln_program_get(fixture->context, &wrong, program_seven, &program), CLNORM_BUILD_FAILED);
    assert_true(comes(fixture, "built"));
}

/* PoCL before 6.0 fails a build while another process builds the same program. */
static void a_lost_build_is_repeated(void **state) {
    struct fixture *const fixture = *state;
    snprintf(fixture->context->device.driver, sizeof fixture->context->device.driver, "5.0");
    fixture->context->device.family = CLNORM_PLATFORM_POCL;
    driver.losses = 7;
    clReleaseProgram(get(fixture, &program_source, program_seven));
    assert_int_equal(driver.losses, 0);
    assert_non_null(strstr(fixture->log, "PoCL before 6.0"));

    cl_program program = NULL;
    static const char eight[] = "-cl-std=CL1.2 -D NUMBER=8";
    driver.losses = 100; /* the repetitions end */
    assert_int_equal(cln_program_get(fixture->context, &program_source, eight, &program), CLNORM_BUILD_FAILED);
    assert_int_equal(driver.losses, 92);
    snprintf(fixture->context->device.driver, sizeof fixture->context->device.driver, "6.0");
    driver.losses = 100; /* a driver without the defect builds once */
    assert_int_equal(cln_program_get(fixture->context, &program_source, eight, &program), CLNORM_BUILD_FAILED);
    assert_int_equal(driver.losses, 99);
    driver.losses = 0;
}

static void wrong_options_are_a_failed_build(void **state) {
    struct fixture *const fixture = *state;
    cl_program program = NULL;
    assert_int_equal(cln_program_get(fixture->context, &program_source, "-cl-no-such-option", &program),
                     CLNORM_BUILD_FAILED);
    assert_non_null(strstr(clnorm_error_detail(), "-cl-no-such-option"));
    assert_null(program);
}

/* ------------------------------------------------------------------------------------------------- reports and threads */

struct getter {
    pthread_t thread;
    clnorm_context *context;
    clnorm_status status;
    cl_program programs[8];
};

static void *get_programs(void *argument) {
    struct getter *const getter = argument;
    for (unsigned i = 0; i < 8; i++) {
        char options[64];
        snprintf(options, sizeof options, "-cl-std=CL1.2 -D NUMBER=%u", 200 + i % 4);
        const clnorm_status status = cln_program_get(getter->context, &program_source, options, &getter->programs[i]);
        if (status != CLNORM_SUCCESS)
            getter->status = status;
    }
    return NULL;
}

/* -cl-nv-verbose is passed only for a report, and only to NVIDIA. It does not count as an option of the program. */
static void a_build_report_is_requested(void **state) {
    struct fixture *const fixture = *state;
    for (unsigned i = 0; i < 4; i++) {
        const bool wanted = i & 1, nvidia = i & 2;
        start_again(fixture);
        fixture->context->build_report = wanted;
        fixture->context->device.family = nvidia ? CLNORM_PLATFORM_NVIDIA : CLNORM_PLATFORM_OTHER;
        driver.refusal = nvidia ? REFUSE_EVERY_BUILD : REFUSE_NOTHING;
        cl_program program = NULL;
        const clnorm_status status = cln_program_get(fixture->context, &program_source, program_seven, &program);
        assert_int_equal(driver.verbose, wanted && nvidia);
        assert_int_equal(status == CLNORM_SUCCESS, !nvidia);
        if (program)
            clReleaseProgram(program);
        assert_null(strstr(fixture->log, "verbose"));
    }
}

static void threads_share_programs(void **state) {
    struct fixture *const fixture = *state;
    enum { THREADS = 4 };
    if (fixture->device.family == CLNORM_PLATFORM_OCLGRIND)
        skip(); /* two builds at once crash it */
    struct getter getters[THREADS];
    memset(getters, 0, sizeof getters);
    fixture->context->log = NULL; /* take_line is for one thread */
    for (size_t t = 0; t < THREADS; t++) {
        getters[t].context = fixture->context;
        assert_int_equal(pthread_create(&getters[t].thread, NULL, get_programs, &getters[t]), 0);
    }
    for (size_t t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_join(getters[t].thread, NULL), 0);
        assert_int_equal(getters[t].status, CLNORM_SUCCESS);
    }
    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < 8; i++) {
            assert_ptr_equal(getters[t].programs[i], getters[0].programs[i % 4]);
            if (t == 0 && i < 4)
                assert_int_equal(run(fixture, getters[t].programs[i]), 200 + (cl_int)i);
        }
    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < 8; i++)
            clReleaseProgram(getters[t].programs[i]);
}

int main(void) {
    program_calls_start();
    const struct CMUnitTest tests[] = {
        program_test(a_program_is_built_once),          program_test(many_programs_are_kept),
        program_test(without_a_folder_nothing_is_kept), program_test(a_failed_build_is_explained),
        program_test(a_lost_build_is_repeated),         program_test(wrong_options_are_a_failed_build),
        program_test(a_build_report_is_requested),      program_test(threads_share_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
