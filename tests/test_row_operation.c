/* An operation of the tool that comes from a record: its roles, descriptor and verification. The record is of this test:
 * y = x · weight + eps with a flag for the sign, the sums of x over rows, and those over segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "job_describe.h"
#include "knob.h"

struct desc {
    uint64_t size, rows, cols, group_size;
    double eps;
    clnorm_tensor x, weight, y, dweight, residual_out;
    uint32_t save_norm, sign;
    clnorm_config config;
};

static const struct desc initial = {
    .size = sizeof(struct desc), .x = CLNORM_TENSOR_F32, .y = CLNORM_TENSOR_NONE, .eps = 4, .sign = 1};
static const struct cln_tensor_rule tensors[] = {
    {"x", CLN_X, offsetof(struct desc, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"y", CLN_Y, offsetof(struct desc, y), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
    {"dweight", CLN_DWEIGHT, offsetof(struct desc, dweight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
    {"residual_out", CLN_RESIDUAL_OUT, offsetof(struct desc, residual_out), CLN_MATRIX, CLN_REALS, CLN_ABSENT, true,
     CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(struct desc, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
};
static const struct cln_field_rule fields[] = {{"sign", offsetof(struct desc, sign), 1, 2, "sign"}};
static const struct cln_enum_option sign = {"approximate", "The sign of y", "sign", {{"none", 1}, {"tanh", 2}}};
static const struct cln_statistic_rule statistics[] = {{"rstd", CLN_RSTD, offsetof(struct desc, save_norm), true, 1}};
static const struct cln_operation record = {
    .name = "test",
    .summary = "of this test",
    .initial = &initial,
    .size = sizeof initial,
    .config = offsetof(struct desc, config),
    .tensors = tensors,
    .tensor_count = 5,
    .fields = fields,
    .field_count = 1,
    .choices = {&sign},
    .group_size = offsetof(struct desc, group_size),
    .eps = offsetof(struct desc, eps),
    .statistics = statistics,
    .statistic_count = 1,
};

static double result(const struct desc *desc, double x, double weight) {
    return (x * weight + desc->eps) * (desc->sign == 2 ? -1 : 1);
}

/* The exact results. An absent output is NULL. */
static bool reference(const struct ref_row *row) {
    const struct desc *const desc = row->desc;
    for (uint64_t i = 0; i < row->cols; i++) {
        row->output[0][i] = (struct ref_value){result(desc, row->input[0][i], row->input[1] ? row->input[1][i] : 1), 0};
        if (row->output[1])
            row->output[1][i] = (struct ref_value){row->input[0][i], 0};
        if (row->output[3] && i % row->group_size == 0)
            row->output[3][i / row->group_size] = (struct ref_value){0, 0};
        if (row->output[3])
            row->output[3][i / row->group_size].value += row->input[0][i];
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- roles */

static struct role roles[ROLES + 1];
static struct operation operation;

static int make_operation(void **state) {
    (void)state;
    operation = row_operation_of(&record, reference, roles);
    return 0;
}

static void roles_are_those_of_the_rules(void **state) {
    (void)state;
    static const struct role expected[] = {
        {"x", false, false, SHAPE_X, offsetof(clnorm_args, x), NULL},
        {"weight", false, true, SHAPE_COLS, offsetof(clnorm_args, weight), NULL},
        {"y", true, false, SHAPE_X, offsetof(clnorm_args, y), "x"},
        {"dweight", true, true, SHAPE_COLS, offsetof(clnorm_args, dweight), "weight"},
        {"residual_out", true, true, SHAPE_X, offsetof(clnorm_args, residual_out), NULL},
        {"rstd", true, true, SHAPE_STATISTICS, offsetof(clnorm_args, rstd), "x"},
    };
    enum { COUNT = sizeof expected / sizeof *expected };
    for (int i = 0; i < COUNT; i++) {
        assert_string_equal(roles[i].name, expected[i].name);
        assert_int_equal(roles[i].output, expected[i].output);
        assert_int_equal(roles[i].optional, expected[i].optional);
        assert_int_equal(roles[i].shape, expected[i].shape);
        assert_int_equal(roles[i].argument, expected[i].argument);
        assert_true(!roles[i].with == !expected[i].with);
        assert_true(!roles[i].with || !strcmp(roles[i].with, expected[i].with));
    }
    assert_null(roles[COUNT].name);
}

/* Records fit the arrays of row_operation.c and of the bench. */
static void records_fit(void **state) {
    (void)state;
    unsigned records = 0;
    for (const struct operation *row = operation_list(); row->name; row++) {
        unsigned tensors_of[2] = {0, 0};
        if (row->kind != OPERATION_ROWS)
            continue;
        records++;
        assert_non_null(row->summary);
        assert_int_equal(row->roles[0].output, false);
        assert_string_equal(row->roles[0].name, row->record->tensors[0].name);
        for (int i = 0; row->roles[i].name; i++)
            tensors_of[row->roles[i].output]++;
        assert_in_range(tensors_of[false], 1, REF_ROW_TENSORS);
        assert_in_range(tensors_of[true], 1, REF_ROW_TENSORS);
        assert_in_range(row->record->size, sizeof(struct cln_desc_head), CLN_DESC_MOST);
        for (int i = 0; i < CLN_CHOICES && row->record->choices[i]; i++) {
            const struct cln_enum_option *const choice = row->record->choices[i];
            assert_int_equal(choice_initial(row->record, choice), choice->words[0].value); /* the default */
            assert_string_equal(choice_at(choice_index(choice->option))->option, choice->option);
        }
    }
    assert_true(records > 0);
}

/* --------------------------------------------------------------------------------------------- descriptor and verdict */

enum { ROWS = 3, COLS = 6, GROUPS = 2 };

struct fixture {
    struct job job;
    float x[ROWS * COLS], weight[COLS];
};

static void make_job(struct fixture *fixture, bool weighted, const struct operation_options *options) {
    struct fault fault = {0};
    job_init(&fixture->job, &operation);
    assert_true(job_add_input(&fixture->job, "x", CLNORM_F32, ROWS, COLS, 1, &fault));
    if (weighted)
        assert_true(job_add_input(&fixture->job, "weight", CLNORM_F32, ROWS, COLS, 1, &fault));
    for (int i = 0; i < ROWS * COLS; i++)
        fixture->x[i] = (float)(i % 7 - 2);
    for (int i = 0; i < COLS; i++)
        fixture->weight[i] = (float)(i + 1);
    fixture->job.tensor[0].data = (const unsigned char *)fixture->x;
    fixture->job.tensor[1].data = (const unsigned char *)fixture->weight;
    if (!job_describe(&fixture->job, options, &fault) || !job_allocate_outputs(&fixture->job, &fault))
        fail_msg("%s", fault.text);
}

static const struct desc *desc_of(const struct fixture *fixture) {
    return (const struct desc *)(const void *)fixture->job.desc.of_record;
}

static void the_descriptor_follows_options(void **state) {
    (void)state;
    struct fixture fixture;
    struct operation_options options = OPERATION_OPTIONS_INIT;
    make_job(&fixture, false, &options);
    assert_int_equal(desc_of(&fixture)->size, sizeof(struct desc));
    assert_int_equal(desc_of(&fixture)->rows, ROWS);
    assert_int_equal(desc_of(&fixture)->cols, COLS);
    assert_int_equal(desc_of(&fixture)->group_size, COLS);
    assert_true(desc_of(&fixture)->eps == 4); /* the record's default */
    assert_int_equal(desc_of(&fixture)->x.dtype, CLNORM_F32);
    assert_int_equal(desc_of(&fixture)->y.dtype, CLNORM_F32);
    assert_int_equal(desc_of(&fixture)->weight.dtype, CLNORM_DTYPE_NONE);
    assert_int_equal(desc_of(&fixture)->dweight.dtype, CLNORM_DTYPE_NONE);
    assert_int_equal(desc_of(&fixture)->save_norm, 1);
    assert_int_equal(desc_of(&fixture)->sign, 1);
    job_free(&fixture.job);

    options.group_size = COLS / GROUPS;
    options.eps = 0.5;
    options.eps_given = true;
    options.dtype = "bf16";
    options.config = "vec=2";
    options.outputs = "dweight";
    options.choices.word[choice_index("approximate")] = "tanh";
    make_job(&fixture, true, &options);
    assert_int_equal(desc_of(&fixture)->group_size, COLS / GROUPS);
    assert_true(desc_of(&fixture)->eps == 0.5);
    assert_int_equal(desc_of(&fixture)->y.dtype, CLNORM_BF16);
    assert_int_equal(desc_of(&fixture)->weight.dtype, CLNORM_F32);
    assert_int_equal(desc_of(&fixture)->dweight.dtype, CLNORM_F32);
    assert_int_equal(desc_of(&fixture)->save_norm, 0);
    assert_int_equal(desc_of(&fixture)->sign, 2);
    assert_int_equal(knobs_of(&desc_of(&fixture)->config).vec, 2);
    job_free(&fixture.job);
}

static void options_are_those_of_the_record(void **state) {
    (void)state;
    struct fault fault;
    struct operation_options options = OPERATION_OPTIONS_INIT;
    options.eps_given = true;
    options.group_size = 2;
    options.choices.word[choice_index("approximate")] = "none";
    assert_true(operation_check_options(&operation, &options, &fault));
    const struct operation *softmax;
    assert_true(operation_find("softmax", &softmax, &fault));
    assert_false(operation_check_options(softmax, &options, &fault));
    assert_string_equal(fault.text, "--eps: softmax has no such option");
    options.eps_given = false;
    assert_false(operation_check_options(softmax, &options, &fault));
    assert_string_equal(fault.text, "--group-size: softmax has no such option");
    options.group_size = 0;
    assert_false(operation_check_options(softmax, &options, &fault));
    assert_string_equal(fault.text, "--approximate: softmax has no such option");
}

static void *output_of(struct fixture *fixture, const char *role) {
    return fixture->job.output[operation_role(&operation, role)];
}

static uint64_t count_wrong(const struct fixture *fixture) {
    struct fault fault = {0};
    struct verdict verdicts[ROLES] = {0};
    uint64_t wrong = 0, checked = 0;
    assert_true(operation.verify(&fixture->job, verdicts, &fault));
    for (int i = 0; i < ROLES; i++) {
        wrong += verdicts[i].wrong;
        checked += verdicts[i].checked;
    }
    assert_int_equal(checked, ROWS * COLS + COLS + ROWS * GROUPS);
    return wrong;
}

/* A wrong element of any output is found. */
static void each_element_is_verified(void **state) {
    (void)state;
    struct fixture fixture;
    struct operation_options options = OPERATION_OPTIONS_INIT;
    options.group_size = COLS / GROUPS;
    make_job(&fixture, true, &options);
    float *const y = output_of(&fixture, "y"), *const dweight = output_of(&fixture, "dweight");
    float *const sums = output_of(&fixture, "rstd");
    memset(dweight, 0, sizeof *dweight * COLS);
    memset(sums, 0, sizeof *sums * ROWS * GROUPS);
    for (int i = 0; i < ROWS * COLS; i++) {
        const int row = i / COLS, column = i % COLS;
        y[i] = (float)result(desc_of(&fixture), (double)fixture.x[i], (double)fixture.weight[column]);
        dweight[column] += fixture.x[i];
        sums[column / (COLS / GROUPS) * ROWS + row] += fixture.x[i];
    }
    assert_int_equal(count_wrong(&fixture), 0);
    const struct {
        float *elements;
        int count;
    } outputs[] = {{y, ROWS * COLS}, {dweight, COLS}, {sums, ROWS * GROUPS}};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < outputs[k].count; i++) {
            const float right = outputs[k].elements[i];
            outputs[k].elements[i] = right + 0x1p-8F;
            assert_int_equal(count_wrong(&fixture), 1);
            outputs[k].elements[i] = right;
        }
    job_free(&fixture.job);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_are_those_of_the_rules),   cmocka_unit_test(records_fit),
        cmocka_unit_test(the_descriptor_follows_options), cmocka_unit_test(options_are_those_of_the_record),
        cmocka_unit_test(each_element_is_verified),
    };
    return cmocka_run_group_tests(tests, make_operation, NULL);
}
