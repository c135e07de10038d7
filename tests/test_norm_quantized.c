/* The forward norms with an output in 8 bits: compared with the reference, and bit for bit with clnorm_quantize of the same
 * norm's f32 output; rows of zeros, NaNs and infinities; descriptors and buffers that are refused. */
#include <math.h>
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
#include "refusal.h"

#define E4M3 CLNORM_F8_E4M3
#define E5M2 CLNORM_F8_E5M2
#define F32 CLNORM_F32
#define F16 CLNORM_F16
#define BF16 CLNORM_BF16
#define LAYER CLNORM_LAYER_NORM
#define RMS CLNORM_RMS_NORM
#define WHOLE CLNORM_SCALING_TENSOR
#define ROW CLNORM_SCALING_ROW
#define GROUP CLNORM_SCALING_GROUP

/* ----------------------------------------------------------------------------------------------------------- one case */

/* Options that are fused with the norm. */
enum extra { PLAIN, GATED, SUMMED, ALL };

/* One for each kind of kernel. On a CPU only streaming stores make accesses aligned. */
static const struct cln_config configs[] = {
    {0},
    {.vec = 4, .lanes = 64, .keep = CLN_KEEP_REGISTERS, .reduce = CLN_REDUCE_TREE},
    {.vec = 4, .lanes = 8, .segments = 2, .keep = CLN_KEEP_REREAD, .unroll = 3, .reduce = CLN_REDUCE_TREE},
    {.vec = 2, .lanes = 4, .keep = CLN_KEEP_REREAD, .iterations = 2, .reduce = CLN_REDUCE_TREE},
    {.vec = 1, .lanes = 64, .keep = CLN_KEEP_REREAD}, /* the library's choice of reduce */
    {.vec = 8, .lanes = 4, .keep = CLN_KEEP_REGISTERS, .stores = CLN_STORES_STREAMING},
    {.vec = 16, .lanes = 1, .segments = 1, .keep = CLN_KEEP_REGISTERS},
    {.vec = 4, .lanes = 8, .keep = CLN_KEEP_REREAD, .stores = CLN_STORES_STREAMING},
};

static const struct quantized_case {
    clnorm_norm norm;
    uint64_t rows, cols, group_size;
    clnorm_dtype x, y;
    clnorm_scaling scaling;
    uint64_t y_group;
    enum extra extra;
    unsigned config;
    uint64_t gap, shift; /* elements */
} cases[] = {
    {RMS, 3, 500, 0, F32, E4M3, ROW, 0, PLAIN, 0, 0, 0},      {LAYER, 3, 33, 0, BF16, E5M2, ROW, 0, SUMMED, 0, 3, 1},
    {RMS, 9, 1, 0, F32, E4M3, ROW, 0, PLAIN, 0, 0, 0},        {RMS, 0, 64, 0, F32, E4M3, GROUP, 64, PLAIN, 0, 0, 0},
    {RMS, 3, 300, 0, F16, E4M3, GROUP, 128, ALL, 0, 4, 3},    {LAYER, 4, 96, 32, F32, E5M2, GROUP, 16, PLAIN, 0, 0, 0},
    {LAYER, 4, 129, 0, F32, E4M3, WHOLE, 0, SUMMED, 0, 1, 1}, {LAYER, 3, 131, 0, F32, E4M3, ROW, 0, SUMMED, 1, 1, 1},
    {RMS, 5, 131, 0, F32, E4M3, GROUP, 16, GATED, 2, 1, 1},   {LAYER, 5, 131, 0, BF16, E4M3, ROW, 0, SUMMED, 2, 0, 0},
    {RMS, 5, 302, 0, F32, E5M2, GROUP, 32, PLAIN, 3, 0, 0},   {LAYER, 2, 131, 0, F16, E4M3, GROUP, 128, PLAIN, 4, 0, 0},
    {RMS, 3, 160, 0, BF16, E4M3, GROUP, 64, PLAIN, 5, 8, 0},  {RMS, 3, 160, 0, BF16, E4M3, GROUP, 64, PLAIN, 5, 8, 3},
    {LAYER, 3, 200, 0, F32, E4M3, GROUP, 64, PLAIN, 6, 0, 0}, {RMS, 5, 131, 0, BF16, E4M3, ROW, 0, PLAIN, 5, 0, 0},
    {LAYER, 5, 301, 0, F16, E5M2, ROW, 0, ALL, 7, 16, 0},     {RMS, 7, 39, 13, F32, E4M3, WHOLE, 0, GATED, 7, 0, 0},
};

static void add_extra(struct norm_case *made, enum extra extra) {
    clnorm_norm_desc *desc = &made->desc;
    if (extra == GATED || extra == ALL)
        desc->gate = CLNORM_GATE_SILU;
    if (extra == SUMMED || extra == ALL) {
        desc->residual.dtype = desc->residual_out.dtype = BF16;
        made->residual_in_place = extra == SUMMED;
        desc->dropout = 0.2;
    }
    if (extra == ALL) {
        desc->save_mask = desc->row_scale = true;
        desc->activation = CLNORM_ACTIVATION_GELU;
    }
}

static struct norm_case norm_case_of(const struct quantized_case *c) {
    struct norm_case made = {.desc = norm_desc_of(c->norm, c->rows, c->cols), .seed = c->cols + c->rows};
    clnorm_norm_desc *desc = &made.desc;
    made.input = (enum input)(made.seed % INPUT_CONSTANT);
    desc->group_size = c->group_size;
    desc->x.dtype = desc->weight.dtype = c->x;
    desc->bias.dtype = c->norm == LAYER ? c->x : CLNORM_DTYPE_NONE;
    desc->y.dtype = c->y;
    desc->y.scaling = c->scaling;
    desc->y.scale_group = (uint32_t)c->y_group;
    desc->y.scale = c->scaling == WHOLE ? 0.0078 : 0;
    desc->save_mean = c->norm == LAYER;
    desc->save_rstd = true;
    desc->x.stride = c->cols + c->gap;
    desc->y.stride = c->cols + 2 * c->gap;
    desc->config = forced(configs[c->config]);
    made.shift.x = made.shift.y_scale = c->shift;
    made.shift.y = 3 * c->shift;
    add_extra(&made, c->extra);
    return made;
}

/* The same norm to f32. */
static struct norm_case plain_case_of(const struct norm_case *quantized) {
    struct norm_case made = *quantized;
    made.desc.y.dtype = F32;
    made.desc.y.scaling = (clnorm_scaling)0;
    made.desc.y.scale_group = 0;
    made.desc.y.scale = 0;
    return made;
}

/* Quantizes a run's f32 y by clnorm_quantize, as the descriptor like has its y. */
static void quantize(const struct fixture *fixture, const struct norm_run *plain, const clnorm_norm_desc *like,
                     struct tensor *codes, struct tensor *scale) {
    clnorm_quantize_desc desc = CLNORM_QUANTIZE_DESC_INIT;
    desc.rows = like->rows;
    desc.cols = like->cols;
    desc.q.scaling = like->y.scaling;
    desc.q.scale_group = like->y.scale_group;
    desc.q.scale = like->y.scale;
    desc.x.stride = plain->desc.y.stride;
    desc.q.stride = like->y.stride;
    desc.q.dtype = like->y.dtype;
    tensor_upload(fixture, codes);
    tensor_upload(fixture, scale);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&plain->y);
    args.q = tensor_buffer(codes);
    args.scale = tensor_buffer(scale);
    assert_int_equal(clnorm_quantize(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL), CLNORM_SUCCESS);
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    assert_true(tensor_receive(fixture, codes, "q"));
    assert_true(tensor_receive(fixture, scale, "scale"));
}

/* An empty tensor of the same shape and dtype. */
static struct tensor another(const struct tensor *like, uint64_t shift) {
    return tensor_make(like->dtype, like->rows, like->cols, like->stride, shift, TENSOR_CANARY);
}

static bool same(const struct tensor *a, const struct tensor *b, const char *name) {
    const bool equal = tensor_equals(a, b);
    if (!equal)
        print_error("%s differs from what clnorm_quantize makes of the norm in f32\n", name);
    return equal;
}

static bool equals_quantized(const struct fixture *fixture, const struct norm_case *norm_case,
                             const struct norm_run *fused) {
    const struct norm_case plain_case = plain_case_of(norm_case);
    struct norm_run plain = norm_run_make(&plain_case);
    bool good = norm_run_go(fixture, &plain) == CLNORM_SUCCESS && norm_run_verify(fixture, &plain);
    if (good && plain.desc.rows > 0) {
        struct tensor codes = another(&fused->y, norm_case->shift.y);
        struct tensor scale = another(&fused->y_scale, norm_case->shift.y_scale);
        quantize(fixture, &plain, &fused->desc, &codes, &scale);
        good = same(&codes, &fused->y, "y") && same(&scale, &fused->y_scale, "y_scale");
        tensor_free(&codes);
        tensor_free(&scale);
    }
    norm_run_free(&plain);
    return good;
}

static bool passes(const struct fixture *fixture, const struct norm_case *norm_case) {
    struct norm_run fused = norm_run_make(norm_case);
    bool good = norm_run_go(fixture, &fused) == CLNORM_SUCCESS;
    if (!good)
        print_error("%s\n", clnorm_error_detail());
    good = good && norm_run_verify(fixture, &fused) && equals_quantized(fixture, norm_case, &fused);
    if (!good)
        norm_case_print(norm_case);
    norm_run_free(&fused);
    return good;
}

static void codes_are_those_of_quantize(void **state) {
    const struct fixture *fixture = *state;
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct norm_case norm_case = norm_case_of(&cases[i]);
        norm_settle(fixture, &norm_case.desc);
        failed += !passes(fixture, &norm_case);
    }
    assert_int_equal(failed, 0);
}

/* -------------------------------------------------------------------------------------------- not finite numbers */

/* Rows: numbers, zeros, a NaN among numbers, an infinity among numbers. */
enum { NUMBERS, ZEROS, WITH_NAN, WITH_INFINITY, SPECIAL_ROWS, SPECIAL_COLS = 64, PLACE = 21 };

static void make_special(struct tensor *x) {
    for (uint64_t i = 0; i < SPECIAL_COLS; i++)
        ref_store(F32, tensor_elements(x), ZEROS * x->stride + i, 0);
    ref_store(F32, tensor_elements(x), WITH_NAN * x->stride + PLACE, NAN);
    ref_store(F32, tensor_elements(x), WITH_INFINITY * x->stride + PLACE, -INFINITY);
}

/* RMS norm makes 0 of a number in a row with an infinity, and NaN of the infinity. A NaN makes all of its row NaN. */
static void zeros_nans_and_infinities_are_as_defined(void **state) {
    const struct fixture *fixture = *state;
    for (unsigned config = 0; config < 2; config++) {
        struct norm_case norm_case = {.desc = norm_desc_of(RMS, SPECIAL_ROWS, SPECIAL_COLS), .seed = 5};
        norm_case.desc.y.dtype = E4M3;
        norm_case.desc.y.scaling = ROW;
        norm_case.desc.config = forced(configs[config]);
        struct norm_run run = norm_run_make(&norm_case);
        make_special(&run.x);
        assert_int_equal(norm_run_go(fixture, &run), CLNORM_SUCCESS);
        assert_true(norm_run_verify(fixture, &run));
        const float *scale = tensor_elements(&run.y_scale);
        const unsigned char(*codes)[SPECIAL_COLS] = tensor_elements(&run.y);
        const float none = 1e-10F / 448;
        for (int i = 0; i < SPECIAL_COLS; i++) {
            assert_int_equal(codes[ZEROS][i], 0);
            assert_int_equal(codes[WITH_NAN][i], 0x7f);
            assert_int_equal(codes[WITH_INFINITY][i] & 0x7f, i == PLACE ? 0x7f : 0);
        }
        assert_true(scale[NUMBERS] > 1e-3F && isfinite(scale[NUMBERS]));
        for (int row = ZEROS; row < SPECIAL_ROWS; row++)
            assert_true(scale[row] == none);
        norm_run_free(&run);
    }
}

/* Weights that are not finite affect their columns, and no scale. */
static void bad_weights_affect_no_scale(void **state) {
    const struct fixture *fixture = *state;
    struct norm_case norm_case = {.desc = norm_desc_of(RMS, 3, 96), .seed = 7};
    norm_case.desc.weight.dtype = F32;
    norm_case.desc.y.dtype = E5M2;
    norm_case.desc.y.scaling = GROUP;
    norm_case.desc.y.scale_group = 32;
    struct norm_run run = norm_run_make(&norm_case);
    ref_store(F32, tensor_elements(&run.weight), 40, INFINITY);
    ref_store(F32, tensor_elements(&run.weight), 41, NAN);
    assert_int_equal(norm_run_go(fixture, &run), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, &run));
    for (int row = 0; row < 3; row++) {
        const unsigned char *codes = (const unsigned char *)tensor_elements(&run.y) + (ptrdiff_t)row * 96;
        assert_int_equal(codes[40] & 0x7f, 0x7b);
        assert_int_equal(codes[41], 0x7f);
        assert_true(((const float *)tensor_elements(&run.y_scale))[row * 3 + 1] < 1);
    }
    norm_run_free(&run);
}

/* ------------------------------------------------------------------------------------------------------------ refusals */

static void bad_scales_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_desc good = norm_desc_of(RMS, 4, 96);
    good.y.dtype = E4M3;
    good.y.scaling = WHOLE;
    const double scales[] = {-1, INFINITY, NAN, 1e-300, 1e300};
    clnorm_norm_desc desc = good;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        desc.y.scale = scales[i];
        assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.y.scale is ");
    }
    desc.y.scale = 1;
    desc.y.scaling = ROW;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE,
                        "desc.y.scale is 1: expected 0 without CLNORM_SCALING_TENSOR");
    desc.y.scale = NAN;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.y.scale is nan");
    desc.y.dtype = F32;
    desc.y.scaling = (clnorm_scaling)0;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.y.scale is nan: expected 0 with a dtype of f32");
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_desc good = norm_desc_of(RMS, 4, 96);
    good.y.dtype = E4M3;
    good.y.scaling = ROW;
    clnorm_norm_desc desc = good;
    desc.y.scaling = (clnorm_scaling)0;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.y.scaling is 0: expected a clnorm_scaling");
    desc.y.scaling = (clnorm_scaling)-1;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.y.scaling is -1");
    desc = good;
    desc.y.dtype = CLNORM_DTYPE_NONE;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.y.scaling is 2: expected 0 with a dtype of f32");
    desc.y.scaling = (clnorm_scaling)0;
    desc.y.scale_group = 16;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.y.scale_group is 16: expected 0 with a dtype of f32");
    desc = good;
    desc.y.scale_group = 16;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.y.scale_group is 16: expected 0");
    const uint64_t sizes[] = {8, 48, 256};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        desc.y.scaling = GROUP;
        desc.y.scale_group = (uint32_t)sizes[i];
        assert_norm_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "expected 16, 32, 64 or 128");
    }
    desc.group_size = 48;
    desc.y.scale_group = 32;
    assert_norm_refused(fixture, &desc, CLNORM_UNSUPPORTED,
                        "desc.y.scale_group is 32: expected a divisor of group_size, 48");
    desc = good;
    desc.group_size = 48;
    assert_norm_refused(fixture, &desc, CLNORM_UNSUPPORTED, "desc.group_size is 48: expected cols, 96");
    desc = good;
    desc.x.dtype = CLNORM_F64;
    assert_norm_refused(fixture, &desc, CLNORM_UNSUPPORTED, "desc.y.dtype is f8e4m3, desc.x.dtype is f64: expected f64");
    desc = good;
    desc.y.stride = 95;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.y.stride is 95");
    desc = good;
    desc.rows = UINT64_MAX / 4;
    assert_norm_refused(fixture, &desc, CLNORM_OVERFLOW, "4611686018427387903 rows");
}

static void buffers_are_checked(void **state) {
    const struct fixture *fixture = *state;
    struct norm_case norm_case = norm_case_of(&cases[5]);
    norm_case.desc.rows = 100;
    struct norm_run run = norm_run_make(&norm_case);
    struct tensor whole = run.y_scale;
    run.y_scale = tensor_make(F32, 1, 1, 1, 0, TENSOR_CANARY);
    assert_int_equal(norm_run_go(fixture, &run), CLNORM_INVALID_BUFFER);
    assert_non_null(strstr(clnorm_error_detail(), "args.y_scale.mem has "));
    tensor_free(&run.y_scale);
    run.y_scale = (struct tensor){.dtype = CLNORM_DTYPE_NONE};
    assert_int_equal(norm_run_go(fixture, &run), CLNORM_INVALID_BUFFER);
    assert_non_null(strstr(clnorm_error_detail(), "args.y_scale.mem is NULL"));
    run.y_scale = whole;
    norm_run_free(&run);
    norm_case.desc.y.scaling = WHOLE;
    norm_case.desc.y.scale_group = 0;
    norm_case.desc.y.scale = 1;
    run = norm_run_make(&norm_case);
    run.y_scale = tensor_make(F32, 1, 1, 1, 0, TENSOR_CANARY);
    assert_int_equal(norm_run_go(fixture, &run), CLNORM_INVALID_BUFFER);
    assert_non_null(strstr(clnorm_error_detail(), "args.y_scale is given"));
    norm_run_free(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_those_of_quantize), cmocka_unit_test(zeros_nans_and_infinities_are_as_defined),
        cmocka_unit_test(bad_weights_affect_no_scale), cmocka_unit_test(bad_scales_are_refused),
        cmocka_unit_test(bad_descriptors_are_refused), cmocka_unit_test(buffers_are_checked),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
