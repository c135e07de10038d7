/* quantize and dequantize, code by code: shapes, strides, scalings, knobs, zeros, NaNs and infinities. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "plan_run.h"
#include "reference/reference.h"
#include "refusal.h"

/* ------------------------------------------------------------------------------------------------------ one case */

/* gap: elements by which strides exceed the least ones; shift: elements before the first one. */
struct quantize_case {
    clnorm_scaling scaling;
    uint64_t rows, cols, group_size;
    clnorm_dtype x, q, scale;
    bool transpose, amax, stochastic;
    double given;
    uint64_t gap, shift;
    struct cln_config config;
    bool special; /* zeros, NaNs and infinities among the rows */
};

struct quantize_run {
    clnorm_quantize_desc desc; /* strides filled in */
    const clnorm_seed *seed;   /* of the call; NULL: the descriptor's */
    struct tensor x, q, q_t, scale, amax, back, workspace;
};

static clnorm_quantize_desc desc_of(const struct quantize_case *c) {
    clnorm_quantize_desc desc = CLNORM_QUANTIZE_DESC_INIT;
    desc.q.scaling = c->scaling;
    desc.rows = c->rows;
    desc.cols = c->cols;
    desc.q.scale_group = (uint32_t)c->group_size;
    desc.x.dtype = c->x;
    desc.q.dtype = c->q;
    desc.q.scale_dtype = c->scale;
    desc.q_t.dtype = c->transpose ? c->q : CLNORM_DTYPE_NONE;
    desc.save_amax = c->amax;
    desc.stochastic = c->stochastic;
    desc.seed = c->stochastic ? 0x123456789abcdefU : 0;
    desc.q.scale = c->given;
    desc.x.stride = c->cols + c->gap;
    desc.q.stride = c->cols + 2 * c->gap;
    desc.q_t.stride = c->transpose ? c->rows + 3 * c->gap : 0;
    desc.config = forced(c->config);
    return desc;
}

static struct ref_quantize reference_of(const struct quantize_run *run) {
    const clnorm_quantize_desc *desc = &run->desc;
    return (struct ref_quantize){
        .x = {.elements = tensor_elements(&run->x), .dtype = desc->x.dtype, .stride = desc->x.stride},
        .rows = desc->rows,
        .cols = desc->cols,
        .scaling = desc->q.scaling,
        .scale_group = desc->q.scale_group,
        .dtype = desc->q.dtype,
        .scale_dtype = desc->q.scale_dtype,
        .scale = desc->q.scale,
        .stochastic = desc->stochastic,
        .seed = run->seed ? *run->seed : (clnorm_seed){desc->seed, 0},
    };
}

/* Rows of magnitudes far apart; special: a row of zeros, a NaN in another, infinities in a third. */
static void fill(struct tensor *x, bool special) {
    struct random random = {x->rows * 31 + x->cols};
    for (uint64_t row = 0; row < x->rows; row++)
        for (uint64_t column = 0; column < x->cols; column++) {
            double value = random_normal(&random) * exp2((double)(row % 7) * 3 - 9);
            if (special && row % 4 == 1)
                value = column % 2 ? 0.0 : -0.0;
            if (special && row % 4 == 2 && column % 5 == 3)
                value = NAN;
            if (special && row % 4 == 3 && column % 6 == 0)
                value = column % 12 ? INFINITY : -INFINITY;
            ref_store(x->dtype, tensor_elements(x), row * x->stride + column, value);
        }
}

static struct quantize_run make(const struct quantize_case *c) {
    struct quantize_run run = {.desc = desc_of(c)};
    const clnorm_quantize_desc *desc = &run.desc;
    const struct ref_quantize reference = reference_of(&run);
    const uint64_t rows = ref_scale_rows(&reference), cols = ref_scale_cols(&reference);
    run.x = tensor_make(c->x, c->rows, c->cols, desc->x.stride, c->shift, TENSOR_NAN);
    run.q = tensor_make(c->q, c->rows, c->cols, desc->q.stride, 3 * c->shift, TENSOR_CANARY);
    run.q_t = tensor_make(c->transpose ? c->q : CLNORM_DTYPE_NONE, c->cols, c->rows, desc->q_t.stride, 5 * c->shift,
                          TENSOR_CANARY);
    run.scale = tensor_make(c->given != 0 ? CLNORM_DTYPE_NONE : c->scale, rows, cols, cols, c->shift, TENSOR_CANARY);
    run.amax = tensor_make(c->amax ? CLNORM_F32 : CLNORM_DTYPE_NONE, rows, cols, cols, c->shift, TENSOR_CANARY);
    run.back = tensor_make(c->x, c->rows, c->cols, desc->x.stride, c->shift, TENSOR_CANARY);
    fill(&run.x, c->special);
    return run;
}

static void free_run(struct quantize_run *run) {
    struct tensor *const all[] = {&run->x, &run->q, &run->q_t, &run->scale, &run->amax, &run->back, &run->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tensor_free(all[i]);
}

static clnorm_status quantize(const struct fixture *fixture, struct quantize_run *run) {
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_quantize_plan_create(fixture->context, &run->desc, &plan);
    if (status)
        return status;
    run->workspace = plan_workspace(plan);
    struct tensor *const all[] = {&run->x, &run->q, &run->q_t, &run->scale, &run->amax, &run->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tensor_upload(fixture, all[i]);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&run->x);
    args.q = tensor_buffer(&run->q);
    args.q_t = tensor_buffer(&run->q_t);
    args.scale = tensor_buffer(&run->scale);
    args.amax = tensor_buffer(&run->amax);
    args.workspace = tensor_buffer(&run->workspace);
    args.seed = run->seed;
    return plan_run(fixture, plan, &args);
}

static clnorm_status dequantize(const struct fixture *fixture, struct quantize_run *run) {
    clnorm_dequantize_desc desc = CLNORM_DEQUANTIZE_DESC_INIT;
    desc.q.scaling = run->desc.q.scaling;
    desc.rows = run->desc.rows;
    desc.cols = run->desc.cols;
    desc.q.scale_group = run->desc.q.scale_group;
    desc.q.stride = run->desc.q.stride;
    desc.x.stride = run->desc.x.stride;
    desc.q.dtype = run->desc.q.dtype;
    desc.x.dtype = run->desc.x.dtype;
    desc.q.scale_dtype = run->desc.q.scale_dtype;
    desc.config = run->desc.config;
    tensor_upload(fixture, &run->back);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.q = tensor_buffer(&run->q);
    args.scale = tensor_buffer(&run->scale);
    args.x = tensor_buffer(&run->back);
    const clnorm_status status = clnorm_dequantize(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL);
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    return status;
}

/* --------------------------------------------------------------------------------------------------- verification */

/* The results of the reference. */
struct expected {
    struct ref_quantize reference;
    double *amax, *scale;
    unsigned char *codes;
};

static struct expected expect(const struct quantize_run *run) {
    struct expected expected = {.reference = reference_of(run)};
    const uint64_t scales = ref_scale_rows(&expected.reference) * ref_scale_cols(&expected.reference);
    expected.amax = ref_arrays(scales + 1, 2);
    expected.codes = malloc(run->desc.rows * run->desc.cols + 1);
    assert_true(expected.amax && expected.codes);
    expected.scale = expected.amax + scales;
    ref_quantize(&expected.reference, expected.amax, expected.scale, expected.codes, NULL);
    return expected;
}

static void free_expected(struct expected *expected) {
    free(expected->amax);
    free(expected->codes);
}

static bool check_scales(const struct quantize_run *run, const struct expected *expected) {
    const uint64_t scales = run->amax.rows * run->amax.cols;
    const struct tensor *const scale = &run->scale, *const amax = &run->amax;
    for (uint64_t i = 0; run->desc.rows && amax->mem && i < scales; i++)
        if (ref_load(CLNORM_F32, tensor_elements(amax), i) != expected->amax[i]) {
            print_error("amax[%" PRIu64 "] should be %.9g\n", i, expected->amax[i]);
            return false;
        }
    for (uint64_t i = 0; run->desc.rows && scale->mem && i < scale->rows * scale->cols; i++)
        if (ref_load(scale->dtype, tensor_elements(scale), i) != expected->scale[i]) {
            print_error("scale[%" PRIu64 "] should be %.9g\n", i, expected->scale[i]);
            return false;
        }
    return true;
}

static bool check_codes(const struct quantize_run *run, const struct expected *expected) {
    const unsigned char *q = tensor_elements(&run->q), *q_t = tensor_elements(&run->q_t);
    for (uint64_t row = 0; row < run->desc.rows; row++)
        for (uint64_t column = 0; column < run->desc.cols; column++) {
            const unsigned right = expected->codes[row * run->desc.cols + column];
            const unsigned code = q[row * run->q.stride + column];
            const unsigned code_t = q_t ? q_t[column * run->q_t.stride + row] : right;
            if (code == right && code_t == right)
                continue;
            print_error("q[%" PRIu64 ", %" PRIu64 "] is %02x, %02x transposed, but should be %02x\n", row, column, code,
                        code_t, right);
            return false;
        }
    return true;
}

static bool check_quantized(const struct quantize_run *run) {
    struct expected expected = expect(run);
    const bool good = check_scales(run, &expected) && check_codes(run, &expected);
    free_expected(&expected);
    return good;
}

static bool check_back(const struct quantize_run *run) {
    const struct ref_tensor q = {.elements = tensor_elements(&run->q),
                                 .dtype = run->q.dtype,
                                 .stride = run->q.stride,
                                 .scales = tensor_elements(&run->scale),
                                 .scale_dtype = run->scale.dtype,
                                 .scaling = run->desc.q.scaling,
                                 .scale_group = run->desc.q.scale_group,
                                 .scale_stride = run->scale.cols};
    for (uint64_t row = 0; row < run->desc.rows; row++)
        for (uint64_t column = 0; column < run->desc.cols; column++) {
            const double expected = ref_round(run->back.dtype, ref_at(&q, row, column));
            const double actual = ref_load(run->back.dtype, tensor_elements(&run->back), row * run->back.stride + column);
            if (isnan(expected) ? isnan(actual) : actual == expected)
                continue;
            print_error("x[%" PRIu64 ", %" PRIu64 "] came back as %.9g, not %.9g\n", row, column, actual, expected);
            return false;
        }
    return true;
}

static bool passes(const struct fixture *fixture, const struct quantize_case *c) {
    struct quantize_run run = make(c);
    bool good = quantize(fixture, &run) == CLNORM_SUCCESS;
    if (!good)
        print_error("%s\n", clnorm_error_detail());
    good = good && tensor_unchanged(fixture, &run.x, "x") && tensor_receive(fixture, &run.q, "q") &&
           tensor_receive(fixture, &run.q_t, "q_t") && tensor_receive(fixture, &run.scale, "scale") &&
           tensor_receive(fixture, &run.amax, "amax") && tensor_receive(fixture, &run.workspace, "workspace") &&
           check_quantized(&run);
    if (good && c->given == 0)
        good = dequantize(fixture, &run) == CLNORM_SUCCESS && tensor_receive(fixture, &run.back, "x") && check_back(&run);
    if (!good)
        print_error("in %" PRIu64 " x %" PRIu64 ", scaling %d by %" PRIu64 ", %s to %s, vec %u, lanes %u\n", c->rows,
                    c->cols, (int)c->scaling, c->group_size, clnorm_dtype_name(c->x), clnorm_dtype_name(c->q),
                    c->config.vec, c->config.lanes);
    free_run(&run);
    return good;
}

/* ---------------------------------------------------------------------------------------------------------- cases */

#define WHOLE CLNORM_SCALING_TENSOR
#define ROW CLNORM_SCALING_ROW
#define GROUP CLNORM_SCALING_GROUP
#define E4M3 CLNORM_F8_E4M3
#define E5M2 CLNORM_F8_E5M2
#define F32 CLNORM_F32
#define F16 CLNORM_F16
#define BF16 CLNORM_BF16

static const struct quantize_case cases[] = {
    {WHOLE, 70, 208, 0, F32, E4M3, F32, true, true, false, 0, 0, 0, {0}, false},
    {WHOLE, 17, 176, 0, F32, E4M3, F32, true, true, false, 0, 5, 1, {0}, true},
    {WHOLE, 9, 33, 0, BF16, E5M2, BF16, true, false, false, 0, 5, 1, {0}, true},
    {WHOLE, 66, 129, 0, F32, E4M3, F32, true, false, false, 0.0375, 1, 3, {0}, true},
    {WHOLE, 8, 64, 0, F32, E4M3, F32, false, true, false, 2.5, 0, 0, {0}, true},
    {WHOLE, 1, 1, 0, F32, E4M3, F32, true, true, false, 0, 0, 0, {0}, false},
    {WHOLE, 0, 64, 0, F32, E4M3, F32, true, true, false, 0, 0, 0, {0}, false},
    {ROW, 13, 96, 0, F16, E5M2, F32, false, true, false, 0, 0, 0, {0}, true},
    {ROW, 3, 4112, 0, F16, E5M2, F32, false, true, false, 0, 7, 0, {0}, false},
    {ROW, 67, 31, 0, BF16, E4M3, BF16, true, false, false, 0, 3, 2, {0}, true},
    {GROUP, 5, 96, 16, F32, E4M3, F32, false, true, false, 0, 0, 0, {0}, true},
    {GROUP, 66, 256, 64, BF16, E4M3, BF16, true, true, false, 0, 0, 0, {0}, true},
    {GROUP, 7, 37, 5, F16, E4M3, F32, false, false, false, 0, 0, 3, {0}, true},
    {GROUP, 3, 40, 128, F32, E4M3, F32, false, true, false, 0, 0, 0, {0}, false},
    {WHOLE, 21, 48, 0, F32, E4M3, F32, true, false, true, 0, 0, 0, {0}, true},
    {GROUP, 21, 48, 16, BF16, E5M2, F32, false, false, true, 0, 4, 0, {0}, true},
    /* contiguous: fewer elements than a row of the kernels, and rows of which the last one is shorter */
    {WHOLE, 7, 131, 0, BF16, E4M3, F32, false, true, false, 0, 0, 1, {0}, true},
    {WHOLE, 70, 129, 0, F32, E4M3, BF16, false, true, false, 0, 0, 0, {0}, true},
    {WHOLE, 71, 131, 0, F16, E5M2, F32, false, false, true, 0, 0, 0, {0}, false},
    /* odd rows apart, alike in x and q or not, with and without random words */
    {WHOLE, 23, 131, 0, BF16, E4M3, F32, false, true, false, 0, 16, 0, {0}, true},
    {WHOLE, 6, 130, 0, F32, E4M3, F32, false, false, true, 0, 1, 0, {0}, false},
    {ROW, 23, 131, 0, F32, E4M3, F32, false, true, false, 0, 16, 1, {0}, true},
};

static void codes_are_those_of_the_reference(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t most = fixture_is_slow(fixture) ? 10000 : UINT64_MAX; /* elements */
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        failed += fixture_takes(i) && cases[i].rows * cases[i].cols <= most && !passes(fixture, &cases[i]);
    assert_int_equal(failed, 0);
}

static void knobs_change_no_code(void **state) {
    const struct fixture *fixture = *state;
    static const struct cln_config configs[] = {
        {.vec = 4, .lanes = 64, .segments = 1, .reduce = CLN_REDUCE_TREE, .stores = CLN_STORES_STREAMING},
        {.vec = 2, .lanes = 8, .segments = 4, .iterations = 2, .reduce = CLN_REDUCE_TREE, .isa = CLN_ISA_PORTABLE},
        {.iterations = UINT32_MAX}, /* more than there are rows */
    };
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        struct quantize_case whole = {WHOLE, 71, 144, 0, F32, E4M3, F32, true, true, false, 0, 16, 0, configs[i], true};
        struct quantize_case row = {ROW, 11, 144, 0, BF16, E5M2, F32, false, true, i == 1, 0, 0, i % 2, configs[i], true};
        failed += !passes(fixture, &whole);
        failed += !passes(fixture, &row);
    }
    const struct cln_config pairs = {.vec = 8, .lanes = 2, .segments = 4, .iterations = 4};
    struct quantize_case group = {GROUP, 13, 39, 16, F32, E4M3, F32, false, false, false, 0, 0, 0, pairs, false};
    failed += !passes(fixture, &group);
    assert_int_equal(failed, 0);
}

/* Rows that begin anywhere within a vector: of fewer elements than a vector of each lane, and of as many as a tile, so that
 * some reach into another one. A CPU has such vectors with streaming stores only. */
static void rows_begin_anywhere(void **state) {
    const struct fixture *fixture = *state;
    const bool cpu = fixture->device.kind == CLNORM_DEVICE_CPU;
    const uint32_t stores = cpu ? CLN_STORES_STREAMING : CLN_STORES_CACHED;
    const struct cln_config wide = {.vec = 8, .lanes = 8, .segments = 2, .stores = stores};
    const struct cln_config narrow = {.vec = 4, .lanes = 8, .segments = 2, .stores = stores};
    const struct cln_config serial = {.vec = 16, .lanes = 1, .segments = 1, .stores = stores};
    const struct cln_config groups_of_128 = {.vec = 8, .lanes = 16, .segments = 2, .iterations = 4, .stores = stores};
    const struct cln_config groups_of_16 = {.vec = 4, .lanes = 4, .segments = 4, .iterations = 9, .stores = stores};
    const struct quantize_case leading[] = {
        {ROW, 13, 301, 0, BF16, E4M3, F32, false, true, false, 0, 16, 0, wide, true},
        {WHOLE, 13, 301, 0, BF16, E4M3, F32, false, true, false, 0, 16, 0, wide, true},
        {ROW, 21, 9, 0, F32, E4M3, F32, false, true, false, 0, 16, 0, narrow, false},
        {WHOLE, 13, 511, 0, F32, E4M3, F32, false, true, false, 0, 16, 0, narrow, false},
        {WHOLE, 13, 4095, 0, F32, E4M3, F32, false, true, false, 0, 16, 0, serial, false},
        /* lanes with a window each; work-groups end within rows */
        {GROUP, 13, 301, 128, BF16, E4M3, F32, false, true, false, 0, 16, 0, groups_of_128, true},
        {GROUP, 29, 37, 16, F32, E5M2, BF16, false, true, false, 0, 0, 1, groups_of_16, true},
    };
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof leading / sizeof *leading; i++)
        failed += !passes(fixture, &leading[i]);
    assert_int_equal(failed, 0);
}

/* The mean of many codes is x. A code is off by less than a step, so that the mean of n has a standard deviation of at most
 * step / 2 / √n; four of these are allowed. */
static void stochastic_rounding_is_unbiased(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t cols = fixture_is_slow(fixture) ? 512 : 4096;
    const double values[] = {1.03125, -3.3, 0x1.4p-9, 0x1.8p-12};
    const double steps[] = {0.125, 0.25, 0x1p-9, 0x1p-9};
    struct quantize_case c = {WHOLE, 4, cols, 0, F32, E4M3, F32, false, false, true, 1, 0, 0, {0}, false};
    struct quantize_run run = make(&c);
    for (uint64_t i = 0; i < 4 * cols; i++)
        ref_store(F32, tensor_elements(&run.x), i, values[i / cols]);
    assert_int_equal(quantize(fixture, &run), CLNORM_SUCCESS);
    assert_true(tensor_receive(fixture, &run.q, "q"));
    for (uint64_t row = 0; row < 4; row++) {
        double sum = 0;
        for (uint64_t i = 0; i < cols; i++)
            sum += ref_code_value(E4M3, ((const unsigned char *)tensor_elements(&run.q))[row * cols + i]);
        assert_true(fabs(sum / (double)cols - values[row]) < 4 * steps[row] / 2 / sqrt((double)cols));
    }
    free_run(&run);
}

/* The seed of a call takes the place of the descriptor's, and a descriptor without randomness refuses one. */
static void calls_have_seeds(void **state) {
    const struct fixture *fixture = *state;
    static const clnorm_seed zero = {0, 0}, near = {0x123456789abcdefU, 1}, far = {0x123456789abcdefU, 0x500000000U};
    const clnorm_seed *const seeds[] = {NULL, &zero, &near, &far};
    enum { SEEDS = sizeof seeds / sizeof *seeds, COLS = 96 };
    unsigned char codes[SEEDS][2 * COLS];
    for (size_t i = 0; i < (size_t)2 * SEEDS; i++) { /* the second half with a transposed copy */
        struct quantize_case c = {ROW, 2, COLS, 0, F32, E4M3, F32, i >= SEEDS, false, true, 0, 0, 0, {0}, false};
        struct quantize_run run = make(&c);
        run.seed = seeds[i % SEEDS];
        assert_int_equal(quantize(fixture, &run), CLNORM_SUCCESS);
        assert_true(tensor_receive(fixture, &run.q, "q"));
        assert_true(!run.q_t.mem || tensor_receive(fixture, &run.q_t, "q_t"));
        struct expected expected = expect(&run);
        assert_true(check_codes(&run, &expected));
        for (size_t j = 0; j < i && i < SEEDS; j++)
            assert_memory_not_equal(expected.codes, codes[j], sizeof *codes);
        memcpy(codes[i % SEEDS], expected.codes, sizeof *codes);
        free_expected(&expected);
        free_run(&run);
    }
    struct quantize_case none = {ROW, 0, COLS, 0, F32, E4M3, F32, false, false, true, 0, 0, 0, {0}, false};
    struct quantize_run run = make(&none);
    run.seed = &near;
    assert_int_equal(quantize(fixture, &run), CLNORM_SUCCESS);
    run.desc.stochastic = 0;
    run.desc.seed = 0;
    assert_int_equal(quantize(fixture, &run), CLNORM_INVALID_ARGUMENT);
    assert_detail("args.seed is given: the descriptor has neither dropout nor stochastic rounding");
    free_run(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_those_of_the_reference),
        cmocka_unit_test(knobs_change_no_code),
        cmocka_unit_test(rows_begin_anywhere),
        cmocka_unit_test(stochastic_rounding_is_unbiased),
        cmocka_unit_test(calls_have_seeds),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
