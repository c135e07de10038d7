/* quantize and dequantize. */
#include "op_quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config_text.h"
#include "options.h"

#define ARGUMENT(role) offsetof(clnorm_args, role)

const struct role quantize_roles[] = {
    {"x", false, false, SHAPE_X, ARGUMENT(x), NULL},
    {"q", true, false, SHAPE_CODES, ARGUMENT(q), "x"},
    {"scale", true, false, SHAPE_SCALES, ARGUMENT(scale), "x"},
    {"q_t", true, true, SHAPE_TRANSPOSED, ARGUMENT(q_t), NULL},
    {"amax", true, true, SHAPE_SCALES, ARGUMENT(amax), NULL},
    {NULL, false, false, 0, 0, NULL},
};

const struct role dequantize_roles[] = {
    {"q", false, false, SHAPE_CODES, ARGUMENT(q), NULL},
    {"scale", false, false, SHAPE_SCALES, ARGUMENT(scale), NULL},
    {"x", true, false, SHAPE_X, ARGUMENT(x), "q"},
    {NULL, false, false, 0, 0, NULL},
};

bool parse_fp8(const char *word, clnorm_dtype *dtype, struct fault *fault) {
    const clnorm_dtype dtypes[] = {CLNORM_F8_E4M3, CLNORM_F8_E5M2};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(word, clnorm_dtype_name(dtypes[i]))) {
            *dtype = dtypes[i];
            return true;
        }
    return fault_set(fault, EXIT_REQUEST, "--dtype %s: expected f8e4m3 or f8e5m2", word);
}

bool parse_scale_dtype(const char *word, clnorm_dtype *dtype, struct fault *fault) {
    if (strcmp(word, "f32") != 0 && strcmp(word, "bf16") != 0)
        return fault_set(fault, EXIT_REQUEST, "--scale-dtype %s: expected f32 or bf16", word);
    return parse_dtype(word, dtype, fault);
}

static bool refuse_double(const char *what, clnorm_dtype dtype, struct fault *fault) {
    return dtype != CLNORM_F64 || fault_set(fault, EXIT_REQUEST, "%s: dtype F64; expected F32, F16 or BF16", what);
}

void want(struct job *job, const char *role, clnorm_dtype dtype) {
    const int i = operation_role(job->operation, role);
    if (job->wanted[i])
        job->tensor[i].element = element_by_dtype(dtype);
}

/* ---------------------------------------------------------------------------------------------------------- quantize */

bool quantize_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    clnorm_quantize_desc desc = CLNORM_QUANTIZE_DESC_INIT;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.scaling = job->scaling;
    desc.group_size = job->scaling == CLNORM_SCALING_GROUP ? job->group_size : 0;
    desc.x_dtype = job_dtype(job, "x");
    desc.stochastic = options->stochastic >= 0;
    desc.seed = desc.stochastic ? (uint64_t)options->stochastic : 0;
    if (!refuse_double("x", desc.x_dtype, fault) || (options->dtype && !parse_fp8(options->dtype, &desc.q_dtype, fault)) ||
        (options->scale_dtype && !parse_scale_dtype(options->scale_dtype, &desc.scale_dtype, fault)) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    if (options->transpose)
        job->wanted[operation_role(job->operation, "q_t")] = true;
    want(job, "q", desc.q_dtype);
    want(job, "q_t", desc.q_dtype);
    want(job, "scale", desc.scale_dtype);
    want(job, "amax", CLNORM_F32);
    desc.transpose = job_tensor(job, "q_t");
    desc.save_amax = job_tensor(job, "amax");
    job->desc.quantize = desc;
    return true;
}

clnorm_status quantize_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_quantize_plan_create(context, &job->desc.quantize, plan);
}

struct estimate code_estimate(const struct element *element, struct estimate value) {
    const double largest = element_largest(element);
    if (fabs(value.value) > largest)
        value.value = copysign(largest, value.value);
    return value;
}

struct estimate scale_estimate(const struct element *codes, double amax, double slack) {
    const double scale = (amax + 1e-10) / element_largest(codes);
    return (struct estimate){scale, slack * scale};
}

/* Stochastic rounding takes either neighbour: what is judged may be a step off. */
static double step_at(const struct element *element, double value) {
    const double smallest = element->dtype == CLNORM_F8_E4M3 ? 0x1p-9 : 0x1p-16;
    return fmax(smallest, 2 * element_epsilon(element) * fabs(value));
}

bool quantize_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    const struct tensor *const x = job_tensor(job, "x"), *const scale = job_tensor(job, "scale");
    const struct element *const codes = job_tensor(job, "q")->element;
    const struct judged q = judged_of(job, "q", verdicts), q_t = judged_of(job, "q_t", verdicts);
    const struct judged scales = judged_of(job, "scale", verdicts), amaxes = judged_of(job, "amax", verdicts);
    const struct arithmetic arithmetic = arithmetic_of(CLNORM_F32);
    double *const amax = calloc(scale->count ? scale->count : 1, sizeof *amax);
    if (!amax)
        return fault_set(fault, EXIT_FAILED, "out of memory for a reference of scales");
    for (uint64_t i = 0; i < x->count; i++) {
        const double value = fabs(element_load(x->element, x->data, i));
        double *const largest = &amax[job_scale_index(job, i / job->cols, i % job->cols)];
        *largest = isfinite(value) && value > *largest ? value : *largest;
    }
    for (uint64_t i = 0; job->rows && i < scale->count; i++) {
        judged_add(&amaxes, i, estimate_exact(amax[i]));
        judged_add(&scales, i, scale_estimate(codes, amax[i], 4 * arithmetic.unit));
    }
    for (uint64_t i = 0; i < x->count; i++) {
        const uint64_t row = i / job->cols, column = i % job->cols;
        const double quotient = element_load(x->element, x->data, i) /
                                element_load(scale->element, scale->data, job_scale_index(job, row, column));
        const double slack =
            job->desc.quantize.stochastic ? step_at(codes, quotient) : 4 * arithmetic.unit * fabs(quotient);
        const struct estimate code = code_estimate(codes, (struct estimate){quotient, isfinite(slack) ? slack : 0});
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
    desc.scaling = job->scaling;
    desc.group_size = job->scaling == CLNORM_SCALING_GROUP ? job->group_size : 0;
    desc.q_dtype = job_dtype(job, "q");
    desc.scale_dtype = job_dtype(job, "scale");
    if ((options->dtype && !parse_dtype(options->dtype, &desc.x_dtype, fault)) ||
        !refuse_double("--dtype", desc.x_dtype, fault) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    want(job, "x", desc.x_dtype);
    job->desc.dequantize = desc;
    return true;
}

clnorm_status dequantize_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_dequantize_plan_create(context, &job->desc.dequantize, plan);
}

bool dequantize_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    (void)fault;
    const struct tensor *const q = job_tensor(job, "q"), *const scale = job_tensor(job, "scale");
    const struct judged x = judged_of(job, "x", verdicts);
    const struct arithmetic arithmetic = arithmetic_of(CLNORM_F32);
    for (uint64_t i = 0; i < q->count; i++) {
        const uint64_t index = job_scale_index(job, i / job->cols, i % job->cols);
        judged_add(&x, i,
                   estimate_multiply(&arithmetic, estimate_exact(element_load(q->element, q->data, i)),
                                     estimate_exact(element_load(scale->element, scale->data, index))));
    }
    return true;
}
