#include "operation/group_norm.h"

#include "base/context.h"
#include "base/status.h"
#include "norm/group_norm_args.h"

typedef clnorm_group_norm_desc desc_type;

static const struct cln_tensor_rule tensors[] = {
    {"x", CLN_X, offsetof(desc_type, x), CLN_MATRIX, CLN_REALS, CLN_REFUSED, false, CLN_ROLES},
    {"y", CLN_Y, offsetof(desc_type, y), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
    {"residual", CLN_RESIDUAL, offsetof(desc_type, residual), CLN_MATRIX, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"residual_out", CLN_RESIDUAL_OUT, offsetof(desc_type, residual_out), CLN_MATRIX, CLN_REALS, CLN_ABSENT, true,
     CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(desc_type, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"bias", CLN_BIAS, offsetof(desc_type, bias), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
};
static const struct cln_field_rule fields[] = {
    {"layout", offsetof(desc_type, layout), CLNORM_LAYOUT_FIRST, CLNORM_LAYOUT_LAST, "clnorm_layout"},
    {"activation", offsetof(desc_type, activation), CLNORM_ACTIVATION_NONE, CLNORM_ACTIVATION_SILU, "clnorm_activation"},
    {"save_mean", offsetof(desc_type, save_mean), 0, 1, NULL},
    {"save_rstd", offsetof(desc_type, save_rstd), 0, 1, NULL},
};

static struct cln_group_norm norm_of(const void *desc) {
    const desc_type *const d = desc;
    return (struct cln_group_norm){d->rows, d->cols, d->spatial, d->groups, d->x, d->residual, d->eps, d->layout};
}

static clnorm_status prepare(void *desc) {
    const struct cln_group_norm norm = norm_of(desc);
    return cln_group_norm_prepare(&norm);
}

static clnorm_status check(const clnorm_device_info *device, void *desc) {
    const desc_type *const d = desc;
    (void)device;
    return d->residual_out.dtype && !d->residual.dtype
               ? cln_fail(CLNORM_INVALID_VALUE, "desc.residual_out.dtype is %s: expected none without a residual",
                          clnorm_dtype_name(d->residual_out.dtype))
               : CLNORM_SUCCESS;
}

static clnorm_status describe(const void *desc, struct cln_tensor tensor[CLN_ROLES]) {
    const desc_type *const d = desc;
    const struct cln_group_norm norm = norm_of(desc);
    tensor[CLN_WEIGHT].vector = tensor[CLN_BIAS].vector = 0;
    return cln_group_norm_describe_statistics(&cln_group_norm, desc, &norm, d->save_mean, d->save_rstd, tensor);
}

static struct cln_workload workload_of(const struct cln_operation *operation, const void *desc) {
    const struct cln_group_norm norm = norm_of(desc);
    return cln_group_norm_workload(operation, desc, &norm);
}

static struct cln_spec spec_of(const clnorm_plan *plan, const desc_type *d) {
    const struct cln_group_norm norm = norm_of(d);
    struct cln_spec spec = cln_group_norm_spec(plan, &norm);
    spec.y_dtype = d->y.dtype;
    spec.residual_dtype = d->residual.dtype;
    spec.residual_out_dtype = d->residual_out.dtype;
    spec.weight_dtype = d->weight.dtype;
    spec.bias_dtype = d->bias.dtype;
    spec.activation = d->activation;
    spec.save_mean = d->save_mean;
    spec.save_rstd = d->save_rstd;
    return spec;
}

/* A work-group a segment. */
static clnorm_status add_segments(clnorm_plan *plan, const desc_type *d, const struct cln_spec *spec) {
    static const struct cln_parameter parameters[] = CLN_PARAMETERS(GROUP_NORM_ARGS);
    const struct cln_argument arguments[] = {cln_real("eps", d->eps), {0}};
    const struct cln_group_norm_kernel kernel = {&cln_source_group_norm, "group_norm", parameters, arguments,
                                                 d->rows * d->groups};
    return cln_group_norm_add(plan, spec, &kernel);
}

/* Statistics that are not requested lie in the workspace. */
static clnorm_status place_statistic(uint64_t *size, const clnorm_plan *plan, enum cln_role role, uint64_t count,
                                     struct cln_binding *binding) {
    *binding = (struct cln_binding){.role = role};
    return plan->tensor[role].element ? CLNORM_SUCCESS : cln_group_norm_part(size, count, plan->work.real_size, binding);
}

static clnorm_status add_chunks(clnorm_plan *plan, const desc_type *d, const struct cln_spec *spec) {
    static const struct cln_parameter parameters[] = CLN_PARAMETERS(GROUP_NORM_APPLY_ARGS);
    const struct cln_group_norm norm = norm_of(d);
    struct cln_binding parts, mean, rstd;
    uint64_t size = 0;
    clnorm_status status = cln_group_norm_parts(&size, &norm, spec->chunks, plan->work.real_size, &parts);
    if (!status)
        status = place_statistic(&size, plan, CLN_MEAN, d->rows * d->groups, &mean);
    if (!status)
        status = place_statistic(&size, plan, CLN_RSTD, d->rows * d->groups, &rstd);
    if (status)
        return status;
    cln_plan_set_workspace(plan, size);
    status = cln_group_norm_add_statistics(plan, spec, &norm, parts, mean, rstd);
    const struct cln_argument arguments[] = {cln_bind("mean", mean), cln_bind("rstd", rstd), {0}};
    const struct cln_group_norm_kernel apply = {&cln_source_group_norm_parts, "group_norm_apply", parameters, arguments,
                                                cln_group_norm_units(&norm, spec)};
    return status ? status : cln_group_norm_add(plan, spec, &apply);
}

static clnorm_status add_stages(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const desc_type *const d = desc;
    if (!work->rows)
        return CLNORM_SUCCESS;
    const struct cln_spec spec = spec_of(plan, d);
    return cln_config_channel_chunks(work, &plan->config) ? add_chunks(plan, d, &spec) : add_segments(plan, d, &spec);
}

static const desc_type initial = CLNORM_GROUP_NORM_DESC_INIT;

const struct cln_operation cln_group_norm = {
    .name = "group_norm",
    .init = "CLNORM_GROUP_NORM_DESC_INIT",
    .initial = &initial,
    .size = sizeof initial,
    .config = offsetof(desc_type, config),
    .tensors = tensors,
    .tensor_count = sizeof tensors / sizeof *tensors,
    .fields = fields,
    .field_count = sizeof fields / sizeof *fields,
    .spatial = offsetof(desc_type, spatial),
    .eps = offsetof(desc_type, eps),
    .prepare = prepare,
    .check = check,
    .describe = describe,
    .workload = workload_of,
    .choose = cln_config_choose_group,
    .add_stages = add_stages,
};

void clnorm_group_norm_desc_init(clnorm_group_norm_desc *desc) {
    cln_operation_init(&cln_group_norm, desc);
}

clnorm_status clnorm_group_norm_plan_create(clnorm_context *context, const clnorm_group_norm_desc *desc,
                                            clnorm_plan **plan) {
    return cln_operation_plan_create(&cln_group_norm, context, desc, plan);
}

clnorm_status clnorm_group_norm(clnorm_context *context, cl_command_queue queue, const clnorm_group_norm_desc *desc,
                                const clnorm_args *args, cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    return cln_operation_enqueue(&cln_group_norm, context, queue, desc, args, num_wait, wait_list, event);
}

clnorm_status clnorm_group_norm_validate(clnorm_context *context, const clnorm_group_norm_desc *desc,
                                         clnorm_requirements *requirements) {
    return cln_operation_validate(&cln_group_norm, context, desc, requirements);
}
