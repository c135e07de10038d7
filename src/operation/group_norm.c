#include "operation/group_norm.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/status.h"
#include "config/group_parts.h"
#include "norm/group_norm_args.h"
#include "operation/fp8.h"
#include "operation/group_norm_exchange.h"
#include "operation/group_norm_rows.h"
#include "operation/norm_stages.h"

typedef clnorm_group_norm_desc desc_type;

static const struct cln_tensor_rule tensors[] = {
    {"x", CLN_X, offsetof(desc_type, x), CLN_MATRIX, CLN_REALS | CLN_CODES, CLN_REFUSED, false, CLN_X_SCALE},
    {"y", CLN_Y, offsetof(desc_type, y), CLN_MATRIX, CLN_REALS | CLN_CODES, CLN_LIKE_FIRST, true, CLN_Y_SCALE},
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
    const clnorm_layout layout = cln_group_norm_layout(d->cols, d->layout);
    return (struct cln_group_norm){d->rows, d->cols, d->spatial, d->groups, d->x, d->eps, layout};
}

static clnorm_status prepare(void *desc) {
    const struct cln_group_norm norm = norm_of(desc);
    return cln_group_norm_prepare(&norm);
}

static clnorm_status check(const clnorm_device_info *device, void *desc) {
    const desc_type *const d = desc;
    (void)device;
    if (d->residual_out.dtype && !d->residual.dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.residual_out.dtype is %s: expected none without a residual",
                        clnorm_dtype_name(d->residual_out.dtype));
    const clnorm_status status = cln_group_norm_check_scales("x", &d->x);
    return status ? status : cln_group_norm_check_scales("y", &d->y);
}

static clnorm_status describe(const void *desc, struct cln_tensor tensor[CLN_ROLES]) {
    const desc_type *const d = desc;
    const struct cln_group_norm norm = norm_of(desc);
    clnorm_norm_desc rows;
    clnorm_status status = CLNORM_SUCCESS;
    if (cln_group_norm_as_rows(d, &norm, &rows))
        status = cln_group_norm_describe_rows(&cln_norm_forward, &rows, &norm, tensor);
    else
        tensor[CLN_WEIGHT].vector = tensor[CLN_BIAS].vector = 0;
    return status ? status
                  : cln_group_norm_describe_statistics(&cln_group_norm, desc, &norm, d->save_mean, d->save_rstd, tensor);
}

/* Whether y's scales are measured. */
static bool measures(const desc_type *d) {
    return d->y.scaling && d->y.scale == 0;
}

static struct cln_workload workload_of(const struct cln_operation *operation, const void *desc) {
    const struct cln_group_norm norm = norm_of(desc);
    clnorm_norm_desc rows;
    struct cln_workload work;
    if (cln_group_norm_as_rows(desc, &norm, &rows)) {
        if (norm.spatial > 1) /* weights are not read by vectors */
            rows.weight.stride = rows.bias.stride = rows.cols;
        work = cln_norm_workload(&cln_norm_forward, &rows);
        work.lead_vec = 0; /* a sample's bits must not depend on its place */
        if (rows.weight.dtype || rows.bias.dtype)
            work.columns_of_weight = cln_group_norm_columns_of_weight(&norm);
    } else {
        work = cln_group_norm_workload(operation, desc, &norm);
        work.y_measured = measures(desc);
    }
    return work;
}

static void tuning_key(const void *desc, struct cln_tuning_key *key) {
    const struct cln_group_norm norm = norm_of(desc);
    cln_group_norm_tuning_key(&norm, key);
}

static clnorm_status choose(const clnorm_device_info *device, const struct cln_workload *work,
                            const struct cln_config *forced, struct cln_config *config) {
    return cln_group_norm_choose(cln_norm_choose, device, work, forced, config);
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
    spec.scaling = d->y.scaling;
    if (d->y.scaling) {
        spec.scale_dtype = d->y.scale == 0 ? d->y.scale_dtype : CLNORM_DTYPE_NONE;
        spec.fp8_isa = cln_fp8_isa(&plan->context->device, &plan->config);
    }
    spec.save_mean = d->save_mean;
    spec.save_rstd = d->save_rstd;
    return spec;
}

static const struct cln_kernel segments_kernel = CLN_KERNEL_PAIR(group_norm, group_norm, GROUP_NORM_ARGS);
static const struct cln_kernel slices_kernel = CLN_KERNEL_PAIR(group_norm_last, group_norm_last, GROUP_NORM_ARGS);
static const struct cln_kernel apply_kernel = CLN_KERNEL_PAIR(group_norm_parts, group_norm_apply, GROUP_NORM_APPLY_ARGS);
static const struct cln_kernel merging_kernel =
    CLN_KERNEL_PAIR(group_norm_parts, group_norm_apply, GROUP_NORM_APPLY_MOMENTS_ARGS);
static const struct cln_kernel exchange_kernel =
    CLN_KERNEL_PAIR(group_norm_exchange, group_norm_exchange, GROUP_NORM_EXCHANGE_ARGS);
static const struct cln_kernel segment_pieces_kernel =
    CLN_KERNEL_PAIR(group_norm_pieces, group_norm_pieces, GROUP_NORM_PIECES_ARGS);
static const struct cln_kernel slice_pieces_kernel =
    CLN_KERNEL_PAIR(group_norm_last_exchange, group_norm_last_exchange, GROUP_NORM_LAST_PIECES_ARGS);
static const struct cln_kernel scales_kernel = CLN_KERNEL(group_norm_reduce, group_norm_scales, GROUP_NORM_SCALES_ARGS);

/* What every stage is made from. magnitudes: where y's scales are measured, the largest |y| of each piece of work, those of
 * a sample one after the other. */
struct problem {
    const desc_type *d;
    struct cln_group_norm norm;
    struct cln_spec spec, apply; /* apply: of the kernel that writes y */
    struct cln_binding mean, rstd, tickets, parts, words, magnitudes;
    uint64_t pieces; /* of work that is not in chunks of channels: segments, slices or pieces of these */
    bool measured;
};

/* Adds the kernel that writes y. */
static clnorm_status add_kernel(clnorm_plan *plan, const struct problem *p, const struct cln_spec *spec) {
    const struct cln_argument y_given = cln_real("y_given", p->d->y.scale);
    const struct cln_argument magnitudes = cln_bind("magnitudes", p->magnitudes);
    const struct cln_argument whole[] = {cln_real("eps", p->d->eps), y_given, magnitudes, {0}};
    const struct cln_argument apply[] = {cln_bind("mean", p->mean), cln_bind("rstd", p->rstd), y_given, magnitudes, {0}};
    const struct cln_argument merge[] = {cln_real("eps", p->d->eps), cln_bind("parts", p->parts), y_given, magnitudes, {0}};
    const struct cln_group_norm_stage segments = {&segments_kernel, whole, p->pieces};
    const struct cln_group_norm_stage slices = {&slices_kernel, whole, p->pieces};
    const struct cln_group_norm_stage chunks = {spec->merges ? &merging_kernel : &apply_kernel,
                                                spec->merges ? merge : apply, cln_group_norm_units(&p->norm, spec)};
    const bool by_chunks = cln_config_channel_chunks(&plan->work, &plan->config);
    return cln_group_norm_add(plan, spec, by_chunks ? &chunks : spec->span ? &slices : &segments);
}

/* Adds the launch that writes y while its work-groups exchange the moments of parts. */
static clnorm_status add_exchange(clnorm_plan *plan, const struct problem *p) {
    const struct cln_argument arguments[] = {cln_real("eps", p->d->eps), cln_real("y_given", p->d->y.scale), {0}};
    const struct cln_group_norm_stage stage = {&exchange_kernel, arguments, cln_group_norm_units(&p->norm, &p->spec)};
    return cln_group_norm_add_exchange(plan, &p->spec, &stage, p->tickets, p->parts);
}

/* The same with the moments of pieces, which it holds. */
static clnorm_status add_pieces(clnorm_plan *plan, const struct problem *p) {
    const struct cln_argument arguments[] = {cln_real("eps", p->d->eps), cln_real("y_given", p->d->y.scale), {0}};
    const struct cln_group_norm_stage stage = {p->spec.span ? &slice_pieces_kernel : &segment_pieces_kernel, arguments,
                                               p->pieces};
    return cln_group_norm_add_pieces(plan, &p->spec, &stage, p->words);
}

/* Adds a first pass that writes only the largest magnitudes of y, and the kernel that makes scales of them. */
static clnorm_status add_measure(clnorm_plan *plan, const struct problem *p) {
    struct cln_spec spec = p->apply;
    spec.measures = true;
    spec.save_mean = spec.save_rstd = false;
    spec.residual_out_dtype = CLNORM_DTYPE_NONE;
    const uint64_t scales = p->d->y.scaling == CLNORM_SCALING_ROW ? p->norm.rows : 1;
    const uint64_t terms = p->magnitudes.size / p->magnitudes.element / scales;
    const struct cln_argument arguments[] = {
        cln_integer("terms", terms),
        cln_bind("magnitudes", p->magnitudes),
        {0},
    };
    const struct cln_group_norm_stage stage = {&scales_kernel, arguments, scales};
    const clnorm_status status = add_kernel(plan, p, &spec);
    return status ? status : cln_group_norm_add_reduction(plan, &spec, &stage, terms);
}

/* Statistics that are not requested lie in the workspace. */
static clnorm_status place_statistic(clnorm_plan *plan, enum cln_role role, uint64_t count, struct cln_binding *binding) {
    *binding = (struct cln_binding){.role = role};
    return plan->tensor[role].element ? CLNORM_SUCCESS : cln_plan_add_part(plan, count, plan->work.real_size, binding);
}

static clnorm_status lay_out(clnorm_plan *plan, struct problem *p, bool by_chunks) {
    const uint64_t segments = p->norm.rows * p->norm.groups;
    clnorm_status status = CLNORM_SUCCESS;
    if (p->spec.row_split)
        status = by_chunks ? cln_group_norm_tickets(plan, &p->tickets)
                           : cln_group_norm_words(plan, &p->spec, p->pieces, p->spec.span > 0, &p->words);
    if (!status && by_chunks)
        status = cln_group_norm_parts(plan, p->norm.rows * cln_group_norm_part_rows(&p->norm, &p->spec),
                                      cln_group_norm_row_parts(&p->spec), &p->parts);
    if (!status && by_chunks && !p->spec.merges)
        status = place_statistic(plan, CLN_MEAN, segments, &p->mean);
    if (!status && by_chunks && !p->spec.merges)
        status = place_statistic(plan, CLN_RSTD, segments, &p->rstd);
    if (!status && p->measured)
        status = cln_plan_add_part(plan, by_chunks ? cln_group_norm_magnitudes(&p->norm, &p->apply) : p->pieces,
                                   sizeof(cl_float), &p->magnitudes);
    return status;
}

static clnorm_status add_stages(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const desc_type *const d = desc;
    const struct cln_group_norm norm = norm_of(desc);
    clnorm_norm_desc rows;
    if (cln_group_norm_as_rows(d, &norm, &rows))
        return cln_norm_add_stages(plan, &rows, work);
    struct problem p = {.d = d, .norm = norm, .spec = spec_of(plan, d), .measured = measures(d)};
    const bool by_chunks = cln_config_channel_chunks(work, &plan->config);
    if (!work->rows)
        return CLNORM_SUCCESS;
    p.spec.merges = cln_group_merges(work, &plan->config);
    p.spec.row_split = cln_exchanges(&plan->config) ? plan->config.row_split : 0;
    p.apply = by_chunks && !p.spec.merges ? cln_group_norm_without_parts(&p.norm, &p.spec) : p.spec;
    p.pieces = cln_group_norm_pieces(&norm, &p.spec);
    clnorm_status status = lay_out(plan, &p, by_chunks);
    if (!status && p.spec.row_split)
        return by_chunks ? add_exchange(plan, &p) : add_pieces(plan, &p);
    if (!status && p.spec.merges)
        status = cln_group_norm_add_moments(plan, &p.spec, &p.norm, p.parts);
    else if (!status && by_chunks)
        status = cln_group_norm_add_statistics(plan, &p.spec, &p.norm, p.parts, p.mean, p.rstd);
    if (!status && p.measured)
        status = add_measure(plan, &p);
    return status ? status : add_kernel(plan, &p, &p.apply);
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
    .tuning_key = tuning_key,
    .choose = choose,
    .add_stages = add_stages,
};
