/* group_norm and instance_norm, forward and backward. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config_text.h"
#include "op_norm.h"
#include "op_norm_quantized.h"
#include "options.h"
#include "reference/group_norm.h"

const struct role group_norm_roles[] = {
    INPUT(x, SHAPE_SCALED),
    OPTIONAL_INPUT(x_scale, SHAPE_X_SCALES),
    OPTIONAL_INPUT(weight, SHAPE_COLS),
    OPTIONAL_INPUT(bias, SHAPE_COLS),
    OPTIONAL_INPUT(residual, SHAPE_X),
    OUTPUT(y, SHAPE_X, "x"),
    OPTIONAL_OUTPUT(mean, SHAPE_GROUPS, "x"),
    OPTIONAL_OUTPUT(rstd, SHAPE_GROUPS, "x"),
    OPTIONAL_OUTPUT(residual_out, SHAPE_X, "residual"),
    OPTIONAL_OUTPUT(y_scale, SHAPE_SCALES, NULL),
    ROLES_END,
};

const struct role group_norm_backward_roles[] = {
    INPUT(x, SHAPE_SCALED),
    OPTIONAL_INPUT(x_scale, SHAPE_X_SCALES),
    INPUT(dy, SHAPE_X),
    OPTIONAL_INPUT(weight, SHAPE_COLS),
    OPTIONAL_INPUT(bias, SHAPE_COLS),
    OPTIONAL_INPUT(mean, SHAPE_GROUPS),
    OPTIONAL_INPUT(rstd, SHAPE_GROUPS),
    OPTIONAL_INPUT(dresidual_out, SHAPE_X),
    OUTPUT(dx, SHAPE_X, "x"),
    OPTIONAL_OUTPUT(dweight, SHAPE_COLS, "weight"),
    OPTIONAL_OUTPUT(dbias, SHAPE_COLS, "bias"),
    OPTIONAL_OUTPUT(dresidual, SHAPE_X, "dresidual_out"),
    ROLES_END,
};

static clnorm_layout layout_of(const struct job *job) {
    return job->channels_last ? CLNORM_LAYOUT_LAST : CLNORM_LAYOUT_FIRST;
}

/* ---------------------------------------------------------------------------------------------------------- describe */

/* Reads the options of both directions, and the main output's dtype unless --quantize has set it. */
static bool read_options(const struct job *job, const struct operation_options *options, clnorm_dtype *main_dtype,
                         clnorm_activation *activation, clnorm_config *config, struct fault *fault) {
    const bool quantized = options->quantize != NULL;
    if (!quantized)
        *main_dtype = job->x.scaling ? CLNORM_F32 : job_dtype(job, "x");
    return norm_read_activation(options, activation, fault) &&
           (!options->dtype || quantized || parse_dtype("--dtype", options->dtype, main_dtype, fault)) &&
           job_check_doubles(job, *main_dtype, false, fault) &&
           (!options->config || config_parse(options->config, config, fault));
}

/* Gives wanted outputs their elements. A gradient of a vector has that vector's dtype. */
static void give_elements(struct job *job, clnorm_dtype main_dtype) {
    const struct role *const roles = job->operation->roles;
    const clnorm_dtype statistics = statistics_dtype(job_dtype(job, "x"));
    for (int i = 0; roles[i].name; i++) {
        if (!job->wanted[i])
            continue;
        clnorm_dtype dtype = main_dtype;
        if (roles[i].shape == SHAPE_GROUPS || roles[i].shape == SHAPE_SCALES)
            dtype = statistics;
        else if (roles[i].shape == SHAPE_COLS) /* the input's name follows the 'd' of "dweight" */
            dtype = job_tensor(job, roles[i].name + 1) ? job_dtype(job, roles[i].name + 1) : statistics;
        else if (!strcmp(roles[i].name, "residual_out") && job_tensor(job, "residual"))
            dtype = job_dtype(job, "residual");
        else if (!strcmp(roles[i].name, "dresidual") && job_tensor(job, "dresidual_out"))
            dtype = job_dtype(job, "dresidual_out");
        job->tensor[i].element = element_by_dtype(dtype);
    }
}

/* The descriptor's x, with its scaling. */
static clnorm_tensor x_of(const struct job *job) {
    clnorm_tensor x = job->x;
    x.dtype = job_dtype(job, "x");
    return x;
}

static bool read_quantize(struct job *job, const struct operation_options *options, clnorm_tensor *y, struct fault *fault) {
    if (options->quantize && !strcmp(options->quantize, "group"))
        return fault_set(fault, EXIT_REQUEST, "--quantize group: expected tensor or row, which is a sample of %s",
                         job->operation->name);
    return norm_read_quantize(job, options, y, fault);
}

bool group_norm_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    clnorm_group_norm_desc desc = CLNORM_GROUP_NORM_DESC_INIT;
    if (!read_quantize(job, options, &desc.y, fault) ||
        !read_options(job, options, &desc.y.dtype, &desc.activation, &desc.config, fault))
        return false;
    give_elements(job, desc.y.dtype);
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.spatial = job->spatial;
    desc.groups = job->groups;
    desc.layout = layout_of(job);
    desc.eps = options->eps;
    desc.x = x_of(job);
    desc.residual.dtype = job_dtype(job, "residual");
    desc.residual_out.dtype = job_dtype(job, "residual_out");
    desc.weight.dtype = job_dtype(job, "weight");
    desc.bias.dtype = job_dtype(job, "bias");
    desc.save_mean = job_tensor(job, "mean") != NULL;
    desc.save_rstd = job_tensor(job, "rstd") != NULL;
    job->desc.group_norm = desc;
    return true;
}

bool group_norm_backward_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    clnorm_group_norm_backward_desc desc = CLNORM_GROUP_NORM_BACKWARD_DESC_INIT;
    clnorm_dtype main_dtype = CLNORM_DTYPE_NONE;
    if (!norm_check_statistics(job, fault) ||
        !read_options(job, options, &main_dtype, &desc.activation, &desc.config, fault))
        return false;
    give_elements(job, main_dtype);
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.spatial = job->spatial;
    desc.groups = job->groups;
    desc.layout = layout_of(job);
    desc.eps = options->eps;
    desc.x = x_of(job);
    desc.dresidual_out.dtype = job_dtype(job, "dresidual_out");
    desc.dresidual.dtype = job_dtype(job, "dresidual");
    desc.dy.dtype = job_dtype(job, "dy");
    desc.dx.dtype = job_dtype(job, "dx");
    desc.weight.dtype = job_dtype(job, "weight");
    desc.bias.dtype = job_dtype(job, "bias");
    desc.dweight.dtype = job_dtype(job, "dweight");
    desc.dbias.dtype = job_dtype(job, "dbias");
    desc.statistics_given = job_tensor(job, "rstd") != NULL;
    job->desc.group_norm_backward = desc;
    return true;
}

clnorm_status group_norm_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_group_norm_plan_create(context, &job->desc.group_norm, plan);
}

clnorm_status group_norm_backward_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_group_norm_backward_plan_create(context, &job->desc.group_norm_backward, plan);
}

/* ------------------------------------------------------------------------------------------------------------ verify */

static struct ref_tensor operand(const struct job *job, const char *role, uint64_t stride) {
    return (struct ref_tensor){.elements = norm_bytes(job, role), .dtype = job_dtype(job, role), .stride = stride};
}

static struct ref_tensor x_operand(const struct job *job) {
    struct ref_tensor x = operand(job, "x", job->cols * job->spatial);
    x.scales = norm_bytes(job, "x_scale");
    x.scale_dtype = job->x.scale_dtype;
    x.scaling = job->x.scaling;
    return x;
}

/* Lacks the activation and eps, which are in the descriptor of one direction. */
static struct ref_group_norm reference_of(const struct job *job) {
    const uint64_t sample = job->cols * job->spatial;
    return (struct ref_group_norm){
        .rows = job->rows,
        .cols = job->cols,
        .spatial = job->spatial,
        .groups = job->groups,
        .layout = layout_of(job),
        .x = x_operand(job),
        .dresidual_out = operand(job, "dresidual_out", sample),
        .residual = operand(job, "residual", sample),
        .dy = operand(job, "dy", sample),
        .weight = operand(job, "weight", job->cols),
        .bias = operand(job, "bias", job->cols),
    };
}

/* eps, rounded to the dtype of the arithmetic. */
static double eps_of(const struct job *job, double eps) {
    return job_dtype(job, "x") == CLNORM_F64 ? eps : (double)(float)eps;
}

static bool make_reference(const struct ref_group_norm *norm, struct ref_gathered *gathered, struct fault *fault) {
    *gathered = ref_gathered_make(norm);
    return gathered->memory || fault_set(fault, EXIT_FAILED, "out of memory for a reference of %" PRIu64 " elements",
                                         ref_group_norm_size(norm));
}

/* The comparisons of the forward's outputs. */
struct forward_judges {
    const struct job *job;
    struct judged y, mean, rstd, residual_out;
    struct largest largest;
};

static void judge_group(const struct forward_judges *judges, const struct ref_group_norm *norm, uint64_t row,
                        uint64_t group, const struct ref_gathered *gathered, const struct ref_arithmetic *arithmetic) {
    const struct job *const job = judges->job;
    const struct ref_segment *const s = &gathered->gradients.forward;
    const struct ref_norm_error error = ref_norm_error_of(&gathered->norm.forward, arithmetic, s);
    const double mean_error = isfinite(s->mean) ? error.mean + arithmetic->tiny : INFINITY;
    judged_add(&judges->mean, row * norm->groups + group, (struct ref_value){s->mean, mean_error});
    judged_add(&judges->rstd, row * norm->groups + group, (struct ref_value){s->rstd, error.rstd});
    for (uint64_t i = 0; i < ref_group_norm_size(norm); i++) {
        const uint64_t at = ref_group_norm_at(norm, group, i), index = row * norm->cols * norm->spatial + at;
        const struct ref_value y = {s->y[i], ref_y_error(&error, i)};
        largest_add(&judges->largest, job, row, at, y);
        judged_add(&judges->y, index, norm_stored(job, &job->desc.group_norm.y, row, at, y));
        judged_add(&judges->residual_out, index, (struct ref_value){s->s[i], ref_s_error(&error, i)});
    }
}

bool group_norm_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    const clnorm_group_norm_desc *const desc = &job->desc.group_norm;
    struct ref_group_norm norm = reference_of(job);
    struct ref_gathered gathered;
    norm.activation = desc->activation;
    norm.eps = eps_of(job, desc->eps);
    if (!make_reference(&norm, &gathered, fault))
        return false;
    const struct ref_arithmetic arithmetic = estimate_arithmetic(desc->x.dtype, ref_group_norm_size(&norm));
    struct forward_judges judges = {.job = job,
                                    .y = judged_of(job, "y", verdicts),
                                    .mean = judged_of(job, "mean", verdicts),
                                    .rstd = judged_of(job, "rstd", verdicts),
                                    .residual_out = judged_of(job, "residual_out", verdicts)};
    if (!largest_make(&judges.largest, job, fault)) {
        ref_gathered_free(&gathered);
        return false;
    }
    for (uint64_t row = 0; row < job->rows; row++)
        for (uint64_t group = 0; group < job->groups; group++) {
            ref_group_norm_segment(&norm, row, group, &gathered);
            judge_group(&judges, &norm, row, group, &gathered, &arithmetic);
        }
    largest_judge(&judges.largest, job, desc->y.dtype, verdicts);
    largest_free(&judges.largest);
    ref_gathered_free(&gathered);
    return true;
}

bool group_norm_backward_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    const clnorm_group_norm_backward_desc *const desc = &job->desc.group_norm_backward;
    struct ref_group_norm norm = reference_of(job);
    struct ref_gathered gathered;
    norm.activation = desc->activation;
    norm.eps = eps_of(job, desc->eps);
    norm.mean = operand(job, "mean", 1);
    norm.rstd = operand(job, "rstd", 1);
    if (!make_reference(&norm, &gathered, fault))
        return false;
    struct ref_row_sum *const sums = calloc(2 * (size_t)norm.cols, sizeof *sums); /* of dweight, then of dbias */
    if (!sums) {
        ref_gathered_free(&gathered);
        return fault_set(fault, EXIT_FAILED, "out of memory for a reference of %" PRIu64 " channels", norm.cols);
    }
    const struct ref_arithmetic arithmetic = estimate_arithmetic(desc->x.dtype, ref_group_norm_size(&norm));
    const struct judged dx = judged_of(job, "dx", verdicts), dresidual = judged_of(job, "dresidual", verdicts);
    const struct judged dweight = judged_of(job, "dweight", verdicts), dbias = judged_of(job, "dbias", verdicts);
    for (uint64_t row = 0; row < job->rows; row++)
        for (uint64_t group = 0; group < job->groups; group++) {
            ref_group_norm_gradients(&norm, &arithmetic, row, group, &gathered);
            ref_group_norm_add(&norm, group, &gathered, sums, sums + norm.cols);
            for (uint64_t i = 0; i < ref_group_norm_size(&norm); i++) {
                const uint64_t index = row * norm.cols * norm.spatial + ref_group_norm_at(&norm, group, i);
                const struct ref_value ds = {gathered.gradients.ds[i], gathered.errors.dresidual[i]};
                judged_add(&dx, index, ds);
                judged_add(&dresidual, index, ds);
            }
        }
    const double error = error_over_rows(&arithmetic, job->rows * job->spatial);
    judged_add_sums(&dweight, sums, job->cols, error);
    judged_add_sums(&dbias, sums + norm.cols, job->cols, error);
    free(sums);
    ref_gathered_free(&gathered);
    return true;
}
