/* The errors that results are judged by, against values worked out by hand. Products of two errors are left out: they are
 * far below what is compared. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/reference.h"

static const double unit = 0x1p-30;

/* Errors are in units here. */
static void assert_units(double error, double expected) {
    if (!(fabs(error / unit - expected) <= 1e-6 * fmax(1, expected)))
        fail_msg("%.12g units are not %.12g", error / unit, expected);
}

/* 2 roundings of statistics, 3 of other sums, 16 units for a function. */
static const struct ref_arithmetic rounded = {.unit = unit, .function = 16, .statistics = 2, .shift = 4, .sum = 3};
/* Nothing is rounded, and numbers up to 1 are dropped. */
static const struct ref_arithmetic dropping = {.tiny = 1};

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

/* Two rows' terms of dweight and dbias, with errors of 1/2 and 1/4. */
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

/* mean: 2 units of 4 over 2, and 4 of the largest, 3: 16. The mean square: 2 + 6, and twice 16 for each deviation of 1: 40.
 * rstd: 8 of itself, 4, and the derivative rstd³ / 2 times 40, 2.5. y: 6.5 by rstd, (16 + 1) / 2 by s − mean, 5 / 2. */
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

/* With weight 2 and bias 1, n is {0, 2}, off by 2 · 17.5 + 1 + 1. SiLU: 1.13 · 37 and 24 + 4 · 2 units of 2. The gate is
 * 1/2, off by 16 and by 2 roundings. */
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

/* residual {−1, −3} and row_scale 2: part is {2, 6}, s {1, 3}: off by 3 · 2 + 1 and 3 · 6 + 3. The mean is off by
 * (8 + 28) / 2 + 12 = 30, the mean square by 8, 37 and 51. Dropout adds what rstd may be too small by. */
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
    const double third[2] = {log(3), log(3)}; /* SiLU: 3/4 ln 3 */
    struct ref_norm norm = pair_norm();
    norm.gate = CLNORM_GATE_SILU;
    norm.gate_first = true;
    norm.z = ref_doubles(third, 2);
    struct ref_segment segment = ref_segment_make(2);
    ref_norm_segment(&norm, 0, 0, &segment);
    const struct ref_norm_error error = ref_norm_error_of(&norm, &rounded, &segment);
    assert_units(ref_s_error(&error, 1), 3 * 0.75 * third[0] * (16 + 2 * third[0]));
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

/* s: 1. The mean 1; y: centre 1 and rstd 1/2, of which rstd's error is that of a variance that is off by 2 · 2 + 1. */
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

/* Of the pair, with mean 2 and rstd 1/2 given: x̂ is {−1/2, 1/2}, off by 1/2 for s − mean and 2 / 2 for the product. */
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

/* wdn is {2, 0}, off by 2 and 4. c1 is −1/2: (3 + 3 + 2 and 3 of the sum) / 2 and 2 / 2: 6.5. c2 is 1: (6 + 6) / 2 + 2.
 * ds₀ is (2 − 1/4 − 1) / 2: 6, 8, 4 · 3.25, and 4.5 for x̂ · c1 make 31.5; half of it, and 2 roundings: 16.5. */
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

/* RMS norm has no c2: ds₀ is (2 − 1/4) / 2. 6, 4 · 2.25, 4.5 make 19.5, and half of it with 2 roundings 11.5. */
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

/* Statistics of the pair that are not given: 16 and 6.5, as in the forward. */
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
    const double third[2] = {log(3), log(3)};
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
    norm.forward.gate = CLNORM_GATE_SILU; /* dz₀ is ds₀ · x₀ · SiLU′(z), for a ds₀ of 0 where dy is */
    norm.forward.z = ref_doubles(third, 2);
    norm.dy = ref_doubles(zeros, 2);
    norm.dresidual_out = ref_doubles(ones, 2);
    outcome = outcome_of(&norm, &rounded);
    const double slope = outcome.gradients.slope[0], slope_error = 2 * (16 + 2 * third[0]) * 0.75 * (1 + third[0]);
    assert_units(outcome.errors.dz[0], slope_error + 2 * slope);
    assert_units(outcome.errors.dz[1], 3 * (slope_error + 2 * slope));
    free_outcome(&outcome);
}

/* x̂ of {−1/2, 1/2} from y = 2 x̂: off by 8 units of itself. */
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
    assert_true(outcome.errors.xhat[0] == 1.5); /* 1, and 1 / 2 of it by the weight */
    free_outcome(&outcome);
}

/* ---------------------------------------------------------------------------------------------- softmax and GELU */

/* e^0 and e^(−ln 3): 1 and 1/3, off by 16 and (16 + 4 ln 3) / 3, over 4/3. */
static void softmax_by_hand(void **state) {
    (void)state;
    const double x[2] = {0, -log(3)};
    struct ref_value y[2];
    ref_softmax(&rounded, x, 2, y);
    const double second = (16 + 4 * log(3)) / 3, share = (16 + second) * 0.75 + 3 + 16;
    assert_units(y[0].error, (share + 16) * 0.75);
    assert_units(y[1].error, (share / 3 + second) * 0.75);
    ref_softmax(&dropping, (const double[]){0, -INFINITY}, 2, y);
    assert_true(y[0].error == 2 && y[1].error == 0);
    /* Σ y · dy is 0 of magnitude 1: 3 + 1 units, the difference 1, the product 1/2 */
    ref_softmax_backward(&rounded, (const double[]){0.5, 0.5}, (const double[]){1, -1}, 2, y);
    assert_units(y[0].error, 0.5 * (4 + 1) + 0.5);
    ref_softmax_backward(&dropping, (const double[]){0.5, 0.5}, (const double[]){1, -1}, 2, y);
    assert_true(y[0].error == 0.5 * 2 + 1);
}

/* At 1: Φ, φ, and 1 − Φ for e^(−1/2) in the tail; the tanh form is sigmoid(v) of slope sigmoid(v) · sigmoid(−v) · v′. */
static void gelu_by_hand(void **state) {
    (void)state;
    const double below = 0.84134474606854293, density = 0.24197072451914337;
    const double v = 2 * sqrt(2 / acos(-1)) * 1.044715, slope = 2 * sqrt(2 / acos(-1)) * 1.134145;
    const double large = 1 / (1 + exp(-v)), rest = 1 / (1 + exp(v)), product = slope * large * rest;
    const double erf_factor = 16 * below + 2 * (1 - below), tanh_factor = (16 + 8 * v * rest) * large;
    assert_units(ref_gelu(&rounded, CLNORM_GELU_ERF, 1).error, erf_factor + below);
    assert_units(ref_gelu(&rounded, CLNORM_GELU_TANH, 1).error, tanh_factor + large);
    assert_units(ref_gelu_backward(&rounded, CLNORM_GELU_ERF, 1, 2).error,
                 2 * (erf_factor + 26 * density + below + density));
    assert_units(ref_gelu_backward(&rounded, CLNORM_GELU_TANH, 1, 2).error,
                 2 * (tanh_factor + (24 + 8 * v) * product + large + product));
    assert_true(ref_gelu(&dropping, CLNORM_GELU_ERF, 3).error == 3 * 4 + 1);
    assert_true(ref_gelu(&dropping, CLNORM_GELU_TANH, 3).error == 3 + 1);
    assert_true(ref_gelu_backward(&dropping, CLNORM_GELU_ERF, 0, 2).error == 2 * (1 + 1) + 1);
    assert_true(ref_gelu(&rounded, CLNORM_GELU_TANH, -INFINITY).error == 0);
}

/* x = (3, 4) of length 5 and weight 2: half of 2 + 2 roundings and a root for the length, then a quotient and a product.
 * dy = (1, 1): g = (2, 2), Σ |x̂ · g| = 2.8. */
static void l2_norm_by_hand(void **state) {
    (void)state;
    clnorm_l2_norm_desc desc = CLNORM_L2_NORM_DESC_INIT;
    clnorm_l2_norm_backward_desc backward = CLNORM_L2_NORM_BACKWARD_DESC_INIT;
    desc.eps = backward.eps = 0;
    struct ref_value out[2], other[2];
    struct ref_row row = {.desc = &desc,
                          .arithmetic = rounded,
                          .cols = 2,
                          .group_size = 2,
                          .input = {(const double[]){3, 4}, (const double[]){2, 2}},
                          .output = {out, other}};
    const double length = 2 + 16, quotient = length + 16 + 1;
    assert_true(ref_l2_norm_row(&row));
    assert_true(out[1].value == 1.6 && other[0].value == 5);
    assert_units(out[1].error, 1.6 * quotient);
    assert_units(other[0].error, 5 * length);
    row.desc = &backward;
    row.input[1] = (const double[]){1, 1};
    row.input[2] = (const double[]){2, 2};
    assert_true(ref_l2_norm_backward_row(&row));
    const double of_sum = 2.8 * (3 + 3 + 3 * quotient), dx = (2 - 0.8 * 2.8) / 5;
    assert_true(fabs(out[1].value - dx) < 1e-15 && fabs(other[1].value - 0.8) < 1e-15);
    assert_units(out[1].error, (2 * 2 + 0.8 * of_sum) / 5 + quotient * fabs(dx));
    assert_units(other[1].error, 0.8 * quotient);
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
        cmocka_unit_test(results_within_an_error),
        cmocka_unit_test(row_sums_by_hand),
        cmocka_unit_test(product_errors_by_hand),
        cmocka_unit_test(statistics_by_hand),
        cmocka_unit_test(gated_output_by_hand),
        cmocka_unit_test(sums_by_hand),
        cmocka_unit_test(gate_first_by_hand),
        cmocka_unit_test(infinite_variance_has_no_error),
        cmocka_unit_test(dropped_numbers_by_hand),
        cmocka_unit_test(gradients_by_hand),
        cmocka_unit_test(rms_gradients_by_hand),
        cmocka_unit_test(computed_statistics_by_hand),
        cmocka_unit_test(gated_gradients_by_hand),
        cmocka_unit_test(gate_first_gradients_by_hand),
        cmocka_unit_test(recovered_gradients_by_hand),
        cmocka_unit_test(softmax_by_hand),
        cmocka_unit_test(gelu_by_hand),
        cmocka_unit_test(l2_norm_by_hand),
        cmocka_unit_test(arithmetic_is_that_of_the_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
