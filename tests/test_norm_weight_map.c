/* Forward norms with several rows of weights: every two options together on each kind of kernel, and descriptors and
 * buffers that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_case.h"
#include "pairwise.h"

enum factor { NORM, X_DTYPE, WEIGHT_DTYPE, BIAS, GATE, ACTIVATION, RESIDUAL, SHAPE, STRIDE, CONFIG, SHIFT, FACTORS };

static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_BF16, CLNORM_F16, CLNORM_F64};

static const struct {
    clnorm_gate gate;
    bool first;
} gates[] = {{CLNORM_GATE_NONE, false}, {CLNORM_GATE_SILU, false}, {CLNORM_GATE_SIGMOID, true}};

/* Rows of weights for the heads of a token; for the samples of a batch, in one run and in several; for each row; a single
 * one. */
static const struct {
    uint64_t rows, cols, group_size, weight_rows, weight_repeat;
} shapes[] = {{24, 192, 3, 4, 0}, {35, 63, 0, 5, 7}, {36, 7, 0, 3, 4}, {6, 1040, 208, 6, 1}, {10, 128, 0, 1, 5}};

/* One for each kind of kernel; {0} is the library's choice. */
static const struct cln_config configs[] = {
    {0},
    {.vec = 4, .lanes = 64, .keep = CLN_KEEP_REGISTERS, .reduce = CLN_REDUCE_TREE},
    {.vec = 4, .lanes = 16, .segments = 4, .keep = CLN_KEEP_REGISTERS, .weights = CLN_WEIGHTS_EARLY, .iterations = 3},
    {.vec = 8, .lanes = 16, .segments = 2, .keep = CLN_KEEP_REREAD, .unroll = 3, .reduce = CLN_REDUCE_TREE},
    {.vec = 2, .lanes = 2, .segments = 2, .keep = CLN_KEEP_REREAD, .iterations = 2, .reduce = CLN_REDUCE_TREE},
    {.vec = 8, .lanes = 8, .segments = 1, .keep = CLN_KEEP_LOCAL, .reduce = CLN_REDUCE_TREE, .local_vectors = 1},
    {.vec = 1, .lanes = 4, .segments = 1, .keep = CLN_KEEP_REREAD, .reduce = CLN_REDUCE_TREE, .chunks = 3},
};

/* Rows of weights are contiguous or have a stride, of which weight and bias each have their own. */
static void set_weights(struct norm_case *norm_case, const unsigned *level) {
    clnorm_norm_desc *const desc = &norm_case->desc;
    const bool wide = desc->x.dtype == CLNORM_F64;
    desc->weight_rows = shapes[level[SHAPE]].weight_rows;
    desc->weight_repeat = shapes[level[SHAPE]].weight_repeat;
    desc->weight.dtype = level[WEIGHT_DTYPE] == 3 && level[BIAS] ? CLNORM_DTYPE_NONE
                         : wide                                  ? CLNORM_F64
                                                                 : dtypes[level[WEIGHT_DTYPE] % 3];
    desc->weight_offset = desc->weight.dtype && level[SHIFT] == 0 ? 1 : 0;
    desc->bias.dtype = !level[BIAS] ? CLNORM_DTYPE_NONE : wide ? CLNORM_F64 : dtypes[level[BIAS]];
    if (level[STRIDE] && desc->weight.dtype)
        desc->weight.stride = desc->cols + 8;
    if (level[STRIDE] > 1 && desc->bias.dtype)
        desc->bias.stride = 2 * desc->cols;
    norm_case->shift.weight = level[SHIFT];
    norm_case->shift.bias = (uint64_t)2 * level[SHIFT];
}

static struct norm_case case_of(const struct fixture *fixture, const unsigned *level, uint64_t seed) {
    const clnorm_norm norm = level[NORM] ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM;
    struct norm_case norm_case = {.desc = norm_desc_of(norm, shapes[level[SHAPE]].rows, shapes[level[SHAPE]].cols),
                                  .input = INPUT_NORMAL,
                                  .seed = seed};
    clnorm_norm_desc *const desc = &norm_case.desc;
    desc->x.dtype = level[X_DTYPE] == 3 && !fixture->device.fp64 ? CLNORM_F32 : dtypes[level[X_DTYPE]];
    desc->x.stride = desc->cols + (level[SHIFT] ? 8 : 0);
    desc->group_size = shapes[level[SHAPE]].group_size;
    desc->gate = gates[level[GATE]].gate;
    desc->gate_first = gates[level[GATE]].first;
    desc->activation = (clnorm_activation)level[ACTIVATION];
    if (level[RESIDUAL] && !desc->gate_first)
        desc->residual.dtype = desc->residual_out.dtype = desc->x.dtype;
    desc->save_mean = norm == CLNORM_LAYER_NORM;
    desc->save_rstd = true;
    desc->config = forced(configs[level[CONFIG]]);
    set_weights(&norm_case, level);
    return norm_case;
}

static void every_two_options_together(void **state) {
    const struct fixture *fixture = *state;
    const unsigned levels[FACTORS] = {[NORM] = 2,         [X_DTYPE] = 4,
                                      [WEIGHT_DTYPE] = 4, [BIAS] = 3,
                                      [GATE] = 3,         [ACTIVATION] = 4,
                                      [RESIDUAL] = 2,     [SHAPE] = sizeof shapes / sizeof *shapes,
                                      [STRIDE] = 3,       [CONFIG] = sizeof configs / sizeof *configs,
                                      [SHIFT] = 3};
    struct pairwise *pairwise = pairwise_make(levels, FACTORS, 1);
    unsigned level[PAIRWISE_FACTORS];
    unsigned cases = 0, failed = 0;
    while (failed < 10 && pairwise_next(pairwise, level)) {
        struct norm_case norm_case = case_of(fixture, level, ++cases);
        norm_settle(fixture, &norm_case.desc);
        failed += !norm_case_passes(fixture, &norm_case);
    }
    pairwise_free(pairwise);
    print_message("%u cases\n", cases);
    assert_int_equal(failed, 0);
}

/* A network may give the weights and biases of samples as the halves of one tensor of [samples, 2 · cols]. */
static void weight_and_bias_share_a_tensor(void **state) {
    const struct fixture *fixture = *state;
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_LAYER_NORM, 12, 40), .input = INPUT_NORMAL, .seed = 3};
    clnorm_norm_desc *const desc = &norm_case.desc;
    desc->weight_rows = 3;
    desc->weight_repeat = 4;
    desc->weight_offset = 1;
    desc->weight.dtype = desc->bias.dtype = CLNORM_BF16;
    desc->weight.stride = desc->bias.stride = 2 * desc->cols;
    struct norm_run run = norm_run_make(&norm_case);
    tensor_free(&run.weight);
    tensor_free(&run.bias);
    run.weight = tensor_make(CLNORM_BF16, 3, 2 * desc->cols, 2 * desc->cols, 0, TENSOR_NAN);
    tensor_fill(&run.weight, INPUT_NORMAL, desc->cols, 5);
    tensor_upload(fixture, &run.weight);
    run.bias = run.weight;
    run.bias.first += desc->cols * clnorm_dtype_size(CLNORM_BF16);
    run.bias.host = malloc(run.weight.size);
    assert_non_null(run.bias.host);
    memcpy(run.bias.host, run.weight.host, run.weight.size);
    assert_int_equal(clRetainMemObject(run.bias.mem), CL_SUCCESS);
    assert_int_equal(norm_run_go(fixture, &run), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, &run));
    norm_run_free(&run);
}

/* x of 8 bits, and y with scales of every kind. */
static void fp8_with_rows_of_weights(void **state) {
    const clnorm_scaling scalings[] = {CLNORM_SCALING_TENSOR, CLNORM_SCALING_ROW, CLNORM_SCALING_GROUP};
    for (unsigned i = 0; i < 12; i++) {
        struct norm_case norm_case = {.desc = norm_desc_of(i % 2 ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM, 24, 128),
                                      .seed = i};
        clnorm_norm_desc *const desc = &norm_case.desc;
        desc->weight_rows = 4;
        desc->weight_repeat = i % 4 < 2 ? 1 : 3;
        desc->weight.dtype = CLNORM_BF16;
        desc->x.dtype = i < 6 ? CLNORM_BF16 : CLNORM_F8_E4M3;
        if (i >= 6)
            desc->x.scaling = CLNORM_SCALING_GROUP;
        desc->x.scale_group = i >= 6 ? 32 : 0;
        desc->y.dtype = CLNORM_F8_E4M3;
        desc->y.scaling = scalings[i % 3];
        desc->y.scale_group = desc->y.scaling == CLNORM_SCALING_GROUP ? 16 : 0;
        desc->y_t.dtype = i == 6 ? CLNORM_F8_E4M3 : CLNORM_DTYPE_NONE;
        assert_true(norm_case_passes(*state, &norm_case));
    }
}

/* ------------------------------------------------------------------------------------------------------------ refusal */

static void refuse(const struct fixture *fixture, const clnorm_norm_desc *desc, clnorm_status status, const char *text) {
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, desc, &plan), status);
    assert_string_equal(clnorm_error_detail(), text);
    assert_null(plan);
}

static void bad_maps_are_refused(void **state) {
    clnorm_norm_desc desc = norm_desc_of(CLNORM_RMS_NORM, 12, 8);
    desc.weight_repeat = 3;
    refuse(*state, &desc, CLNORM_INVALID_VALUE, "desc.weight_repeat is 3: expected 0 without weight_rows");
    desc.weight_rows = 2;
    refuse(*state, &desc, CLNORM_INVALID_VALUE, "desc.weight_rows is 2: expected 0 without weight or bias");
    desc.weight.dtype = CLNORM_F32;
    desc.weight_repeat = 4;
    refuse(*state, &desc, CLNORM_INVALID_SHAPE,
           "desc.rows is 12: expected a multiple of weight_rows x weight_repeat, 2 x 4");
    desc.weight_rows = desc.weight_repeat = UINT64_C(1) << 32;
    refuse(*state, &desc, CLNORM_OVERFLOW,
           "desc.weight_rows is 4294967296, desc.weight_repeat 4294967296: expected a product below 2^64");
    desc.weight_rows = 4;
    desc.weight_repeat = 0;
    desc.weight.stride = 7;
    refuse(*state, &desc, CLNORM_INVALID_SHAPE, "desc.weight.stride is 7: expected at least cols, 8");
    desc.weight.stride = UINT64_MAX / 4;
    refuse(*state, &desc, CLNORM_OVERFLOW,
           "weight has 4 rows of stride 4611686018427387903 and 4 bytes an element: expected less than 2^63 bytes");
    desc.weight_rows = 0;
    refuse(*state, &desc, CLNORM_INVALID_SHAPE, "desc.weight.stride is 4611686018427387903: expected 0, it has one row");
}

/* A buffer that ends one element early. */
static void short_weights_are_refused(void **state) {
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_RMS_NORM, 12, 8)};
    norm_case.desc.weight.dtype = CLNORM_F32;
    norm_case.desc.weight_rows = 3;
    norm_case.desc.weight.stride = 16;
    struct norm_run run = norm_run_make(&norm_case);
    tensor_free(&run.weight);
    run.weight = tensor_make(CLNORM_F32, 1, 2 * 16 + 7, 2 * 16 + 7, 0, TENSOR_NAN);
    norm_run_upload(*state, &run);
    const struct fixture *const fixture = *state;
    cl_buffer_region region = {0, run.weight.first + (2 * 16 + 7) * sizeof(float)};
    cl_int code;
    const cl_mem part = clCreateSubBuffer(run.weight.mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    assert_int_equal(code, CL_SUCCESS);
    clnorm_args args = norm_run_args(&run);
    args.weight.mem = part;
    assert_int_equal(clnorm_norm_forward(fixture->context, fixture->queue, &run.desc, &args, 0, NULL, NULL),
                     CLNORM_INVALID_BUFFER);
    assert_non_null(strstr(clnorm_error_detail(), "args.weight.mem has"));
    assert_non_null(strstr(clnorm_error_detail(), "expected at least 160"));
    assert_int_equal(clReleaseMemObject(part), CL_SUCCESS);
    norm_run_free(&run);
}

/* Requirements give the shape of weights in elements and bytes. Without rows no weights are read. */
static void requirements_have_the_shape(void **state) {
    const struct fixture *const fixture = *state;
    clnorm_norm_desc desc = norm_desc_of(CLNORM_RMS_NORM, 12, 8);
    desc.weight.dtype = CLNORM_BF16;
    desc.weight_rows = 3;
    desc.weight_repeat = 2;
    desc.weight.stride = 20;
    clnorm_requirements requirements = CLNORM_REQUIREMENTS_INIT;
    assert_int_equal(clnorm_norm_forward_validate(fixture->context, &desc, &requirements), CLNORM_SUCCESS);
    const clnorm_tensor_info *weight = requirements.tensors;
    while (strcmp(weight->name, "weight") != 0)
        weight++;
    assert_int_equal(weight->rows, 3);
    assert_int_equal(weight->cols, 8);
    assert_int_equal(weight->stride, 40);
    assert_int_equal(weight->bytes, 96);
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_RMS_NORM, 0, 8)};
    norm_case.desc.weight.dtype = CLNORM_F32;
    norm_case.desc.weight_rows = 3;
    assert_true(norm_case_passes(fixture, &norm_case));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_two_options_together), cmocka_unit_test(weight_and_bias_share_a_tensor),
        cmocka_unit_test(fp8_with_rows_of_weights),   cmocka_unit_test(bad_maps_are_refused),
        cmocka_unit_test(short_weights_are_refused),  cmocka_unit_test(requirements_have_the_shape),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
