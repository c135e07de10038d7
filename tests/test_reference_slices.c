/* The reference of norms of slices agrees with values worked out by hand: the slice is {1, 3} of the row {1, 3, 5, 7}. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "clnorm/clnorm.h"
#include "reference/row.h"

enum { COLS = 2 };

static const double x[COLS] = {1, 3}, dy[COLS] = {3, 6}, weight[COLS] = {2, 3}, bias[COLS] = {1, 0};

/* {1, 3, 5, 7} has mean 4 and variance 20 / 4 = 5; with eps 4 rstd is 1/3. For RMS norm a row with Σx² = 20. */
static const double of_row[3] = {4, 20, 4}, of_rms_row[3] = {0, 20, 4};

static struct ref_row row_of(const void *desc, struct ref_value *const *outputs) {
    struct ref_row row = {.desc = desc, .arithmetic = ref_arithmetic_of(CLNORM_F32), .cols = COLS, .group_size = COLS};
    for (int i = 0; i < 3 && outputs[i]; i++)
        row.output[i] = outputs[i];
    return row;
}

/* The error must be that of a few roundings. */
static void assert_value(struct ref_value value, double expected) {
    if (!(fabs(value.value - expected) <= 1e-15 * fmax(1, fabs(expected))))
        fail_msg("%.17g is not %.17g", value.value, expected);
    assert_true(value.error >= 0 && value.error <= 1e-4);
}

static void moments_by_hand(void **state) {
    (void)state;
    struct ref_value moments[3];
    clnorm_norm_statistics_desc desc = CLNORM_NORM_STATISTICS_DESC_INIT;
    struct ref_row row = row_of(&desc, (struct ref_value *[]){moments, NULL});
    row.input[0] = x;
    assert_true(ref_norm_statistics_row(&row));
    assert_value(moments[0], 2);
    assert_value(moments[1], 2);
    assert_value(moments[2], 2);
    desc.norm = CLNORM_RMS_NORM;
    assert_true(ref_norm_statistics_row(&row));
    assert_value(moments[0], 0);
    assert_value(moments[1], 10);
    assert_true(moments[0].error == 0 && moments[2].error == 0);
}

/* x̂ is {−1, −1/3}, and {1/3, 1} with RMS norm. */
static void apply_by_hand(void **state) {
    (void)state;
    struct ref_value y[COLS];
    clnorm_norm_apply_desc desc = CLNORM_NORM_APPLY_DESC_INIT;
    desc.eps = 4;
    struct ref_row row = row_of(&desc, (struct ref_value *[]){y, NULL});
    row.input[0] = x;
    row.input[1] = weight;
    row.input[2] = bias;
    row.input[3] = of_row;
    assert_true(ref_norm_apply_row(&row));
    assert_value(y[0], -1);
    assert_value(y[1], -1);
    desc.norm = CLNORM_RMS_NORM;
    row.input[3] = of_rms_row;
    assert_true(ref_norm_apply_row(&row));
    assert_value(y[0], 5.0 / 3);
    assert_value(y[1], 3);
}

/* wdy is {6, 18}. */
static void sums_by_hand(void **state) {
    (void)state;
    struct ref_value sums[2];
    clnorm_norm_backward_statistics_desc desc = CLNORM_NORM_BACKWARD_STATISTICS_DESC_INIT;
    desc.eps = 4;
    struct ref_row row = row_of(&desc, (struct ref_value *[]){sums, NULL});
    row.input[0] = x;
    row.input[1] = dy;
    row.input[2] = weight;
    row.input[3] = of_row;
    assert_true(ref_norm_backward_statistics_row(&row));
    assert_value(sums[0], -12);
    assert_value(sums[1], 24);
    desc.norm = CLNORM_RMS_NORM;
    row.input[3] = of_rms_row;
    assert_true(ref_norm_backward_statistics_row(&row));
    assert_value(sums[0], 20);
    assert_true(sums[1].value == 0 && sums[1].error == 0);
}

/* With sums of −8 and 12 over 4 elements, dx is (6 − (−1) · (−2) − 3) / 3 and (18 − (−1/3) · (−2) − 3) / 3. With RMS norm
 * and a first sum of 8 it is (6 − 2/3) / 3 and (18 − 2) / 3. */
static void gradients_by_hand(void **state) {
    (void)state;
    struct ref_value dx[COLS], dweight[COLS], dbias[COLS];
    static const double sums[2] = {-8, 12}, rms_sums[2] = {8, 12};
    clnorm_norm_backward_apply_desc desc = CLNORM_NORM_BACKWARD_APPLY_DESC_INIT;
    desc.eps = 4;
    struct ref_row row = row_of(&desc, (struct ref_value *[]){dx, dweight, dbias});
    row.input[0] = x;
    row.input[1] = dy;
    row.input[2] = weight;
    row.input[3] = of_row;
    row.input[4] = sums;
    assert_true(ref_norm_backward_apply_row(&row));
    assert_value(dx[0], 1.0 / 3);
    assert_value(dx[1], 43.0 / 9);
    assert_value(dweight[0], -3);
    assert_value(dweight[1], -2);
    assert_value(dbias[0], 3);
    assert_value(dbias[1], 6);
    desc.norm = CLNORM_RMS_NORM;
    row.input[3] = of_rms_row;
    row.input[4] = rms_sums;
    assert_true(ref_norm_backward_apply_row(&row));
    assert_value(dx[0], 16.0 / 9);
    assert_value(dx[1], 16.0 / 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_by_hand),
        cmocka_unit_test(apply_by_hand),
        cmocka_unit_test(sums_by_hand),
        cmocka_unit_test(gradients_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
