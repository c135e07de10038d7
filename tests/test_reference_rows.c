/* The reference of sums, formats, scales, quantisation, softmax, GELU and L2 norm agrees with values worked out by hand,
 * and the gradients of L2 norm with finite differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "reference/reference.h"

static void assert_near(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-15 * fmax(1, fabs(expected))))
        fail_msg("%.17g is not %.17g", value, expected);
}

static const struct ref_arithmetic exact = {.unit = 0};

/* ---------------------------------------------------------------------------------------------------------- sums */

static double sum_of(const double *terms, int count) {
    struct ref_sum sum = {0};
    for (int i = 0; i < count; i++)
        ref_sum_add(&sum, terms[i]);
    return ref_sum_value(&sum);
}

static void sums_keep_every_bit(void **state) {
    (void)state;
    assert_true(sum_of((const double[]){1, 1e100, 1, -1e100}, 4) == 2);
    struct ref_sum tenths = {0};
    for (int i = 0; i < 1000000; i++)
        ref_sum_add(&tenths, 0.1);
    assert_true(ref_sum_value(&tenths) == 100000);
    /* (1 + 2^-30)² = 1 + 2^-29 + 2^-60, of which a double keeps the first two */
    struct ref_sum square = {0};
    ref_sum_add_product(&square, 1 + 0x1p-30, 1 + 0x1p-30);
    ref_sum_add(&square, -1 - 0x1p-29);
    assert_true(ref_sum_value(&square) == 0x1p-60);
    assert_true(ref_mean((const double[]){1, 1, 2}, 3) == 4.0 / 3);
    /* a sum in double loses its last bits, and a third of that is another double */
    assert_true(ref_mean((const double[]){9, 0x1.6a474p-41, 6}, 3) == 0x1.40000000000f2p+2);
    assert_true(ref_mean_product((const double[]){3, 4}, (const double[]){5, -1}, 2) == 5.5);
}

static void sums_with_infinities_and_nans(void **state) {
    (void)state;
    assert_true(sum_of((const double[]){1, INFINITY, 2}, 3) == INFINITY);
    assert_true(isnan(sum_of((const double[]){INFINITY, 1, -INFINITY}, 3)));
    assert_true(isnan(sum_of((const double[]){1, NAN, 2}, 3)));
    assert_true(ref_mean((const double[]){-INFINITY, 3}, 2) == -INFINITY);
}

/* ------------------------------------------------------------------------------------------------------- formats */

static void formats_have_their_limits(void **state) {
    (void)state;
    static const struct {
        clnorm_dtype dtype;
        double largest, epsilon;
    } rows[] = {
        {CLNORM_F32, 0x1.fffffep127, 0x1p-24},         {CLNORM_F16, 65504, 0x1p-11},  {CLNORM_BF16, 0x1.fep127, 0x1p-8},
        {CLNORM_F64, 0x1.fffffffffffffp1023, 0x1p-53}, {CLNORM_F8_E4M3, 448, 0x1p-4}, {CLNORM_F8_E5M2, 57344, 0x1p-3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(ref_largest(rows[i].dtype) == rows[i].largest);
        assert_true(ref_epsilon(rows[i].dtype) == rows[i].epsilon);
        assert_true(ref_round(rows[i].dtype, 1 + rows[i].epsilon) == 1);
    }
}

/* After 1 the next E4M3 is 1.125. 1.0625 is half a step: 2^19 of the 2^20 values of the 20 bits of noise. */
static void stochastic_rounding_by_hand(void **state) {
    (void)state;
    const clnorm_dtype e4m3 = CLNORM_F8_E4M3;
    assert_true(ref_round_stochastic(e4m3, 1.0625, 0x80000000) == 1.125);
    assert_true(ref_round_stochastic(e4m3, 1.0625, 0x7fffffff) == 1);
    assert_true(ref_round_stochastic(e4m3, -1.0625, 0xffffffff) == -1.125);
    assert_true(ref_round_stochastic(e4m3, 1, 0xffffffff) == 1);
    assert_true(ref_round_stochastic(e4m3, 0x1p-10, 0x80000000) == 0x1p-9); /* half of the smallest */
    assert_true(ref_round_stochastic(e4m3, 447, 0xffffffff) == 448);
    assert_true(ref_round_stochastic(e4m3, 1e6, 0xffffffff) == 448);
    assert_true(ref_round_stochastic(CLNORM_F8_E5M2, -INFINITY, 0) == -57344);
    assert_true(isnan(ref_round_stochastic(e4m3, NAN, 0)));
}

/* E4M3 0x38 is 1, 0x40 is 2, 0xbc is −1.5. */
static void scaled_tensors_by_hand(void **state) {
    (void)state;
    static const unsigned char codes[8] = {0x38, 0x40, 0xbc, 0, 0x40, 0x40, 0x38, 0};
    static const float scales[4] = {0.5F, 4, 8, 16};
    struct ref_tensor tensor = {.elements = codes, .dtype = CLNORM_F8_E4M3, .stride = 4};
    assert_true(ref_at(&tensor, 0, 2) == -1.5);
    tensor.scales = scales;
    tensor.scale_dtype = CLNORM_F32;
    tensor.scaling = CLNORM_SCALING_TENSOR;
    assert_true(ref_at(&tensor, 1, 0) == 1);
    tensor.scaling = CLNORM_SCALING_ROW;
    assert_true(ref_at(&tensor, 0, 1) == 1 && ref_at(&tensor, 1, 2) == 4);
    tensor.scaling = CLNORM_SCALING_GROUP;
    tensor.scale_group = tensor.scale_stride = 2;
    assert_true(ref_at(&tensor, 0, 1) == 1 && ref_at(&tensor, 0, 2) == -6);
    assert_true(ref_at(&tensor, 1, 1) == 16 && ref_at(&tensor, 1, 2) == 16);
    const float tenth = 0.1F; /* the product is rounded to float: 1.5 · 0.1f has 25 bits */
    tensor.scales = &tenth;
    tensor.scaling = CLNORM_SCALING_TENSOR;
    assert_true(ref_at(&tensor, 0, 2) == (double)(-1.5F * 0.1F));
}

/* -------------------------------------------------------------------------------------------------- quantisation */

/* With an amax of 448 the scale is 1. 448, 224 and 28 are 1.75 · 2^8, 2^7 and 2^4, with codes 0x7e, 0x76 and 0x5e. */
static void quantisation_by_hand(void **state) {
    (void)state;
    static const double x[6] = {448, -224, 1, 0, 28, INFINITY};
    double amax[4], scale[4];
    unsigned char codes[6], codes_t[6];
    struct ref_quantize q = {.x = ref_doubles(x, 3), .rows = 2, .cols = 3, .scaling = CLNORM_SCALING_TENSOR};
    q.dtype = CLNORM_F8_E4M3;
    q.scale_dtype = CLNORM_F32;
    ref_quantize(&q, amax, scale, codes, codes_t);
    assert_int_equal(ref_scale_rows(&q) * ref_scale_cols(&q), 1);
    assert_true(amax[0] == 448 && scale[0] == 1);
    assert_memory_equal(codes, ((const unsigned char[]){0x7e, 0xf6, 0x38, 0, 0x5e, 0x7e}), 6);
    assert_memory_equal(codes_t, ((const unsigned char[]){0x7e, 0, 0xf6, 0x5e, 0x38, 0x7e}), 6);
    q.scaling = CLNORM_SCALING_ROW; /* 28 / 448 is 1 / 16, and 28 · 16 is 448 */
    ref_quantize(&q, amax, scale, codes, NULL);
    assert_true(amax[1] == 28 && scale[0] == 1 && scale[1] == 0.0625);
    assert_memory_equal(codes, ((const unsigned char[]){0x7e, 0xf6, 0x38, 0, 0x7e, 0x7e}), 6);
    q.scaling = CLNORM_SCALING_GROUP; /* of 2 columns, the last one alone: amax 448, 1, 28, and 0, without the infinity */
    q.scale_group = 2;
    ref_quantize(&q, amax, scale, codes, NULL);
    assert_int_equal(ref_scale_rows(&q), 2);
    assert_int_equal(ref_scale_cols(&q), 2);
    assert_true(amax[1] == 1 && amax[2] == 28 && amax[3] == 0 && scale[2] == 0.0625);
    assert_true(scale[1] == (double)(1.0F / 448) && scale[3] == (double)(1e-10F / 448));
    assert_memory_equal(codes, ((const unsigned char[]){0x7e, 0xf6, 0x7e, 0, 0x7e, 0x7e}), 6);
    q.scaling = CLNORM_SCALING_TENSOR;
    q.scale = 2;
    ref_quantize(&q, amax, scale, codes, NULL);
    assert_memory_equal(codes, ((const unsigned char[]){0x76, 0xee, 0x30, 0, 0x56, 0x7e}), 6);
}

/* From 16 to 32 bf16 has steps of 1/8: 17.0625 is a tie and becomes 17, which is a tie of 16 and 18 and becomes 16. */
static void coat_rounds_to_bf16_first(void **state) {
    (void)state;
    static const double x[2] = {17.0625, NAN};
    double amax, scale;
    unsigned char codes[2];
    struct ref_quantize q = {.x = ref_doubles(x, 2), .rows = 1, .cols = 2, .scaling = CLNORM_SCALING_TENSOR, .scale = 1};
    q.dtype = CLNORM_F8_E4M3;
    ref_quantize(&q, &amax, &scale, codes, NULL);
    assert_int_equal(codes[0], 0x59);
    assert_int_equal(codes[1], 0x7f);
    q.through_bf16 = true;
    ref_quantize(&q, &amax, &scale, codes, NULL);
    assert_int_equal(codes[0], 0x58);
    /* 3 / 448 = 0.0066964… has the bf16 neighbours 0x1.b6p-8 and 0x1.b8p-8 */
    assert_true(ref_scale(CLNORM_F8_E4M3, CLNORM_BF16, 3) == 0x1.b6p-8);
}

/* ------------------------------------------------------------------------------------------------ softmax, gelu */

/* e^x is 1, 2 and 5, with sum 8. With dy = {8, 0, 0}, Σ y · dy is 1. */
static void softmax_by_hand(void **state) {
    (void)state;
    static const double expected[3] = {0.125, 0.25, 0.625}, dx[3] = {0.875, -0.25, -0.625};
    const double x[3] = {1000, 1000 + log(2), 1000 + log(5)};
    struct ref_value y[3];
    ref_softmax(&exact, x, 3, y);
    for (int i = 0; i < 3; i++)
        assert_true(fabs(y[i].value - expected[i]) < 1e-13); /* 1000 + ln 5 is off by 2^-44 */
    ref_softmax_backward(&exact, expected, (const double[]){8, 0, 0}, 3, y);
    for (int i = 0; i < 3; i++)
        assert_near(y[i].value, dx[i]);
    ref_softmax(&exact, (const double[]){-INFINITY, 3, 3}, 3, y);
    assert_true(y[0].value == 0 && y[1].value == 0.5 && y[2].value == 0.5);
    ref_softmax(&exact, (const double[]){-INFINITY, -INFINITY}, 2, y);
    assert_true(y[0].value == 0 && y[1].value == 0);
    ref_softmax(&exact, (const double[]){0, INFINITY}, 2, y);
    assert_true(isnan(y[0].value) && isnan(y[1].value));
    for (int i = 0; i < 3; i++) {
        double among[3] = {0, -INFINITY, 1};
        among[i] = NAN;
        ref_softmax(&exact, among, 3, y);
        assert_true(isnan(y[0].value) && isnan(y[1].value) && isnan(y[2].value));
    }
    ref_softmax(&exact, (const double[]){NAN, -INFINITY}, 2, y);
    assert_true(isnan(y[0].value) && isnan(y[1].value));
}

/* Φ(1) = 0.84134474606854293, φ(1) = 0.24197072451914337; the tanh form at 1 is 0.84119199060827676. */
static void gelu_by_hand(void **state) {
    (void)state;
    assert_near(ref_gelu(&exact, CLNORM_GELU_ERF, 1).value, 0.84134474606854293);
    assert_near(ref_gelu(&exact, CLNORM_GELU_ERF, -1).value, 0.84134474606854293 - 1);
    assert_near(ref_gelu(&exact, CLNORM_GELU_TANH, 1).value, 0.84119199060827676);
    assert_near(ref_gelu_backward(&exact, CLNORM_GELU_ERF, 1, 2).value, 2 * (0.84134474606854293 + 0.24197072451914337));
    for (int form = CLNORM_GELU_ERF; form <= CLNORM_GELU_TANH; form++) {
        assert_true(ref_gelu(&exact, (clnorm_gelu_form)form, INFINITY).value == INFINITY);
        assert_true(ref_gelu(&exact, (clnorm_gelu_form)form, -INFINITY).value == 0);
        assert_true(ref_gelu_backward(&exact, (clnorm_gelu_form)form, 0, 3).value == 1.5);
        assert_true(ref_gelu_backward(&exact, (clnorm_gelu_form)form, INFINITY, 3).value == 3);
    }
}

/* ------------------------------------------------------------------------------------------------------- L2 norm */

static struct ref_l2_norm l2_of(const double *x, const double *dy) {
    return (struct ref_l2_norm){.rows = 1, .cols = 2, .group_size = 2, .x = ref_doubles(x, 2), .dy = ref_doubles(dy, 2)};
}

static void check_l2(const struct ref_l2_norm *norm, double length, const double y[2], const double dx[2]) {
    struct ref_l2_segment segment = ref_l2_segment_make(2);
    ref_l2_norm_segment(norm, 0, 0, &segment);
    assert_near(segment.length, length);
    for (int i = 0; i < 2; i++) {
        assert_near(segment.y[i], y[i]);
        assert_near(segment.dx[i], dx[i]);
    }
    ref_l2_segment_free(&segment);
}

/* {3, 4} has length 5, and 6 with an eps of 11 under the root. With dy = {1, 0}, Σ x̂ · dy is x̂₀. */
static void l2_norm_by_hand(void **state) {
    (void)state;
    static const double x[2] = {3, 4}, dy[2] = {1, 0}, zeros[2] = {0, 0};
    struct ref_l2_norm norm = l2_of(x, dy);
    norm.eps = 11;
    check_l2(&norm, 6, (const double[]){0.5, 2.0 / 3}, (const double[]){0.75 / 6, -1.0 / 18});
    norm.eps_is_floor = true; /* 11 is the length, a constant */
    check_l2(&norm, 11, (const double[]){3.0 / 11, 4.0 / 11}, (const double[]){1.0 / 11, 0});
    norm.eps = 1;
    check_l2(&norm, 5, (const double[]){0.6, 0.8}, (const double[]){0.64 / 5, -0.48 / 5});
    norm.eps = 5; /* not below the floor */
    check_l2(&norm, 5, (const double[]){0.6, 0.8}, (const double[]){0.64 / 5, -0.48 / 5});
    norm.x = ref_doubles(zeros, 2);
    check_l2(&norm, 5, zeros, (const double[]){0.2, 0});
}

/* Groups of 2 with weights {2, −1, 10, 1}: the second group is {3, 4} of length 5, with wdy = {10, 1}. */
static void l2_norm_with_weight_by_hand(void **state) {
    (void)state;
    static const double x[4] = {1, 0, 3, 4}, dy[4] = {1, 1, 1, 1}, weight[4] = {2, -1, 10, 1};
    struct ref_l2_norm norm = {.rows = 1, .cols = 4, .group_size = 2, .x = ref_doubles(x, 4), .dy = ref_doubles(dy, 4)};
    norm.weight = ref_doubles(weight, 4);
    struct ref_l2_segment segment = ref_l2_segment_make(2);
    ref_l2_norm_segment(&norm, 0, 1, &segment);
    assert_near(segment.length, 5);
    assert_near(segment.c1, 6.8);
    const double y[2] = {6, 0.8}, dx[2] = {(10 - 4.08) / 5, (1 - 5.44) / 5}, dweight[2] = {0.6, 0.8};
    for (int i = 0; i < 2; i++) {
        assert_near(segment.y[i], y[i]);
        assert_near(segment.dx[i], dx[i]);
        assert_near(segment.dweight[i], dweight[i]);
    }
    ref_l2_segment_free(&segment);
}

enum { L2_COLS = 6 };

/* Σ dy · y of a row of two groups. */
static double l2_loss(const struct ref_l2_norm *norm, const double *dy, struct ref_l2_segment *segment) {
    double sum = 0;
    for (uint64_t group = 0; group < 2; group++) {
        ref_l2_norm_segment(norm, 0, group, segment);
        for (uint64_t i = 0; i < L2_COLS / 2; i++)
            sum += dy[group * L2_COLS / 2 + i] * segment->y[i];
    }
    return sum;
}

static double l2_difference(const struct ref_l2_norm *norm, const double *dy, double *value) {
    const double step = 1e-5, kept = *value;
    struct ref_l2_segment segment = ref_l2_segment_make(L2_COLS / 2);
    *value = kept + step;
    const double above = l2_loss(norm, dy, &segment);
    *value = kept - step;
    const double below = l2_loss(norm, dy, &segment);
    *value = kept;
    ref_l2_segment_free(&segment);
    return (above - below) / (2 * step);
}

static void l2_gradients_are_differences(void **state) {
    (void)state;
    struct random random = {3};
    double x[L2_COLS], dy[L2_COLS], weight[L2_COLS];
    for (int i = 0; i < L2_COLS; i++) {
        x[i] = random_normal(&random);
        dy[i] = random_normal(&random);
        weight[i] = random_normal(&random);
    }
    struct ref_l2_norm norm = {.rows = 1, .cols = L2_COLS, .group_size = L2_COLS / 2};
    norm.x = ref_doubles(x, L2_COLS);
    norm.dy = ref_doubles(dy, L2_COLS);
    norm.weight = ref_doubles(weight, L2_COLS);
    struct ref_l2_segment segment = ref_l2_segment_make(L2_COLS / 2);
    static const double all_eps[] = {1e-12, 0.5, 100};
    for (int i = 0; i < 6; i++) {
        norm.eps = all_eps[i / 2];
        norm.eps_is_floor = i % 2;
        for (int column = 0; column < L2_COLS; column++) {
            ref_l2_norm_segment(&norm, 0, (uint64_t)column / (L2_COLS / 2), &segment);
            const int own = column % (L2_COLS / 2);
            assert_true(fabs(segment.dx[own] - l2_difference(&norm, dy, &x[column])) < 1e-8);
            assert_true(fabs(segment.dweight[own] - l2_difference(&norm, dy, &weight[column])) < 1e-8);
        }
    }
    ref_l2_segment_free(&segment);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_keep_every_bit),
        cmocka_unit_test(sums_with_infinities_and_nans),
        cmocka_unit_test(formats_have_their_limits),
        cmocka_unit_test(stochastic_rounding_by_hand),
        cmocka_unit_test(scaled_tensors_by_hand),
        cmocka_unit_test(quantisation_by_hand),
        cmocka_unit_test(coat_rounds_to_bf16_first),
        cmocka_unit_test(softmax_by_hand),
        cmocka_unit_test(gelu_by_hand),
        cmocka_unit_test(l2_norm_by_hand),
        cmocka_unit_test(l2_norm_with_weight_by_hand),
        cmocka_unit_test(l2_gradients_are_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
