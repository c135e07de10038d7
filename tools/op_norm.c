/* layer_norm and rms_norm, forward. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config_text.h"
#include "operation.h"
#include "options.h"
#include "reference.h"

#define ARGUMENT(role) offsetof(clnorm_args, role)

const struct role layer_norm_roles[] = {
    {"x", false, false, SHAPE_X, ARGUMENT(x)},
    {"weight", false, true, SHAPE_COLS, ARGUMENT(weight)},
    {"bias", false, true, SHAPE_COLS, ARGUMENT(bias)},
    {"z", false, true, SHAPE_X, ARGUMENT(z)},
    {"y", true, false, SHAPE_X, ARGUMENT(y)},
    {"mean", true, false, SHAPE_STATISTICS, ARGUMENT(mean)},
    {"rstd", true, false, SHAPE_STATISTICS, ARGUMENT(rstd)},
    {NULL, false, false, 0, 0},
};

const struct role rms_norm_roles[] = {
    {"x", false, false, SHAPE_X, ARGUMENT(x)},
    {"weight", false, true, SHAPE_COLS, ARGUMENT(weight)},
    {"bias", false, true, SHAPE_COLS, ARGUMENT(bias)},
    {"z", false, true, SHAPE_X, ARGUMENT(z)},
    {"y", true, false, SHAPE_X, ARGUMENT(y)},
    {"rstd", true, false, SHAPE_STATISTICS, ARGUMENT(rstd)},
    {NULL, false, false, 0, 0},
};

static clnorm_dtype dtype_of(const struct job *job, const char *role) {
    const struct tensor *const tensor = job_tensor(job, role);
    return tensor ? tensor->element->dtype : CLNORM_DTYPE_NONE;
}

static bool parse_gate(const char *word, clnorm_gate *gate, struct fault *fault) {
    if (!strcmp(word, "silu"))
        *gate = CLNORM_GATE_SILU;
    else if (!strcmp(word, "sigmoid"))
        *gate = CLNORM_GATE_SIGMOID;
    else
        return fault_set(fault, EXIT_REQUEST, "--gate '%s': expected silu or sigmoid", word);
    return true;
}

/* The gate and its z come together. */
static bool check_gate(const struct job *job, const struct operation_options *options, struct fault *fault) {
    const struct tensor *const z = job_tensor(job, "z");
    if (options->gate && !z)
        return fault_set(fault, EXIT_REQUEST, "z: --gate needs this tensor, of x's shape");
    if (!options->gate && z)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (z): it is read only with --gate", z->name);
    if (!options->gate && options->gate_first)
        return fault_set(fault, EXIT_REQUEST, "--gate-first: expected a --gate too");
    return true;
}

/* Doubles keep to themselves. */
static bool check_doubles(const struct job *job, clnorm_dtype y_dtype, struct fault *fault) {
    const struct role *const roles = job->operation->roles;
    const struct element *const x = job->tensor[0].element;
    const char *const expected = x->dtype == CLNORM_F64 ? "F64" : "F32, F16 or BF16";
    for (int i = 0; roles[i].name && !roles[i].output; i++) {
        const struct tensor *const tensor = &job->tensor[i];
        if (tensor->element && (tensor->element->dtype == CLNORM_F64) != (x->dtype == CLNORM_F64))
            return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): dtype %s; expected %s, since x is %s", tensor->name,
                             roles[i].name, tensor->element->name, expected, x->name);
    }
    return (y_dtype == CLNORM_F64) == (x->dtype == CLNORM_F64) ||
           fault_set(fault, EXIT_REQUEST, "--dtype %s: expected %s, since x is %s", clnorm_dtype_name(y_dtype), expected,
                     x->name);
}

bool norm_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.norm = job->operation->norm;
    desc.rows = job->rows;
    desc.cols = job->cols;
    if (options->group_size < 0 || (options->group_size && job->cols % (uint64_t)options->group_size))
        return fault_set(fault, EXIT_REQUEST, "--group-size %lld: expected a divisor of x's %" PRIu64 " columns",
                         options->group_size, job->cols);
    desc.group_size = options->group_size ? (uint64_t)options->group_size : job->cols;
    job->groups = job->cols / desc.group_size;
    desc.x_dtype = desc.y_dtype = dtype_of(job, "x");
    desc.z_dtype = dtype_of(job, "z");
    desc.weight_dtype = dtype_of(job, "weight");
    desc.bias_dtype = dtype_of(job, "bias");
    desc.save_mean = !options->inference && operation_role(job->operation, "mean") >= 0;
    desc.save_rstd = !options->inference;
    desc.eps = options->eps;
    desc.weight_offset = options->weight_offset;
    desc.gate_first = options->gate_first;
    if (!check_gate(job, options, fault) || (options->gate && !parse_gate(options->gate, &desc.gate, fault)) ||
        (options->dtype && !parse_dtype(options->dtype, &desc.y_dtype, fault)) ||
        !check_doubles(job, desc.y_dtype, fault) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    job->desc.norm = desc;

    const clnorm_dtype statistics = desc.x_dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    const struct role *const roles = job->operation->roles;
    for (int i = 0; roles[i].name; i++)
        if (roles[i].output && !(options->inference && roles[i].shape == SHAPE_STATISTICS))
            job->tensor[i].element = element_by_dtype(roles[i].shape == SHAPE_STATISTICS ? statistics : desc.y_dtype);
    return true;
}

clnorm_status norm_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_norm_forward_plan_create(context, &job->desc.norm, plan);
}

static void judge(const struct job *job, const char *role, struct verdict *verdicts, uint64_t index,
                  struct estimate estimate) {
    const struct tensor *const tensor = job_tensor(job, role);
    if (tensor)
        verdict_add(&verdicts[operation_role(job->operation, role)], tensor->element, index,
                    element_load(tensor->element, tensor->data, index), estimate.value, estimate.slack);
}

bool norm_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    const clnorm_norm_desc *const desc = &job->desc.norm;
    const struct norm_inputs inputs = {job_tensor(job, "x"), job_tensor(job, "weight"), job_tensor(job, "bias"),
                                       job_tensor(job, "z")};
    struct norm_segment segment = {.y = calloc(desc->group_size, sizeof *segment.y)};
    if (!segment.y)
        return fault_set(fault, EXIT_FAILED, "out of memory for a reference of %" PRIu64 " columns", desc->group_size);
    const struct tensor *const y = job_tensor(job, "y");
    struct verdict *const y_verdict = &verdicts[operation_role(job->operation, "y")];
    for (uint64_t row = 0; row < job->rows; row++)
        for (uint64_t group = 0; group < job->groups; group++) {
            const uint64_t first = group * desc->group_size;
            reference_segment(desc, &inputs, row, first, &segment);
            judge(job, "mean", verdicts, group * job->rows + row, segment.mean);
            judge(job, "rstd", verdicts, group * job->rows + row, segment.rstd);
            for (uint64_t i = 0; i < desc->group_size; i++) {
                const uint64_t index = row * job->cols + first + i;
                verdict_add(y_verdict, y->element, index, element_load(y->element, y->data, index), segment.y[i].value,
                            segment.y[i].slack);
            }
        }
    free(segment.y);
    return true;
}
