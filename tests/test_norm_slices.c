/* Norms of slices of the columns, compared with the reference of whole rows: slices of any width, groups, dtypes, strides,
 * far means; the merge of moments; wrong results, which the comparison must find; refused descriptors and arguments. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "norm_slices_case.h"
#include "norm_slices_verify.h"
#include "plan_run.h"
#include "reference/format.h"
#include "refusal.h"

enum { F32 = CLNORM_F32, F16 = CLNORM_F16, BF16 = CLNORM_BF16, F64 = CLNORM_F64, NONE = CLNORM_DTYPE_NONE };
enum { LAYER = CLNORM_LAYER_NORM, RMS = CLNORM_RMS_NORM };
enum { NORMAL = INPUT_NORMAL, FAR = INPUT_FAR, SPIKES = INPUT_SPIKES, CONSTANT = INPUT_CONSTANT };

/* 300 rows make several partial sums of dweight. Odd widths give CPUs a last vector that is partly filled. */
static const struct slices_case cases[] = {
    {5, 1, {64, 32}, 0, LAYER, F32, F32, F32, NORMAL, 0, 0, 0, false, "", ""},
    {5, 1, {64, 32}, 0, RMS, F32, F32, F32, NORMAL, 0, 0, 0, false, "", ""},
    {7, 1, {96}, 0, LAYER, F32, F32, F32, SPIKES, 0, 0, 0, false, "", ""}, /* one slice */
    {4, 1, {1, 1, 1}, 0, LAYER, F32, F32, F32, NORMAL, 0, 0, 0, false, "", ""},
    {4, 1, {1}, 0, RMS, F32, NONE, F32, NORMAL, 0, 0, 0, false, "", ""},
    {300, 3, {33, 100, 7}, 0, LAYER, F16, F32, F16, NORMAL, 5, 1, 0, false, "", ""},
    {300, 2, {40, 24, 24}, 0, RMS, BF16, F32, F32, NORMAL, 8, 0, 0, false, "", ""},
    {9, 1, {513, 1}, 0, LAYER, BF16, BF16, BF16, NORMAL, 0, 3, 0, false, "", ""},
    {6, 2, {65, 31}, 0, LAYER, F64, F64, F64, FAR, 3, 0, 0, false, "", ""},
    {9, 1, {300, 300, 83}, 0, LAYER, F32, F32, F32, FAR, 0, 0, 0, false, "", ""},
    {3, 1, {300, 83}, 0, LAYER, F32, F32, F32, CONSTANT, 0, 0, 0, false, "", ""},
    {11, 0, {2, 1}, 32, LAYER, F32, F32, F32, FAR, 4, 0, 0, false, "", ""}, /* slices end where groups do */
    {8, 2, {64, 32}, 0, LAYER, F32, F32, F32, NORMAL, 8, 1, 0, true, "", ""},
    {8, 2, {64, 32}, 0, LAYER, F32, F32, F32, NORMAL, 3, 1, 4, false, "", ""}, /* rows with outer dimensions */
    {0, 1, {64, 32}, 0, LAYER, F32, F32, F32, NORMAL, 0, 0, 0, false, "", ""},
};

static void results_are_right(void **state) {
    assert_true(slices_cases_are_right(*state, cases, sizeof cases / sizeof *cases) >= (fixture_is_quick() ? 3 : 6));
}

/* The comparison finds a result that is off by a little more than its rounding, in each output of each slice. */
static void damage_is_seen(void **state) {
    const struct fixture *fixture = *state;
    struct slices_run run = slices_run_make(&cases[0]);
    assert_true(slices_run_execute(fixture, &run) && slices_run_is_right(&run));
    for (unsigned s = 0; s < run.slices; s++) {
        const struct slice *const slice = &run.slice[s];
        const struct tensor *const outputs[] = {&slice->moments, &slice->y,       &slice->sums,
                                                &slice->dx,      &slice->dweight, &slice->dbias};
        for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
            float *const element = tensor_elements(outputs[i]);
            const float kept = element[1];
            element[1] = kept + fabsf(kept) * 0x1p-12F + 0x1p-14F;
            assert_false(slices_run_is_right(&run));
            element[1] = kept;
        }
    }
    assert_true(slices_run_is_right(&run));
    slices_run_free(&run);
}

/* The moments of a slice differ from those of the row: merging them has an effect. */
static void merging_changes_moments(void **state) {
    const struct fixture *fixture = *state;
    struct slices_run run = slices_run_make(&cases[0]);
    assert_true(slices_run_execute(fixture, &run) && slices_run_is_right(&run));
    struct slices_case alone = cases[0];
    alone.parts[1] = 0;
    struct slices_run part = slices_run_make(&alone);
    assert_true(slices_run_execute(fixture, &part));
    assert_memory_not_equal(tensor_elements(&part.slice[0].moments), tensor_elements(&run.slice[0].moments),
                            3 * sizeof(float));
    slices_run_free(&part);
    slices_run_free(&run);
}

/* {1, 2, 3} and {7, 9} have means 2 and 8, squares 2 and 2; all five have mean 4.4, squares 2 + 2 + 36 · 6/5 = 47.2. */
static void moments_are_merged(void **state) {
    (void)state;
    float into[9] = {2, 2, 3, 5, 1, 4, 2, 2, 0};
    const float from[9] = {8, 2, 2, 1, 1, 0, -4, 3, 2};
    assert_int_equal(clnorm_moments_merge(CLNORM_F32, into, from, 3), CLNORM_SUCCESS);
    const float expected[9] = {4.4F, 47.2F, 5, 5, 1, 4, -4, 3, 2};
    for (int i = 0; i < 9; i++)
        assert_true(into[i] == expected[i]);
    const float none[3] = {7, 3, 0}; /* a count of 0 changes nothing, even if both are 0 */
    float empty[3] = {5, 2, 0};
    assert_int_equal(clnorm_moments_merge(CLNORM_F32, empty, none, 1), CLNORM_SUCCESS);
    assert_true(empty[0] == 5 && empty[1] == 2 && empty[2] == 0);
    double wide[3] = {1e15, 0, 1};
    const double other[3] = {1e15 + 2, 0, 1};
    assert_int_equal(clnorm_moments_merge(CLNORM_F64, wide, other, 1), CLNORM_SUCCESS);
    assert_true(wide[0] == 1e15 + 1 && wide[1] == 2 && wide[2] == 2);
    const float largest[3] = {0, FLT_MAX, 1};
    float more[3] = {0, FLT_MAX, 1};
    assert_int_equal(clnorm_moments_merge(CLNORM_F32, more, largest, 1), CLNORM_SUCCESS);
    assert_true(isinf(more[1]));
    assert_int_equal(clnorm_moments_merge(CLNORM_F32, NULL, NULL, 0), CLNORM_SUCCESS);
    assert_int_equal(clnorm_moments_merge(CLNORM_BF16, more, largest, 1), CLNORM_INVALID_ENUM);
    assert_string_equal(clnorm_error_detail(), "dtype is 3, bf16: expected f32 or f64");
    assert_int_equal(clnorm_moments_merge(CLNORM_F32, NULL, largest, 1), CLNORM_INVALID_ARGUMENT);
    assert_string_equal(clnorm_error_detail(), "into is NULL");
    assert_int_equal(clnorm_moments_merge(CLNORM_F32, more, NULL, 1), CLNORM_INVALID_ARGUMENT);
}

/* The moments of RMS norm have means of 0: squares and counts add up. */
static void rms_moments_add_up(void **state) {
    (void)state;
    float into[3] = {0, 14, 3};
    const float from[3] = {0, 130, 2};
    assert_int_equal(clnorm_moments_merge(CLNORM_F32, into, from, 1), CLNORM_SUCCESS);
    assert_true(into[0] == 0 && into[1] == 144 && into[2] == 5);
}

/* A NaN makes its segment NaN in every slice, and no other segment. */
static void a_nan_stays_in_its_segment(void **state) {
    const struct fixture *fixture = *state;
    for (int norm = LAYER; norm <= RMS; norm++) {
        struct slices_case c = cases[0];
        c.norm = norm;
        c.groups = 2;
        struct slices_run run = slices_run_make(&c);
        ref_store(CLNORM_F32, tensor_elements(&run.x), 5, NAN);
        ref_store(CLNORM_F32, tensor_elements(&run.slice[0].x), 5, NAN);
        assert_true(slices_run_execute(fixture, &run) && slices_run_is_right(&run));
        for (unsigned s = 0; s < 2; s++) {
            assert_true(isnan(ref_load(CLNORM_F32, tensor_elements(&run.slice[s].y), 7)));
            assert_true(isnan(ref_load(CLNORM_F32, tensor_elements(&run.slice[s].dx), 7)));
            assert_true(!isnan(ref_load(CLNORM_F32, tensor_elements(&run.slice[s].y), run.slice[s].group_size)));
        }
        slices_run_free(&run);
    }
}

/* The squared distance of a chunk without elements from a mean beyond 1.8e19 is infinite, and 0 times that is NaN: of five
 * vectors, the last of four chunks has none. */
static void huge_equal_elements_have_no_variance(void **state) {
    const struct fixture *fixture = *state;
    const struct slices_case c = {
        1, 1, {20}, 0, LAYER, F32, F32, F32, NORMAL, 0, 0, 0, false, "vec=4,lanes=1,segments=1,chunks=4", ""};
    struct slices_run run = slices_run_make(&c);
    for (uint64_t column = 0; column < 20; column++)
        ref_store(CLNORM_F32, tensor_elements(&run.slice[0].x), column, 1e25);
    assert_true(slices_run_execute(fixture, &run));
    assert_true(ref_load(CLNORM_F32, tensor_elements(&run.slice[0].moments), 1) == 0);
    slices_run_free(&run);
}

/* ---------------------------------------------------------------------------------------------------------- refused */

static void expect(clnorm_status status, clnorm_status expected, const char *said) {
    assert_int_equal(status, expected);
    assert_detail(said);
}

static void refuse_apply(const struct fixture *fixture, const clnorm_norm_apply_desc *desc, clnorm_status status,
                         const char *said) {
    clnorm_plan *plan = NULL;
    expect(clnorm_norm_apply_plan_create(fixture->context, desc, &plan), status, said);
    assert_null(plan);
}

static void bad_forwards_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_apply_desc good, desc;
    clnorm_norm_apply_desc_init(&good);
    good.rows = 4;
    good.cols = 64;
    desc = good;
    desc.norm = (clnorm_norm)3;
    refuse_apply(fixture, &desc, CLNORM_INVALID_ENUM, "desc.norm is 3: expected a clnorm_norm");
    desc = good;
    desc.reserved = 1;
    refuse_apply(fixture, &desc, CLNORM_INVALID_VALUE, "desc.reserved is 1: expected 0");
    desc = good;
    desc.group_size = 48;
    refuse_apply(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.group_size is 48: expected a divisor of cols, 64");
    desc = good;
    desc.eps = -1;
    refuse_apply(fixture, &desc, CLNORM_INVALID_VALUE, "desc.eps is -1");
    desc = good;
    desc.x.dtype = CLNORM_F8_E4M3;
    refuse_apply(fixture, &desc, CLNORM_UNSUPPORTED, "desc.x.dtype is f8e4m3");
    desc = good;
    desc.weight.dtype = CLNORM_F64;
    refuse_apply(fixture, &desc, CLNORM_UNSUPPORTED, "desc.weight.dtype is f64");
    desc = good;
    desc.y.stride = 63;
    refuse_apply(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.y.stride is 63");
    desc = good;
    desc.rows = UINT64_MAX;
    refuse_apply(fixture, &desc, CLNORM_OVERFLOW, "18446744073709551615 rows");
    desc = good;
    desc.rows = UINT64_C(1) << 60;
    desc.cols = 1;
    refuse_apply(fixture, &desc, CLNORM_OVERFLOW, "moments");
}

static void bad_statistics_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_plan *plan = NULL;
    clnorm_norm_statistics_desc desc;
    clnorm_norm_statistics_desc_init(&desc);
    desc.rows = 4;
    expect(clnorm_norm_statistics_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_SHAPE, "desc.cols is 0");
    desc.cols = 8;
    assert_int_equal(clnorm_config_parse("keep=registers", &desc.config), CLNORM_SUCCESS);
    expect(clnorm_norm_statistics_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE,
           "desc.config.keep is registers: expected reread or 0 in this operation");
}

static void bad_backwards_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_backward_apply_desc desc;
    clnorm_norm_backward_apply_desc_init(&desc);
    desc.rows = 4;
    desc.cols = 64;
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_config_parse("tile=16,row_split=exchange", &desc.config), CLNORM_SUCCESS);
    expect(clnorm_norm_backward_apply_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE,
           "desc.config.row_split is exchange: expected two_passes or 0");
    assert_int_equal(clnorm_config_parse("tile=16,chunks=2", &desc.config), CLNORM_SUCCESS);
    expect(clnorm_norm_backward_apply_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE,
           "desc.config.chunks is 2: expected 1 or 0");
    clnorm_norm_backward_statistics_desc statistics;
    clnorm_norm_backward_statistics_desc_init(&statistics);
    statistics.rows = 4;
    statistics.cols = 64;
    statistics.dy.dtype = CLNORM_F64;
    expect(clnorm_norm_backward_statistics_plan_create(fixture->context, &statistics, &plan), CLNORM_UNSUPPORTED,
           "desc.dy.dtype is f64");
}

/* Tensors that are missing, overlapping, too small, or not wanted. */
static void bad_arguments_are_refused(void **state) {
    const struct fixture *fixture = *state;
    struct slices_run run = slices_run_make(&cases[0]);
    struct slice *const slice = &run.slice[0];
    clnorm_norm_statistics_desc desc = CLNORM_NORM_STATISTICS_DESC_INIT;
    desc.rows = 5;
    desc.cols = 64;
    clnorm_requirements needs = CLNORM_REQUIREMENTS_INIT;
    assert_int_equal(clnorm_norm_statistics_validate(fixture->context, &desc, &needs), CLNORM_SUCCESS);
    assert_int_equal(needs.tensor_count, 2);
    assert_string_equal(needs.tensors[1].name, "moments");
    assert_int_equal(needs.tensors[1].bytes, sizeof(float[5][3]));
    tensor_upload(fixture, &slice->x);
    tensor_upload(fixture, &slice->moments);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&slice->x);
    expect(clnorm_norm_statistics(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL), CLNORM_INVALID_BUFFER,
           "args.moments");
    args.moments = args.x;
    expect(clnorm_norm_statistics(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL), CLNORM_INVALID_BUFFER,
           "args.moments");
    args.moments = tensor_buffer(&slice->moments);
    args.moments.offset = slice->moments.size - sizeof(float[5][3]) + sizeof(float);
    expect(clnorm_norm_statistics(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL), CLNORM_INVALID_BUFFER,
           "args.moments");
    args.moments = tensor_buffer(&slice->moments);
    args.sums = args.moments;
    expect(clnorm_norm_statistics(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL), CLNORM_INVALID_BUFFER,
           "args.sums");
    slices_run_free(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(merging_changes_moments),
        cmocka_unit_test(moments_are_merged),
        cmocka_unit_test(rms_moments_add_up),
        cmocka_unit_test(a_nan_stays_in_its_segment),
        cmocka_unit_test(huge_equal_elements_have_no_variance),
        cmocka_unit_test(bad_forwards_are_refused),
        cmocka_unit_test(bad_statistics_are_refused),
        cmocka_unit_test(bad_backwards_are_refused),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
