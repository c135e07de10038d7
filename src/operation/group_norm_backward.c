#include "base/arithmetic.h"
#include "base/context.h"
#include "base/status.h"
#include "config/group_parts.h"
#include "norm/group_norm_args.h"
#include "operation/group_norm.h"
#include "operation/group_norm_exchange.h"
#include "operation/group_norm_rows.h"
#include "operation/group_norm_statistics.h"
#include "operation/norm_backward_layout.h"
#include "operation/norm_backward_stages.h"

typedef clnorm_group_norm_backward_desc desc_type;

static const struct cln_tensor_rule tensors[] = {
    {"x", CLN_X, offsetof(desc_type, x), CLN_MATRIX, CLN_REALS | CLN_CODES, CLN_REFUSED, false, CLN_X_SCALE},
    {"dy", CLN_DY, offsetof(desc_type, dy), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, false, CLN_ROLES},
    {"weight", CLN_WEIGHT, offsetof(desc_type, weight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"bias", CLN_BIAS, offsetof(desc_type, bias), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, false, CLN_ROLES},
    {"dx", CLN_DX, offsetof(desc_type, dx), CLN_MATRIX, CLN_REALS, CLN_LIKE_FIRST, true, CLN_ROLES},
    {"dweight", CLN_DWEIGHT, offsetof(desc_type, dweight), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
    {"dbias", CLN_DBIAS, offsetof(desc_type, dbias), CLN_COLUMNS, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
    {"dresidual_out", CLN_DRESIDUAL_OUT, offsetof(desc_type, dresidual_out), CLN_MATRIX, CLN_REALS, CLN_ABSENT, false,
     CLN_ROLES},
    {"dresidual", CLN_DRESIDUAL, offsetof(desc_type, dresidual), CLN_MATRIX, CLN_REALS, CLN_ABSENT, true, CLN_ROLES},
};
static const struct cln_field_rule fields[] = {
    {"layout", offsetof(desc_type, layout), CLNORM_LAYOUT_FIRST, CLNORM_LAYOUT_LAST, "clnorm_layout"},
    {"activation", offsetof(desc_type, activation), CLNORM_ACTIVATION_NONE, CLNORM_ACTIVATION_SILU, "clnorm_activation"},
    {"statistics_given", offsetof(desc_type, statistics_given), 0, 1, NULL},
    {"accumulate", offsetof(desc_type, accumulate), 0, 1, NULL},
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
    if (d->accumulate && !d->dweight.dtype && !d->dbias.dtype)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.accumulate is 1: expected 0 without a dweight and a dbias");
    return cln_group_norm_check_scales("x", &d->x);
}

static clnorm_status describe(const void *desc, struct cln_tensor tensor[CLN_ROLES]) {
    const desc_type *const d = desc;
    const struct cln_group_norm norm = norm_of(desc);
    clnorm_norm_backward_desc rows;
    clnorm_status status = CLNORM_SUCCESS;
    if (cln_group_norm_backward_as_rows(d, &norm, &rows))
        status = cln_group_norm_describe_rows(&cln_norm_backward, &rows, &norm, tensor);
    else
        tensor[CLN_WEIGHT].vector = tensor[CLN_BIAS].vector = tensor[CLN_DWEIGHT].vector = tensor[CLN_DBIAS].vector = 0;
    return status ? status
                  : cln_group_norm_describe_statistics(&cln_group_norm_backward, desc, &norm, d->statistics_given,
                                                       d->statistics_given, tensor);
}

static struct cln_workload workload_of(const struct cln_operation *operation, const void *desc) {
    const struct cln_group_norm norm = norm_of(desc);
    clnorm_norm_backward_desc rows;
    if (cln_group_norm_backward_as_rows(desc, &norm, &rows)) {
        if (norm.spatial > 1) /* weights are not read by vectors */
            rows.weight.stride = rows.bias.stride = rows.cols;
        struct cln_workload work = cln_backward_workload(&cln_norm_backward, &rows);
        work.lead_vec = 0; /* a sample's bits must not depend on its place */
        work.columns_of_weight = cln_group_norm_columns_of_weight(&norm);
        return work;
    }
    struct cln_workload work = cln_group_norm_workload(operation, desc, &norm);
    work.channel_sums = true;
    return work;
}

static void tuning_key(const void *desc, struct cln_tuning_key *key) {
    const struct cln_group_norm norm = norm_of(desc);
    cln_group_norm_tuning_key(&norm, key);
}

static clnorm_status choose(const clnorm_device_info *device, const struct cln_workload *work,
                            const struct cln_config *forced, struct cln_config *config) {
    return cln_group_norm_choose(cln_config_choose, device, work, forced, config);
}

/* The parts of the workspace. mean and rstd may be arguments instead. batches: the sums over batches of bundles. */
struct workspace {
    struct cln_binding tickets, words, parts, batches, slopes, mean, rstd;
};

/* What every stage is made from. */
struct problem {
    const desc_type *d;
    struct cln_group_norm norm;
    struct cln_spec spec, statistics; /* statistics: of the forward's kernels for the statistics of x */
    struct workspace workspace;
    bool by_chunks, sums; /* sums: of channels, dweight and dbias */
    bool with_dx;         /* the kernel of dx computes the slopes of groups */
    bool joined;          /* the kernel of the slopes computes these sums too */
    uint64_t bundles;     /* of neighbouring samples that have one part for each channel */
    uint64_t batch;       /* bundles whose sums are added up first; 0: the sums have few terms */
};

static struct cln_spec spec_of(const clnorm_plan *plan, const desc_type *d, bool sums) {
    const struct cln_group_norm norm = norm_of(d);
    struct cln_spec spec = cln_group_norm_spec(plan, &norm);
    spec.dy_dtype = d->dy.dtype;
    spec.dx_dtype = d->dx.dtype;
    spec.weight_dtype = d->weight.dtype;
    spec.bias_dtype = d->bias.dtype;
    spec.dweight_dtype = d->dweight.dtype;
    spec.dbias_dtype = d->dbias.dtype;
    spec.dresidual_out_dtype = d->dresidual_out.dtype;
    spec.dresidual_dtype = d->dresidual.dtype;
    spec.activation = d->activation;
    spec.accumulate = d->accumulate;
    spec.has_sums = sums;
    spec.block = 0; /* the sums of channels are needed */
    return spec;
}

static clnorm_status lay_out(clnorm_plan *plan, struct problem *p) {
    const uint64_t element = plan->work.real_size, count = p->norm.rows * p->norm.groups;
    const bool given = p->d->statistics_given;
    const uint64_t rows = cln_larger(given ? 0 : cln_group_norm_part_rows(&p->norm, &p->statistics), p->norm.cols);
    struct workspace *const w = &p->workspace;
    clnorm_status status = CLNORM_SUCCESS;
    *w = (struct workspace){.mean = {.role = CLN_MEAN}, .rstd = {.role = CLN_RSTD}};
    const uint64_t row_parts =
        cln_larger(cln_group_norm_row_parts(&p->spec), given ? 0 : cln_group_norm_row_parts(&p->statistics));
    if (p->spec.row_split)
        status = p->by_chunks
                     ? cln_group_norm_tickets(plan, &w->tickets)
                     : cln_group_norm_words(plan, &p->spec, cln_group_norm_pieces(&p->norm, &p->spec), true, &w->words);
    if (!status && (p->by_chunks || p->sums || !given))
        status = cln_group_norm_parts(plan, (given ? p->bundles : p->norm.rows) * rows, row_parts, &w->parts);
    if (!status && p->batch)
        status = cln_group_norm_parts(plan, cln_divide_up(p->bundles, p->batch) * p->norm.cols, 1, &w->batches);
    if (!status && p->by_chunks && !p->with_dx)
        status = cln_plan_add_part(plan, 2 * count, element, &w->slopes);
    if (!status && !given)
        status = cln_plan_add_part(plan, count, element, &w->mean);
    if (!status && !given)
        status = cln_plan_add_part(plan, count, element, &w->rstd);
    return status;
}

static const struct cln_kernel segments_kernel =
    CLN_KERNEL_PAIR(group_norm_backward, group_norm_backward, GROUP_NORM_BACKWARD_ARGS);
static const struct cln_kernel held_kernel =
    CLN_KERNEL_PAIR(group_norm_backward_held, group_norm_backward_held, GROUP_NORM_BACKWARD_ARGS);
static const struct cln_kernel slices_kernel =
    CLN_KERNEL_PAIR(group_norm_last_backward, group_norm_last_backward, GROUP_NORM_LAST_BACKWARD_ARGS);
static const struct cln_kernel segment_pieces_kernel =
    CLN_KERNEL_PAIR(group_norm_backward_pieces, group_norm_backward_pieces, GROUP_NORM_BACKWARD_PIECES_ARGS);
static const struct cln_kernel slice_pieces_kernel =
    CLN_KERNEL_PAIR(group_norm_last_backward_exchange, group_norm_last_backward_exchange, GROUP_NORM_BACKWARD_PIECES_ARGS);
static const struct cln_kernel exchange_kernel =
    CLN_KERNEL_PAIR(group_norm_backward_exchange, group_norm_backward_exchange, GROUP_NORM_BACKWARD_EXCHANGE_ARGS);
static const struct cln_kernel sums_kernel =
    CLN_KERNEL_PAIR(group_norm_backward_parts, group_norm_sums, GROUP_NORM_SUMS_ARGS);
static const struct cln_kernel dx_kernel = CLN_KERNEL_PAIR(group_norm_backward_parts, group_norm_dx, GROUP_NORM_DX_ARGS);
static const struct cln_kernel dx_of_sums_kernel =
    CLN_KERNEL_PAIR(group_norm_backward_parts, group_norm_dx_of_sums, GROUP_NORM_DX_OF_SUMS_ARGS);
static const struct cln_kernel slopes_kernel = CLN_KERNEL(group_norm_reduce, group_norm_slopes, GROUP_NORM_SLOPES_ARGS);
static const struct cln_kernel batches_kernel = CLN_KERNEL(group_norm_reduce, group_norm_batches, GROUP_NORM_BATCHES_ARGS);
static const struct cln_kernel dweight_kernel = CLN_KERNEL(group_norm_reduce, group_norm_dweight, GROUP_NORM_DWEIGHT_ARGS);

/* Adds the kernel over whole segments. */
static clnorm_status add_whole(clnorm_plan *plan, const struct problem *p) {
    const struct cln_argument arguments[] = {cln_bind("mean", p->workspace.mean),
                                             cln_bind("rstd", p->workspace.rstd),
                                             cln_bind("parts", p->workspace.parts),
                                             {0}};
    const uint64_t groups = p->norm.rows * p->norm.groups;
    const struct cln_group_norm_stage stage = {p->spec.channel_lanes ? &held_kernel : &segments_kernel, arguments, groups};
    return cln_group_norm_add(plan, &p->spec, &stage);
}

/* Adds the kernel over slices, where those of a work-group are of the samples of a bundle. */
static clnorm_status add_slices(clnorm_plan *plan, const struct problem *p) {
    const struct cln_argument arguments[] = {cln_integer("rows", p->norm.rows),
                                             cln_bind("mean", p->workspace.mean),
                                             cln_bind("rstd", p->workspace.rstd),
                                             cln_bind("parts", p->workspace.parts),
                                             {0}};
    const struct cln_group_norm_stage stage = {&slices_kernel, arguments,
                                               p->bundles * p->spec.segments * (p->norm.groups / p->spec.span)};
    return cln_group_norm_add(plan, &p->spec, &stage);
}

/* Adds the kernel over pieces of segments or slices, whose work-groups exchange their sums. */
static clnorm_status add_pieces(clnorm_plan *plan, const struct problem *p) {
    const struct cln_argument arguments[] = {cln_bind("mean", p->workspace.mean),
                                             cln_bind("rstd", p->workspace.rstd),
                                             cln_bind("parts", p->workspace.parts),
                                             {0}};
    const uint64_t pieces = cln_group_norm_pieces(&p->norm, &p->spec);
    const struct cln_group_norm_stage stage = {p->spec.span ? &slice_pieces_kernel : &segment_pieces_kernel, arguments,
                                               pieces};
    return cln_group_norm_add_pieces(plan, &p->spec, &stage, p->workspace.words);
}

/* Adds the kernel over what a work-group takes as a whole: pieces, slices or segments. */
static clnorm_status add_held(clnorm_plan *plan, const struct problem *p) {
    if (p->spec.row_split)
        return add_pieces(plan, p);
    return p->spec.span ? add_slices(plan, p) : add_whole(plan, p);
}

static clnorm_status add_sums(clnorm_plan *plan, const struct problem *p) {
    const struct cln_argument arguments[] = {cln_bind("mean", p->workspace.mean),
                                             cln_bind("rstd", p->workspace.rstd),
                                             cln_bind("parts", p->workspace.parts),
                                             {0}};
    const struct cln_group_norm_stage stage = {&sums_kernel, arguments, cln_group_norm_units(&p->norm, &p->spec)};
    return cln_group_norm_add(plan, &p->spec, &stage);
}

/* Terms of the sums of a group's slopes. Their order, and so the lanes, must not depend on the number of samples. */
static uint64_t terms_of_group(const struct problem *p) {
    enum { LEAST = 32 };
    return cln_larger(p->norm.cols / p->norm.groups * cln_group_norm_row_parts(&p->spec), LEAST);
}

/* Adds up the sums of chunks: to the slopes of groups, which dx needs, and to the sums over samples if they are joined. */
static clnorm_status add_slopes(clnorm_plan *plan, const struct problem *p) {
    const struct cln_argument arguments[] = {cln_integer("rows", p->norm.rows),
                                             cln_bind("rstd", p->workspace.rstd),
                                             cln_bind("parts", p->workspace.parts),
                                             cln_bind("slopes", p->workspace.slopes),
                                             {0}};
    const uint64_t groups = p->norm.rows * p->norm.groups;
    const struct cln_group_norm_stage stage = {&slopes_kernel, arguments, groups + (p->joined ? p->norm.cols : 0)};
    return cln_group_norm_add_reduction(plan, &p->spec, &stage, terms_of_group(p));
}

static clnorm_status add_dx(clnorm_plan *plan, const struct problem *p) {
    const struct cln_argument arguments[] = {cln_bind("mean", p->workspace.mean),
                                             cln_bind("rstd", p->workspace.rstd),
                                             cln_bind("slopes", p->workspace.slopes),
                                             {0}};
    const struct cln_spec spec = cln_group_norm_without_parts(&p->norm, &p->spec);
    const struct cln_group_norm_stage stage = {&dx_kernel, arguments, cln_group_norm_units(&p->norm, &spec)};
    return cln_group_norm_add(plan, &spec, &stage);
}

static clnorm_status add_dx_of_sums(clnorm_plan *plan, const struct problem *p) {
    const uint64_t channels = p->joined ? p->norm.cols : 0;
    const struct cln_argument arguments[] = {cln_integer("rows", p->norm.rows),     cln_integer("channels", channels),
                                             cln_bind("mean", p->workspace.mean),   cln_bind("rstd", p->workspace.rstd),
                                             cln_bind("parts", p->workspace.parts), {0}};
    const struct cln_group_norm_stage stage = {&dx_of_sums_kernel, arguments,
                                               channels + cln_group_norm_units(&p->norm, &p->spec)};
    return cln_group_norm_add(plan, &p->spec, &stage);
}

/* Adds the launch that writes dx while its work-groups exchange sums. */
static clnorm_status add_exchange(clnorm_plan *plan, const struct problem *p) {
    const struct cln_argument arguments[] = {cln_bind("mean", p->workspace.mean), cln_bind("rstd", p->workspace.rstd), {0}};
    const struct cln_group_norm_stage stage = {&exchange_kernel, arguments, cln_group_norm_units(&p->norm, &p->spec)};
    return cln_group_norm_add_exchange(plan, &p->spec, &stage, p->workspace.tickets, p->workspace.parts);
}

static clnorm_status add_chunks(clnorm_plan *plan, const struct problem *p) {
    if (p->spec.row_split)
        return add_exchange(plan, p);
    clnorm_status status = add_sums(plan, p);
    if (!status && p->with_dx)
        return add_dx_of_sums(plan, p);
    if (!status)
        status = add_slopes(plan, p);
    return status ? status : add_dx(plan, p);
}

/* Adds the kernel of the sums over samples alone, from parts. With 0 rows they have no terms. */
static clnorm_status add_sums_of(clnorm_plan *plan, const struct cln_spec *spec, const struct cln_group_norm *norm,
                                 struct cln_binding parts, uint64_t rows) {
    const struct cln_argument arguments[] = {cln_integer("rows", rows), cln_bind("parts", parts), {0}};
    const struct cln_group_norm_stage stage = {&dweight_kernel, arguments, norm->cols};
    return cln_group_norm_add_reduction(plan, spec, &stage, rows * cln_group_norm_row_parts(spec));
}

static clnorm_status add_dweight(clnorm_plan *plan, const struct problem *p) {
    if (!p->batch)
        return add_sums_of(plan, &p->spec, &p->norm, p->workspace.parts, p->bundles);
    const uint64_t batches = cln_divide_up(p->bundles, p->batch);
    const struct cln_argument arguments[] = {cln_integer("rows", p->bundles),
                                             cln_integer("samples", p->batch),
                                             cln_bind("parts", p->workspace.parts),
                                             cln_bind("sums", p->workspace.batches),
                                             {0}};
    const struct cln_group_norm_stage stage = {&batches_kernel, arguments, batches * p->norm.cols};
    struct cln_spec one_part = p->spec;
    one_part.chunks = one_part.row_positions = 1;
    const clnorm_status status =
        cln_group_norm_add_reduction(plan, &p->spec, &stage, p->batch * cln_group_norm_row_parts(&p->spec));
    return status ? status : add_sums_of(plan, &one_part, &p->norm, p->workspace.batches, batches);
}

/* Whether the kernel of the slopes computes the sums over samples too: not where these take its lanes much longer. */
static bool joins_sums(const struct problem *p) {
    enum { MOST_TERMS = 16 }; /* terms of a lane */
    const uint64_t terms = p->norm.rows * cln_group_norm_row_parts(&p->spec);
    return p->sums && p->by_chunks && !p->spec.row_split && p->norm.rows &&
           terms <= MOST_TERMS * (p->with_dx ? p->spec.lanes : terms_of_group(p));
}

/* Bundles of a batch: a work-group adds up its terms in a few steps. Few channels would occupy few compute units for long
 * if each had a single work-group for all samples. */
static uint64_t batch_of(const struct problem *p) {
    enum { TERMS = 4096, MANY = 4 * TERMS }; /* of a batch; of all samples, from which on a second kernel is worth it */
    const uint64_t row_parts = cln_group_norm_row_parts(&p->spec);
    const bool many = cln_product(p->bundles, row_parts) >= MANY && p->bundles > 1;
    return p->sums && !p->joined && many ? cln_larger(TERMS / row_parts, 1) : 0;
}

static clnorm_status add_stages(clnorm_plan *plan, const void *desc, const struct cln_workload *work) {
    const struct cln_group_norm norm = norm_of(desc);
    clnorm_norm_backward_desc rows;
    if (cln_group_norm_backward_as_rows(desc, &norm, &rows))
        return cln_backward_add_stages(plan, &rows, work);
    struct problem p = {.d = desc, .norm = norm, .by_chunks = cln_config_channel_chunks(work, &plan->config)};
    p.sums = p.d->dweight.dtype || p.d->dbias.dtype;
    p.spec = spec_of(plan, p.d, p.sums);
    p.statistics = cln_group_norm_statistics_spec(plan, &norm);
    plan->tensor[CLN_DWEIGHT].read = plan->tensor[CLN_DBIAS].read = p.d->accumulate;
    p.with_dx = cln_group_merges(work, &plan->config);
    p.spec.row_split = cln_exchanges(&plan->config) ? plan->config.row_split : 0;
    p.bundles = p.spec.span ? cln_divide_up(norm.rows, p.spec.segments) : norm.rows;
    p.joined = joins_sums(&p);
    p.batch = batch_of(&p);
    clnorm_status status = lay_out(plan, &p);
    if (!status && work->rows && !p.d->statistics_given)
        status = cln_group_norm_add_statistics(plan, &p.statistics, &p.norm, p.workspace.parts, p.workspace.mean,
                                               p.workspace.rstd);
    if (!status && work->rows)
        status = p.by_chunks ? add_chunks(plan, &p) : add_held(plan, &p);
    return status || !p.sums || p.joined ? status : add_dweight(plan, &p);
}

static const desc_type initial = CLNORM_GROUP_NORM_BACKWARD_DESC_INIT;

const struct cln_operation cln_group_norm_backward = {
    .name = "group_norm_backward",
    .init = "CLNORM_GROUP_NORM_BACKWARD_DESC_INIT",
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
