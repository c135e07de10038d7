/* Validation without compiling: it accepts the same descriptors as a plan, and reports the plan's tensors and workspace. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "operation/operation.h"

static void count_line(const char *line, void *user) {
    (void)line;
    ++*(unsigned *)user;
}

/* A context without programs, which counts the lines of its log: each build logs one. */
static clnorm_context *fresh_context(const struct fixture *fixture, unsigned *lines) {
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    clnorm_context *context = NULL;
    options.log = count_line;
    options.log_user = lines;
    options.cache_dir = "";
    assert_int_equal(clnorm_context_create(fixture->cl, fixture->device.device, &options, &context), CLNORM_SUCCESS);
    *lines = 0;
    return context;
}

static const clnorm_tensor_info *find(const clnorm_requirements *requirements, const char *name) {
    for (uint32_t i = 0; i < requirements->tensor_count; i++)
        if (!strcmp(requirements->tensors[i].name, name))
            return &requirements->tensors[i];
    fail_msg("there is no %s", name);
    return NULL;
}

static void check_tensor(const clnorm_requirements *requirements, const clnorm_tensor_info *expected) {
    const clnorm_tensor_info *const info = find(requirements, expected->name);
    assert_int_equal(info->rows, expected->rows);
    assert_int_equal(info->cols, expected->cols);
    assert_int_equal(info->stride, expected->stride);
    assert_int_equal(info->element, expected->element);
    assert_int_equal(info->bytes, expected->bytes);
    assert_int_equal(info->is_input, expected->is_input);
    assert_int_equal(info->is_output, expected->is_output);
}

static void tensors_are_described(void **state) {
    unsigned lines = 0;
    clnorm_context *context = fresh_context(*state, &lines);
    clnorm_requirements requirements = CLNORM_REQUIREMENTS_INIT;
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.rows = 6;
    desc.cols = 40;
    desc.group_size = 20;
    desc.x.dtype = CLNORM_BF16;
    desc.dy.stride = 50;
    desc.weight.dtype = desc.dweight.dtype = CLNORM_F32;
    desc.dx.dtype = CLNORM_F16;
    desc.mean_given = desc.rstd_given = desc.accumulate = 1;
    assert_int_equal(clnorm_norm_backward_validate(context, &desc, &requirements), CLNORM_SUCCESS);
    assert_int_equal(requirements.size, sizeof requirements);
    assert_int_equal(requirements.tensor_count, 7);
    static const clnorm_tensor_info expected[] = {
        {"x", 6, 40, 80, 2, 480, 1, 0},     {"dy", 6, 40, 100, 2, 580, 1, 0},    {"dx", 6, 40, 80, 2, 480, 0, 1},
        {"weight", 1, 40, 0, 4, 160, 1, 0}, {"dweight", 1, 40, 0, 4, 160, 1, 1}, {"mean", 1, 12, 0, 4, 48, 1, 0},
        {"rstd", 1, 12, 0, 4, 48, 1, 0},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        check_tensor(&requirements, &expected[i]);
    assert_int_equal(lines, 0);
    clnorm_context_destroy(context);
}

/* For every operation, with its initial descriptor. */
static void requirements_are_those_of_plans(void **state) {
    const struct fixture *fixture = *state;
    unsigned lines = 0;
    clnorm_context *context = fresh_context(fixture, &lines);
    unsigned valid = 0;
    for (size_t o = 0; cln_operations[o]; o++) {
        _Alignas(max_align_t) unsigned char desc[CLN_DESC_MOST];
        clnorm_requirements requirements = CLNORM_REQUIREMENTS_INIT;
        clnorm_plan *plan = NULL;
        cln_operation_init(cln_operations[o], desc);
        ((struct cln_desc_head *)(void *)desc)->rows = 300;
        ((struct cln_desc_head *)(void *)desc)->cols = 96;
        const clnorm_status status = cln_operation_validate(cln_operations[o], context, desc, &requirements);
        assert_int_equal(lines, 0);
        assert_int_equal(status, cln_operation_plan_create(cln_operations[o], fixture->context, desc, &plan));
        assert_int_equal(requirements.workspace_size, clnorm_plan_workspace_size(plan));
        assert_int_equal(requirements.kernel_count, clnorm_plan_kernel_count(plan));
        assert_true(status || requirements.tensor_count >= 2);
        valid += status == CLNORM_SUCCESS;
        clnorm_plan_destroy(plan);
    }
    assert_true(valid >= 8); /* others need an output or groups */
    clnorm_context_destroy(context);
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_requirements requirements = CLNORM_REQUIREMENTS_INIT;
    clnorm_softmax_desc desc = CLNORM_SOFTMAX_DESC_INIT;
    desc.rows = 4;
    assert_int_equal(clnorm_softmax_forward_validate(fixture->context, &desc, NULL), CLNORM_INVALID_SHAPE);
    assert_non_null(strstr(clnorm_error_detail(), "desc.cols is 0"));
    desc.cols = 8;
    assert_int_equal(clnorm_softmax_forward_validate(fixture->context, &desc, NULL), CLNORM_SUCCESS);
    assert_int_equal(clnorm_softmax_forward_validate(NULL, &desc, NULL), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_softmax_forward_validate(fixture->context, NULL, NULL), CLNORM_INVALID_ARGUMENT);
    requirements.size = 1;
    assert_int_equal(clnorm_softmax_forward_validate(fixture->context, &desc, &requirements), CLNORM_INVALID_ARGUMENT);
    assert_non_null(strstr(clnorm_error_detail(), "requirements.size is 1"));
    desc.y.dtype = CLNORM_F8_E4M3;
    assert_int_equal(clnorm_softmax_forward_validate(fixture->context, &desc, NULL), CLNORM_UNSUPPORTED);
    assert_non_null(strstr(clnorm_error_detail(), "desc.y.dtype is f8e4m3"));
}

/* A caller with an older header has a shorter struct: nothing is written past it. */
static void a_shorter_struct_is_filled_to_its_size(void **state) {
    const struct fixture *fixture = *state;
    clnorm_softmax_desc desc = CLNORM_SOFTMAX_DESC_INIT;
    desc.rows = 4;
    desc.cols = 8;
    clnorm_requirements requirements;
    memset(&requirements, 0x5a, sizeof requirements);
    requirements.size = offsetof(clnorm_requirements, tensors) + sizeof requirements.tensors[0];
    assert_int_equal(clnorm_softmax_forward_validate(fixture->context, &desc, &requirements), CLNORM_SUCCESS);
    assert_string_equal(requirements.tensors[0].name, "x");
    assert_int_equal(requirements.tensors[1].rows, UINT64_C(0x5a5a5a5a5a5a5a5a));
    clnorm_requirements_init(&requirements);
    assert_int_equal(requirements.size, sizeof requirements);
    assert_int_equal(requirements.tensor_count, 0);
}

/* For bindings, which cannot use a macro. */
static void other_structs_are_initialised_by_functions(void **state) {
    (void)state;
    clnorm_context_options options;
    memset(&options, 0x5a, sizeof options);
    clnorm_context_options_init(&options);
    const clnorm_context_options first_options = CLNORM_CONTEXT_OPTIONS_INIT;
    assert_memory_equal(&options, &first_options, sizeof options);
    clnorm_context_options_init(NULL);
    clnorm_kernel_info_init(NULL);
    clnorm_kernel_info info;
    memset(&info, 0x5a, sizeof info);
    clnorm_kernel_info_init(&info);
    assert_int_equal(info.size, sizeof info);
    assert_null(info.name);
    assert_null(info.kernel);
    assert_int_equal(info.groups | info.items | info.bytes | info.arguments, 0);
}

static void flags_of_a_context_are_checked(void **state) {
    const struct fixture *fixture = *state;
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    clnorm_context *context = NULL;
    options.build_report = 2;
    assert_int_equal(clnorm_context_create(fixture->cl, fixture->device.device, &options, &context), CLNORM_INVALID_VALUE);
    assert_non_null(strstr(clnorm_error_detail(), "options.build_report is 2: expected 0 or 1"));
    options.build_report = 0;
    options.reserved = 7;
    assert_int_equal(clnorm_context_create(fixture->cl, fixture->device.device, &options, &context), CLNORM_INVALID_VALUE);
    assert_non_null(strstr(clnorm_error_detail(), "options.reserved is 7: expected 0"));
    assert_null(context);
}

static void the_version_is_a_number(void **state) {
    (void)state;
    assert_int_equal(clnorm_version_number(),
                     10000 * CLNORM_VERSION_MAJOR + 100 * CLNORM_VERSION_MINOR + CLNORM_VERSION_PATCH);
}

/* The size of each operation's descriptor, whose name is that of its initialiser, and of other structs. */
static void the_sizes_of_structs_are_numbers(void **state) {
    (void)state;
    for (size_t i = 0; cln_operations[i]; i++) {
        const struct cln_operation *const operation = cln_operations[i];
        char name[64] = "";
        for (size_t j = 0; j < strlen(operation->init) - strlen("_INIT"); j++)
            name[j] = (char)tolower(operation->init[j]);
        if (clnorm_struct_size(name) != operation->size)
            fail_msg("%s: %u", name, clnorm_struct_size(name));
    }
    assert_int_equal(clnorm_struct_size("clnorm_args"), sizeof(clnorm_args));
    assert_int_equal(clnorm_struct_size("clnorm_requirements"), sizeof(clnorm_requirements));
    assert_int_equal(clnorm_struct_size("clnorm_dim"), sizeof(clnorm_dim));
    assert_int_equal(clnorm_struct_size("clnorm_norm"), 0);
    assert_int_equal(clnorm_struct_size(""), 0);
    assert_int_equal(clnorm_struct_size(NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_described),          cmocka_unit_test(requirements_are_those_of_plans),
        cmocka_unit_test(bad_descriptors_are_refused),    cmocka_unit_test(a_shorter_struct_is_filled_to_its_size),
        cmocka_unit_test(the_version_is_a_number),        cmocka_unit_test(other_structs_are_initialised_by_functions),
        cmocka_unit_test(flags_of_a_context_are_checked), cmocka_unit_test(the_sizes_of_structs_are_numbers),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
