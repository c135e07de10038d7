/* The one-call form keeps plans between calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "norm_case.h"

static struct norm_case small_case(uint64_t rows, uint64_t seed) {
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_LAYER_NORM, rows, 200), .seed = seed};
    norm_case.desc.weight.dtype = CLNORM_F32;
    return norm_case;
}

static void count_programs(const char *line, void *user) {
    unsigned *count = user;
    *count += strstr(line, "program norm") && strstr(line, " ms, "); /* not lines of the driver's build log */
}

static clnorm_context *logging_context(const struct fixture *fixture, unsigned *programs) {
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.cache_dir = "";
    options.log = count_programs;
    options.log_user = programs;
    clnorm_context *context = NULL;
    assert_int_equal(clnorm_context_create(fixture->cl, fixture->device.device, &options, &context), CLNORM_SUCCESS);
    return context;
}

/* Equal descriptors share a plan; another descriptor has another plan. */
static void one_call_keeps_its_plans(void **state) {
    const struct fixture *fixture = *state;
    unsigned programs = 0;
    clnorm_context *context = logging_context(fixture, &programs);
    const struct norm_case norm_case = small_case(4, 5);
    struct norm_run run = norm_run_make(&norm_case);
    norm_run_upload(fixture, &run);
    const clnorm_args args = norm_run_args(&run);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(clnorm_norm_forward(context, fixture->queue, &run.desc, &args, 0, NULL, NULL), CLNORM_SUCCESS);
        assert_int_equal(programs, 1);
    }
    clnorm_norm_desc other = run.desc;
    other.rows = 3;
    assert_int_equal(clnorm_norm_forward(context, fixture->queue, &other, &args, 0, NULL, NULL), CLNORM_SUCCESS);
    assert_int_equal(programs, 2);
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    norm_run_free(&run);
    clnorm_context_destroy(context);
}

/* There are more descriptors than plans that the context keeps, so that those of the second round are planned again. */
static void one_call_copes_with_many_descriptors(void **state) {
    enum { DESCRIPTORS = 150 };
    const struct fixture *fixture = *state;
    for (int round = 0; round < 2; round++) {
        for (uint64_t rows = 1; rows <= DESCRIPTORS; rows++) {
            struct norm_case norm_case = small_case(rows, rows);
            norm_case.desc.cols = 20;
            struct norm_run run = norm_run_make(&norm_case);
            norm_run_upload(fixture, &run);
            const clnorm_args args = norm_run_args(&run);
            assert_int_equal(clnorm_norm_forward(fixture->context, fixture->queue, &run.desc, &args, 0, NULL, NULL),
                             CLNORM_SUCCESS);
            assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
            run.config.vec = run.config.lanes = 1; /* the config is unknown: the tolerance of the longest sum */
            assert_true(norm_run_verify(fixture, &run));
            norm_run_free(&run);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_call_keeps_its_plans),
        cmocka_unit_test(one_call_copes_with_many_descriptors),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
