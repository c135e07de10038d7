/* The reference's error bounds of the norms agree with values worked out by hand. Those leave products of two errors out,
 * which are far below the precision of the comparison. Numbers in comments are errors in units. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "error_units.h"
#include "reference/reference.h"

static void results_within_an_error(void **state) {
    (void)state;
    assert_true(ref_within(CLNORM_F32, 1, (struct ref_value){1, 0}));
    assert_true(ref_within(CLNORM_F32, 1.5, (struct ref_value){1, 0.5}));
    assert_false(ref_within(CLNORM_F32, 1.5 + 0x1p-23, (struct ref_value){1, 0.5}));
    assert_false(ref_within(CLNORM_F32, 0.5 - 0x1p-24, (struct ref_value){1, 0.5}));
    assert_true(ref_within(CLNORM_BF16, 1, (struct ref_value){1 + 0x1p-9, 0}));
    assert_false(ref_within(CLNORM_BF16, 1 + 0x1p-7, (struct ref_value){1 + 0x1p-9, 0}));
    assert_true(ref_within(CLNORM_F16, NAN, (struct ref_value){NAN, 0}));
    assert_false(ref_within(CLNORM_F16, 1, (struct ref_value){NAN, INFINITY}));
    assert_false(ref_within(CLNORM_F16, NAN, (struct ref_value){1, INFINITY}));
    assert_true(ref_within(CLNORM_F16, -INFINITY, (struct ref_value){-INFINITY, INFINITY}));
    assert_false(ref_within(CLNORM_F16, INFINITY, (struct ref_value){-INFINITY, INFINITY}));
}

/* The terms of two rows, with errors of 1/2 and 1/4. */
static void row_sums_by_hand(void **state) {
    (void)state;
    struct ref_row_sum sum = {.sum = {0}};
    ref_row_sum_add(&sum, 3, 0.5);
    ref_row_sum_add(&sum, -1, 0.25);
    assert_true(ref_sum_value(&sum.sum) == 2);
    assert_true(ref_sum_value(&sum.magnitude) == 4);
    assert_true(ref_sum_value(&sum.error) == 0.75);
}

/* (2 ± 0.5) · (3 ± 0.25) is off by 2 · 0.25 + 3 · 0.5 + 0.125, and by two roundings. */
static void product_errors_by_hand(void **state) {
    (void)state;
    const struct ref_arithmetic arithmetic = {.unit = 0x1p-10, .tiny = 0x1p-20};
    const double error = ref_product_error(&arithmetic, (struct ref_value){2, 0.5}, (struct ref_value){-3, 0.25});
    assert_true(error == 2.125 + 12 * 0x1p-10 + 0x1p-20);
}

/* ------------------------------------------------------------------------------------------------------ the forward */

/* {1, 3} has mean 2 and variance 1, and rstd 1/2 with eps 3. */
static const double pair[2] = {1, 3}, ones[2] = {1, 1}, wider[2] = {1, 5}, zeros[2] = {0, 0}, twos[2] = {2, 2};

static struct ref_norm pair_norm(void) {
    struct ref_norm norm = {.norm = CLNORM_LAYER_NORM, .rows = 1, .cols = 2, .group_size = 2, .eps = 3};
    norm.x = ref_doubles(pair, 2);
    return norm;
}

/* The mean: 2 of 4 over 2, and 4 of the largest, 3: 16. The mean square: 2 + 6, and twice 16 for each deviation of 1: 40.
 * rstd: 8 of itself, 4, and the derivative rstd³ / 2 times 40, 2.5. y: 6.5 from rstd, (16 + 1) / 2 from s − mean, 5 / 2. */
static void statistics_by_hand(void **state) {
    (void)state;
    struct ref_norm norm = pair_norm();
    struct ref_segment segment = ref_segment_make(2);
    ref_norm_segment(&norm, 0, 0, &segment);
    const struct ref_norm_error error = ref_norm_error_of(&norm, &rounded, &segment);
    assert_units(error.mean, 16);
    assert_units(error.rstd, 6.5);
    assert_units(ref_s_error(&error, 0), 0);
    assert_units(ref_y_error(&error, 1), 17.5 + 0.5);
    /* {1, 5} has deviations of 2, and rstd 1/2 with eps 0: 6 + 20, 8 · 4 + 4 · 26, 4 + 136 / 16; 2 · 12.5, 28 / 2, 5, 1 */
    const struct ref_norm plain = norm;
    norm.x = ref_doubles(wider, 2);
    norm.eps = 0;
    ref_norm_segment(&norm, 0, 0, &segment);
    const struct ref_norm_error wide = ref_norm_error_of(&norm, &rounded, &segment);
    assert_units(wide.mean, 26);
    assert_units(wide.rstd, 4 + 8.5);
    assert_units(ref_y_error(&wide, 0), 25 + 14 + 5 + 1);
    norm = plain;
    norm.norm = CLNORM_RMS_NORM; /* a mean square of 5, off by 8 of 5; rstd is 8^-1/2 */
    ref_norm_segment(&norm, 0, 0, &segment);
    const double rstd = sqrt(0.125);
    assert_units(ref_norm_error_of(&norm, &rounded, &segment).mean, 0);
    assert_units(ref_norm_error_of(&norm, &rounded, &segment).rstd, 8 * rstd + 20 * rstd * rstd * rstd);
    ref_segment_free(&segment);
}

/* With weight 2 and bias 1, n is {0, 2}, off by 2 · 17.5 + 1 + 1. SiLU: 1.13 · 37, and 24 + 4 · 2 of 2. The gate is 1/2,
 * off by 16 and by 2 roundings. */
static void gated_output_by_hand(void **state) {
    (void)state;
    struct ref_norm norm = pair_norm();
    norm.weight = ref_doubles(twos, 2);
    norm.bias = ref_doubles(ones, 2);
    struct ref_segment segment = ref_segment_make(2);
    ref_norm_segment(&norm, 0, 0, &segment);
    struct ref_norm_error error = ref_norm_error_of(&norm, &rounded, &segment);
    assert_units(ref_y_error(&error, 1), 37);
    norm.activation = CLNORM_ACTIVATION_SILU;
    ref_norm_segment(&norm, 0, 0, &segment);
    error = ref_norm_error_of(&norm, &rounded, &segment);
    assert_units(ref_y_error(&error, 1), 1.13 * 37 + 64);
    norm.gate = CLNORM_GATE_SIGMOID;
    norm.z = ref_doubles(zeros, 2);
    ref_norm_segment(&norm, 0, 0, &segment);
    error = ref_norm_error_of(&norm, &rounded, &segment);
    assert_units(ref_y_error(&error, 1), (1.13 * 37 + 64) / 2 + 18 * segment.y[1]);
    ref_segment_free(&segment);
}

/* With residual {−1, −3} and row_scale 2, part is {2, 6} and s is {1, 3}, off by 3 · 2 + 1 and 3 · 6 + 3. The mean is off
 * by (8 + 28) / 2 + 12 = 30, the mean square by 8, 37 and 51. With dropout rstd may be too small by as much again. */
static void sums_by_hand(void **state) {
    (void)state;
    static const double residual[2] = {-1, -3}, two = 2;
    static const unsigned char mask[2] = {1, 1};
    struct ref_norm norm = pair_norm();
    norm.residual = ref_doubles(residual, 2);
    norm.row_scale = ref_doubles(&two, 1);
    struct ref_segment segment = ref_segment_make(2);
    ref_norm_segment(&norm, 0, 0, &segment);
    struct ref_norm_error error = ref_norm_error_of(&norm, &rounded, &segment);
    assert_units(ref_s_error(&error, 0), 7);
    assert_units(ref_s_error(&error, 1), 21);
    assert_units(error.mean, 30);
    assert_units(error.rstd, 4 + 96 / 16.0);
    norm.row_scale.elements = ones;
    norm.dropout = 0.5;
    norm.mask = mask;
    ref_norm_segment(&norm, 0, 0, &segment);
    error = ref_norm_error_of(&norm, &rounded, &segment);
    assert_units(error.rstd, 4 + 2 * 96 / 16.0);
    ref_segment_free(&segment);
}

static void gate_first_by_hand(void **state) {
    (void)state;
    const double ln3[2] = {log(3), log(3)}; /* SiLU: 3/4 ln 3 */
    struct ref_norm norm = pair_norm();
    norm.gate = CLNORM_GATE_SILU;
    norm.gate_first = true;
    norm.z = ref_doubles(ln3, 2);
    struct ref_segment segment = ref_segment_make(2);
    ref_norm_segment(&norm, 0, 0, &segment);
    const struct ref_norm_error error = ref_norm_error_of(&norm, &rounded, &segment);
    assert_units(ref_s_error(&error, 1), 3 * 0.75 * ln3[0] * (16 + 2 * ln3[0]));
    ref_segment_free(&segment);
}

static void infinite_variance_has_no_error(void **state) {
    (void)state;
    static const double x[2] = {1, INFINITY};
    struct ref_norm norm = pair_norm();
    norm.norm = CLNORM_RMS_NORM;
    norm.x = ref_doubles(x, 2);
    struct ref_segment segment = ref_segment_make(2);
    ref_norm_segment(&norm, 0, 0, &segment);
    const struct ref_norm_error error = ref_norm_error_of(&norm, &rounded, &segment);
    assert_true(error.mean == 0 && error.rstd == 0 && ref_y_error(&error, 0) == 0);
    ref_segment_free(&segment);
}

/* s and the mean are off by 1. The variance, 1, is off by 2 · 2 + 1; rstd, 1/2, by the effect of that. */
static void dropped_numbers_by_hand(void **state) {
    (void)state;
    struct ref_norm norm = pair_norm();
    struct ref_segment segment = ref_segment_make(2);
    ref_norm_segment(&norm, 0, 0, &segment);
    const struct ref_norm_error error = ref_norm_error_of(&norm, &dropping, &segment);
    assert_true(ref_s_error(&error, 0) == 1 && error.mean == 1);
    const double rstd = 1 / sqrt(3) - 0.5;
    assert_true(fabs(error.rstd - rstd) < 1e-15);
    assert_true(fabs(ref_y_error(&error, 0) - (rstd + 2 * (0.5 + rstd) + 1)) < 1e-15);
    ref_segment_free(&segment);
}

/* ---------------------------------------------------------------------------------------------------- the gradients */

static const double dy[2] = {1, 0}, mean = 2, half = 0.5;

/* The pair with given mean 2 and rstd 1/2: x̂ is {−1/2, 1/2}, off by 1/2 from s − mean and 2 / 2 from the product. */
static struct ref_norm_backward pair_backward(void) {
    struct ref_norm_backward norm = {.forward = pair_norm(), .dy = ref_doubles(dy, 2)};
    norm.mean = ref_doubles(&mean, 1);
    norm.rstd = ref_doubles(&half, 1);
    norm.forward.weight = ref_doubles(twos, 2);
    return norm;
}

struct outcome {
    struct ref_gradients gradients;
    struct ref_gradient_errors errors;
};

static struct outcome outcome_of(const struct ref_norm_backward *norm, const struct ref_arithmetic *arithmetic) {
    struct outcome outcome = {ref_gradients_make(2), ref_gradient_errors_make(2)};
    ref_norm_backward_segment(norm, 0, 0, &outcome.gradients);
    ref_gradient_errors_of(norm, arithmetic, &outcome.gradients, &outcome.errors);
    return outcome;
}

static void free_outcome(struct outcome *outcome) {
    ref_gradients_free(&outcome->gradients);
    ref_gradient_errors_free(&outcome->errors);
}

/* wdn is {2, 0}, off by 2 and 4. c1 is −1/2, off by (3 + 3 + 2, and 3 of the sum) / 2 and 2 / 2, 6.5. c2 is 1, off by
 * (6 + 6) / 2 + 2. ds₀ is (2 − 1/4 − 1) / 2: 6, 8, 4 · 3.25, and 4.5 from x̂ · c1 make 31.5; half of it with 2 roundings is
 * 16.5. */
static void gradients_by_hand(void **state) {
    (void)state;
    static const double dresidual_out[2] = {1, 0}, two = 2;
    struct ref_norm_backward norm = pair_backward();
    struct outcome outcome = outcome_of(&norm, &rounded);
    assert_units(outcome.errors.xhat[0], 1.5);
    assert_units(outcome.errors.n[0], 1 + 3 + 2);
    assert_units(outcome.errors.dn[0], 0);
    assert_units(outcome.errors.wdn[0], 6);
    assert_units(outcome.errors.dweight[0], 1.5 + 1);
    assert_units(outcome.errors.dx[0], 16.5);
    free_outcome(&outcome);
    norm.s_given = true; /* ds₀ is 1.375, and rounded once more; dx₀ is twice that */
    norm.dresidual_out = ref_doubles(dresidual_out, 2);
    norm.forward.row_scale = ref_doubles(&two, 1);
    outcome = outcome_of(&norm, &rounded);
    assert_units(outcome.errors.dresidual[0], 17.875);
    assert_units(outcome.errors.dx[0], 5.5 + 35.75 + 5.5);
    free_outcome(&outcome);
}

/* RMS norm has no c2, and ds₀ is (2 − 1/4) / 2: 6, 4 · 2.25 and 4.5 make 19.5; half of it with 2 roundings is 11.5. */
static void rms_gradients_by_hand(void **state) {
    (void)state;
    static const double x[2] = {-1, 1};
    struct ref_norm_backward norm = pair_backward();
    norm.forward.norm = CLNORM_RMS_NORM;
    norm.forward.x = ref_doubles(x, 2);
    norm.mean.elements = NULL;
    struct outcome outcome = outcome_of(&norm, &rounded);
    assert_units(outcome.errors.dx[0], 11.5);
    free_outcome(&outcome);
}

/* Computed statistics of the pair are off by 16 and 6.5, as in the forward. */
static void computed_statistics_by_hand(void **state) {
    (void)state;
    struct ref_norm_backward norm = pair_backward();
    norm.mean.elements = norm.rstd.elements = NULL;
    struct outcome outcome = outcome_of(&norm, &rounded);
    assert_units(outcome.errors.xhat[0], 6.5 + 17 / 2.0 + 1);
    free_outcome(&outcome);
}

/* A gate of sigmoid(0) = 1/2, off by 8, after SiLU of n = {0, 2} (bias 1): n is off by 8, SiLU by 1.13 · 8 and 32 · 2 at 2,
 * SiLU′ by 0.8 · 8 and 24 at 0, where it is 1/2. sigmoid′(0) = 1/4 is off by 16. */
static void gated_gradients_by_hand(void **state) {
    (void)state;
    struct ref_norm_backward norm = pair_backward();
    norm.forward.bias = ref_doubles(ones, 2);
    norm.forward.activation = CLNORM_ACTIVATION_SILU;
    norm.forward.gate = CLNORM_GATE_SIGMOID;
    norm.forward.z = ref_doubles(zeros, 2);
    norm.dy = ref_doubles(ones, 2);
    struct outcome outcome = outcome_of(&norm, &rounded);
    const double active = outcome.gradients.active[1], active_error = 1.13 * 8 + 64;
    assert_units(outcome.errors.n[1], 8);
    assert_units(outcome.errors.dn[0], 30.4 / 2 + 9 / 2.0 + 0.5);
    assert_units(outcome.errors.dbias[0], 20.2);
    const double slope = outcome.gradients.active_slope[1]; /* off by 0.8 · 8 and 32 · 3 */
    assert_units(outcome.errors.dn[1], 102.4 / 2 + 9 * slope + slope);
    assert_units(outcome.errors.y[1], active * 8 + active_error / 2 + active);
    assert_units(outcome.errors.dz[1], active * 16 + active_error / 4 + active / 2);
    free_outcome(&outcome);
}

/* x · sigmoid(0) is {1/2, 3/2}, off by 8 and 24, with mean 1 and rstd 1: x̂₀ = −1/2 by 9.5. wdn is {1, 0}, off by 3; c1 is
 * −1/4, by 7.25, c2 1/2, by 4. ds₀ is 3/8: 3, 4, 4 · 1.625, 6.25 make 19.75, and 20.5 with 2 roundings. */
static void gate_first_gradients_by_hand(void **state) {
    (void)state;
    const double ln3[2] = {log(3), log(3)};
    struct ref_norm_backward norm = pair_backward();
    norm.mean = norm.rstd = ref_doubles(ones, 1);
    norm.forward.weight.elements = NULL;
    norm.forward.gate = CLNORM_GATE_SIGMOID;
    norm.forward.gate_first = true;
    norm.forward.z = ref_doubles(zeros, 2);
    struct outcome outcome = outcome_of(&norm, &rounded);
    assert_units(outcome.errors.dx[0], 13.625);
    assert_units(outcome.errors.dz[0], 11.3125);
    free_outcome(&outcome);
    norm.forward.gate = CLNORM_GATE_SILU; /* dz₀ is ds₀ · x₀ · SiLU′(z), with ds = 1 from dresidual_out alone */
    norm.forward.z = ref_doubles(ln3, 2);
    norm.dy = ref_doubles(zeros, 2);
    norm.dresidual_out = ref_doubles(ones, 2);
    outcome = outcome_of(&norm, &rounded);
    const double slope = outcome.gradients.slope[0], slope_error = 2 * (16 + 2 * ln3[0]) * 0.75 * (1 + ln3[0]);
    assert_units(outcome.errors.dz[0], slope_error + 2 * slope);
    assert_units(outcome.errors.dz[1], 3 * (slope_error + 2 * slope));
    free_outcome(&outcome);
}

/* x̂ = {−1/2, 1/2} from y = 2 x̂ is off by 8 of itself. */
static void recovered_gradients_by_hand(void **state) {
    (void)state;
    static const double y[2] = {-1, 1};
    struct ref_norm_backward norm = pair_backward();
    norm.forward.x = ref_doubles(y, 2);
    norm.mean.elements = NULL;
    norm.y_given = true;
    struct outcome outcome = outcome_of(&norm, &rounded);
    assert_units(outcome.errors.xhat[0], 4);
    free_outcome(&outcome);
    outcome = outcome_of(&norm, &dropping);
    assert_true(outcome.errors.xhat[0] == 1.5); /* 1, and 1 / 2 through the weight */
    free_outcome(&outcome);
}

static void arithmetic_is_that_of_the_dtype(void **state) {
    (void)state;
    assert_true(ref_arithmetic_of(CLNORM_F64).unit == 0x1p-53 && ref_arithmetic_of(CLNORM_F64).tiny == 0x1p-1022);
    assert_true(ref_arithmetic_of(CLNORM_BF16).unit == 0x1p-24 && ref_arithmetic_of(CLNORM_BF16).tiny == 0x1p-126);
    assert_true(ref_arithmetic_of(CLNORM_F64).function == 48 && ref_arithmetic_of(CLNORM_F32).function == 16);
    assert_true(ref_arithmetic_of(CLNORM_F64).shift == 4 && ref_arithmetic_of(CLNORM_F32).shift == 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_within_an_error),     cmocka_unit_test(row_sums_by_hand),
        cmocka_unit_test(product_errors_by_hand),      cmocka_unit_test(statistics_by_hand),
        cmocka_unit_test(gated_output_by_hand),        cmocka_unit_test(sums_by_hand),
        cmocka_unit_test(gate_first_by_hand),          cmocka_unit_test(infinite_variance_has_no_error),
        cmocka_unit_test(dropped_numbers_by_hand),     cmocka_unit_test(gradients_by_hand),
        cmocka_unit_test(rms_gradients_by_hand),       cmocka_unit_test(computed_statistics_by_hand),
        cmocka_unit_test(gated_gradients_by_hand),     cmocka_unit_test(gate_first_gradients_by_hand),
        cmocka_unit_test(recovered_gradients_by_hand), cmocka_unit_test(arithmetic_is_that_of_the_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
