/* Element types as doubles, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "element.h"

static double stored(clnorm_dtype dtype, double value) {
    const struct element *const element = element_by_dtype(dtype);
    unsigned char bytes[16];
    element_store(element, bytes + 1, 0, value);
    return element_load(element, bytes + 1, 0);
}

static void test_elements_round_to_nearest_even(void **state) {
    (void)state;
    static const struct {
        clnorm_dtype dtype;
        double value, expected;
    } cases[] = {
        {CLNORM_F16, 1 + 0x1p-11, 1},
        {CLNORM_F16, 1 + 0x1.8p-10, 1 + 0x1p-9},
        {CLNORM_F16, 1 + 0x1.000001p-11, 1 + 0x1p-10},
        {CLNORM_F16, 65504, 65504},
        {CLNORM_F16, 65519.99, 65504},
        {CLNORM_F16, 65520, INFINITY},
        {CLNORM_F16, -1e9, -INFINITY},
        {CLNORM_F16, 0x1p-24, 0x1p-24},
        {CLNORM_F16, 0x1p-25, 0},
        {CLNORM_F16, 0x1.8p-24, 0x1p-23},
        {CLNORM_F16, 0x1.ffcp-15, 0x1.ff8p-15 + 0x1p-24},
        {CLNORM_BF16, 1 + 0x1p-8, 1},
        {CLNORM_BF16, 1 + 0x1.8p-7, 1 + 0x1p-6},
        {CLNORM_BF16, 0x1.fep127, 0x1.fep127},
        {CLNORM_BF16, 0x1.ffp127, INFINITY},
        {CLNORM_BF16, 0x1p-133, 0x1p-133},
        {CLNORM_BF16, 0x1p-134, 0},
        {CLNORM_BF16, -0x1.8p-133, -0x1p-132},
        {CLNORM_F32, 1 + 0x1p-24, 1},
        {CLNORM_F32, 1e300, INFINITY},
        {CLNORM_F64, 0.1, 0.1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (stored(cases[i].dtype, cases[i].value) != cases[i].expected)
            fail_msg("%s of %a is %a, not %a", clnorm_dtype_name(cases[i].dtype), cases[i].value,
                     stored(cases[i].dtype, cases[i].value), cases[i].expected);
    static const clnorm_dtype dtypes[] = {CLNORM_F16, CLNORM_BF16, CLNORM_F32, CLNORM_F64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        assert_true(isnan(stored(dtypes[i], NAN)));
        assert_true(signbit(stored(dtypes[i], -0.0)));
        assert_true(stored(dtypes[i], -INFINITY) == -INFINITY);
        const double epsilon = element_epsilon(element_by_dtype(dtypes[i]));
        assert_true(stored(dtypes[i], 1 + epsilon) == 1);
        assert_true(stored(dtypes[i], 1 + 2 * epsilon) == 1 + 2 * epsilon);
    }
}

/* Every 16-bit pattern survives a load and a store, NaNs as some NaN. */
static void test_elements_of_16_bits_are_exact(void **state) {
    (void)state;
    static const clnorm_dtype dtypes[] = {CLNORM_F16, CLNORM_BF16};
    for (size_t d = 0; d < 2; d++) {
        const struct element *const element = element_by_dtype(dtypes[d]);
        for (uint32_t i = 0; i < 0x10000; i++) {
            const uint16_t bits = (uint16_t)i;
            uint16_t back;
            const double value = element_load(element, &bits, 0);
            element_store(element, &back, 0, value);
            if (isnan(value) ? !isnan(element_load(element, &back, 0)) : back != bits)
                fail_msg("%s %04x came back as %04x", element->name, i, back);
        }
    }
    const uint16_t half = 0x3555;
    assert_true(element_load(element_by_dtype(CLNORM_F16), &half, 0) == 0x1.554p-2);
    const uint16_t bfloat = 0x3eab;
    assert_true(element_load(element_by_dtype(CLNORM_BF16), &bfloat, 0) == 0x1.56p-2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements_round_to_nearest_even),
        cmocka_unit_test(test_elements_of_16_bits_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
