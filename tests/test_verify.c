/* The verification of --verify and check: a right result passes, one that is off by little more than its tolerance fails,
 * and a NaN passes only where one is expected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job_describe.h"

/* ---------------------------------------------------------------------------------------------------------- verdicts */

static bool passes(clnorm_dtype dtype, double actual, double expected, double slack) {
    struct verdict verdict = {0};
    verdict_add(&verdict, element_by_dtype(dtype), 0, actual, expected, slack);
    assert_int_equal(verdict.checked, 1);
    return !verdict.wrong;
}

static void test_verdict_allows_the_rounding_of_the_slack(void **state) {
    (void)state;
    assert_true(passes(CLNORM_F32, 1, 1, 0));
    assert_true(passes(CLNORM_F32, (float)0.1, 0.1, 0));
    assert_false(passes(CLNORM_F32, nextafterf(0.1F, 1), 0.1, 0));
    assert_true(passes(CLNORM_F32, nextafterf(0.1F, 1), 0.1, 1e-8));
    assert_true(passes(CLNORM_F32, 1.5, 1, 0.5));
    assert_false(passes(CLNORM_F32, 1.5001, 1, 0.5));
    assert_false(passes(CLNORM_F32, 0.4999, 1, 0.5));
    assert_true(passes(CLNORM_BF16, 1, 1 + 0x1p-9, 0));
    assert_false(passes(CLNORM_BF16, 1 + 0x1p-7, 1 + 0x1p-9, 0));
    assert_true(passes(CLNORM_BF16, 1 + 0x1p-7, 1 + 0x1p-9, 0x1.01p-9));
    assert_true(passes(CLNORM_F16, INFINITY, 65519, 1));
    assert_false(passes(CLNORM_F16, INFINITY, 65500, 1));
}

static void test_verdict_of_nan_and_infinity(void **state) {
    (void)state;
    assert_false(passes(CLNORM_F32, NAN, 0, 1));
    assert_false(passes(CLNORM_F32, NAN, 0, INFINITY));
    assert_false(passes(CLNORM_F32, 0, NAN, 1));
    assert_true(passes(CLNORM_F32, NAN, NAN, 0));
    assert_true(passes(CLNORM_F32, INFINITY, INFINITY, 0));
    assert_false(passes(CLNORM_F32, -INFINITY, INFINITY, 0));
    assert_false(passes(CLNORM_F32, NAN, INFINITY, 0));
    assert_false(passes(CLNORM_F32, 3e38, INFINITY, 1));
    assert_true(passes(CLNORM_F32, NAN, -INFINITY, INFINITY));
    assert_false(passes(CLNORM_F32, 1, -INFINITY, INFINITY));
}

static void test_verdict_keeps_the_worst(void **state) {
    (void)state;
    const struct element *const f32 = element_by_dtype(CLNORM_F32);
    struct verdict verdict = {0};
    verdict_add(&verdict, f32, 3, 1.25, 1, 0.5);
    verdict_add(&verdict, f32, 4, 100.5, 100, 10);
    verdict_add(&verdict, f32, 5, 1.75, 1, 0.5);
    verdict_add(&verdict, f32, 6, 1, 1, 0.5);
    assert_int_equal(verdict.checked, 4);
    assert_int_equal(verdict.wrong, 1);
    assert_int_equal(verdict.index, 5);
    assert_true(verdict.error == 0.75);
    assert_true(fabs(verdict.tolerance - 0.5) < 1e-6);
    verdict_add(&verdict, f32, 7, NAN, 1, 0.5);
    assert_int_equal(verdict.wrong, 2);
    assert_int_equal(verdict.index, 7);
}

/* ------------------------------------------------------------------------------------------------ whole normalisations */

enum { ROWS = 3, COLS = 40, GROUP = 20, GROUPS = COLS / GROUP, ELEMENTS = ROWS * COLS };

/* A job whose outputs are computed here, in double, by the formulas. */
struct fixture {
    struct job job;
    unsigned char bytes[ROLES][ELEMENTS * sizeof(double)];
};

static void values_of(const struct fixture *fixture, const char *role, double values[ELEMENTS]) {
    const struct tensor *const tensor = job_tensor(&fixture->job, role);
    for (uint64_t i = 0; i < tensor->count; i++)
        values[i] = element_load(tensor->element, tensor->data, i);
}

static void put(struct fixture *fixture, const char *role, uint64_t index, double value) {
    const int i = operation_role(fixture->job.operation, role);
    element_store(fixture->job.tensor[i].element, fixture->job.output[i], index, value);
}

static double get(const struct fixture *fixture, const char *role, uint64_t index) {
    const struct tensor *const tensor = job_tensor(&fixture->job, role);
    return element_load(tensor->element, tensor->data, index);
}

static void fill(struct fixture *fixture) {
    static const char *const roles[] = {"x", "weight", "bias", "z"};
    for (int r = 0; r < 4; r++) {
        const int i = operation_role(fixture->job.operation, roles[r]);
        struct tensor *const tensor = &fixture->job.tensor[i];
        if (!tensor->element)
            continue;
        tensor->data = fixture->bytes[i];
        for (uint64_t k = 0; k < tensor->count; k++)
            element_store(tensor->element, fixture->bytes[i], k, sin(1.7 * (double)k + r) * (r == 1 ? 2 : 3) + (r == 0));
    }
}

static void normalise(struct fixture *fixture, const struct operation_options *options) {
    double x[ELEMENTS] = {0}, w[ELEMENTS] = {0}, b[ELEMENTS] = {0}, z[ELEMENTS] = {0};
    values_of(fixture, "x", x);
    values_of(fixture, "weight", w);
    values_of(fixture, "bias", b);
    const bool layer = !strcmp(fixture->job.operation->name, "layer_norm");
    if (options->gate)
        values_of(fixture, "z", z);
    for (int i = 0; options->gate && i < ELEMENTS; i++) {
        const double sigmoid = 1 / (1 + exp(-z[i]));
        z[i] = strcmp(options->gate, "silu") != 0 ? sigmoid : z[i] * sigmoid;
        x[i] *= options->gate_first ? z[i] : 1;
    }
    for (int segment = 0; segment < ROWS * GROUPS; segment++) {
        const double *const s = x + (ptrdiff_t)segment * GROUP;
        double mean = 0, var = 0;
        for (int i = 0; layer && i < GROUP; i++)
            mean += s[i] / GROUP;
        for (int i = 0; i < GROUP; i++)
            var += (s[i] - mean) * (s[i] - mean) / GROUP;
        const double rstd = 1 / sqrt(var + options->eps);
        const uint64_t row = (uint64_t)segment / GROUPS, group = (uint64_t)segment % GROUPS;
        if (layer)
            put(fixture, "mean", group * ROWS + row, mean);
        put(fixture, "rstd", group * ROWS + row, rstd);
        const uint64_t weight_row = options->weight_rows ? row % (uint64_t)options->weight_rows : 0;
        for (uint64_t i = 0; i < GROUP; i++) {
            const uint64_t column = group * GROUP + i, index = row * COLS + column;
            const uint64_t weight = weight_row * COLS + column;
            const double y = (s[i] - mean) * rstd * (options->weight_offset + w[weight]) + b[weight];
            put(fixture, "y", index, options->gate && !options->gate_first ? y * z[index] : y);
        }
    }
}

static struct fixture *make_fixture(const char *name, clnorm_dtype dtype, const struct operation_options *options) {
    struct fixture *const fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    struct fault fault = {0};
    const struct operation *operation;
    assert_true(operation_find(name, &operation, &fault));
    job_init(&fixture->job, operation);
    fixture->job.weight_rows = (uint64_t)options->weight_rows;
    const clnorm_dtype weight = dtype == CLNORM_F64 ? dtype : CLNORM_F32;
    assert_true(job_add_input(&fixture->job, "x", dtype, ROWS, COLS, GROUPS, &fault));
    assert_true(job_add_input(&fixture->job, "weight", weight, ROWS, COLS, GROUPS, &fault));
    assert_true(job_add_input(&fixture->job, "bias", weight, ROWS, COLS, GROUPS, &fault));
    if (options->gate)
        assert_true(job_add_input(&fixture->job, "z", dtype, ROWS, COLS, GROUPS, &fault));
    if (!job_describe(&fixture->job, options, &fault) || !job_allocate_outputs(&fixture->job, &fault))
        fail_msg("%s", fault.text);
    fill(fixture);
    normalise(fixture, options);
    return fixture;
}

/* The number of wrong elements of a role. Those of the other roles must be right. */
static uint64_t wrong_of(const struct fixture *fixture, const char *role) {
    struct verdict verdicts[ROLES] = {0};
    struct fault fault = {0};
    uint64_t wrong = 0;
    assert_true(fixture->job.operation->verify(&fixture->job, verdicts, &fault));
    for (int i = 0; fixture->job.operation->roles[i].name; i++) {
        if (!fixture->job.operation->roles[i].output)
            continue;
        assert_int_equal(verdicts[i].checked, fixture->job.tensor[i].count);
        if (!strcmp(fixture->job.operation->roles[i].name, role))
            wrong = verdicts[i].wrong;
        else
            assert_int_equal(verdicts[i].wrong, 0);
    }
    return wrong;
}

static const struct operation_options option_table[] = {
    {.eps = 1e-5, .slots = 128, .group_size = GROUP},
    {.eps = 0.5, .slots = 128, .group_size = GROUP, .weight_offset = 1},
    {.eps = 1e-5, .slots = 128, .group_size = GROUP, .gate = "silu"},
    {.eps = 1e-5, .slots = 128, .group_size = GROUP, .gate = "sigmoid", .gate_first = 1},
    {.eps = 1e-5, .slots = 128, .group_size = GROUP, .weight_rows = ROWS},
};
enum { OPTIONS = sizeof option_table / sizeof *option_table };

static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_BF16, CLNORM_F16, CLNORM_F64};

static void for_each(void (*check)(struct fixture *fixture)) {
    for (int norm = 0; norm < 2; norm++)
        for (int o = 0; o < OPTIONS; o++)
            for (int d = 0; d < 4; d++) {
                struct fixture *const fixture = make_fixture(norm ? "rms_norm" : "layer_norm", dtypes[d], &option_table[o]);
                check(fixture);
                job_free(&fixture->job);
                free(fixture);
            }
}

static void check_right(struct fixture *fixture) {
    assert_int_equal(wrong_of(fixture, "y"), 0);
}

static void test_right_results_pass(void **state) {
    (void)state;
    for_each(check_right);
}

/* Errors beyond an element's rounding and 200 units of the arithmetic are found. */
static void check_damage(struct fixture *fixture) {
    static const char *const roles[] = {"y", "rstd"};
    for (int r = 0; r < 2; r++) {
        const struct tensor *const tensor = job_tensor(&fixture->job, roles[r]);
        const double unit = tensor->element->dtype == CLNORM_F64 ? 0x1p-53 : 0x1p-24;
        const double damage = 2 * element_epsilon(tensor->element) + 200 * unit;
        for (uint64_t i = 0; i < tensor->count; i += 7) {
            const double right = get(fixture, roles[r], i);
            put(fixture, roles[r], i, right + (fabs(right) + 4) * damage);
            assert_int_equal(wrong_of(fixture, roles[r]), 1);
            put(fixture, roles[r], i, NAN);
            assert_int_equal(wrong_of(fixture, roles[r]), 1);
            put(fixture, roles[r], i, right);
        }
    }
}

static void test_damaged_results_fail(void **state) {
    (void)state;
    for_each(check_damage);
}

static void test_nan_is_expected_of_nan(void **state) {
    (void)state;
    struct fixture *const fixture = make_fixture("layer_norm", CLNORM_F32, &option_table[0]);
    element_store(fixture->job.tensor[0].element, fixture->bytes[0], GROUP + 3, NAN);
    normalise(fixture, &option_table[0]);
    assert_true(isnan(get(fixture, "y", GROUP)));
    assert_int_equal(wrong_of(fixture, "y"), 0);
    put(fixture, "y", GROUP + 1, 0);
    assert_int_equal(wrong_of(fixture, "y"), 1);
    job_free(&fixture->job);
    free(fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict_allows_the_rounding_of_the_slack),
        cmocka_unit_test(test_verdict_of_nan_and_infinity),
        cmocka_unit_test(test_verdict_keeps_the_worst),
        cmocka_unit_test(test_right_results_pass),
        cmocka_unit_test(test_damaged_results_fail),
        cmocka_unit_test(test_nan_is_expected_of_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
