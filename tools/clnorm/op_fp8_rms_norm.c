/* fp8_rms_norm and its backward. */
#include <inttypes.h>
#include <math.h>

#include "config_text.h"
#include "op_norm.h"
#include "op_quantize.h"
#include "options.h"

const struct role fp8_rms_norm_roles[] = {
    INPUT(x, SHAPE_CODES),
    INPUT(x_scale, SHAPE_X_GROUPS),
    OPTIONAL_INPUT(weight, SHAPE_COLS),
    OPTIONAL_OUTPUT(y, SHAPE_CODES, "x"),
    OUTPUT(y_scale, SHAPE_ONE, "x"),
    OPTIONAL_OUTPUT(y_t, SHAPE_TRANSPOSED, "x"),
    {"row_scale", true, true, SHAPE_ROW_SCALES, offsetof(clnorm_args, y_row_scale), "x"},
    OUTPUT(rstd, SHAPE_ROW_STATISTICS, "x"),
    ROLES_END,
};

const struct role fp8_rms_norm_backward_roles[] = {
    INPUT(x, SHAPE_CODES),
    INPUT(x_scale, SHAPE_X_GROUPS),
    OPTIONAL_INPUT(weight, SHAPE_COLS),
    INPUT(rstd, SHAPE_ROW_STATISTICS),
    INPUT(dy, SHAPE_X),
    OUTPUT(dx, SHAPE_X, "x"),
    OPTIONAL_OUTPUT(dweight, SHAPE_COLS, "weight"),
    ROLES_END,
};

/* ----------------------------------------------------------------------------------------------------------- forward */

/* The group size follows from x_scale's shape; --group-size may repeat it. */
static bool check_groups(const struct job *job, const struct operation_options *options, struct fault *fault) {
    return !options->group_size || (uint64_t)options->group_size == job->group_size ||
           fault_set(fault, EXIT_REQUEST, "--group-size %lld: expected %" PRIu64 ", the group size of x_scale",
                     options->group_size, job->group_size);
}

static bool parse_accuracy(const char *word, clnorm_fp8_accuracy *accuracy, struct fault *fault) {
    const unsigned place = parse_word("--accuracy", word, "fused|compatible", fault);
    *accuracy = place == 2 ? CLNORM_FP8_COMPATIBLE : CLNORM_FP8_FUSED;
    return place;
}

bool fp8_rms_norm_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.norm = CLNORM_RMS_NORM;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.x.scaling = CLNORM_SCALING_GROUP;
    desc.x.scale_group = (uint32_t)job->group_size;
    desc.x.dtype = desc.y.dtype = job_dtype(job, "x");
    desc.x.scale_dtype = job_dtype(job, "x_scale");
    desc.weight.dtype = job_dtype(job, "weight");
    desc.eps = options->eps;
    if (!check_groups(job, options, fault) ||
        (options->accuracy && !parse_accuracy(options->accuracy, &desc.accuracy, fault)) ||
        (options->dtype && !parse_fp8(options->dtype, &desc.y.dtype, fault)) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    desc.y.scaling = CLNORM_SCALING_TENSOR;
    desc.y.scale_dtype = desc.accuracy == CLNORM_FP8_COMPATIBLE ? CLNORM_BF16 : CLNORM_F32;
    if (options->scale_dtype && !parse_scale_dtype(options->scale_dtype, &desc.y.scale_dtype, fault))
        return false;
    job_set_output(job, "y", desc.y.dtype);
    job_set_output(job, "y_t", desc.y.dtype);
    job_set_output(job, "y_scale", desc.y.scale_dtype);
    job_set_output(job, "row_scale", desc.y.scale_dtype);
    job_set_output(job, "rstd", CLNORM_F32);
    if (job_tensor(job, "y_t"))
        desc.y_t.dtype = desc.y.dtype;
    if (!job_tensor(job, "y")) { /* without y, the scale belongs to y_t */
        desc.y_t = desc.y;
        desc.y = (clnorm_tensor)CLNORM_TENSOR_NONE;
    }
    desc.save_rstd = 1;
    desc.save_y_row_scale = job_tensor(job, "row_scale") != NULL;
    job->desc.norm = desc;
    return true;
}

static struct ref_norm reference_of(const struct job *job) {
    const clnorm_norm_desc *const desc = &job->desc.norm;
    struct ref_norm norm = {.norm = CLNORM_RMS_NORM, .rows = job->rows, .cols = job->cols, .group_size = job->cols};
    norm.eps = desc->eps;
    norm.x = scaled_tensor(job, "x", "x_scale");
    norm.weight = (struct ref_tensor){.elements = norm_bytes(job, "weight"), .dtype = desc->weight.dtype};
    return norm;
}

/* The relative error of a few f32 products and quotients, and of a rounding to bfloat16 with CLNORM_FP8_COMPATIBLE. */
static double relative_slack(const struct job *job) {
    const double unit = ref_arithmetic_of(CLNORM_F32).unit;
    return job->desc.norm.accuracy == CLNORM_FP8_COMPATIBLE ? 0x1p-8 + 8 * unit : 8 * unit;
}

/* Compares rstd with the reference. The expected scales are computed from the device's rstd, the expected codes from the
 * device's rstd and y_scale. */
bool fp8_rms_norm_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    const struct ref_arithmetic arithmetic = estimate_arithmetic(CLNORM_F32, job->cols);
    const struct ref_norm norm = reference_of(job);
    const struct judged y = judged_of(job, "y", verdicts), y_t = judged_of(job, "y_t", verdicts);
    const struct judged rstds = judged_of(job, "rstd", verdicts), rows = judged_of(job, "row_scale", verdicts);
    const struct judged whole = judged_of(job, "y_scale", verdicts);
    const struct tensor *const given = job_tensor(job, "rstd"), *const y_scale = job_tensor(job, "y_scale");
    const struct element *const codes =
        element_by_dtype(job->desc.norm.y.dtype ? job->desc.norm.y.dtype : job->desc.norm.y_t.dtype);
    const double scale = job->rows ? element_load(y_scale->element, y_scale->data, 0) : 1;
    const double error = (arithmetic.statistics + 8) * arithmetic.unit;
    struct ref_segment segment = ref_segment_make(job->cols);
    if (!segment.s)
        return fault_set(fault, EXIT_FAILED, "out of memory for a reference of %" PRIu64 " columns", job->cols);
    double largest = 0;
    for (uint64_t row = 0; row < job->rows; row++) {
        ref_norm_segment(&norm, row, 0, &segment);
        judged_add(&rstds, row, (struct ref_value){segment.rstd, isfinite(segment.rstd) ? error * segment.rstd : 0});
        const double own = element_load(given->element, given->data, row);
        double amax = 0;
        for (uint64_t i = 0; i < job->cols; i++) {
            const double n = segment.centre[i] * own * segment.scale[i];
            amax = ref_amax(amax, n);
            const double quotient = n / scale;
            const double slack = isfinite(quotient) ? relative_slack(job) * fabs(quotient) : 0;
            const struct ref_value code = code_estimate(codes, (struct ref_value){quotient, slack});
            judged_add(&y, row * job->cols + i, code);
            judged_add(&y_t, i * job->rows + row, code);
        }
        judged_add(&rows, row, scale_estimate(codes, amax, 8 * arithmetic.unit));
        largest = fmax(largest, amax);
    }
    ref_segment_free(&segment);
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
    desc.x.scaling = CLNORM_SCALING_GROUP;
    desc.x.scale_group = (uint32_t)job->group_size;
    desc.x.dtype = job_dtype(job, "x");
    desc.x.scale_dtype = job_dtype(job, "x_scale");
    desc.weight.dtype = job_dtype(job, "weight");
    desc.dy.dtype = job_dtype(job, "dy");
    desc.rstd_given = true;
    clnorm_dtype main_dtype = desc.dy.dtype;
    if (!check_groups(job, options, fault) ||
        (options->dtype && !parse_dtype("--dtype", options->dtype, &main_dtype, fault)) ||
        !norm_read_reduction(options, &desc, fault) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    job_set_output(job, "dx", main_dtype);
    job_set_output(job, "dweight", desc.weight.dtype ? desc.weight.dtype : CLNORM_F32);
    desc.dx.dtype = job_dtype(job, "dx");
    desc.dweight.dtype = job_dtype(job, "dweight");
    job->desc.norm_backward = desc;
    return true;
}
