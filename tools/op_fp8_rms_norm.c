/* fp8_rms_norm and its backward. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config_text.h"
#include "op_norm.h"
#include "op_quantize.h"
#include "options.h"

#define ARGUMENT(role) offsetof(clnorm_args, role)

const struct role fp8_rms_norm_roles[] = {
    {"x", false, false, SHAPE_CODES, ARGUMENT(x), NULL},
    {"x_scale", false, false, SHAPE_X_GROUPS, ARGUMENT(x_scale), NULL},
    {"weight", false, true, SHAPE_COLS, ARGUMENT(weight), NULL},
    {"y", true, true, SHAPE_CODES, ARGUMENT(y), "x"},
    {"y_scale", true, false, SHAPE_ONE, ARGUMENT(y_scale), "x"},
    {"y_t", true, true, SHAPE_TRANSPOSED, ARGUMENT(y_t), "x"},
    {"row_scale", true, true, SHAPE_ROW_SCALES, ARGUMENT(row_scale), "x"},
    {"rstd", true, false, SHAPE_ROW_STATISTICS, ARGUMENT(rstd), "x"},
    {NULL, false, false, 0, 0, NULL},
};

const struct role fp8_rms_norm_backward_roles[] = {
    {"x", false, false, SHAPE_CODES, ARGUMENT(x), NULL},
    {"x_scale", false, false, SHAPE_X_GROUPS, ARGUMENT(x_scale), NULL},
    {"weight", false, true, SHAPE_COLS, ARGUMENT(weight), NULL},
    {"rstd", false, false, SHAPE_ROW_STATISTICS, ARGUMENT(rstd), NULL},
    {"dy", false, false, SHAPE_X, ARGUMENT(dy), NULL},
    {"dx", true, false, SHAPE_X, ARGUMENT(dx), "x"},
    {"dweight", true, true, SHAPE_COLS, ARGUMENT(dweight), "weight"},
    {NULL, false, false, 0, 0, NULL},
};

/* ----------------------------------------------------------------------------------------------------------- forward */

/* x_scale's shape says what the groups are. */
static bool check_groups(const struct job *job, const struct operation_options *options, struct fault *fault) {
    return !options->group_size || (uint64_t)options->group_size == job->group_size ||
           fault_set(fault, EXIT_REQUEST, "--group-size %lld: expected %" PRIu64 ", as x_scale has it", options->group_size,
                     job->group_size);
}

static bool parse_accuracy(const char *word, clnorm_fp8_accuracy *accuracy, struct fault *fault) {
    if (strcmp(word, "fused") != 0 && strcmp(word, "compatible") != 0)
        return fault_set(fault, EXIT_REQUEST, "--accuracy '%s': expected fused or compatible", word);
    *accuracy = !strcmp(word, "fused") ? CLNORM_FP8_FUSED : CLNORM_FP8_COMPATIBLE;
    return true;
}

bool fp8_rms_norm_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    clnorm_fp8_rms_norm_desc desc = CLNORM_FP8_RMS_NORM_DESC_INIT;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.group_size = job->group_size;
    desc.x_dtype = desc.y_dtype = job_dtype(job, "x");
    desc.x_scale_dtype = job_dtype(job, "x_scale");
    desc.weight_dtype = job_dtype(job, "weight");
    desc.eps = options->eps;
    if (!check_groups(job, options, fault) ||
        (options->accuracy && !parse_accuracy(options->accuracy, &desc.accuracy, fault)) ||
        (options->dtype && !parse_fp8(options->dtype, &desc.y_dtype, fault)) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    desc.scale_dtype = desc.accuracy == CLNORM_FP8_COMPATIBLE ? CLNORM_BF16 : CLNORM_F32;
    if (options->scale_dtype && !parse_scale_dtype(options->scale_dtype, &desc.scale_dtype, fault))
        return false;
    want(job, "y", desc.y_dtype);
    want(job, "y_t", desc.y_dtype);
    want(job, "y_scale", desc.scale_dtype);
    want(job, "row_scale", desc.scale_dtype);
    want(job, "rstd", CLNORM_F32);
    desc.write_y = job_tensor(job, "y");
    desc.write_y_t = job_tensor(job, "y_t");
    desc.save_row_scale = job_tensor(job, "row_scale");
    job->desc.fp8_rms_norm = desc;
    return true;
}

clnorm_status fp8_rms_norm_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_fp8_rms_norm_plan_create(context, &job->desc.fp8_rms_norm, plan);
}

static double v_of(const struct job *job, uint64_t row, uint64_t column) {
    const struct tensor *const x = job_tensor(job, "x"), *const x_scale = job_tensor(job, "x_scale");
    return element_load(x->element, x->data, row * job->cols + column) *
           element_load(x_scale->element, x_scale->data, job_scale_index(job, row, column));
}

static double n_of(const struct job *job, uint64_t row, uint64_t column, double rstd) {
    const struct tensor *const weight = job_tensor(job, "weight");
    const double normed = v_of(job, row, column) * rstd;
    return weight ? normed * element_load(weight->element, weight->data, column) : normed;
}

/* A few products and quotients of f32; compatible, a rounding to bfloat16 besides. */
static double relative_slack(const struct job *job) {
    const double unit = arithmetic_of(CLNORM_F32).unit;
    return job->desc.fp8_rms_norm.accuracy == CLNORM_FP8_COMPATIBLE ? 0x1p-8 + 8 * unit : 8 * unit;
}

/* Judges rstd and row_scale; the codes by the rstd and y_scale that the device gave. */
bool fp8_rms_norm_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    (void)fault;
    const struct arithmetic arithmetic = arithmetic_of(CLNORM_F32);
    const struct judged y = judged_of(job, "y", verdicts), y_t = judged_of(job, "y_t", verdicts);
    const struct judged rstds = judged_of(job, "rstd", verdicts), rows = judged_of(job, "row_scale", verdicts);
    const struct judged whole = judged_of(job, "y_scale", verdicts);
    const struct tensor *const given = job_tensor(job, "rstd"), *const y_scale = job_tensor(job, "y_scale");
    const struct element *const codes = element_by_dtype(job->desc.fp8_rms_norm.y_dtype);
    const double scale = job->rows ? element_load(y_scale->element, y_scale->data, 0) : 1;
    const double error = error_over_segment(&arithmetic, job->cols) + 8 * arithmetic.unit;
    double largest = 0;
    for (uint64_t row = 0; row < job->rows; row++) {
        struct estimate_sum sum = {0};
        for (uint64_t i = 0; i < job->cols; i++)
            estimate_sum_add(&sum, estimate_exact(v_of(job, row, i) * v_of(job, row, i)));
        const double rstd = 1 / sqrt((double)(sum.value / (double)job->cols) + job->desc.fp8_rms_norm.eps);
        judged_add(&rstds, row, (struct estimate){rstd, isfinite(rstd) ? error * rstd : 0});
        const double own = element_load(given->element, given->data, row);
        double amax = 0;
        for (uint64_t i = 0; i < job->cols; i++) {
            const double n = n_of(job, row, i, own);
            amax = isfinite(n) ? fmax(amax, fabs(n)) : amax;
            const double quotient = n / scale;
            const double slack = isfinite(quotient) ? relative_slack(job) * fabs(quotient) : 0;
            const struct estimate code = code_estimate(codes, (struct estimate){quotient, slack});
            judged_add(&y, row * job->cols + i, code);
            judged_add(&y_t, i * job->rows + row, code);
        }
        judged_add(&rows, row, scale_estimate(codes, amax, 8 * arithmetic.unit));
        largest = fmax(largest, amax);
    }
    if (job->rows)
        judged_add(&whole, 0, scale_estimate(codes, largest, 8 * arithmetic.unit));
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- backward */

bool fp8_rms_norm_backward_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.norm = CLNORM_RMS_NORM;
    desc.rows = job->rows;
    desc.cols = desc.group_size = job->cols;
    desc.x_group_size = job->group_size;
    desc.x_dtype = job_dtype(job, "x");
    desc.x_scale_dtype = job_dtype(job, "x_scale");
    desc.weight_dtype = job_dtype(job, "weight");
    desc.dy_dtype = job_dtype(job, "dy");
    desc.rstd_given = true;
    clnorm_dtype main_dtype = desc.dy_dtype;
    if (!check_groups(job, options, fault) || (options->dtype && !parse_dtype(options->dtype, &main_dtype, fault)) ||
        !norm_read_reduction(options, &desc, fault) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    want(job, "dx", main_dtype);
    want(job, "dweight", desc.weight_dtype ? desc.weight_dtype : CLNORM_F32);
    desc.dx_dtype = job_dtype(job, "dx");
    desc.dweight_dtype = job_dtype(job, "dweight");
    job->desc.norm_backward = desc;
    return true;
}

/* As the backward of rms_norm of x · x_scale, in f32 as kernels have it. */
bool fp8_rms_norm_backward_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    struct job wide = *job;
    wide.tensor[0].element = element_by_dtype(CLNORM_F32);
    float *const v = calloc(job->tensor[0].count ? job->tensor[0].count : 1, sizeof *v);
    if (!v)
        return fault_set(fault, EXIT_FAILED, "out of memory for a reference of %" PRIu64 " elements", job->tensor[0].count);
    for (uint64_t i = 0; i < job->tensor[0].count; i++)
        v[i] = (float)v_of(job, i / job->cols, i % job->cols);
    wide.tensor[0].data = (const unsigned char *)v;
    const bool done = norm_backward_verify(&wide, verdicts, fault);
    free(v);
    return done;
}
