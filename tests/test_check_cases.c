/* The cases of `clnorm check`: each can be read, names inputs of its operation, and differs from every other. A line can
 * set every field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "check_cases.h"

struct text {
    char line[CASE_TEXT];
};

static void cases_can_be_read(void **state) {
    (void)state;
    const int count = check_case_count();
    assert_true(count > 200);
    struct text *const texts = calloc((size_t)count, sizeof *texts);
    assert_non_null(texts);
    for (int i = 0; i < count; i++) {
        const struct check_case made = check_case_of(i);
        const struct operation *operation;
        struct fault fault;
        assert_true(operation_find(made.operation, &operation, &fault));
        assert_true(operation_check_options(operation, &made.options, &fault));
        assert_non_null(made.inputs[0].role);
        for (int k = 0; made.inputs[k].role; k++) {
            const int role = operation_role(operation, made.inputs[k].role);
            assert_true(role >= 0 && !operation->roles[role].output && made.inputs[k].dtype);
        }
        check_case_text(&made, texts[i].line);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(texts[k].line, texts[i].line);
    }
    free(texts);
}

static void a_line_sets_every_field(void **state) {
    (void)state;
    const struct check_case made =
        check_case_read("rms_norm 6x130x7 x=f8e5m2 x_scale,bias=f16 z=f64 pattern=apart x-scaling=group x-scale-group=32 "
                        "gate=silu gate-first dropout=0.5 weight-rows=3 groups=2 config=vec=4,lanes=8");
    assert_string_equal(made.operation, "rms_norm");
    assert_true(made.rows == 6 && made.cols == 130 && made.spatial == 7);
    static const struct {
        const char *role;
        clnorm_dtype dtype;
    } inputs[] = {{"x", CLNORM_F8_E5M2}, {"x_scale", CLNORM_F16}, {"bias", CLNORM_F16}, {"z", CLNORM_F64}};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(made.inputs[i].role, inputs[i].role);
        assert_int_equal(made.inputs[i].dtype, inputs[i].dtype);
    }
    assert_null(made.inputs[4].role);
    assert_int_equal(made.pattern, PATTERN_APART);
    assert_int_equal(made.x.scaling, CLNORM_SCALING_GROUP);
    assert_int_equal(made.x.scale_group, 32);
    assert_string_equal(made.options.gate, "silu");
    assert_true(made.options.gate_first && made.options.weight_rows == 3 && made.options.groups == 2);
    assert_true(made.options.dropout > 0.49 && made.options.dropout < 0.51);
    assert_string_equal(made.options.config, "vec=4,lanes=8");
    assert_int_equal(made.options.slots, 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_can_be_read),
        cmocka_unit_test(a_line_sets_every_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
