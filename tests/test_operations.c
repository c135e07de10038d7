/* Every operation refuses wrong dtypes, strides, scales, fields and numbers of its descriptor, and wrong arguments of its
 * plan, by the rules of its record. Each error message names the member or the tensor. Its candidates are
 * configs that it accepts. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "fixture.h"
#include "made_up_devices.h"
#include "operation/operations.h"

enum { ROWS = 4, COLS = 256 };

/* A descriptor of any operation. */
struct any {
    _Alignas(max_align_t) unsigned char bytes[CLN_DESC_MOST];
};

static clnorm_tensor *tensor_at(struct any *desc, const struct cln_tensor_rule *rule) {
    return (clnorm_tensor *)(void *)(desc->bytes + rule->offset);
}

static void put(struct any *desc, size_t offset, const void *value, size_t size) {
    memcpy(desc->bytes + offset, value, size);
}

static void put_field(struct any *desc, size_t offset, uint32_t value) {
    put(desc, offset, &value, sizeof value);
}

/* Gives an absent tensor a dtype. */
static void give(struct any *desc, const struct cln_tensor_rule *rule) {
    clnorm_tensor *const tensor = tensor_at(desc, rule);
    if (tensor->dtype)
        return;
    const bool real = rule->dtypes & 1 << CLNORM_F32;
    *tensor = (clnorm_tensor){.dtype = real ? CLNORM_F32 : CLNORM_F8_E4M3};
    if (!real && rule->extent != CLN_TRANSPOSED)
        tensor->scaling = CLNORM_SCALING_TENSOR;
}

/* A valid descriptor with the main output, the weight, a gate and all statistics. */
static struct any sound_of(const struct cln_operation *operation) {
    struct any desc = {{0}};
    const uint64_t shape[2] = {ROWS, COLS};
    cln_operation_init(operation, desc.bytes);
    put(&desc, offsetof(struct cln_desc_head, rows), shape, sizeof shape);
    bool has_output = false;
    for (unsigned i = 0; i < operation->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &operation->tensors[i];
        if ((rule->output && !has_output) || !strcmp(rule->name, "weight"))
            give(&desc, rule);
        has_output = has_output || rule->output;
    }
    for (unsigned i = 0; i < operation->field_count; i++)
        if (!strcmp(operation->fields[i].name, "gate"))
            put_field(&desc, operation->fields[i].offset, CLNORM_GATE_SILU);
    for (unsigned i = 0; i < operation->statistic_count; i++)
        if (operation->statistics[i].given)
            put_field(&desc, operation->statistics[i].given, 1);
    return desc;
}

static void assert_refused(const struct fixture *fixture, const struct cln_operation *operation, const struct any *desc,
                           const char *name, const char *member) {
    char words[64];
    clnorm_plan *plan = NULL;
    (void)snprintf(words, sizeof words, "desc.%s%s is ", name, member);
    if (!cln_operation_plan_create(operation, fixture->context, desc->bytes, &plan))
        fail_msg("%s: a bad %s%s is accepted", operation->name, name, member);
    assert_null(plan);
    if (!strstr(clnorm_error_detail(), words))
        fail_msg("%s: \"%s\" does not say \"%s\"", operation->name, clnorm_error_detail(), words);
}

/* ------------------------------------------------------------------------------------------------------ descriptors */

static void dtypes_are_refused(void **state) {
    const struct fixture *fixture = *state;
    for (const struct cln_operation *const *operation = cln_operations; *operation; operation++)
        for (unsigned i = 0; i < (*operation)->tensor_count; i++) {
            const struct cln_tensor_rule *const rule = &(*operation)->tensors[i];
            for (int dtype = -1; dtype <= CLNORM_F8_E5M2 + 1; dtype++) {
                const bool defined = dtype > 0 && dtype <= CLNORM_F8_E5M2;
                if (defined ? rule->dtypes >> dtype & 1 : !dtype && rule->none != CLN_REFUSED)
                    continue;
                struct any desc = sound_of(*operation);
                tensor_at(&desc, rule)->dtype = (clnorm_dtype)dtype;
                assert_refused(fixture, *operation, &desc, rule->name, ".dtype");
            }
        }
}

/* All tensors have f64, or none. Only the weights of some operations may differ. */
static void a_double_among_others_is_refused(void **state) {
    const struct fixture *fixture = *state;
    for (const struct cln_operation *const *operation = cln_operations; *operation; operation++)
        for (unsigned i = 1; i < (*operation)->tensor_count; i++) {
            const struct cln_tensor_rule *const rule = &(*operation)->tensors[i];
            struct any desc = sound_of(*operation);
            if (!(rule->dtypes & 1 << CLNORM_F64) || ((*operation)->mixed && rule->extent == CLN_COLUMNS))
                continue;
            tensor_at(&desc, rule)->dtype = CLNORM_F64;
            assert_refused(fixture, *operation, &desc, rule->name, ".dtype");
            assert_non_null(strstr(clnorm_error_detail(), "expected f64 for all tensors or for none"));
        }
}

static void strides_are_refused(void **state) {
    const struct fixture *fixture = *state;
    for (const struct cln_operation *const *operation = cln_operations; *operation; operation++)
        for (unsigned i = 0; i < (*operation)->tensor_count; i++) {
            const struct cln_tensor_rule *const rule = &(*operation)->tensors[i];
            struct any desc = sound_of(*operation);
            if (rule->extent == CLN_OWN)
                continue;
            give(&desc, rule);
            tensor_at(&desc, rule)->stride = rule->extent == CLN_MATRIX       ? COLS - 1
                                             : rule->extent == CLN_TRANSPOSED ? ROWS - 1
                                                                              : COLS;
            assert_refused(fixture, *operation, &desc, rule->name, ".stride");
        }
}

static void scales_are_refused(void **state) {
    const struct fixture *fixture = *state;
    for (const struct cln_operation *const *operation = cln_operations; *operation; operation++)
        for (unsigned i = 0; i < (*operation)->tensor_count; i++) {
            const struct cln_tensor_rule *const rule = &(*operation)->tensors[i];
            struct any sound = sound_of(*operation);
            give(&sound, rule);
            const bool scaled = tensor_at(&sound, rule)->scaling;
            struct any desc = sound;
            tensor_at(&desc, rule)->scaling = (clnorm_scaling)(scaled ? 99 : CLNORM_SCALING_ROW);
            if (rule->extent != CLN_TRANSPOSED) /* which is the only output that has them, if the other is absent */
                assert_refused(fixture, *operation, &desc, rule->name, ".scaling");
            desc = sound;
            tensor_at(&desc, rule)->scale_group = scaled && tensor_at(&desc, rule)->scale_group ? 0 : 16;
            assert_refused(fixture, *operation, &desc, rule->name, ".scale_group");
            desc = sound;
            tensor_at(&desc, rule)->scale_dtype = scaled ? CLNORM_F16 : CLNORM_F32;
            assert_refused(fixture, *operation, &desc, rule->name, ".scale_dtype");
            desc = sound;
            tensor_at(&desc, rule)->scale = scaled && rule->output ? -1 : 2;
            assert_refused(fixture, *operation, &desc, rule->name, ".scale");
        }
}

static void fields_are_refused(void **state) {
    const struct fixture *fixture = *state;
    for (const struct cln_operation *const *operation = cln_operations; *operation; operation++)
        for (unsigned i = 0; i < (*operation)->field_count; i++) {
            const struct cln_field_rule *const rule = &(*operation)->fields[i];
            struct any desc = sound_of(*operation);
            put_field(&desc, rule->offset, rule->most + 1); /* 0 after UINT32_MAX */
            if (rule->most < UINT32_MAX || rule->least)
                assert_refused(fixture, *operation, &desc, rule->name, "");
            put_field(&desc, rule->offset, rule->least - 1);
            if (rule->most < UINT32_MAX || rule->least)
                assert_refused(fixture, *operation, &desc, rule->name, "");
        }
}

static void numbers_are_refused(void **state) {
    const struct fixture *fixture = *state;
    const double eps[] = {-1, NAN, INFINITY, 1e39};
    const uint64_t group_size = 3, none = 0, size = sizeof(struct cln_desc_head) - 1;
    for (const struct cln_operation *const *operation = cln_operations; *operation; operation++) {
        struct any desc = sound_of(*operation);
        put(&desc, offsetof(struct cln_desc_head, cols), &none, sizeof none);
        assert_refused(fixture, *operation, &desc, "cols", "");
        desc = sound_of(*operation);
        put(&desc, offsetof(struct cln_desc_head, size), &size, sizeof size);
        assert_refused(fixture, *operation, &desc, "size", "");
        desc = sound_of(*operation);
        put(&desc, (*operation)->group_size, &group_size, sizeof group_size);
        if ((*operation)->group_size)
            assert_refused(fixture, *operation, &desc, "group_size", "");
        for (size_t i = 0; (*operation)->eps && i < sizeof eps / sizeof *eps; i++) {
            desc = sound_of(*operation);
            put(&desc, (*operation)->eps, &eps[i], sizeof eps[i]);
            assert_refused(fixture, *operation, &desc, "eps", "");
        }
    }
}

/* -------------------------------------------------------------------------------------------------------- arguments */

static clnorm_buffer *buffer_of(clnorm_args *args, enum cln_role role) {
    return (clnorm_buffer *)((char *)args + ((const char *)cln_args_buffer(args, role) - (const char *)args));
}

static cl_mem make_buffer(const struct fixture *fixture, uint64_t size) {
    return fixture_buffer(fixture, CL_MEM_READ_WRITE, size ? (size_t)size : 1);
}

static void assert_argument_refused(const struct fixture *fixture, clnorm_plan *plan, const clnorm_args *args,
                                    enum cln_role role, const char *said) {
    assert_int_equal(clnorm_plan_enqueue(plan, fixture->queue, args, 0, NULL, NULL), CLNORM_INVALID_BUFFER);
    const char *const detail = clnorm_error_detail();
    char name[32] = "";
    (void)sscanf(detail, "args.%31[a-z_]", name);
    if (cln_role_named(name) != role || !strstr(detail, said))
        fail_msg("%s: \"%s\" does not name role %d, or does not say \"%s\"", plan->operation->name, detail, (int)role,
                 said);
}

/* A required tensor is missing, a byte too short, or misaligned. Any other tensor is given. */
static void sweep_role(const struct fixture *fixture, clnorm_plan *plan, const clnorm_args *sound, enum cln_role role) {
    const struct cln_tensor *const tensor = &plan->tensor[role];
    clnorm_args args = *sound;
    clnorm_buffer *const buffer = buffer_of(&args, role);
    if (!tensor->element) {
        buffer->mem = make_buffer(fixture, 1);
        assert_argument_refused(fixture, plan, &args, role, " is given");
        clReleaseMemObject(buffer->mem);
        return;
    }
    buffer->mem = NULL;
    assert_argument_refused(fixture, plan, &args, role, ".mem is NULL");
    buffer->mem = make_buffer(fixture, tensor->span - 1);
    if (tensor->span > 1)
        assert_argument_refused(fixture, plan, &args, role, ".mem has ");
    clReleaseMemObject(buffer->mem);
    buffer->mem = cln_args_buffer(sound, role)->mem;
    buffer->offset = tensor->element;
    assert_argument_refused(fixture, plan, &args, role, ".mem has ");
    buffer->offset = 1;
    assert_argument_refused(fixture, plan, &args, role, tensor->element > 1 ? ".offset is 1 bytes" : ".mem has ");
}

static void arguments_are_refused(void **state) {
    const struct fixture *fixture = *state;
    for (const struct cln_operation *const *operation = cln_operations; *operation; operation++) {
        const struct any desc = sound_of(*operation);
        clnorm_plan *plan = NULL;
        clnorm_args args = CLNORM_ARGS_INIT;
        if (cln_operation_plan_create(*operation, fixture->context, desc.bytes, &plan))
            fail_msg("%s: %s", (*operation)->name, clnorm_error_detail());
        for (enum cln_role role = 0; role < CLN_ROLES; role++)
            if (plan->tensor[role].span)
                buffer_of(&args, role)->mem = make_buffer(fixture, plan->tensor[role].span);
        for (enum cln_role role = 0; role < CLN_ROLES; role++)
            sweep_role(fixture, plan, &args, role);
        assert_int_equal(clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL), CLNORM_SUCCESS);
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
        for (enum cln_role role = 0; role < CLN_ROLES; role++)
            if (plan->tensor[role].span)
                clReleaseMemObject(buffer_of(&args, role)->mem);
        clnorm_plan_destroy(plan);
    }
}

/* ---------------------------------------------------------------------------------------------------------- candidates */

/* An operation accepts the configs that are its candidates, on any device. */
static void assert_candidates_suit(const clnorm_plan *plan) {
    const struct cln_config automatic = {0};
    for (size_t d = 0; d < MADE_UP_DEVICES; d++) {
        const clnorm_device_info device = made_up_device(d);
        struct cln_workload work = plan->work;
        struct cln_config ranked[CLN_MOST_RANKED], config;
        work.any_address = cln_config_element_aligned(&device, &automatic);
        const size_t count = cln_config_rank(&device, &work, ranked, CLN_MOST_RANKED);
        for (size_t i = 0; i < count; i++)
            if (plan->operation->choose(&device, &work, &ranked[i], &config))
                fail_msg("%s of %" PRIu64 " columns on %s: %s", plan->operation->name, work.group_size, device.name,
                         clnorm_error_detail());
    }
}

/* The operations that refuse more than the common rules do. */
static void candidates_suit(void **state) {
    const struct fixture *fixture = *state;
    static const uint64_t shapes[][2] = {{16, 100}, {16, 32768}};
    for (const struct cln_operation *const *operation = cln_operations; *operation; operation++)
        for (size_t i = 0; (*operation)->choose != cln_config_choose && i < sizeof shapes / sizeof *shapes; i++) {
            struct any desc = sound_of(*operation);
            clnorm_plan *plan = NULL;
            put(&desc, offsetof(struct cln_desc_head, rows), shapes[i], sizeof *shapes);
            if (cln_operation_plan_create(*operation, fixture->context, desc.bytes, &plan))
                fail_msg("%s: %s", (*operation)->name, clnorm_error_detail());
            assert_candidates_suit(plan);
            clnorm_plan_destroy(plan);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_are_refused),    cmocka_unit_test(a_double_among_others_is_refused),
        cmocka_unit_test(strides_are_refused),   cmocka_unit_test(scales_are_refused),
        cmocka_unit_test(fields_are_refused),    cmocka_unit_test(numbers_are_refused),
        cmocka_unit_test(arguments_are_refused), cmocka_unit_test(candidates_suit),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
