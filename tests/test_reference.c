/* The reference against values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "reference.h"

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
    desc.x_dtype = desc.weight_dtype = desc.bias_dtype = CLNORM_F64;
    desc.eps = 0.5;
    small.norm.desc = ref_norm_complete(&desc);
    small.segment = ref_segment_make(4);
    return small;
}

static void small_run(struct small *small) {
    small->norm.x = small->x;
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
    small.norm.desc.eps = 3.5; /* the mean square is 12.5 */
    small.norm.weight = small.weight;
    small.norm.bias = small.bias;
    small.norm.desc.weight_offset = 1;
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
    small.norm.z = small.z;
    small.norm.desc.z_dtype = CLNORM_F64;
    small.norm.desc.gate = CLNORM_GATE_SIGMOID;
    small_run(&small);
    const double after[4] = {-1 * 0.25, -0.5 * 0.75, 0, 1.5 * 0.75};
    for (int i = 0; i < 4; i++)
        assert_near(small.segment.y[i], after[i]);
    small.norm.desc.gate = CLNORM_GATE_SILU;
    small.norm.desc.gate_first = true;
    small_run(&small);
    const double gated[4] = {-quarter * 0.25, 2 * quarter * 0.75, -3 * quarter * 0.25, 6 * quarter * 0.75};
    for (int i = 0; i < 4; i++)
        assert_near(small.segment.s[i], gated[i]);
    assert_near(small.segment.mean, quarter * 5 / 4);
    ref_segment_free(&small.segment);
}

/* Defaults: group_size and strides are cols, y and z have x's dtype. */
static void defaults_are_completed(void **state) {
    (void)state;
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.cols = 12;
    desc.z_stride = 13;
    desc.x_dtype = CLNORM_BF16;
    const clnorm_norm_desc complete = ref_norm_complete(&desc);
    assert_int_equal(complete.group_size, 12);
    assert_int_equal(complete.x_stride, 12);
    assert_int_equal(complete.y_stride, 12);
    assert_int_equal(complete.z_stride, 13);
    assert_int_equal(complete.y_dtype, CLNORM_BF16);
    assert_int_equal(complete.z_dtype, CLNORM_BF16);
    assert_int_equal(complete.weight_dtype, CLNORM_DTYPE_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_rounds_to_nearest_even), cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(loads_invert_stores),        cmocka_unit_test(nan_is_kept),
        cmocka_unit_test(wide_dtypes_load_and_store), cmocka_unit_test(layer_norm_by_hand),
        cmocka_unit_test(rms_norm_by_hand),           cmocka_unit_test(gates_by_hand),
        cmocka_unit_test(defaults_are_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
