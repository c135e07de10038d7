#include "operation/operation.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/context.h"
#include "base/status.h"
#include "base/struct_size.h"
#include "plan/plan_store.h"

/* A descriptor on the stack. */
struct taken {
    _Alignas(max_align_t) unsigned char bytes[CLN_DESC_MOST];
};

void cln_operation_init(const struct cln_operation *operation, void *desc) {
    if (desc)
        memcpy(desc, operation->initial, operation->size);
}

/* Copies a caller's descriptor of any accepted size. */
static clnorm_status take(const struct cln_operation *operation, const void *desc, struct taken *taken) {
    const struct cln_struct kind = {"desc", operation->init, operation->size};
    cln_operation_init(operation, taken->bytes);
    return cln_struct_take(&kind, desc, taken->bytes);
}

static clnorm_status check_fields(const struct cln_operation *operation, const void *desc) {
    for (unsigned i = 0; i < operation->field_count; i++) {
        const struct cln_field_rule *const rule = &operation->fields[i];
        uint32_t value;
        memcpy(&value, (const char *)desc + rule->offset, sizeof value);
        if (value >= rule->least && value <= rule->most)
            continue;
        if (rule->type)
            return cln_fail(CLNORM_INVALID_ENUM, "desc.%s is %" PRIi32 ": expected a %s", rule->name, (int32_t)value,
                            rule->type);
        if (rule->most == UINT32_MAX)
            return cln_fail(CLNORM_INVALID_VALUE, "desc.%s is %" PRIu32 ": expected %" PRIu32 " or more", rule->name, value,
                            rule->least);
        return cln_fail(CLNORM_INVALID_VALUE, "desc.%s is %" PRIu32 ": expected %s", rule->name, value,
                        rule->most ? "0 or 1" : "0");
    }
    return CLNORM_SUCCESS;
}

clnorm_status cln_refuse_options(const struct cln_option *options, clnorm_status status, const char *with) {
    for (; options->name; options++)
        if (options->set)
            return cln_fail(status, "desc.%s is set: expected none with %s", options->name, with);
    return CLNORM_SUCCESS;
}

/* Checks a descriptor and fills in its defaults. */
static clnorm_status validate(const struct cln_operation *operation, const clnorm_device_info *device, void *desc) {
    clnorm_status status = check_fields(operation, desc);
    if (!status && operation->prepare)
        status = operation->prepare(desc);
    if (!status)
        status = cln_operation_complete_tensors(operation, device, desc);
    if (!status && operation->check)
        status = operation->check(device, desc);
    return status;
}

/* Multiplies an element's bytes by the config's vec, for every argument that is accessed in vectors. */
static void widen_vectors(clnorm_plan *plan) {
    for (enum cln_role role = 0; role < CLN_ROLES; role++)
        plan->tensor[role].vector *= plan->config.vec;
}

/* The clnorm_config that a descriptor forces. */
static const clnorm_config *forced_of(const struct cln_operation *operation, const void *desc) {
    return (const clnorm_config *)(const void *)((const char *)desc + operation->config);
}

static bool is_batch_invariant(const struct cln_operation *operation, const void *desc) {
    uint32_t flag = 0;
    if (operation->batch_invariant)
        memcpy(&flag, (const char *)desc + operation->batch_invariant, sizeof flag);
    return flag;
}

/* The widest dtype of the matrices; none, if no element has more bytes than one of the first tensor. */
static clnorm_dtype widest_of(const struct cln_operation *operation, const void *desc) {
    const clnorm_dtype first = cln_operation_tensor(&operation->tensors[0], desc)->dtype;
    clnorm_dtype widest = first;
    for (unsigned i = 1; i < operation->tensor_count; i++) {
        const clnorm_dtype dtype = cln_operation_tensor(&operation->tensors[i], desc)->dtype;
        if (operation->tensors[i].extent == CLN_MATRIX && clnorm_dtype_size(dtype) > clnorm_dtype_size(widest))
            widest = dtype;
    }
    return widest == first ? CLNORM_DTYPE_NONE : widest;
}

static clnorm_status choose(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const struct cln_operation *const operation = plan->operation;
    struct cln_tuning_key key = {.name = operation->name,
                                 .dtype = cln_operation_tensor(&operation->tensors[0], desc)->dtype,
                                 .group_size = cln_operation_group_size(operation, desc)};
    if (operation->tuning_key)
        operation->tuning_key(desc, &key);
    key.widest = widest_of(operation, desc);
    const clnorm_config *const forced = forced_of(operation, desc);
    if (!is_batch_invariant(operation, desc))
        return cln_tuning_choose(plan, &key, operation->choose, work, forced);
    const struct cln_workload many = cln_config_many_rows(work);
    const clnorm_status status = cln_tuning_choose(plan, &key, operation->choose, &many, forced);
    plan->work = *work;
    return status ? status : cln_config_share_out(operation->choose, &plan->context->device, work, forced, &plan->config);
}

static clnorm_status fill_in(clnorm_plan *plan, const void *desc) {
    const struct cln_operation *const operation = plan->operation;
    clnorm_status status = cln_operation_describe_tensors(operation, desc, plan->tensor);
    if (!status && operation->describe)
        status = operation->describe(desc, plan->tensor);
    if (status)
        return status;
    const struct cln_config automatic = {0};
    struct cln_workload work = operation->workload(operation, desc);
    work.any_address = cln_config_element_aligned(&plan->context->device, &automatic);
    if (is_batch_invariant(operation, desc))
        work.lead_vec = 0; /* a row's bits must not depend on its place */
    if ((status = choose(plan, desc, &work)))
        return status;
    widen_vectors(plan);
    return operation->add_stages(plan, desc, &work);
}

/* desc: of the operation's size. draft: makes a plan without kernels. */
static clnorm_status make(clnorm_context *context, const struct cln_operation *operation, const void *desc, bool draft,
                          clnorm_plan **plan) {
    struct taken problem;
    memcpy(problem.bytes, desc, operation->size);
    clnorm_plan *made = NULL;
    clnorm_status status = validate(operation, &context->device, problem.bytes);
    if (!status)
        status = cln_plan_create(context, operation, &made);
    if (!status) {
        made->draft = draft;
        status = fill_in(made, problem.bytes);
    }
    if (status)
        clnorm_plan_destroy(made);
    else
        *plan = made;
    return status;
}

static clnorm_status make_plan(clnorm_context *context, const void *kind, const void *desc, clnorm_plan **plan) {
    return make(context, kind, desc, false, plan);
}

clnorm_status cln_operation_validate(const struct cln_operation *operation, clnorm_context *context, const void *desc,
                                     clnorm_requirements *requirements) {
    static const struct cln_struct kind = {"requirements", "CLNORM_REQUIREMENTS_INIT", sizeof *requirements};
    if (!context)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "context is NULL");
    struct taken taken;
    clnorm_plan *plan = NULL;
    clnorm_status status = requirements ? cln_struct_check(&kind, requirements) : CLNORM_SUCCESS;
    if (!status)
        status = take(operation, desc, &taken);
    if (!status)
        status = make(context, operation, taken.bytes, true, &plan);
    if (!status && requirements) {
        const clnorm_requirements own = cln_plan_requirements(plan);
        cln_struct_give(&kind, &own, requirements);
    }
    clnorm_plan_destroy(plan);
    return status;
}

clnorm_status cln_operation_plan_create(const struct cln_operation *operation, clnorm_context *context, const void *desc,
                                        clnorm_plan **plan) {
    if (!context || !plan)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    struct taken taken;
    const clnorm_status status = take(operation, desc, &taken);
    return status ? status : make_plan(context, operation, taken.bytes, plan);
}

clnorm_status cln_operation_enqueue(const struct cln_operation *operation, clnorm_context *context, cl_command_queue queue,
                                    const void *desc, const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list,
                                    cl_event *event) {
    if (!context)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "context is NULL");
    struct taken taken;
    const clnorm_status status = take(operation, desc, &taken);
    if (status)
        return status;
    const struct cln_plan_source source = {make_plan, operation, taken.bytes, operation->size};
    return cln_plan_store_enqueue(context, &source, queue, args, num_wait, wait_list, event);
}
