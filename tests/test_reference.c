/* The reference of the forward norms agrees with values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "reference/reference.h"

static void assert_near(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-14 * fmax(1, fabs(expected))))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* A segment of {1, 2, 3, 6} in the second row and group of a strided x: mean 3, variance 3.5. */
struct small {
    double x[16], z[16], weight[8], bias[8];
    struct ref_norm norm;
    struct ref_segment segment;
};

static struct small small_make(clnorm_norm kind) {
    struct small small = {.weight = {0, 0, 0, 0, 1, 2, -1, 0.5}, .bias = {0, 0, 0, 0, 10, 20, 30, 40}};
    const double segment[4] = {1, 2, 3, 6};
    memcpy(small.x + 8 + 4, segment, sizeof segment);
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.norm = kind;
    desc.rows = 2;
    desc.cols = 8;
    desc.group_size = 4;
    desc.x.dtype = desc.weight.dtype = desc.bias.dtype = CLNORM_F64;
    desc.eps = 0.5;
    small.norm = ref_norm_of(&desc);
    small.segment = ref_segment_make(4);
    return small;
}

static void small_run(struct small *small) {
    small->norm.x.elements = small->x;
    ref_norm_segment(&small->norm, 1, 1, &small->segment);
}

static void layer_norm_by_hand(void **state) {
    (void)state;
    struct small small = small_make(CLNORM_LAYER_NORM);
    small_run(&small);
    assert_near(small.segment.mean, 3);
    assert_near(small.segment.variance, 3.5);
    assert_near(small.segment.rstd, 0.5);
    const double expected[4] = {-1, -0.5, 0, 1.5};
    for (int i = 0; i < 4; i++)
        assert_near(small.segment.y[i], expected[i]);
    ref_segment_free(&small.segment);
}

static void rms_norm_by_hand(void **state) {
    (void)state;
    struct small small = small_make(CLNORM_RMS_NORM);
    small.norm.eps = 3.5; /* the mean square is 12.5 */
    small.norm.weight.elements = small.weight;
    small.norm.bias.elements = small.bias;
    small.norm.weight_offset = 1;
    small_run(&small);
    assert_near(small.segment.rstd, 0.25);
    const double expected[4] = {10 + 0.25 * 2, 20 + 0.5 * 3, 30 + 0.75 * 0, 40 + 1.5 * 1.5};
    for (int i = 0; i < 4; i++)
        assert_near(small.segment.y[i], expected[i]);
    ref_segment_free(&small.segment);
}

static void gates_by_hand(void **state) {
    (void)state;
    struct small small = small_make(CLNORM_LAYER_NORM);
    const double ln3 = log(3.0); /* sigmoid(ln 3) = 3/4, sigmoid(-ln 3) = 1/4 */
    for (int i = 0; i < 4; i++)
        small.z[8 + 4 + i] = i % 2 ? ln3 : -ln3;
    small.norm.z.elements = small.z;
    small.norm.gate = CLNORM_GATE_SIGMOID;
    small_run(&small);
    const double after[4] = {-1 * 0.25, -0.5 * 0.75, 0, 1.5 * 0.75};
    for (int i = 0; i < 4; i++)
        assert_near(small.segment.y[i], after[i]);
    small.norm.gate = CLNORM_GATE_SILU;
    small.norm.gate_first = true;
    small_run(&small);
    const double gated[4] = {-ln3 * 0.25, 2 * ln3 * 0.75, -3 * ln3 * 0.25, 6 * ln3 * 0.75};
    for (int i = 0; i < 4; i++)
        assert_near(small.segment.s[i], gated[i]);
    assert_near(small.segment.mean, ln3 * 5 / 4);
    ref_segment_free(&small.segment);
}

/* The first published vector of Philox, counter and key 0, is 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8. Divided by
 * 2^32 these are 0.40, 0.88, 0.74 and 0.61; with their halves exchanged 0.91, 0.77, 0.67 and 0.86. */
static void dropout_by_hand(void **state) {
    (void)state;
    static const bool kept[2][8] = {{0, 1, 1, 1, 1, 1, 1, 1}, {0, 1, 1, 1, 1, 0, 0, 1}};
    const clnorm_seed seed = {0, 0};
    for (uint64_t column = 0; column < 8; column++) {
        assert_int_equal(ref_kept(seed, 0.5, 0, column), kept[0][column]);
        assert_int_equal(ref_kept(seed, 0.7, 0, column), kept[1][column]);
    }
    assert_true(ref_kept(seed, 0x6627e8d5 / 0x1p32, 0, 0));
    assert_false(ref_kept(seed, 0x6627e8d6 / 0x1p32, 0, 0));
}

/* Element 4 c + w draws word w of the counter c; the offset is the upper half of the counter. */
static void stochastic_draws_by_hand(void **state) {
    (void)state;
    const uint32_t counter[4] = {7, 1, 9, 3}, key[2] = {5, 2};
    uint32_t words[4];
    ref_philox(counter, key, words);
    assert_int_equal(ref_draw((clnorm_seed){0, 0}, 0), 0x6627e8d5);
    assert_int_equal(ref_draw((clnorm_seed){0, 0}, 3), 0x9b00dbd8);
    assert_int_equal(ref_draw((clnorm_seed){0x200000005, 0x300000009}, 4 * 0x100000007 + 2), words[2]);
}

/* row_scale · dropout(x) is 2 · {1, 0, 3, 6} / (1 − 0.5), and s is 2 · {1, 2, 3, 6}, with mean 6 and variance 14. */
static void residual_by_hand(void **state) {
    (void)state;
    static const double residual[16] = {[12] = -2, 4, -6, -12}, row_scale[2] = {0, 2};
    static const unsigned char mask[16] = {[12] = 1, 0, 1, 1};
    struct small small = small_make(CLNORM_LAYER_NORM);
    small.norm.residual = ref_doubles(residual, 8);
    small.norm.row_scale = ref_doubles(row_scale, 2);
    small.norm.mask = mask;
    small.norm.dropout = 0.5;
    small.norm.eps = 2;
    small_run(&small);
    const double part[4] = {4, 0, 12, 24}, y[4] = {-1, -0.5, 0, 1.5};
    assert_near(small.segment.mean, 6);
    assert_near(small.segment.rstd, 0.25);
    for (int i = 0; i < 4; i++) {
        assert_near(small.segment.part[i], part[i]);
        assert_near(small.segment.y[i], y[i]);
    }
    ref_segment_free(&small.segment);
}

/* Every row is {1, 2, 3, 6} with x̂ {-1, -0.5, 0, 1.5}. Rows 0, 1, 4 and 5 have the first row of weight and bias. */
static void weight_map_by_hand(void **state) {
    (void)state;
    static const double x[4] = {1, 2, 3, 6}, weight[8] = {1, 1, 1, 1, 0, 1, 0, 0}, bias[10] = {[5] = 10, 20, 30, 40};
    static const double first[4] = {-2, -1, 0, 3}, second[4] = {10 - 1, 20 - 1, 30, 40 + 1.5};
    struct small small = small_make(CLNORM_LAYER_NORM);
    small.norm.x = ref_doubles(x, 0);
    small.norm.weight = ref_doubles(weight, 4);
    small.norm.bias = ref_doubles(bias, 5); /* of four columns and stride 5 */
    small.norm.weight_offset = 1;
    small.norm.weight_rows = 2;
    small.norm.weight_repeat = 2;
    for (uint64_t row = 0; row < 8; row++) {
        ref_norm_segment(&small.norm, row, 0, &small.segment);
        for (int i = 0; i < 4; i++)
            assert_near(small.segment.y[i], row / 2 % 2 ? second[i] : first[i]);
    }
    ref_segment_free(&small.segment);
}

/* {1, 2} and {1, 2} in E4M3 with scales of 1 and 3. */
static void scaled_codes_by_hand(void **state) {
    (void)state;
    static const unsigned char codes[16] = {[12] = 0x38, 0x40, 0x38, 0x40};
    static const float scales[8] = {[6] = 1, 3};
    struct small small = small_make(CLNORM_LAYER_NORM);
    small.norm.x = (struct ref_tensor){.dtype = CLNORM_F8_E4M3,
                                       .stride = 8,
                                       .scales = scales,
                                       .scale_dtype = CLNORM_F32,
                                       .scaling = CLNORM_SCALING_GROUP,
                                       .scale_group = 2,
                                       .scale_stride = 4};
    small.norm.x.elements = codes;
    ref_norm_segment(&small.norm, 1, 1, &small.segment);
    const double y[4] = {-1, -0.5, 0, 1.5};
    for (int i = 0; i < 4; i++)
        assert_near(small.segment.y[i], y[i]);
    ref_segment_free(&small.segment);
}

/* sigmoid(ln 3) = 3/4, with slope 3/16. Φ(1) = 0.84134474606854293, φ(1) = 0.24197072451914337. The tanh form is
 * n · sigmoid(v); at 1, v = 2 √(2/π) · 1.044715 with slope 2 √(2/π) · 1.134145. */
static void activations_by_hand(void **state) {
    (void)state;
    const double ln3 = log(3.0), tanh_form = 0.84119199060827676, root = 2 * sqrt(2 / acos(-1));
    assert_near(ref_gate(CLNORM_GATE_SIGMOID, ln3), 0.75);
    assert_near(ref_gate_slope(CLNORM_GATE_SIGMOID, ln3), 0.1875);
    assert_near(ref_gate_slope(CLNORM_GATE_SILU, ln3), 0.75 + 0.1875 * ln3);
    assert_near(ref_gate_slope(CLNORM_GATE_NONE, ln3), 0);
    assert_near(ref_activation(CLNORM_ACTIVATION_SILU, -ln3), -0.25 * ln3);
    assert_near(ref_activation_slope(CLNORM_ACTIVATION_SILU, ln3), 0.75 + 0.1875 * ln3);
    assert_near(ref_activation(CLNORM_ACTIVATION_GELU, 1), 0.84134474606854293);
    assert_near(ref_activation_slope(CLNORM_ACTIVATION_GELU, 1), 0.84134474606854293 + 0.24197072451914337);
    assert_near(ref_activation(CLNORM_ACTIVATION_GELU_TANH, 1), tanh_form);
    assert_near(ref_activation_slope(CLNORM_ACTIVATION_GELU_TANH, 1),
                tanh_form + tanh_form * (1 - tanh_form) * root * 1.134145);
    for (int a = CLNORM_ACTIVATION_GELU; a <= CLNORM_ACTIVATION_SILU; a++) {
        assert_near(ref_activation_slope((clnorm_activation)a, 0), 0.5);
        assert_near(ref_activation_slope((clnorm_activation)a, INFINITY), 1);
        assert_near(ref_activation((clnorm_activation)a, -INFINITY), 0);
        assert_near(ref_activation_slope((clnorm_activation)a, -INFINITY), 0);
        assert_true(ref_activation((clnorm_activation)a, INFINITY) == INFINITY);
    }
    assert_near(ref_activation(CLNORM_ACTIVATION_NONE, -3), -3);
    assert_near(ref_activation_slope(CLNORM_ACTIVATION_NONE, -3), 1);
}

static void activated_norm_by_hand(void **state) {
    (void)state;
    struct small small = small_make(CLNORM_LAYER_NORM);
    for (int i = 0; i < 4; i++)
        small.z[8 + 4 + i] = log(3.0);
    small.norm.z.elements = small.z;
    small.norm.gate = CLNORM_GATE_SIGMOID;
    small.norm.activation = CLNORM_ACTIVATION_GELU;
    small.norm.weight.elements = (const double[8]){[4] = -1, 2, 1, 1}; /* n is {1, −1, 0, 1.5} */
    small_run(&small);
    assert_near(small.segment.n[0], 1);
    assert_near(small.segment.y[0], 0.75 * 0.84134474606854293);
    assert_near(small.segment.y[1], 0.75 * (0.84134474606854293 - 1));
    assert_near(small.segment.y[2], 0);
    ref_segment_free(&small.segment);
}

/* Angles with cosine 3/5 and sine 4/5, and with cosine 5/13 and sine 12/13. y / rstd is compared. */
static void rotations_by_hand(void **state) {
    (void)state;
    static const double x[5] = {5, 13, 10, 26, 7}, cosines[4] = {1, 1, 0.6, 5.0 / 13}, sines[4] = {0, 0, 0.8, 12.0 / 13};
    static const int32_t position[1] = {1}, outside[1] = {2};
    static const double neox[5] = {3 - 8, 5 - 24, 6 + 4, 10 + 12, 7};
    static const double interleaved[5] = {3 - 10.4, 7.8 + 4, 50.0 / 13 - 24, 10 + 120.0 / 13, 7};
    const double mean_square = (25 + 169 + 100 + 676 + 49) / 5.0;
    struct ref_norm norm = {
        .norm = CLNORM_RMS_NORM, .rows = 1, .cols = 5, .group_size = 5, .x = ref_doubles(x, 5), .eps = 0};
    norm.rope = (struct ref_rope){.dims = 4, .positions = 2, .repeat = 1, .position = position};
    norm.rope.cos = ref_doubles(cosines, 2);
    norm.rope.sin = ref_doubles(sines, 2);
    struct ref_segment segment = ref_segment_make(5);
    for (int form = CLNORM_ROPE_NEOX; form <= CLNORM_ROPE_INTERLEAVED; form++) {
        const double *const expected = form == CLNORM_ROPE_NEOX ? neox : interleaved;
        norm.rope.form = (clnorm_rope)form;
        ref_norm_segment(&norm, 0, 0, &segment);
        for (int i = 0; i < 5; i++)
            assert_near(segment.y[i] * sqrt(mean_square), expected[i]);
    }
    norm.rope.position = NULL; /* position 0, whose angles are 0 */
    ref_norm_segment(&norm, 0, 0, &segment);
    for (int i = 0; i < 5; i++)
        assert_near(segment.y[i] * sqrt(mean_square), x[i]);
    norm.rope.position = outside;
    ref_norm_segment(&norm, 0, 0, &segment);
    for (int i = 0; i < 5; i++)
        assert_true(i == 4 ? !isnan(segment.y[i]) : isnan(segment.y[i]));
    ref_segment_free(&segment);
}

/* By default group_size and strides are cols, and y and z have x's dtype. */
static void defaults_are_completed(void **state) {
    (void)state;
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.cols = 12;
    desc.z.stride = 13;
    desc.x.dtype = CLNORM_BF16;
    const clnorm_norm_desc complete = ref_norm_complete(&desc);
    assert_int_equal(complete.group_size, 12);
    assert_int_equal(complete.x.stride, 12);
    assert_int_equal(complete.y.stride, 12);
    assert_int_equal(complete.z.stride, 13);
    assert_int_equal(complete.y.dtype, CLNORM_BF16);
    assert_int_equal(complete.z.dtype, CLNORM_BF16);
    assert_int_equal(complete.weight.dtype, CLNORM_DTYPE_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_norm_by_hand),
        cmocka_unit_test(rms_norm_by_hand),
        cmocka_unit_test(gates_by_hand),
        cmocka_unit_test(dropout_by_hand),
        cmocka_unit_test(stochastic_draws_by_hand),
        cmocka_unit_test(residual_by_hand),
        cmocka_unit_test(weight_map_by_hand),
        cmocka_unit_test(scaled_codes_by_hand),
        cmocka_unit_test(activations_by_hand),
        cmocka_unit_test(activated_norm_by_hand),
        cmocka_unit_test(rotations_by_hand),
        cmocka_unit_test(defaults_are_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
