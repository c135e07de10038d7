/* The reference's error bounds of softmax, GELU and L2 norm agree with values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "error_units.h"
#include "reference/reference.h"

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

/* At 1: Φ, φ, and 1 − Φ in the tail. The tanh form is sigmoid(v), with slope sigmoid(v) · sigmoid(−v) · v′. */
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

/* x = (3, 4) has length 5: half of 2 + 2 roundings and a root, then a quotient and the product with weight 2. With
 * dy = (1, 1), g = (2, 2) and Σ |x̂ · g| = 2.8. */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_by_hand),
        cmocka_unit_test(gelu_by_hand),
        cmocka_unit_test(l2_norm_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
