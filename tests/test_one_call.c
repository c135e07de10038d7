/* The one-call form: what it keeps between calls. */
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
    norm_case.desc.weight_dtype = CLNORM_F32;
    return norm_case;
}

static void count_programs(const char *line, void *user) {
    unsigned *count = user;
    *count += strstr(line, "program norm") && strstr(line, " ms, "); /* and not a line of the driver's build log */
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

/* A copy whose bytes between fields are something else. */
static clnorm_norm_desc copy_with_padding(const clnorm_norm_desc *desc, int padding) {
    clnorm_norm_desc copy;
    memset(&copy, padding, sizeof copy);
    copy.size = desc->size;
    copy.norm = desc->norm;
    copy.rows = desc->rows;
    copy.cols = desc->cols;
    copy.group_size = desc->group_size;
    copy.x_stride = desc->x_stride;
    copy.y_stride = desc->y_stride;
    copy.z_stride = desc->z_stride;
    copy.residual_stride = desc->residual_stride;
    copy.residual_out_stride = desc->residual_out_stride;
    copy.y_group_size = desc->y_group_size;
    copy.x_dtype = desc->x_dtype;
    copy.y_dtype = desc->y_dtype;
    copy.z_dtype = desc->z_dtype;
    copy.weight_dtype = desc->weight_dtype;
    copy.bias_dtype = desc->bias_dtype;
    copy.residual_dtype = desc->residual_dtype;
    copy.residual_out_dtype = desc->residual_out_dtype;
    copy.activation = desc->activation;
    copy.gate = desc->gate;
    copy.y_scaling = desc->y_scaling;
    copy.gate_first = desc->gate_first;
    copy.save_mean = desc->save_mean;
    copy.save_rstd = desc->save_rstd;
    copy.save_mask = desc->save_mask;
    copy.row_scale = desc->row_scale;
    copy.eps = desc->eps;
    copy.weight_offset = desc->weight_offset;
    copy.dropout = desc->dropout;
    copy.y_scale = desc->y_scale;
    copy.config = desc->config;
    return copy;
}

/* The same descriptor is planned once, whatever lies between its fields; another one is another plan. */
static void one_call_keeps_its_plans(void **state) {
    const struct fixture *fixture = *state;
    unsigned programs = 0;
    clnorm_context *context = logging_context(fixture, &programs);
    const struct norm_case norm_case = small_case(4, 5);
    struct norm_run run = norm_run_make(&norm_case);
    norm_run_upload(fixture, &run);
    const clnorm_args args = norm_run_args(&run);
    for (int i = 0; i < 3; i++) {
        const clnorm_norm_desc desc = copy_with_padding(&run.desc, 0x11 * i);
        assert_int_equal(clnorm_norm_forward(context, fixture->queue, &desc, &args, 0, NULL, NULL), CLNORM_SUCCESS);
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

/* More descriptors than the context keeps plans of; the first ones come again. */
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
            run.config.vec = run.config.lanes = 1; /* whatever it was, no sum was longer */
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
