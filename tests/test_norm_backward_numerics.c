/* Backward normalisation of numerically difficult inputs, and properties that hold for all inputs. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"
#include "reference/reference.h"

/* Most tests have this many columns of f32, and share their kernels. */
enum { COLS = 1000 };

static double load(const struct tensor *tensor, uint64_t index) {
    return ref_load(tensor->dtype, tensor_elements(tensor), index);
}

static void store(struct tensor *tensor, uint64_t index, double value) {
    ref_store(tensor->dtype, tensor_elements(tensor), index, value);
}

/* Runs with the inputs in host memory, and fetches the outputs. */
static void go(const struct fixture *fixture, struct norm_backward_run *run) {
    if (norm_backward_run_go(fixture, run) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    assert_true(norm_backward_run_receive(fixture, run));
}

static void go_and_check(const struct fixture *fixture, struct norm_backward_run *run) {
    go(fixture, run);
    assert_true(norm_backward_run_check(run));
}

/* ----------------------------------------------------------------------------------------------- difficult sums */

/* With a mean of 10,000 and a deviation of 1, an f32 has a resolution of about 2^-10. x̂ may be off by twice that, and dx by
 * that for each of its two x̂, times factors of about 4. */
static void far_mean_costs_its_resolution(void **state) {
    const struct fixture *fixture = *state;
    enum { ROWS = 4 };
    struct norm_backward_case backward_case = {
        .desc = norm_backward_full_desc(CLNORM_LAYER_NORM, ROWS, COLS, CLNORM_F32), .input = INPUT_FAR, .seed = 2};
    struct norm_backward_run run = norm_backward_run_make(&backward_case);
    tensor_fill(&run.weight, INPUT_UNIFORM, COLS, 1);
    go(fixture, &run);
    struct ref_gradients gradients = ref_gradients_make(COLS);
    struct ref_norm_backward norm = ref_norm_backward_of(&run.desc);
    norm.forward.x.elements = tensor_elements(&run.x);
    norm.forward.weight.elements = tensor_elements(&run.weight);
    norm.dy.elements = tensor_elements(&run.dy);
    double dweight[COLS] = {0};
    for (uint64_t row = 0; row < ROWS; row++) {
        ref_norm_backward_segment(&norm, row, 0, &gradients);
        for (uint64_t column = 0; column < COLS; column++) {
            const double error = fabs(load(&run.dx, row * COLS + column) - gradients.dx[column]);
            if (!(error <= 0x1p-8))
                fail_msg("dx[%d, %d] is off by %g", (int)row, (int)column, error);
            dweight[column] += gradients.dn[column] * gradients.xhat[column];
        }
    }
    for (uint64_t column = 0; column < COLS; column++)
        if (!(fabs(load(&run.dweight, column) - dweight[column]) <= 4 * ROWS * 0x1p-9))
            fail_msg("dweight[%d] is %g, not %g", (int)column, load(&run.dweight, column), dweight[column]);
    ref_gradients_free(&gradients);
    norm_backward_run_free(&run);
}

/* In rows of equal elements, however large, x̂ is exactly 0, and so is dweight. */
static void equal_elements_give_no_dweight(void **state) {
    const struct fixture *fixture = *state;
    static const double elements[] = {0.1, -3, 1234.567, 1e6 / 3, 3.3e7, -1e15};
    enum { ROWS = sizeof elements / sizeof *elements };
    const struct norm_backward_case backward_case = {
        .desc = norm_backward_full_desc(CLNORM_LAYER_NORM, ROWS, COLS, CLNORM_F32), .seed = 3};
    struct norm_backward_run run = norm_backward_run_make(&backward_case);
    for (uint64_t i = 0; i < run.desc.rows * COLS; i++)
        store(&run.x, i, elements[i / COLS]);
    go(fixture, &run);
    for (uint64_t i = 0; i < COLS; i++)
        if (load(&run.dweight, i) != 0)
            fail_msg("dweight[%d] is %g", (int)i, load(&run.dweight, i));
    for (uint64_t i = 0; i < run.desc.rows * COLS; i++)
        if (load(&run.y, i) != load(&run.bias, i % COLS))
            fail_msg("y of %g is %g off the bias", load(&run.x, i), load(&run.y, i) - load(&run.bias, i % COLS));
    norm_backward_run_free(&run);
}

/* -------------------------------------------------------------------------------------------- beyond finite numbers */

static void spoil_rows(struct norm_backward_run *run) {
    const uint64_t cols = run->desc.cols;
    store(&run->x, 1 * cols, NAN);
    store(&run->x, 2 * cols + cols / 2, INFINITY);
    store(&run->x, 4 * cols + cols - 1, -INFINITY);
    store(&run->dy, 5 * cols + cols - 1, NAN);
    store(&run->dy, 7 * cols + cols / 3, INFINITY);
    store(&run->dy, 8 * cols, -INFINITY);
}

/* Rows with NaN or infinities have the results of the formulas, and do not affect their neighbours. */
static void nan_and_infinity_stay_in_their_rows(void **state) {
    const struct fixture *fixture = *state;
    for (int i = 0; i < 4; i++) {
        struct norm_backward_case backward_case = {
            .desc = norm_backward_full_desc(i & 1 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 10, i & 2 ? 12 : COLS,
                                            i & 2 ? CLNORM_BF16 : CLNORM_F32),
            .seed = 9};
        struct norm_backward_run run = norm_backward_run_make(&backward_case);
        spoil_rows(&run);
        tensor_fill(&run.dx, INPUT_UNIFORM, run.desc.cols, 1); /* so that the kernel writes every NaN there */
        tensor_fill(&run.y, INPUT_UNIFORM, run.desc.cols, 1);
        go_and_check(fixture, &run);
        norm_backward_run_free(&run);
    }
}

/* A NaN in dy stays in its group of dx and in its column of the sums; one in x, in its group. */
static void nan_stays_in_its_column_and_group(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t cols = 96;
    struct norm_backward_case backward_case = {.desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 5, cols, CLNORM_F32),
                                               .seed = 4};
    backward_case.desc.group_size = 24;
    struct norm_backward_run run = norm_backward_run_make(&backward_case);
    store(&run.dy, 10, NAN);
    store(&run.x, 2 * cols + 30, NAN);
    tensor_fill(&run.dx, INPUT_UNIFORM, 24, 1);
    tensor_fill(&run.dbias, INPUT_UNIFORM, cols, 1);
    tensor_fill(&run.dweight, INPUT_UNIFORM, cols, 1);
    go_and_check(fixture, &run);
    for (uint64_t column = 0; column < cols; column++) {
        const bool in_group = column >= 24 && column < 48;
        assert_true(!!isnan(load(&run.dbias, column)) == (column == 10));
        assert_true(!!isnan(load(&run.dweight, column)) == (column == 10 || in_group));
        assert_true(!!isnan(load(&run.dx, 2 * cols + column)) == in_group);
        assert_true(!!isnan(load(&run.dx, column)) == (column < 24));
    }
    norm_backward_run_free(&run);
}

/* -------------------------------------------------------------------------------------------------- small and large */

static void scaled_inputs(const struct fixture *fixture, const clnorm_norm_backward_desc *desc, double x_scale,
                          double dy_scale, double eps) {
    struct norm_backward_case backward_case = {.desc = *desc, .seed = 5};
    backward_case.desc.eps = eps;
    struct norm_backward_run run = norm_backward_run_make(&backward_case);
    for (uint64_t i = 0; i < desc->rows * desc->cols; i++) {
        store(&run.x, i, x_scale * load(&run.x, i));
        store(&run.dy, i, dy_scale * load(&run.dy, i));
    }
    go(fixture, &run);
    if (!norm_backward_run_check(&run))
        fail_msg("x of %s times %g, dy times %g, eps %g", clnorm_dtype_name(desc->x.dtype), x_scale, dy_scale, eps);
    norm_backward_run_free(&run);
}

static void denormals_and_huge_values(void **state) {
    const struct fixture *fixture = *state;
    for (int i = 0; i < 4; i++) {
        const clnorm_norm norm = i & 1 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM;
        clnorm_norm_backward_desc desc = norm_backward_full_desc(norm, 3, COLS, i & 2 ? CLNORM_F16 : CLNORM_F32);
        desc.dweight.dtype = desc.dbias.dtype = CLNORM_F32;
        if (desc.x.dtype == CLNORM_F16) {
            scaled_inputs(fixture, &desc, 0x1p-18, 0x1p-18, 1e-20); /* denormals of f16, but not of f32 */
            scaled_inputs(fixture, &desc, 1e4, 1e4, 1e-5);
            scaled_inputs(fixture, &desc, 1e-3, 1e4, 0); /* dx overflows f16 */
            continue;
        }
        scaled_inputs(fixture, &desc, 1e-40, 1e-3, 1e-5); /* a device may flush them to 0 */
        scaled_inputs(fixture, &desc, 1e-16, 1, 0);
        scaled_inputs(fixture, &desc, 1e17, 1e17, 1e-5); /* squares sum up to 1e37 */
        scaled_inputs(fixture, &desc, 1, 1e30, 1e-5);
        scaled_inputs(fixture, &desc, 1, 1e-30, 1e-5);
    }
}

/* ------------------------------------------------------------------------------------------------------- properties */

/* dx is orthogonal to the changes of x that the norm ignores: a shift, and without eps a scale. */
static void dx_is_orthogonal_to_ignored_changes(void **state) {
    const struct fixture *fixture = *state;
    for (int norm = CLNORM_LAYER_NORM; norm <= CLNORM_RMS_NORM; norm++) {
        struct norm_backward_case backward_case = {.desc = norm_backward_full_desc((clnorm_norm)norm, 8, COLS, CLNORM_F32),
                                                   .seed = 8};
        backward_case.desc.eps = 0;
        struct norm_backward_run run = norm_backward_run_make(&backward_case);
        go(fixture, &run);
        for (uint64_t row = 0; row < 8; row++) {
            double sum = 0;
            double product = 0;
            double magnitude = 0;
            for (uint64_t i = row * COLS; i < (row + 1) * COLS; i++) {
                sum += load(&run.dx, i);
                product += load(&run.dx, i) * load(&run.x, i);
                magnitude += fabs(load(&run.dx, i));
            }
            if (norm == CLNORM_LAYER_NORM && !(fabs(sum) <= 0x1p-20 * magnitude))
                fail_msg("the sum of dx is %g, of magnitudes %g", sum, magnitude);
            if (!(fabs(product) <= 0x1p-18 * magnitude))
                fail_msg("the sum of dx times x is %g, of magnitudes %g", product, magnitude);
        }
        norm_backward_run_free(&run);
    }
}

/* shift: elements by which b and others lie further from an aligned address than a. */
static void assert_same_bits(const struct tensor *a, const struct tensor *b, const char *name, uint64_t shift) {
    if (memcmp(tensor_elements(a), tensor_elements(b), a->rows * a->cols * clnorm_dtype_size(a->dtype)) != 0)
        fail_msg("%s of %s, %" PRIu64 " columns, has other bits with tensors shifted by %" PRIu64, name,
                 clnorm_dtype_name(a->dtype), a->cols, shift);
}

/* Partial sums are added up in the same order in every run, wherever the tensors lie. */
static void partial_bits_repeat(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t all_cols[] = {64, COLS};
    for (int i = 0; i < 2; i++) {
        struct norm_backward_case backward_case = {
            .desc = norm_backward_full_desc(i % 2 ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM, 500, all_cols[i],
                                            i ? CLNORM_F32 : CLNORM_BF16),
            .seed = 10};
        if (fixture_element_limit(fixture) < 500 * all_cols[i])
            backward_case.desc.rows = fixture_element_limit(fixture) / all_cols[i];
        backward_case.desc.dweight.dtype = backward_case.desc.dbias.dtype = CLNORM_F32;
        struct norm_backward_run first = norm_backward_run_make(&backward_case);
        go_and_check(fixture, &first);
        for (int j = 0; j < 6; j++) {
            const uint64_t shift = j % 2 ? 3 : 0;
            backward_case.shift.x = backward_case.shift.dy = backward_case.shift.dx = backward_case.shift.dweight = shift;
            struct norm_backward_run again = norm_backward_run_make(&backward_case);
            go(fixture, &again);
            assert_same_bits(&first.dx, &again.dx, "dx", shift);
            assert_same_bits(&first.y, &again.y, "y", shift);
            assert_same_bits(&first.dweight, &again.dweight, "dweight", shift);
            assert_same_bits(&first.dbias, &again.dbias, "dbias", shift);
            norm_backward_run_free(&again);
        }
        norm_backward_run_free(&first);
    }
}

/* The bits of a row of dx depend neither on the number of rows, nor on their place in memory. */
static void dx_bits_depend_on_the_row_alone(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t all_cols[] = {7, COLS, 65537};
    for (int i = 0; i < 3; i++) {
        const uint64_t cols = all_cols[i];
        struct norm_backward_case backward_case = {
            .desc = norm_backward_desc_of(i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 1, cols), .seed = 11};
        if (cols > fixture_element_limit(fixture))
            continue;
        backward_case.desc.x.dtype = i % 2 ? CLNORM_F32 : CLNORM_BF16;
        backward_case.desc.dbias.dtype = CLNORM_F32;
        struct norm_backward_run one = norm_backward_run_make(&backward_case);
        go(fixture, &one);
        backward_case.desc.config = forced(one.config);
        const uint64_t most = fixture_element_limit(fixture) / cols;
        const uint64_t rows[] = {7, most < 1000 ? most + 1 : 1000};
        for (int j = 0; j < 2; j++) {
            backward_case.desc.rows = rows[j];
            backward_case.shift.x = backward_case.shift.dy = backward_case.shift.dx = j == 0 ? 3 : 0;
            struct norm_backward_run many = norm_backward_run_make(&backward_case);
            go(fixture, &many);
            assert_same_bits(&one.dx, &many.dx, "the first row of dx", backward_case.shift.x);
            norm_backward_run_free(&many);
        }
        norm_backward_run_free(&one);
    }
}

/* At n = ±∞ the slope of SiLU is 1 or 0, so that one row's dweight and dbias are finite. The work-group has room for a
 * second row, which is not there. */
static void an_infinite_weight_counts_in_real_rows_alone(void **state) {
    const struct fixture *fixture = *state;
    struct norm_backward_case c = {.desc = norm_backward_full_desc(CLNORM_RMS_NORM, 1, 64, CLNORM_F32), .seed = 13};
    c.desc.activation = CLNORM_ACTIVATION_SILU;
    c.desc.y.dtype = CLNORM_DTYPE_NONE;
    assert_int_equal(clnorm_config_parse("keep=registers,accumulator=registers,vec=4,lanes=1,segments=2", &c.desc.config),
                     0);
    struct norm_backward_run run = norm_backward_run_make(&c);
    store(&run.weight, 5, INFINITY);
    go(fixture, &run);
    for (uint64_t i = 0; i < 64; i++)
        assert_true(isfinite(load(&run.dweight, i)) && isfinite(load(&run.dbias, i)));
    norm_backward_run_free(&run);
}

/* Without rows, sums are 0, or with accumulate unchanged. */
static void no_rows_give_zeros(void **state) {
    const struct fixture *fixture = *state;
    for (int i = 0; i < 4; i++) {
        struct norm_backward_case backward_case = {.desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 0, COLS, CLNORM_F32),
                                                   .seed = 12};
        backward_case.desc.accumulate = i & 1;
        if (i & 2 && norm_backward_locks(fixture))
            backward_case.desc.reduction = CLNORM_REDUCTION_LOCKED;
        assert_true(norm_backward_case_passes(fixture, &backward_case));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(far_mean_costs_its_resolution),
        cmocka_unit_test(equal_elements_give_no_dweight),
        cmocka_unit_test(nan_and_infinity_stay_in_their_rows),
        cmocka_unit_test(nan_stays_in_its_column_and_group),
        cmocka_unit_test(denormals_and_huge_values),
        cmocka_unit_test(dx_is_orthogonal_to_ignored_changes),
        cmocka_unit_test(partial_bits_repeat),
        cmocka_unit_test(dx_bits_depend_on_the_row_alone),
        cmocka_unit_test(an_infinite_weight_counts_in_real_rows_alone),
        cmocka_unit_test(no_rows_give_zeros),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
