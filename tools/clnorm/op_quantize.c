/* quantize and dequantize. */
#include "op_quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config_text.h"
#include "options.h"

const struct role quantize_roles[] = {
    INPUT(x, SHAPE_X),
    OUTPUT(q, SHAPE_CODES, "x"),
    OUTPUT(scale, SHAPE_SCALES, "x"),
    OPTIONAL_OUTPUT(q_t, SHAPE_TRANSPOSED, NULL),
    OPTIONAL_OUTPUT(amax, SHAPE_SCALES, NULL),
    ROLES_END,
};

const struct role dequantize_roles[] = {
    INPUT(q, SHAPE_CODES),
    INPUT(scale, SHAPE_SCALES),
    OUTPUT(x, SHAPE_X, "q"),
    ROLES_END,
};

bool parse_fp8(const char *word, clnorm_dtype *dtype, struct fault *fault) {
    const unsigned place = parse_word("--dtype", word, "f8e4m3|f8e5m2", fault);
    *dtype = place == 2 ? CLNORM_F8_E5M2 : CLNORM_F8_E4M3;
    return place;
}

bool parse_scale_dtype(const char *word, clnorm_dtype *dtype, struct fault *fault) {
    const unsigned place = parse_word("--scale-dtype", word, "f32|bf16", fault);
    *dtype = place == 2 ? CLNORM_BF16 : CLNORM_F32;
    return place;
}

static bool refuse_double(const char *what, clnorm_dtype dtype, struct fault *fault) {
    return dtype != CLNORM_F64 || fault_set(fault, EXIT_REQUEST, "%s: dtype F64; expected F32, F16 or BF16", what);
}

/* ---------------------------------------------------------------------------------------------------------- quantize */

bool quantize_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    clnorm_quantize_desc desc = CLNORM_QUANTIZE_DESC_INIT;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.q.scaling = job->scaling;
    desc.q.scale_group = job->scaling == CLNORM_SCALING_GROUP ? (uint32_t)job->group_size : 0;
    desc.x.dtype = job_dtype(job, "x");
    desc.stochastic = options->stochastic != NULL;
    if ((options->stochastic && !parse_seed("--stochastic", options->stochastic, &desc.seed, fault)) ||
        !refuse_double("x", desc.x.dtype, fault) || (options->dtype && !parse_fp8(options->dtype, &desc.q.dtype, fault)) ||
        (options->scale_dtype && !parse_scale_dtype(options->scale_dtype, &desc.q.scale_dtype, fault)) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    if (options->transpose)
        job->wanted[operation_role(job->operation, "q_t")] = true;
    job_set_output(job, "q", desc.q.dtype);
    job_set_output(job, "q_t", desc.q.dtype);
    job_set_output(job, "scale", desc.q.scale_dtype);
    job_set_output(job, "amax", CLNORM_F32);
    desc.q_t.dtype = job_tensor(job, "q_t") ? desc.q.dtype : CLNORM_DTYPE_NONE;
    desc.save_amax = job_tensor(job, "amax") != NULL;
    job->desc.quantize = desc;
    return true;
}

clnorm_status quantize_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_quantize_plan_create(context, &job->desc.quantize, plan);
}

struct ref_tensor scaled_tensor(const struct job *job, const char *role, const char *scale_role) {
    const struct tensor *const codes = job_tensor(job, role), *const scales = job_tensor(job, scale_role);
    return (struct ref_tensor){.elements = codes->data,
                               .dtype = codes->element->dtype,
                               .stride = job->cols,
                               .scales = scales->data,
                               .scale_dtype = scales->element->dtype,
                               .scaling = job->scaling,
                               .scale_group = job->group_size,
                               .scale_stride = job->group_size ? (job->cols + job->group_size - 1) / job->group_size : 1};
}

struct ref_value code_estimate(const struct element *element, struct ref_value value) {
    const double largest = element_largest(element);
    if (fabs(value.value) > largest)
        value.value = copysign(largest, value.value);
    return value;
}

struct ref_value scale_estimate(const struct element *codes, double amax, double slack) {
    const double scale = ref_scale(codes->dtype, CLNORM_F32, amax);
    return (struct ref_value){scale, slack * scale};
}

void put_scale_of_no_rows(struct job *job) {
    const struct element *codes = NULL;
    for (int i = 0; i < ROLES; i++)
        if (job->output[i] && job->tensor[i].element->bits == 8)
            codes = job->tensor[i].element;
    for (int i = 0; codes && i < ROLES; i++) {
        const struct role *const role = &job->operation->roles[i];
        if (!job->output[i] || job->tensor[i].count != 1)
            continue;
        if (!strcmp(role->name, "scale") || !strcmp(role->name, "y_scale"))
            element_store(job->tensor[i].element, job->output[i], 0, scale_estimate(codes, 0, 0).value);
        if (!strcmp(role->name, "amax"))
            element_store(job->tensor[i].element, job->output[i], 0, 0);
    }
}

/* Stochastic rounding takes either neighbour, so that a code may be a step off. */
static double step_at(const struct element *element, double value) {
    const double smallest = element->dtype == CLNORM_F8_E4M3 ? 0x1p-9 : 0x1p-16;
    return fmax(smallest, 2 * element_epsilon(element) * fabs(value));
}

bool quantize_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    const struct tensor *const x = job_tensor(job, "x"), *const scale = job_tensor(job, "scale");
    const struct element *const codes = job_tensor(job, "q")->element;
    const struct judged q = judged_of(job, "q", verdicts), q_t = judged_of(job, "q_t", verdicts);
    const struct judged scales = judged_of(job, "scale", verdicts), amaxes = judged_of(job, "amax", verdicts);
    const struct ref_arithmetic arithmetic = ref_arithmetic_of(CLNORM_F32);
    double *const amax = calloc(scale->count ? (size_t)scale->count : 1, sizeof *amax);
    if (!amax)
        return fault_set(fault, EXIT_FAILED, "out of memory for a reference of scales");
    for (uint64_t i = 0; i < x->count; i++) {
        double *const largest = &amax[job_scale_index(job, i / job->cols, i % job->cols)];
        *largest = ref_amax(*largest, element_load(x->element, x->data, i));
    }
    for (uint64_t i = 0; job->rows && i < scale->count; i++) {
        judged_add(&amaxes, i, (struct ref_value){amax[i], 0});
        judged_add(&scales, i, scale_estimate(codes, amax[i], 4 * arithmetic.unit));
    }
    for (uint64_t i = 0; i < x->count; i++) {
        const uint64_t row = i / job->cols, column = i % job->cols;
        const double quotient = element_load(x->element, x->data, i) /
                                element_load(scale->element, scale->data, job_scale_index(job, row, column));
        const double slack =
            job->desc.quantize.stochastic ? step_at(codes, quotient) : 4 * arithmetic.unit * fabs(quotient);
        const struct ref_value code = code_estimate(codes, (struct ref_value){quotient, isfinite(slack) ? slack : 0});
        judged_add(&q, i, code);
        judged_add(&q_t, column * job->rows + row, code);
    }
    free(amax);
    return true;
}

/* -------------------------------------------------------------------------------------------------------- dequantize */

bool dequantize_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    clnorm_dequantize_desc desc = CLNORM_DEQUANTIZE_DESC_INIT;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.q.scaling = job->scaling;
    desc.q.scale_group = job->scaling == CLNORM_SCALING_GROUP ? (uint32_t)job->group_size : 0;
    desc.q.dtype = job_dtype(job, "q");
    desc.q.scale_dtype = job_dtype(job, "scale");
    if ((options->dtype && !parse_dtype("--dtype", options->dtype, &desc.x.dtype, fault)) ||
        !refuse_double("--dtype", desc.x.dtype, fault) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    job_set_output(job, "x", desc.x.dtype);
    job->desc.dequantize = desc;
    return true;
}

clnorm_status dequantize_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_dequantize_plan_create(context, &job->desc.dequantize, plan);
}

bool dequantize_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    (void)fault;
    const struct ref_tensor q = scaled_tensor(job, "q", "scale");
    const struct judged x = judged_of(job, "x", verdicts);
    const struct ref_arithmetic arithmetic = ref_arithmetic_of(CLNORM_F32);
    for (uint64_t i = 0; i < job_tensor(job, "q")->count; i++) {
        const double value = ref_at(&q, i / job->cols, i % job->cols);
        judged_add(&x, i, (struct ref_value){value, arithmetic.unit * fabs(value) + arithmetic.tiny});
    }
    return true;
}
