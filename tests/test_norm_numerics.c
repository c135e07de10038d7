/* Forward normalisation of numerically difficult inputs, conversions, and properties that hold for all inputs. */
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
#include "norm_case.h"
#include "reference/reference.h"

static double load(const struct tensor *tensor, uint64_t index) {
    return ref_load(tensor->dtype, tensor_elements(tensor), index);
}

static void store(struct tensor *tensor, uint64_t index, double value) {
    ref_store(tensor->dtype, tensor_elements(tensor), index, value);
}

/* Runs with the inputs in host memory, and fetches the outputs. */
static void go(const struct fixture *fixture, struct norm_run *run) {
    if (norm_run_go(fixture, run) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    assert_true(tensor_receive(fixture, &run->y, "y"));
    assert_true(tensor_receive(fixture, &run->mean, "mean"));
    assert_true(tensor_receive(fixture, &run->rstd, "rstd"));
}

/* ----------------------------------------------------------------------------------------------- difficult sums */

/* A mean of 10,000 and a deviation of 1 leave an f32 about 2^-10 of resolution; no more than twice that may be lost. */
static void far_mean_costs_its_resolution(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t all_cols[] = {64, 1000, 4096};
    for (int i = 0; i < 3; i++) {
        const uint64_t cols = all_cols[i];
        const struct norm_case norm_case = {
            .desc = norm_desc_of(CLNORM_LAYER_NORM, 4, cols), .input = INPUT_FAR, .seed = cols};
        struct norm_run run = norm_run_make(&norm_case);
        go(fixture, &run);
        struct ref_segment segment = ref_segment_make(cols);
        struct ref_norm norm = ref_norm_of(&run.desc);
        norm.x.elements = tensor_elements(&run.x);
        for (uint64_t row = 0; row < 4; row++) {
            ref_norm_segment(&norm, row, 0, &segment);
            for (uint64_t column = 0; column < cols; column++) {
                const double error = fabs(load(&run.y, row * cols + column) - segment.y[column]);
                if (!(error <= 0x1p-9))
                    fail_msg("y[%d, %d] of %d columns is off by %g", (int)row, (int)column, (int)cols, error);
            }
        }
        ref_segment_free(&segment);
        norm_run_free(&run);
    }
}

/* Rows of equal elements, however large: mean is the element, the variance is 0, and y is the bias to the bit. gap:
 * elements between rows, so that rows of each number modulo 8 begin elsewhere within a vector where vectors do not divide a
 * stride. */
static void check_constant_rows(const struct fixture *fixture, uint64_t cols, uint64_t gap, struct cln_config config) {
    static const double elements[] = {0.1, -3, 1234.567, 1e6 / 3, 3.3e7, 1.8401877e12, -1e15, 1e25};
    enum { ELEMENTS = sizeof elements / sizeof *elements, ROWS = 8 * ELEMENTS };
    const uint64_t stride = cols + gap;
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_LAYER_NORM, ROWS, cols), .seed = 3};
    norm_case.desc.bias.dtype = norm_case.desc.weight.dtype = CLNORM_F32;
    norm_case.desc.save_mean = norm_case.desc.save_rstd = true;
    norm_case.desc.x.stride = norm_case.desc.y.stride = stride;
    norm_case.desc.config = forced(config);
    struct norm_run run = norm_run_make(&norm_case);
    for (uint64_t row = 0; row < ROWS; row++)
        for (uint64_t column = 0; column < cols; column++)
            store(&run.x, row * stride + column, elements[row % ELEMENTS]);
    go(fixture, &run);
    for (uint64_t row = 0; row < ROWS; row++) {
        for (uint64_t column = 0; column < cols; column++)
            if (load(&run.y, row * stride + column) != load(&run.bias, column))
                fail_msg("y of %g is %g off the bias", load(&run.x, row * stride),
                         load(&run.y, row * stride + column) - load(&run.bias, column));
        assert_true(load(&run.mean, row) == load(&run.x, row * stride));
        assert_true(fabs(load(&run.rstd, row) * sqrt(1e-5) - 1) < 1e-6);
    }
    norm_run_free(&run);
}

/* Where a kernel compiles for seconds, each kind runs once, and the next test has rows of 7 columns. */
static void equal_elements_give_the_bias(void **state) {
    const struct cln_config held = {.keep = CLN_KEEP_REGISTERS}, reread = {.keep = CLN_KEEP_REREAD};
    if (!fixture_is_slow(*state)) {
        check_constant_rows(*state, 7, 0, held);
        check_constant_rows(*state, 7, 0, reread);
        check_constant_rows(*state, 5003, 0, reread);
    }
    check_constant_rows(*state, 200, 0, held);
    check_constant_rows(*state, 1000, 0, reread);
    /* five vectors, two a chunk: the last chunk has none */
    check_constant_rows(*state, 20, 0, (struct cln_config){.keep = CLN_KEEP_REREAD, .vec = 4, .lanes = 2, .chunks = 4});
}

/* CPUs have vectors that divide no stride with streaming stores only. */
static void equal_elements_give_the_bias_wherever_rows_begin(void **state) {
    const struct fixture *const fixture = *state;
    const bool cpu = fixture->device.kind == CLNORM_DEVICE_CPU && fixture->device.family != CLNORM_PLATFORM_MESA;
    static const struct {
        uint64_t cols, gap;
        uint32_t lanes;
    } shapes[] = {{7, 0, 1}, {37, 0, 1}, {16, 1, 8}, {64, 1, 8}, {203, 0, 8}};
    const bool slow = fixture_is_slow(fixture);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint32_t keep = CLN_KEEP_REGISTERS; keep <= CLN_KEEP_REREAD; keep++)
            if (!slow || keep % 2 == i % 2) /* where a kernel compiles for seconds, each shape has one */
                check_constant_rows(fixture, shapes[i].cols, shapes[i].gap,
                                    (struct cln_config){.vec = slow ? 4 : 8,
                                                        .lanes = shapes[i].lanes,
                                                        .keep = keep,
                                                        .stores = cpu ? CLN_STORES_STREAMING : CLN_STORES_CACHED});
}

/* -------------------------------------------------------------------------------------------- beyond finite numbers */

static void spoil_rows(struct norm_run *run) {
    const uint64_t cols = run->desc.cols;
    store(&run->x, 1 * cols, NAN);
    store(&run->x, 2 * cols + cols / 2, INFINITY);
    store(&run->x, 3 * cols + cols - 1, -INFINITY);
    store(&run->x, 5 * cols + 1, INFINITY);
    store(&run->x, 5 * cols + 2, -INFINITY);
    store(&run->x, 6 * cols + cols - 1, NAN);
    tensor_fill(&run->y, INPUT_UNIFORM, cols, 1); /* so that the kernel writes every NaN there */
}

/* Rows with NaN or infinities have the results of the formula, and do not affect their neighbours. */
static void nan_and_infinity_stay_in_their_rows(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t all_cols[] = {12, 1000};
    for (int i = 0; i < 4; i++) {
        struct norm_case norm_case = {.desc = norm_desc_of(i & 1 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 8, all_cols[i / 2]),
                                      .seed = 9};
        norm_case.desc.x.dtype = i == 1 || i == 2 ? CLNORM_BF16 : CLNORM_F32;
        norm_case.desc.y.dtype = i == 1 || i == 2 ? CLNORM_F16 : CLNORM_BF16;
        norm_case.desc.weight.dtype = norm_case.desc.bias.dtype = CLNORM_F32;
        norm_case.desc.save_rstd = true;
        struct norm_run run = norm_run_make(&norm_case);
        spoil_rows(&run);
        go(fixture, &run);
        assert_true(norm_run_check(&run));
        norm_run_free(&run);
    }
}

static void nan_stays_in_its_group(void **state) {
    const struct fixture *fixture = *state;
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_LAYER_NORM, 2, 96), .seed = 4};
    norm_case.desc.group_size = 24;
    struct norm_run run = norm_run_make(&norm_case);
    store(&run.x, 30, NAN);
    tensor_fill(&run.y, INPUT_UNIFORM, 24, 1);
    go(fixture, &run);
    assert_true(norm_run_check(&run));
    assert_true(isnan(load(&run.y, 24)) && isnan(load(&run.y, 47)));
    assert_false(isnan(load(&run.y, 23)) || isnan(load(&run.y, 48)));
    norm_run_free(&run);
}

/* -------------------------------------------------------------------------------------------------- small and large */

static void scaled_inputs(const struct fixture *fixture, clnorm_norm norm, clnorm_dtype dtype, double scale, double eps) {
    struct norm_case norm_case = {.desc = norm_desc_of(norm, 3, 200), .seed = 5};
    norm_case.desc.x.dtype = dtype;
    norm_case.desc.y.dtype = CLNORM_F32;
    norm_case.desc.eps = eps;
    struct norm_run run = norm_run_make(&norm_case);
    for (uint64_t i = 0; i < UINT64_C(3) * 200; i++)
        store(&run.x, i, scale * load(&run.x, i));
    go(fixture, &run);
    if (!norm_run_check(&run))
        fail_msg("inputs of %s times %g, eps %g", clnorm_dtype_name(dtype), scale, eps);
    norm_run_free(&run);
}

static void denormals_and_huge_values(void **state) {
    const struct fixture *fixture = *state;
    for (int norm = CLNORM_LAYER_NORM; norm <= CLNORM_RMS_NORM; norm++) {
        scaled_inputs(fixture, (clnorm_norm)norm, CLNORM_F16, 0x1p-18, 1e-20); /* denormals of f16, but not of f32 */
        scaled_inputs(fixture, (clnorm_norm)norm, CLNORM_F32, 1e-40, 1e-5);    /* a device may flush them to 0 */
        scaled_inputs(fixture, (clnorm_norm)norm, CLNORM_F32, 1e-16, 0);
        scaled_inputs(fixture, (clnorm_norm)norm, CLNORM_F32, 1e17, 1e-5); /* squares sum up to 1e37 */
        scaled_inputs(fixture, (clnorm_norm)norm, CLNORM_BF16, 1e17, 1e-5);
        scaled_inputs(fixture, (clnorm_norm)norm, CLNORM_F16, 1e4, 1e-5);
    }
}

/* Results that f16 cannot hold: too small, denormal, or infinite. */
static void f16_underflows_and_overflows(void **state) {
    const struct fixture *fixture = *state;
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_RMS_NORM, 4, 640), .seed = 6};
    norm_case.desc.y.dtype = CLNORM_F16;
    norm_case.desc.weight.dtype = CLNORM_F32;
    struct norm_run run = norm_run_make(&norm_case);
    for (uint64_t i = 0; i < 640; i++)
        store(&run.weight, i, ldexp(1.25, (int)(i % 64) - 40));
    go(fixture, &run);
    assert_true(norm_run_check(&run));
    unsigned infinite = 0;
    unsigned denormal = 0;
    for (uint64_t i = 0; i < UINT64_C(4) * 640; i++) {
        const double y = load(&run.y, i);
        infinite += isinf(y) != 0;
        denormal += y != 0 && fabs(y) < 0x1p-14;
    }
    assert_in_range(infinite, 100, 2000);
    assert_in_range(denormal, 100, 2000);
    norm_run_free(&run);
}

/* ------------------------------------------------------------------------------------------------------ conversions */

/* With x = 0, y is the bias, widened by a load and rounded by a store. Zeros may lose their sign, and f32 denormals may be
 * flushed to 0. */
static void check_conversions(const struct fixture *fixture, clnorm_dtype from, clnorm_dtype to, uint64_t count,
                              double (*value_of)(uint64_t)) {
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_RMS_NORM, 1, count), .input = INPUT_UNIFORM};
    norm_case.desc.bias.dtype = from;
    norm_case.desc.y.dtype = to;
    struct norm_run run = norm_run_make(&norm_case);
    memset(tensor_elements(&run.x), 0, count * sizeof(float));
    for (uint64_t i = 0; i < count; i++)
        store(&run.bias, i, value_of(i));
    tensor_fill(&run.y, INPUT_UNIFORM, count, 1);
    go(fixture, &run);
    for (uint64_t i = 0; i < count; i++) {
        const double given = load(&run.bias, i);
        const double expected = ref_round(to, given);
        const double result = load(&run.y, i);
        const bool flushed = fabs(given) < 0x1p-126 && result == 0;
        if (isnan(expected) ? !isnan(result) : result != expected && !flushed)
            fail_msg("%s %a became %s %a, not %a", clnorm_dtype_name(from), given, clnorm_dtype_name(to), result, expected);
    }
    norm_run_free(&run);
}

static double any_f16(uint64_t i) {
    const uint16_t bits = (uint16_t)i;
    return ref_load(CLNORM_F16, &bits, 0);
}

static double any_bf16(uint64_t i) {
    const uint16_t bits = (uint16_t)i;
    return ref_load(CLNORM_BF16, &bits, 0);
}

/* The f32 numbers at, just below and just above the middle between two neighbouring f16 numbers. */
static double around_f16_ties(uint64_t i) {
    const double below = any_f16(i / 3);
    const double above = any_f16((i / 3 + 1) & 0xffff);
    const float middle = (float)((below + above) / 2);
    const float beside[3] = {nextafterf(middle, -INFINITY), middle, nextafterf(middle, INFINITY)};
    return (double)beside[i % 3];
}

/* Every upper half of an f32, with lower halves about the middle between two bf16 numbers. */
static double around_bf16_ties(uint64_t i) {
    static const uint32_t lower[4] = {0x7fff, 0x8000, 0x8001, 0xffff};
    const uint32_t bits = (uint32_t)(i / 4) << 16 | lower[i % 4];
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static void loads_widen_exactly(void **state) {
    check_conversions(*state, CLNORM_F16, CLNORM_F32, 1 << 16, any_f16);
    check_conversions(*state, CLNORM_BF16, CLNORM_F32, 1 << 16, any_bf16);
}

static void stores_round_to_nearest_even(void **state) {
    check_conversions(*state, CLNORM_F32, CLNORM_F16, 3 << 16, around_f16_ties);
    check_conversions(*state, CLNORM_F32, CLNORM_BF16, 4 << 16, around_bf16_ties);
    check_conversions(*state, CLNORM_BF16, CLNORM_F16, 1 << 16, any_bf16);
}

/* The same with f16 and bf16 on both sides, at a length that leaves a last vector partly filled. */
static void odd_lengths_convert_alike(void **state) {
    check_conversions(*state, CLNORM_F32, CLNORM_F16, (3 << 16) - 5, around_f16_ties);
    check_conversions(*state, CLNORM_F32, CLNORM_BF16, (4 << 16) - 13, around_bf16_ties);
}

/* ------------------------------------------------------------------------------------------------------- properties */

/* Multiples of 2^-8, so that adding 1024 and scaling by 2^20 are exact. */
static struct norm_run dyadic_run(const struct norm_case *norm_case, double scale, double shift) {
    struct norm_run run = norm_run_make(norm_case);
    for (uint64_t i = 0; i < run.desc.rows * run.desc.cols; i++)
        store(&run.x, i, scale * (nearbyint(load(&run.x, i) * 256) / 256) + shift);
    return run;
}

static void compare_y(const struct norm_run *a, const struct norm_run *b, double tolerance) {
    for (uint64_t i = 0; i < a->desc.rows * a->desc.cols; i++) {
        const double error = fabs(load(&a->y, i) - load(&b->y, i));
        if (!(error <= tolerance))
            fail_msg("y of element %d differs by %g, more than %g", (int)i, error, tolerance);
    }
}

/* LN(x + c) = LN(x), to the resolution of f32 near 1024. */
static void layer_norm_ignores_a_shift(void **state) {
    const struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_LAYER_NORM, 3, 1024), .seed = 7};
    struct norm_run plain = dyadic_run(&norm_case, 1, 0);
    struct norm_run shifted = dyadic_run(&norm_case, 1, 1024);
    go(*state, &plain);
    go(*state, &shifted);
    compare_y(&plain, &shifted, 0x1p-12);
    norm_run_free(&plain);
    norm_run_free(&shifted);
}

/* RMS(s · x) = RMS(x) without eps. Multiplying by a power of two adds no rounding. */
static void rms_norm_ignores_a_scale(void **state) {
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_RMS_NORM, 3, 1000), .seed = 8};
    norm_case.desc.eps = 0;
    struct norm_run plain = dyadic_run(&norm_case, 1, 0);
    struct norm_run scaled = dyadic_run(&norm_case, 0x1p20, 0);
    go(*state, &plain);
    go(*state, &scaled);
    compare_y(&plain, &scaled, 0x1p-20);
    norm_run_free(&plain);
    norm_run_free(&scaled);
}

static void assert_same_rows(const struct norm_run *few, const struct norm_run *many) {
    const size_t row = few->desc.cols * clnorm_dtype_size(few->desc.y.dtype);
    assert_memory_equal(tensor_elements(&few->y), tensor_elements(&many->y), few->desc.rows * row);
    const size_t statistic = clnorm_dtype_size(few->rstd.dtype);
    assert_memory_equal(tensor_elements(&few->rstd), tensor_elements(&many->rstd), few->desc.rows * statistic);
}

/* The bits of a row depend neither on the number of rows, nor on their place in memory, nor on the run. chunks is forced to
 * 1, as the library cuts few wide rows into chunks. */
static void bits_depend_on_the_row_alone(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t all_cols[] = {7, 256, 1000, 4096, 65537};
    for (int i = 0; i < 5; i++) {
        const uint64_t cols = all_cols[i];
        struct norm_case norm_case = {.desc = norm_desc_of(i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 1, cols),
                                      .seed = 10};
        if (cols > fixture_element_limit(fixture))
            continue;
        norm_case.desc.x.dtype = i % 2 ? CLNORM_F32 : CLNORM_BF16;
        norm_case.desc.weight.dtype = CLNORM_F32;
        norm_case.desc.save_rstd = true;
        KNOB(norm_case.desc.config, chunks) = 1;
        struct norm_run one = norm_run_make(&norm_case);
        go(fixture, &one);
        const uint64_t most = fixture_element_limit(fixture) / cols;
        const uint64_t rows[] = {1, 7, most < 1000 ? most + 1 : 1000};
        for (int j = 0; j < 3; j++) {
            norm_case.desc.rows = rows[j];
            norm_case.shift.x = norm_case.shift.y = norm_case.shift.weight = j == 1 ? 3 : 0;
            struct norm_run many = norm_run_make(&norm_case);
            go(fixture, &many);
            assert_same_rows(&one, &many);
            norm_run_free(&many);
        }
        norm_run_free(&one);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(far_mean_costs_its_resolution),
        cmocka_unit_test(equal_elements_give_the_bias),
        cmocka_unit_test(equal_elements_give_the_bias_wherever_rows_begin),
        cmocka_unit_test(nan_and_infinity_stay_in_their_rows),
        cmocka_unit_test(nan_stays_in_its_group),
        cmocka_unit_test(denormals_and_huge_values),
        cmocka_unit_test(f16_underflows_and_overflows),
        cmocka_unit_test(loads_widen_exactly),
        cmocka_unit_test(stores_round_to_nearest_even),
        cmocka_unit_test(odd_lengths_convert_alike),
        cmocka_unit_test(layer_norm_ignores_a_shift),
        cmocka_unit_test(rms_norm_ignores_a_scale),
        cmocka_unit_test(bits_depend_on_the_row_alone),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
