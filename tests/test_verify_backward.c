/* The verification of gradients by --verify and check: right ones pass, and those that are off by little more than their
 * tolerance fail. Gradients are computed here from the forward alone, by complex steps: the derivative of f at x is the
 * imaginary part of f(x + ih) / h, to the last bit for a small h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job_describe.h"

typedef long double complex number;

enum { ROWS = 3, COLS = 40, GROUP = 20, GROUPS = COLS / GROUP, ELEMENTS = ROWS * COLS };

static const long double step = 1e-100L;

enum { X, DY, WEIGHT, BIAS, Z, INPUTS };
static const char *const input_names[] = {"x", "dy", "weight", "bias", "z"};

struct fixture {
    struct job job;
    const struct operation_options *options;
    bool layer;
    unsigned char bytes[ROLES][ELEMENTS * sizeof(double)];
    number value[INPUTS][ELEMENTS];
    number y[ELEMENTS], mean[ROWS * GROUPS], rstd[ROWS * GROUPS]; /* statistics are [GROUPS, ROWS] */
};

/* --------------------------------------------------------------------------------------------- forward and its slope */

static number gate_factor(const struct fixture *fixture, number z) {
    const number sigmoid = 1 / (1 + cexpl(-z));
    return strcmp(fixture->options->gate, "silu") != 0 ? sigmoid : z * sigmoid;
}

static void normalise_segment(struct fixture *fixture, int row, int group) {
    const int start = row * COLS + group * GROUP;
    const bool gate = fixture->options->gate;
    number s[GROUP];
    number mean = 0;
    number var = 0;
    for (int i = 0; i < GROUP; i++) {
        s[i] = fixture->value[X][start + i];
        if (fixture->options->gate_first)
            s[i] *= gate_factor(fixture, fixture->value[Z][start + i]);
        mean += fixture->layer ? s[i] / GROUP : 0;
    }
    for (int i = 0; i < GROUP; i++)
        var += (s[i] - mean) * (s[i] - mean) / GROUP;
    const number rstd = 1 / csqrtl(var + fixture->options->eps);
    fixture->mean[group * ROWS + row] = mean;
    fixture->rstd[group * ROWS + row] = rstd;
    const long long weight_rows = fixture->options->weight_rows;
    for (int i = 0; i < GROUP; i++) {
        const int column = group * GROUP + i, weight = (weight_rows ? row % (int)weight_rows : 0) * COLS + column;
        number y = (s[i] - mean) * rstd * (fixture->options->weight_offset + fixture->value[WEIGHT][weight]) +
                   fixture->value[BIAS][weight];
        if (gate && !fixture->options->gate_first)
            y *= gate_factor(fixture, fixture->value[Z][start + i]);
        fixture->y[start + i] = y;
    }
}

/* The loss whose gradient with respect to y is dy. */
static number loss(struct fixture *fixture) {
    number sum = 0;
    for (int row = 0; row < ROWS; row++)
        for (int group = 0; group < GROUPS; group++)
            normalise_segment(fixture, row, group);
    for (int i = 0; i < ELEMENTS; i++)
        sum += fixture->value[DY][i] * fixture->y[i];
    return sum;
}

static double slope(struct fixture *fixture, int input, uint64_t index) {
    fixture->value[input][index] += step * I;
    const number changed = loss(fixture);
    fixture->value[input][index] -= step * I;
    return (double)(cimagl(changed) / step);
}

/* ---------------------------------------------------------------------------------------------------------- the jobs */

static void put(struct fixture *fixture, const char *role, uint64_t index, double value) {
    const int i = operation_role(fixture->job.operation, role);
    element_store(fixture->job.tensor[i].element, fixture->job.output[i], index, value);
}

static double get(const struct fixture *fixture, const char *role, uint64_t index) {
    const struct tensor *const tensor = job_tensor(&fixture->job, role);
    return element_load(tensor->element, tensor->data, index);
}

static void put_gradient(struct fixture *fixture, const char *role, int input) {
    const struct tensor *const tensor = job_tensor(&fixture->job, role);
    for (uint64_t i = 0; tensor && i < tensor->count; i++)
        put(fixture, role, i, slope(fixture, input, i));
}

/* Writes the right outputs. */
static void put_outputs(struct fixture *fixture) {
    put_gradient(fixture, "dx", X);
    put_gradient(fixture, "dz", Z);
    put_gradient(fixture, "dweight", WEIGHT);
    put_gradient(fixture, "dbias", BIAS);
    loss(fixture);
    for (uint64_t i = 0; job_tensor(&fixture->job, "y") && i < ELEMENTS; i++)
        put(fixture, "y", i, (double)creall(fixture->y[i]));
}

static void add_input(struct fixture *fixture, const char *role, clnorm_dtype dtype) {
    struct fault fault = {0};
    if (!job_add_input(&fixture->job, role, dtype, ROWS, COLS, GROUPS, &fault))
        fail_msg("%s", fault.text);
    const int i = operation_role(fixture->job.operation, role);
    fixture->job.tensor[i].data = fixture->bytes[i];
}

static void fill(struct fixture *fixture, int input) {
    const int i = operation_role(fixture->job.operation, input_names[input]);
    const struct tensor *const tensor = &fixture->job.tensor[i];
    for (uint64_t k = 0; tensor->element && k < tensor->count; k++) {
        element_store(tensor->element, fixture->bytes[i], k, sin(1.7 * (double)k + input) * 2 + (input == X));
        fixture->value[input][k] = element_load(tensor->element, tensor->data, k);
    }
}

/* The statistics of the forward, as inputs. */
static void give_statistics(struct fixture *fixture, clnorm_dtype dtype) {
    static const char *const names[] = {"mean", "rstd"};
    loss(fixture);
    for (int n = !fixture->layer; n < 2; n++) {
        add_input(fixture, names[n], dtype);
        const int i = operation_role(fixture->job.operation, names[n]);
        for (uint64_t k = 0; k < (uint64_t)ROWS * GROUPS; k++)
            element_store(fixture->job.tensor[i].element, fixture->bytes[i], k,
                          (double)creall(n ? fixture->rstd[k] : fixture->mean[k]));
    }
}

static struct fixture *make_fixture(bool layer, clnorm_dtype dtype, const struct operation_options *options, bool given) {
    struct fixture *const fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->options = options;
    fixture->layer = layer;
    struct fault fault = {0};
    const struct operation *operation;
    assert_true(operation_find(layer ? "layer_norm_backward" : "rms_norm_backward", &operation, &fault));
    job_init(&fixture->job, operation);
    fixture->job.weight_rows = (uint64_t)options->weight_rows;
    const clnorm_dtype weight = dtype == CLNORM_F64 ? dtype : CLNORM_F32;
    add_input(fixture, "x", dtype);
    add_input(fixture, "dy", dtype);
    add_input(fixture, "weight", weight);
    add_input(fixture, "bias", weight);
    if (options->gate)
        add_input(fixture, "z", dtype);
    for (int input = 0; input < INPUTS; input++)
        fill(fixture, input);
    if (given)
        give_statistics(fixture, dtype);
    if (!job_describe(&fixture->job, options, &fault) || !job_allocate_outputs(&fixture->job, &fault))
        fail_msg("%s", fault.text);
    put_outputs(fixture);
    return fixture;
}

static void free_fixture(struct fixture *fixture) {
    job_free(&fixture->job);
    free(fixture);
}

/* The number of wrong elements of a role. Those of the other roles must be right, and every element must be checked. */
static uint64_t wrong_of(const struct fixture *fixture, const char *role) {
    struct verdict verdicts[ROLES] = {0};
    struct fault fault = {0};
    uint64_t wrong = 0;
    assert_true(fixture->job.operation->verify(&fixture->job, verdicts, &fault));
    for (int i = 0; fixture->job.operation->roles[i].name; i++) {
        assert_int_equal(verdicts[i].checked, fixture->job.wanted[i] ? fixture->job.tensor[i].count : 0);
        if (!strcmp(fixture->job.operation->roles[i].name, role))
            wrong = verdicts[i].wrong;
        else if (verdicts[i].wrong)
            fail_msg("%s[%d] is %.17g, not %.17g within %.3g", fixture->job.operation->roles[i].name,
                     (int)verdicts[i].index, verdicts[i].actual, verdicts[i].expected, verdicts[i].tolerance);
    }
    return wrong;
}

/* --------------------------------------------------------------------------------------------------------- the tests */

static const struct operation_options option_table[] = {
    {.eps = 1e-5, .group_size = GROUP, .slots = 1, .recompute_output = 1},
    {.eps = 0.5, .group_size = GROUP, .slots = 1, .weight_offset = 1},
    {.eps = 1e-5, .group_size = GROUP, .slots = 1, .recompute_output = 1, .gate = "silu"},
    {.eps = 1e-5, .group_size = GROUP, .slots = 1, .recompute_output = 1, .gate = "sigmoid"},
    {.eps = 1e-5, .group_size = GROUP, .slots = 1, .recompute_output = 1, .gate = "silu", .gate_first = 1},
    {.eps = 1e-5, .group_size = GROUP, .slots = 1, .gate = "sigmoid", .gate_first = 1},
    {.eps = 1e-5, .group_size = GROUP, .slots = 1, .weight_rows = ROWS},
};
enum { OPTIONS = sizeof option_table / sizeof *option_table };

/* Given statistics are in f64: rounded to f32, they would not be those of the gradients here. With a row of weights for
 * each row even the rounding to f64 shows. */
static const struct {
    clnorm_dtype dtype;
    bool given;
} kinds[] = {{CLNORM_F32, false}, {CLNORM_BF16, false}, {CLNORM_F16, false}, {CLNORM_F64, false}, {CLNORM_F64, true}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void for_each(void (*check)(struct fixture *fixture)) {
    for (int norm = 0; norm < 2; norm++)
        for (int o = 0; o < OPTIONS; o++)
            for (int k = 0; k < KINDS; k++) {
                if (kinds[k].given && option_table[o].weight_rows)
                    continue;
                struct fixture *const fixture = make_fixture(norm == 0, kinds[k].dtype, &option_table[o], kinds[k].given);
                check(fixture);
                free_fixture(fixture);
            }
}

static void check_right(struct fixture *fixture) {
    assert_int_equal(wrong_of(fixture, "dx"), 0);
}

static void test_right_gradients_pass(void **state) {
    (void)state;
    for_each(check_right);
}

/* Errors beyond an element's rounding and 400 units of the arithmetic are found. */
static void check_damage(struct fixture *fixture) {
    for (int r = 0; fixture->job.operation->roles[r].name; r++) {
        const char *const role = fixture->job.operation->roles[r].name;
        if (!fixture->job.wanted[r])
            continue;
        const struct tensor *const tensor = job_tensor(&fixture->job, role);
        const double unit = fixture->job.tensor[0].element->dtype == CLNORM_F64 ? 0x1p-53 : 0x1p-24;
        const double damage = 2 * element_epsilon(tensor->element) + 400 * unit;
        for (uint64_t i = 0; i < tensor->count; i += 13) {
            const double right = get(fixture, role, i);
            put(fixture, role, i, right + (fabs(right) + 4) * damage);
            assert_int_equal(wrong_of(fixture, role), 1);
            put(fixture, role, i, NAN);
            assert_int_equal(wrong_of(fixture, role), 1);
            put(fixture, role, i, right);
        }
    }
}

static void test_damaged_gradients_fail(void **state) {
    (void)state;
    for_each(check_damage);
}

static void test_a_nan_spreads_in_its_row_and_column(void **state) {
    (void)state;
    struct fixture *const fixture = make_fixture(true, CLNORM_F32, &option_table[0], false);
    element_store(fixture->job.tensor[0].element, fixture->bytes[0], 3, NAN);
    for (uint64_t i = 0; i < GROUP; i++) {
        put(fixture, "dx", i, NAN);
        put(fixture, "y", i, NAN);
        put(fixture, "dweight", i, NAN);
    }
    assert_int_equal(wrong_of(fixture, "dx"), 0);
    put(fixture, "dweight", GROUP - 1, 0);
    assert_int_equal(wrong_of(fixture, "dweight"), 1);
    free_fixture(fixture);
}

static void test_only_wanted_outputs_are_verified(void **state) {
    (void)state;
    static const char *const words[] = {"dx", "dweight,dbias", "dz,y", "dbias"};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        struct operation_options options = option_table[3];
        options.recompute_output = 0;
        options.outputs = (char *)words[w];
        struct fixture *const fixture = make_fixture(false, CLNORM_F32, &options, false);
        for (int i = 0; fixture->job.operation->roles[i].name; i++)
            assert_int_equal(fixture->job.wanted[i], strstr(words[w], fixture->job.operation->roles[i].name) &&
                                                         fixture->job.operation->roles[i].output);
        assert_int_equal(wrong_of(fixture, "dx"), 0);
        free_fixture(fixture);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_gradients_pass),
        cmocka_unit_test(test_damaged_gradients_fail),
        cmocka_unit_test(test_a_nan_spreads_in_its_row_and_column),
        cmocka_unit_test(test_only_wanted_outputs_are_verified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
