/* The exported functions of every operation pass on to the operation's own record: initial descriptors, checks, plans, and
 * calls in one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "clnorm/clnorm.h"
#include "fixture.h"
#include "operation/operations.h"

/* The functions of one operation, with descriptors as bytes. */
struct exported {
    const struct cln_operation *record;
    const void *initial;
    size_t size;
    void (*init)(void *desc);
    clnorm_status (*validate)(clnorm_context *context, const void *desc, clnorm_requirements *requirements);
    clnorm_status (*plan_create)(clnorm_context *context, const void *desc, clnorm_plan **plan);
    clnorm_status (*call)(clnorm_context *context, cl_command_queue queue, const void *desc, const clnorm_args *args);
};

#define WRAP(record, desc_name, initial)                                                                            \
    static const clnorm_##desc_name##_desc initial_##record = initial;                                              \
    static void init_##record(void *desc) {                                                                         \
        clnorm_##desc_name##_desc_init(desc);                                                                       \
    }                                                                                                               \
    static clnorm_status validate_##record(clnorm_context *context, const void *desc, clnorm_requirements *needs) { \
        return clnorm_##record##_validate(context, desc, needs);                                                    \
    }                                                                                                               \
    static clnorm_status plan_create_##record(clnorm_context *context, const void *desc, clnorm_plan **plan) {      \
        return clnorm_##record##_plan_create(context, desc, plan);                                                  \
    }                                                                                                               \
    static clnorm_status call_##record(clnorm_context *context, cl_command_queue queue, const void *desc,           \
                                       const clnorm_args *args) {                                                   \
        return clnorm_##record(context, queue, desc, args, 0, NULL, NULL);                                          \
    }

WRAP(norm_forward, norm, CLNORM_NORM_DESC_INIT)
WRAP(norm_backward, norm_backward, CLNORM_NORM_BACKWARD_DESC_INIT)
WRAP(softmax_forward, softmax, CLNORM_SOFTMAX_DESC_INIT)
WRAP(softmax_backward, softmax_backward, CLNORM_SOFTMAX_BACKWARD_DESC_INIT)
WRAP(gelu_forward, gelu, CLNORM_GELU_DESC_INIT)
WRAP(gelu_backward, gelu_backward, CLNORM_GELU_BACKWARD_DESC_INIT)
WRAP(quantize, quantize, CLNORM_QUANTIZE_DESC_INIT)
WRAP(dequantize, dequantize, CLNORM_DEQUANTIZE_DESC_INIT)
WRAP(l2_norm, l2_norm, CLNORM_L2_NORM_DESC_INIT)
WRAP(l2_norm_backward, l2_norm_backward, CLNORM_L2_NORM_BACKWARD_DESC_INIT)
WRAP(group_norm, group_norm, CLNORM_GROUP_NORM_DESC_INIT)
WRAP(group_norm_backward, group_norm_backward, CLNORM_GROUP_NORM_BACKWARD_DESC_INIT)
WRAP(norm_statistics, norm_statistics, CLNORM_NORM_STATISTICS_DESC_INIT)
WRAP(norm_apply, norm_apply, CLNORM_NORM_APPLY_DESC_INIT)
WRAP(norm_backward_statistics, norm_backward_statistics, CLNORM_NORM_BACKWARD_STATISTICS_DESC_INIT)
WRAP(norm_backward_apply, norm_backward_apply, CLNORM_NORM_BACKWARD_APPLY_DESC_INIT)

#define ROW(record)                                                                                                        \
    {                                                                                                                      \
        &cln_##record, &initial_##record, sizeof initial_##record, init_##record, validate_##record, plan_create_##record, \
            call_##record                                                                                                  \
    }

static const struct exported all[] = {
    ROW(norm_forward),
    ROW(norm_backward),
    ROW(softmax_forward),
    ROW(softmax_backward),
    ROW(gelu_forward),
    ROW(gelu_backward),
    ROW(quantize),
    ROW(dequantize),
    ROW(l2_norm),
    ROW(l2_norm_backward),
    ROW(group_norm),
    ROW(group_norm_backward),
    ROW(norm_statistics),
    ROW(norm_apply),
    ROW(norm_backward_statistics),
    ROW(norm_backward_apply),
};

enum { ALL = sizeof all / sizeof *all };

/* A descriptor of 4 rows of 8 columns with every tensor that the operation requires. */
static void describe(const struct exported *exported, unsigned char *desc) {
    memset(desc, 0xa5, exported->size);
    exported->init(desc);
    assert_memory_equal(desc, exported->initial, exported->size);
    ((struct cln_desc_head *)(void *)desc)->rows = 4;
    ((struct cln_desc_head *)(void *)desc)->cols = 8;
    for (unsigned i = 0; i < exported->record->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &exported->record->tensors[i];
        clnorm_tensor *const tensor = (clnorm_tensor *)(void *)(desc + rule->offset);
        if (rule->role == CLN_DX)
            tensor->dtype = CLNORM_F32;
        else if (rule->role == CLN_Q)
            *tensor = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_TENSOR};
    }
}

static void every_operation_is_exported(void **state) {
    (void)state;
    size_t count = 0;
    for (; cln_operations[count]; count++) {
        unsigned found = 0;
        for (size_t i = 0; i < ALL; i++)
            found += all[i].record == cln_operations[count];
        if (found != 1)
            fail_msg("%s is in the table %u times", cln_operations[count]->name, found);
    }
    assert_int_equal(count, ALL);
}

static void checks_and_plans_are_those_of_the_record(void **state) {
    const struct fixture *fixture = *state;
    for (size_t i = 0; i < ALL; i++) {
        _Alignas(max_align_t) unsigned char desc[CLN_DESC_MOST];
        clnorm_requirements needs = CLNORM_REQUIREMENTS_INIT, own = CLNORM_REQUIREMENTS_INIT;
        clnorm_plan *plan = NULL, *own_plan = NULL;
        char text[4096], own_text[4096];
        describe(&all[i], desc);
        if (all[i].validate(fixture->context, desc, &needs) || all[i].plan_create(fixture->context, desc, &plan))
            fail_msg("%s: %s", all[i].record->name, clnorm_error_detail());
        assert_int_equal(cln_operation_validate(all[i].record, fixture->context, desc, &own), CLNORM_SUCCESS);
        assert_int_equal(needs.tensor_count, own.tensor_count);
        assert_memory_equal(needs.tensors, own.tensors, own.tensor_count * sizeof own.tensors[0]);
        assert_int_equal(cln_operation_plan_create(all[i].record, fixture->context, desc, &own_plan), CLNORM_SUCCESS);
        assert_true(clnorm_plan_describe(plan, text, sizeof text) > 0);
        clnorm_plan_describe(own_plan, own_text, sizeof own_text);
        assert_string_equal(text, own_text);
        clnorm_plan_destroy(plan);
        clnorm_plan_destroy(own_plan);
    }
}

/* Without buffers a call names the first tensor that is missing. */
static void calls_are_those_of_the_record(void **state) {
    const struct fixture *fixture = *state;
    for (size_t i = 0; i < ALL; i++) {
        _Alignas(max_align_t) unsigned char desc[CLN_DESC_MOST];
        clnorm_args args;
        char detail[512];
        describe(&all[i], desc);
        clnorm_args_init(&args);
        assert_int_equal(all[i].call(fixture->context, fixture->queue, desc, &args), CLNORM_INVALID_BUFFER);
        (void)strncpy(detail, clnorm_error_detail(), sizeof detail - 1);
        detail[sizeof detail - 1] = '\0';
        assert_non_null(strstr(detail, "the descriptor has this tensor"));
        assert_int_equal(cln_operation_enqueue(all[i].record, fixture->context, fixture->queue, desc, &args, 0, NULL, NULL),
                         CLNORM_INVALID_BUFFER);
        assert_string_equal(detail, clnorm_error_detail());
    }
}

static void args_are_absent_at_first(void **state) {
    (void)state;
    const clnorm_args initial = CLNORM_ARGS_INIT;
    clnorm_args args;
    memset(&args, 0xa5, sizeof args);
    clnorm_args_init(&args);
    assert_memory_equal(&args, &initial, sizeof args);
    clnorm_args_init(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_exported),
        cmocka_unit_test(checks_and_plans_are_those_of_the_record),
        cmocka_unit_test(calls_are_those_of_the_record),
        cmocka_unit_test(args_are_absent_at_first),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
