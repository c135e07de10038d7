/* Forward normalisation of segments that several work-groups share: chunks of unequal length, empty chunks, and every fused
 * operation; when the library chooses chunks; and bits that depend on the config alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_case.h"
#include "reference/reference.h"

static struct norm_case case_of(clnorm_norm norm, uint64_t rows, uint64_t cols, struct cln_config config) {
    struct norm_case norm_case = {.desc = norm_desc_of(norm, rows, cols), .seed = rows * cols};
    clnorm_norm_desc *desc = &norm_case.desc;
    desc->weight.dtype = desc->bias.dtype = CLNORM_F32;
    desc->save_mean = norm == CLNORM_LAYER_NORM;
    desc->save_rstd = true;
    desc->config = forced(config);
    KNOB(desc->config, keep) = CLN_KEEP_REREAD;
    KNOB(desc->config, segments) = 1;
    return norm_case;
}

static void segments_of_any_length(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        clnorm_norm norm;
        uint64_t rows, cols, group_size;
        struct cln_config config;
        enum input input;
    } cases[] = {
        {CLNORM_LAYER_NORM, 3, 4099, 0, {.vec = 1, .lanes = 8, .chunks = 7}, INPUT_FAR},
        {CLNORM_LAYER_NORM, 3, 4096, 0, {.vec = 4, .lanes = 64, .chunks = 16}, INPUT_SPIKES},
        {CLNORM_RMS_NORM, 2, 1000, 500, {.vec = 4, .lanes = 2, .chunks = 3, .iterations = 2}, INPUT_FAR},
        /* five vectors, two a chunk: the last chunk has none */
        {CLNORM_RMS_NORM, 5, 20, 0, {.vec = 4, .lanes = 1, .chunks = 4}, INPUT_NORMAL},
        {CLNORM_LAYER_NORM, 2, 70000, 0, {.lanes = 1, .chunks = 5}, INPUT_CONSTANT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (fixture_is_slow(fixture) && cases[i].cols > 4099)
            continue;
        struct norm_case norm_case = case_of(cases[i].norm, cases[i].rows, cases[i].cols, cases[i].config);
        norm_case.desc.group_size = cases[i].group_size;
        norm_case.input = cases[i].input;
        norm_case.desc.eps = norm_case.input == INPUT_CONSTANT ? 0.5 : 1e-5;
        assert_true(norm_case_passes(fixture, &norm_case));
    }
}

/* The last vector is partly filled, and on GPUs the first one too. */
static void tails(void **state) {
    const struct fixture *fixture = *state;
    const struct cln_config config = {.vec = 8, .lanes = 1, .chunks = 3};
    struct norm_case norm_case = case_of(CLNORM_LAYER_NORM, 4, 101, config);
    norm_case.desc.x.dtype = CLNORM_BF16;
    norm_case.shift.x = norm_case.shift.y = 3;
    assert_true(norm_case_passes(fixture, &norm_case));
}

static void fused_operations(void **state) {
    const struct fixture *fixture = *state;
    const struct cln_config config = {.vec = 2, .lanes = 4, .chunks = 3, .unroll = 2};
    for (int i = 0; i < 4; i++) {
        struct norm_case norm_case = case_of(i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 5, 202, config);
        clnorm_norm_desc *desc = &norm_case.desc;
        desc->x.dtype = desc->y.dtype = CLNORM_BF16;
        desc->x.stride = desc->y.stride = 206;
        desc->gate = i < 2 ? CLNORM_GATE_SILU : CLNORM_GATE_NONE;
        desc->gate_first = i == 1;
        if (!desc->gate_first) {
            desc->residual.dtype = desc->residual_out.dtype = CLNORM_F32;
            desc->row_scale = true;
            desc->dropout = 0.3;
            desc->save_mask = true;
            desc->activation = i == 2 ? CLNORM_ACTIVATION_GELU : CLNORM_ACTIVATION_NONE;
            norm_case.residual_in_place = i == 2;
        }
        norm_case.in_place = i != 0;
        norm_case.shift.x = norm_case.shift.y = i == 3;
        assert_true(norm_case_passes(fixture, &norm_case));
    }
}

/* Every lane reads the first vector of its chunk, which another lane overwrites with its sum. */
static void sums_in_place_of_the_residual(void **state) {
    const struct fixture *fixture = *state;
    struct norm_case norm_case = case_of(CLNORM_LAYER_NORM, 3, 256, (struct cln_config){.vec = 4, .lanes = 4, .chunks = 4});
    norm_case.desc.residual.dtype = norm_case.desc.residual_out.dtype = CLNORM_F32;
    norm_case.residual_in_place = true;
    norm_case.input = INPUT_FAR;
    assert_true(norm_case_passes(fixture, &norm_case));
}

static void bits_do_not_depend_on_rows(void **state) {
    const struct fixture *fixture = *state;
    enum { COLS = 4096, ROWS = 6 };
    const struct cln_config config = {.vec = 4, .lanes = 64, .chunks = 16, .iterations = 1};
    struct norm_case many_case = case_of(CLNORM_LAYER_NORM, ROWS, COLS, config);
    struct norm_case one_case = case_of(CLNORM_LAYER_NORM, 1, COLS, config);
    struct norm_run many = norm_run_make(&many_case);
    struct norm_run one = norm_run_make(&one_case);
    memcpy(tensor_elements(&one.weight), tensor_elements(&many.weight), COLS * sizeof(float));
    memcpy(tensor_elements(&one.bias), tensor_elements(&many.bias), COLS * sizeof(float));
    memcpy(tensor_elements(&one.x), (float *)tensor_elements(&many.x) + (size_t)(ROWS - 1) * COLS, COLS * sizeof(float));
    assert_int_equal(norm_run_go(fixture, &many), CLNORM_SUCCESS);
    assert_int_equal(norm_run_go(fixture, &one), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, &many) && norm_run_verify(fixture, &one));
    assert_memory_equal(tensor_elements(&one.y), (float *)tensor_elements(&many.y) + (size_t)(ROWS - 1) * COLS,
                        COLS * sizeof(float));
    norm_run_free(&many);
    norm_run_free(&one);
}

static struct cln_config chosen(const struct fixture *fixture, const clnorm_norm_desc *desc, cl_uint *kernels,
                                uint64_t *workspace) {
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, desc, &plan), CLNORM_SUCCESS);
    const struct cln_config config = chosen_knobs(plan);
    *kernels = clnorm_plan_kernel_count(plan);
    *workspace = clnorm_plan_workspace_size(plan);
    clnorm_plan_destroy(plan);
    return config;
}

/* Chunks are chosen for few wide rows, which leave compute units idle; not for many or narrow rows, nor with a forced
 * knob. */
static void few_wide_rows_are_shared(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t units = fixture->device.compute_units;
    cl_uint kernels = 0;
    uint64_t workspace = 0;
    clnorm_norm_desc desc = norm_desc_of(CLNORM_RMS_NORM, 1, 262144);
    const struct cln_config one = chosen(fixture, &desc, &kernels, &workspace);
    assert_true(units < 2 ? one.chunks == 1 : one.chunks > 1 && one.chunks <= 8 * units);
    assert_int_equal(kernels, one.chunks > 1 ? 2 : 1);
    assert_int_equal(workspace, one.chunks > 1 ? 2 * sizeof(float) * one.chunks : 0);
    desc.rows = units;
    assert_int_equal(chosen(fixture, &desc, &kernels, &workspace).chunks, 1);
    assert_int_equal(workspace, 0);
    const bool cpu = fixture->device.kind == CLNORM_DEVICE_CPU && fixture->device.family != CLNORM_PLATFORM_MESA;
    desc = norm_desc_of(CLNORM_RMS_NORM, 1, cpu ? 131071 : 4096);
    assert_int_equal(chosen(fixture, &desc, &kernels, &workspace).chunks, 1);
    desc = norm_desc_of(CLNORM_RMS_NORM, 1, 262144);
    desc.y.dtype = CLNORM_F8_E4M3;
    desc.y.scaling = CLNORM_SCALING_ROW;
    assert_int_equal(chosen(fixture, &desc, &kernels, &workspace).chunks, 1);
    assert_int_equal(kernels, 1);
    desc = norm_desc_of(CLNORM_RMS_NORM, 1, 262144);
    KNOB(desc.config, unroll) = 2;
    assert_int_equal(chosen(fixture, &desc, &kernels, &workspace).chunks, 1);
    desc.rows = 0;
    assert_int_equal(chosen(fixture, &desc, &kernels, &workspace).chunks, 1);
    assert_int_equal(kernels, 0);
    if (!fixture_is_slow(fixture)) {
        struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_LAYER_NORM, 1, 262143), .input = INPUT_FAR, .seed = 5};
        assert_true(norm_case_passes(fixture, &norm_case));
    }
}

static void impossible_chunks_are_refused(void **state) {
    const struct fixture *fixture = *state;
    static const struct cln_config configs[] = {
        {.chunks = 65, .vec = 1},     {.chunks = 17, .vec = 4},
        {.chunks = 2, .segments = 2}, {.chunks = 2, .keep = CLN_KEEP_REGISTERS},
        {.chunks = UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        clnorm_norm_desc desc = norm_desc_of(CLNORM_LAYER_NORM, 4, 64);
        desc.config = forced(configs[i]);
        clnorm_plan *plan = NULL;
        assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE);
        assert_non_null(strstr(clnorm_error_detail(), "desc.config.chunks"));
    }
    clnorm_norm_desc desc = norm_desc_of(CLNORM_RMS_NORM, 4, 64);
    desc.y.dtype = CLNORM_F8_E5M2;
    desc.y.scaling = CLNORM_SCALING_TENSOR;
    desc.y.scale = 1;
    KNOB(desc.config, chunks) = 2;
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE);
    assert_non_null(strstr(clnorm_error_detail(), "desc.config.chunks is 2: expected 1 with a y of 8 bits"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_of_any_length),
        cmocka_unit_test(tails),
        cmocka_unit_test(fused_operations),
        cmocka_unit_test(sums_in_place_of_the_residual),
        cmocka_unit_test(bits_do_not_depend_on_rows),
        cmocka_unit_test(few_wide_rows_are_shared),
        cmocka_unit_test(impossible_chunks_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
