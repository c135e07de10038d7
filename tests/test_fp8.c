/* The 8-bit formats: every code as a number, and numbers around every place where rounding changes the code. They go
 * through quantize and dequantize with a scale of 1, which divides and multiplies exactly. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "reference/reference.h"

static const clnorm_dtype formats[] = {CLNORM_F8_E4M3, CLNORM_F8_E5M2};

/* ------------------------------------------------------------------------------------------------- the model itself */

static void the_model_has_the_specifications_numbers(void **state) {
    (void)state;
    static const struct {
        clnorm_dtype dtype;
        unsigned code;
        double value;
    } rows[] = {
        {CLNORM_F8_E4M3, 0x01, 0x1p-9},  {CLNORM_F8_E4M3, 0x07, 0x1.cp-7}, {CLNORM_F8_E4M3, 0x08, 0x1p-6},
        {CLNORM_F8_E4M3, 0x38, 1},       {CLNORM_F8_E4M3, 0x7e, 448},      {CLNORM_F8_E4M3, 0xfe, -448},
        {CLNORM_F8_E5M2, 0x01, 0x1p-16}, {CLNORM_F8_E5M2, 0x04, 0x1p-14},  {CLNORM_F8_E5M2, 0x3c, 1},
        {CLNORM_F8_E5M2, 0x7b, 57344},   {CLNORM_F8_E5M2, 0x7c, INFINITY}, {CLNORM_F8_E5M2, 0xfc, -INFINITY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(ref_code_value(rows[i].dtype, rows[i].code) == rows[i].value);
        if (isfinite(rows[i].value))
            assert_int_equal(ref_code(rows[i].dtype, rows[i].value), rows[i].code);
    }
    for (size_t i = 0; i < 2; i++)
        for (unsigned code = i ? 0x7d : 0x7f; code < 0x80; code++)
            assert_true(isnan(ref_code_value(formats[i], code)) && isnan(ref_code_value(formats[i], code | 0x80)));
    assert_int_equal(ref_code(CLNORM_F8_E4M3, 17), 0x58); /* 16 and 18 are equally near: the even code */
    assert_int_equal(ref_code(CLNORM_F8_E4M3, 19), 0x5a);
    assert_int_equal(ref_code(CLNORM_F8_E4M3, -INFINITY), 0xfe);
    assert_int_equal(ref_code(CLNORM_F8_E5M2, 1e30), 0x7b);
    assert_int_equal(ref_code(CLNORM_F8_E5M2, -0.0), 0x80);
}

/* ------------------------------------------------------------------------------------------------------ the device */

/* Quantises x, [count] in one row, by a scale of 1. */
static void quantize(const struct fixture *fixture, clnorm_dtype dtype, uint32_t vec, const float *x, uint64_t count,
                     unsigned char *codes) {
    struct tensor from = tensor_make(CLNORM_F32, 1, count, count, 0, TENSOR_NAN);
    struct tensor to = tensor_make(dtype, 1, count, count, 0, TENSOR_CANARY);
    memcpy(tensor_elements(&from), x, count * sizeof *x);
    tensor_upload(fixture, &from);
    tensor_upload(fixture, &to);
    clnorm_quantize_desc desc = CLNORM_QUANTIZE_DESC_INIT;
    desc.rows = 1;
    desc.cols = count;
    desc.q.dtype = dtype;
    desc.q.scale = 1;
    KNOB(desc.config, vec) = vec;
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&from);
    args.q = tensor_buffer(&to);
    assert_int_equal(clnorm_quantize(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL), CLNORM_SUCCESS);
    assert_true(tensor_receive(fixture, &to, "q"));
    memcpy(codes, tensor_elements(&to), count);
    tensor_free(&from);
    tensor_free(&to);
}

static void check_codes(const struct fixture *fixture, clnorm_dtype dtype, uint32_t vec, const float *x, uint64_t count) {
    unsigned char *codes = malloc(count);
    assert_non_null(codes);
    quantize(fixture, dtype, vec, x, count, codes);
    unsigned wrong = 0;
    for (uint64_t i = 0; i < count && wrong < 10; i++) {
        const unsigned expected = ref_code(dtype, (double)x[i]);
        if (codes[i] == expected)
            continue;
        wrong++;
        print_error("%s(%a) is %02x, but should be %02x\n", clnorm_dtype_name(dtype), (double)x[i], codes[i], expected);
    }
    free(codes);
    assert_int_equal(wrong, 0);
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Floats around each number of the format and around each midpoint of two, of both signs, and special values. */
static void numbers_become_the_nearest_codes(void **state) {
    const struct fixture *fixture = *state;
    enum { NEAR = 12, PLACES = 2 * 127, COUNT = 2 * PLACES * 2 * NEAR + 16 };
    static float x[COUNT];
    for (size_t f = 0; f < 2; f++) {
        uint64_t count = 0;
        for (unsigned i = 0; i < PLACES; i++) {
            const double low = ref_code_value(formats[f], i / 2);
            const double high = ref_code_value(formats[f], i / 2 + 1);
            const double middle = isfinite(high) ? (low + high) / 2 : low * (1 + 1 / 16.0);
            const uint32_t bits = bits_of((float)(i % 2 || !isfinite(low) ? middle : low));
            for (uint32_t k = 0; k < 2 * NEAR; k++) {
                x[count++] = float_of(bits < NEAR ? k : bits - NEAR + k);
                x[count] = -x[count - 1];
                count++;
            }
        }
        const float far[16] = {0.0F,      -0.0F,      INFINITY, -INFINITY, NAN,  -NAN,  FLT_MAX, -FLT_MAX,
                               0x1p-149F, -0x1p-149F, FLT_MIN,  -FLT_MIN,  1e5F, -1e5F, 449.0F,  float_of(0xff800001)};
        memcpy(x + count, far, sizeof far);
        check_codes(fixture, formats[f], 0, x, count + 16);
        check_codes(fixture, formats[f], 1, x, count + 16);
    }
}

/* Random bits. */
static void random_floats_become_the_nearest_codes(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t count = fixture_is_slow(fixture) ? 1U << 12 : 1U << 16;
    float *x = malloc(count * sizeof *x);
    assert_non_null(x);
    struct random random = {7};
    for (size_t f = 0; f < 2; f++) {
        for (uint64_t i = 0; i < count; i++) { /* every other one of an exponent that the formats have */
            const uint32_t bits = (uint32_t)random_next(&random);
            x[i] = float_of(i % 2 ? bits : (bits & 0x807fffffU) | (uint32_t)(104 + random_below(&random, 42)) << 23);
        }
        check_codes(fixture, formats[f], 0, x, count);
    }
    free(x);
}

static void codes_become_their_numbers(void **state) {
    const struct fixture *fixture = *state;
    for (size_t f = 0; f < 4; f++) {
        const clnorm_dtype format = formats[f % 2];
        struct tensor q = tensor_make(format, 1, 256, 256, 0, TENSOR_NAN);
        struct tensor scale = tensor_make(CLNORM_F32, 1, 1, 1, 0, TENSOR_NAN);
        struct tensor x = tensor_make(CLNORM_F32, 1, 256, 256, 0, TENSOR_CANARY);
        for (unsigned code = 0; code < 256; code++)
            ((unsigned char *)tensor_elements(&q))[code] = (unsigned char)code;
        *(float *)tensor_elements(&scale) = 1;
        tensor_upload(fixture, &q);
        tensor_upload(fixture, &scale);
        tensor_upload(fixture, &x);
        clnorm_dequantize_desc desc = CLNORM_DEQUANTIZE_DESC_INIT;
        desc.rows = 1;
        desc.cols = 256;
        desc.q.dtype = format;
        KNOB(desc.config, vec) = f < 2 ? 0 : 1;
        clnorm_args args = CLNORM_ARGS_INIT;
        args.q = tensor_buffer(&q);
        args.scale = tensor_buffer(&scale);
        args.x = tensor_buffer(&x);
        assert_int_equal(clnorm_dequantize(fixture->context, fixture->queue, &desc, &args, 0, NULL, NULL), CLNORM_SUCCESS);
        assert_true(tensor_receive(fixture, &x, "x"));
        for (unsigned code = 0; code < 256; code++) {
            const double expected = ref_code_value(format, code);
            const double actual = (double)((const float *)tensor_elements(&x))[code];
            if (isnan(expected))
                assert_true(isnan(actual));
            else
                assert_true(actual == expected && !signbit(actual) == !signbit(expected));
        }
        tensor_free(&q);
        tensor_free(&scale);
        tensor_free(&x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_has_the_specifications_numbers),
        cmocka_unit_test(numbers_become_the_nearest_codes),
        cmocka_unit_test(random_floats_become_the_nearest_codes),
        cmocka_unit_test(codes_become_their_numbers),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
