/* The reference against values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "reference/reference.h"

struct bits_case {
    double value;
    uint16_t bits;
};

static void check_bits(clnorm_dtype dtype, const struct bits_case *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint16_t stored;
        ref_store(dtype, &stored, 0, cases[i].value);
        if (stored != cases[i].bits)
            fail_msg("%s of %a is %04x, not %04x", clnorm_dtype_name(dtype), cases[i].value, stored, cases[i].bits);
    }
}

static void f16_rounds_to_nearest_even(void **state) {
    (void)state;
    static const struct bits_case cases[] = {
        {0.0, 0x0000},
        {-0.0, 0x8000},
        {1.0, 0x3c00},
        {-2.0, 0xc000},
        {0.333333333, 0x3555},
        {1 + 0x1p-11, 0x3c00},           /* a tie, to the even one below */
        {1 + 0x1.8p-10, 0x3c02},         /* a tie, to the even one above */
        {1 + 0x1p-11 + 0x1p-40, 0x3c01}, /* just past a tie */
        {65504.0, 0x7bff},               /* the largest */
        {65519.99, 0x7bff},              /* below half a step past it */
        {65520.0, 0x7c00},               /* half a step past it */
        {-1e300, 0xfc00},
        {0x1p-14, 0x0400},     /* the smallest normal number */
        {0x1.ff8p-15, 0x03ff}, /* the largest denormal: 1023 steps */
        {0x1.ffcp-15, 0x0400}, /* 1023.5 steps, a tie to even */
        {0x1p-24, 0x0001},
        {0x1p-25, 0x0000}, /* a tie to 0 */
        {0x1.8p-24, 0x0002},
        {INFINITY, 0x7c00},
        {-INFINITY, 0xfc00},
    };
    check_bits(CLNORM_F16, cases, sizeof cases / sizeof *cases);
}

static void bf16_rounds_to_nearest_even(void **state) {
    (void)state;
    static const struct bits_case cases[] = {
        {0.0, 0x0000},
        {-0.0, 0x8000},
        {1.0, 0x3f80},
        {-3.140625, 0xc049},
        {1 + 0x1p-8, 0x3f80},
        {1 + 0x1.8p-7, 0x3f82},
        {1 + 0x1p-8 + 0x1p-40, 0x3f81},
        {0x1.fep127, 0x7f7f},
        {0x1.fefffp127, 0x7f7f},
        {0x1.ffp127, 0x7f80},
        {0x1p-126, 0x0080},
        {0x1p-133, 0x0001},
        {0x1p-134, 0x0000},
        {0x1.8p-133, 0x0002},
        {INFINITY, 0x7f80},
        {-INFINITY, 0xff80},
    };
    check_bits(CLNORM_BF16, cases, sizeof cases / sizeof *cases);
}

/* Every pattern of 16 bits is a value that is stored as itself. */
static void loads_invert_stores(void **state) {
    (void)state;
    const clnorm_dtype dtypes[] = {CLNORM_F16, CLNORM_BF16};
    for (int d = 0; d < 2; d++) {
        for (uint32_t pattern = 0; pattern < 0x10000; pattern++) {
            const uint16_t bits = (uint16_t)pattern;
            const double value = ref_load(dtypes[d], &bits, 0);
            uint16_t stored;
            ref_store(dtypes[d], &stored, 0, value);
            if (isnan(value)) {
                assert_true(isnan(ref_load(dtypes[d], &stored, 0)));
            } else {
                assert_int_equal(stored, bits);
                assert_true(ref_round(dtypes[d], value) == value);
            }
        }
    }
}

static void nan_is_kept(void **state) {
    (void)state;
    const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16, CLNORM_F64};
    for (int d = 0; d < 4; d++) {
        double room;
        ref_store(dtypes[d], &room, 0, NAN);
        assert_true(isnan(ref_load(dtypes[d], &room, 0)));
    }
}

static void wide_dtypes_load_and_store(void **state) {
    (void)state;
    float singles[3];
    ref_store(CLNORM_F32, singles, 2, 0.1);
    assert_true(singles[2] == 0.1f);
    assert_true(ref_load(CLNORM_F32, singles, 2) == (double)0.1f);
    assert_true(ref_round(CLNORM_F32, 1e300) == INFINITY);
    uint16_t halves[3];
    ref_store(CLNORM_F16, halves, 2, -1.5);
    assert_true(halves[2] == 0xbe00 && ref_load(CLNORM_F16, halves, 2) == -1.5);
    double doubles[3];
    ref_store(CLNORM_F64, doubles, 1, 0.1);
    assert_true(doubles[1] == 0.1 && ref_load(CLNORM_F64, doubles, 1) == 0.1);
}

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
    const double quarter = log(3.0); /* sigmoid(ln 3) = 3/4, sigmoid(-ln 3) = 1/4 */
    for (int i = 0; i < 4; i++)
        small.z[8 + 4 + i] = i % 2 ? quarter : -quarter;
    small.norm.z.elements = small.z;
    small.norm.gate = CLNORM_GATE_SIGMOID;
    small_run(&small);
    const double after[4] = {-1 * 0.25, -0.5 * 0.75, 0, 1.5 * 0.75};
    for (int i = 0; i < 4; i++)
        assert_near(small.segment.y[i], after[i]);
    small.norm.gate = CLNORM_GATE_SILU;
    small.norm.gate_first = true;
    small_run(&small);
    const double gated[4] = {-quarter * 0.25, 2 * quarter * 0.75, -3 * quarter * 0.25, 6 * quarter * 0.75};
    for (int i = 0; i < 4; i++)
        assert_near(small.segment.s[i], gated[i]);
    assert_near(small.segment.mean, quarter * 5 / 4);
    ref_segment_free(&small.segment);
}

/* The first published vector of Philox, counter and key 0, begins 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8: of 2^32
 * these are 0.40, 0.88, 0.74 and 0.61, and with their halves exchanged 0.91, 0.77, 0.67 and 0.86. */
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

/* Element 4 c + w draws word w of the counter c. */
static void stochastic_draws_by_hand(void **state) {
    (void)state;
    const uint32_t counter[4] = {7, 1, 0, 0}, key[2] = {5, 2};
    uint32_t words[4];
    ref_philox(counter, key, words);
    assert_int_equal(ref_draw(0, 0), 0x6627e8d5);
    assert_int_equal(ref_draw(0, 3), 0x9b00dbd8);
    assert_int_equal(ref_draw(0x200000005, 4 * 0x100000007 + 2), words[2]);
}

/* row_scale · dropout(x) is 2 · {1, 0, 3, 6} / (1 − 0.5), and s twice {1, 2, 3, 6}: mean 6, variance 14. */
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

/* Every row is {1, 2, 3, 6}, of x̂ {-1, -0.5, 0, 1.5}; rows 0, 1, 4 and 5 take the first row of weight and bias. */
static void weight_map_by_hand(void **state) {
    (void)state;
    static const double x[4] = {1, 2, 3, 6}, weight[8] = {1, 1, 1, 1, 0, 1, 0, 0}, bias[10] = {[5] = 10, 20, 30, 40};
    static const double first[4] = {-2, -1, 0, 3}, second[4] = {10 - 1, 20 - 1, 30, 40 + 1.5};
    struct small small = small_make(CLNORM_LAYER_NORM);
    small.norm.x = ref_doubles(x, 0);
    small.norm.weight = ref_doubles(weight, 4);
    small.norm.bias = ref_doubles(bias, 5); /* of four columns, an element apart */
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

/* sigmoid(ln 3) = 3/4, of slope 3/16. Φ(1) = 0.84134474606854293, φ(1) = 0.24197072451914337. The tanh form is
 * n · sigmoid(v), with v = 2 √(2/π) · 1.044715 at 1, of slope 2 √(2/π) · 1.134145. */
static void activations_by_hand(void **state) {
    (void)state;
    const double third = log(3.0), tanh_form = 0.84119199060827676, root = 2 * sqrt(2 / acos(-1));
    assert_near(ref_gate(CLNORM_GATE_SIGMOID, third), 0.75);
    assert_near(ref_gate_slope(CLNORM_GATE_SIGMOID, third), 0.1875);
    assert_near(ref_gate_slope(CLNORM_GATE_SILU, third), 0.75 + 0.1875 * third);
    assert_near(ref_gate_slope(CLNORM_GATE_NONE, third), 0);
    assert_near(ref_activation(CLNORM_ACTIVATION_SILU, -third), -0.25 * third);
    assert_near(ref_activation_slope(CLNORM_ACTIVATION_SILU, third), 0.75 + 0.1875 * third);
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

/* Defaults: group_size and strides are cols, y and z have x's dtype. */
/* Angles whose cosines and sines are 3/5 and 4/5, and 5/13 and 12/13; y is compared without rstd. */
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
        cmocka_unit_test(f16_rounds_to_nearest_even),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(loads_invert_stores),
        cmocka_unit_test(nan_is_kept),
        cmocka_unit_test(wide_dtypes_load_and_store),
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
