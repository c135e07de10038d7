/* The reference's loads and stores of f16 and bf16 agree with values worked out by hand, and invert each other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

/* The value of every pattern of 16 bits is stored as that pattern. */
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

static void every_dtype_loads_and_stores(void **state) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_rounds_to_nearest_even),   cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(loads_invert_stores),          cmocka_unit_test(nan_is_kept),
        cmocka_unit_test(every_dtype_loads_and_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
