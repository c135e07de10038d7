/* layer_norm and rms_norm, forward. */
#include "op_norm.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "config_text.h"
#include "op_norm_quantized.h"
#include "options.h"
#include "rope.h"

/* RMS norm has these roles without mean. */
const struct role norm_roles[] = {
    INPUT(x, SHAPE_SCALED),
    OPTIONAL_INPUT(x_scale, SHAPE_X_SCALES),
    OPTIONAL_INPUT(weight, SHAPE_COLS),
    OPTIONAL_INPUT(bias, SHAPE_COLS),
    OPTIONAL_INPUT(z, SHAPE_X),
    OPTIONAL_INPUT(residual, SHAPE_X),
    OPTIONAL_INPUT(row_scale, SHAPE_ROWS),
    OPTIONAL_INPUT(rope_cos, SHAPE_TABLE),
    OPTIONAL_INPUT(rope_sin, SHAPE_TABLE),
    OPTIONAL_INPUT(position, SHAPE_POSITIONS),
    OUTPUT(y, SHAPE_X, "x"),
    OPTIONAL_OUTPUT(mean, SHAPE_STATISTICS, "x"),
    OPTIONAL_OUTPUT(rstd, SHAPE_STATISTICS, "x"),
    OPTIONAL_OUTPUT(residual_out, SHAPE_X, "residual"),
    OPTIONAL_OUTPUT(y_scale, SHAPE_SCALES, NULL),
    OPTIONAL_OUTPUT(y_t, SHAPE_TRANSPOSED, NULL),
    ROLES_END,
};

bool norm_read_gate(const struct job *job, const struct operation_options *options, clnorm_gate *gate,
                    struct fault *fault) {
    const struct tensor *const z = job_tensor(job, "z");
    if (options->gate && !z)
        return fault_set(fault, EXIT_REQUEST, "z: --gate needs this tensor, of x's shape");
    if (!options->gate && z)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (z): it is read only with --gate", z->name);
    if (!options->gate && options->gate_first)
        return fault_set(fault, EXIT_REQUEST, "--gate-first: expected a --gate too");
    *gate = options->gate ? (clnorm_gate)parse_word("--gate", options->gate, "silu|sigmoid", fault) : CLNORM_GATE_NONE;
    return !options->gate || *gate;
}

bool norm_read_activation(const struct operation_options *options, clnorm_activation *activation, struct fault *fault) {
    const char *const word = options->activation ? options->activation : "none";
    const unsigned place = parse_word("--activation", word, "none|gelu|gelu_tanh|silu", fault);
    *activation = place ? (clnorm_activation)(place - 1) : CLNORM_ACTIVATION_NONE;
    return place;
}

bool norm_read_dropout(struct job *job, const struct operation_options *options, double *dropout, struct fault *fault) {
    if (!(options->dropout >= 0 && options->dropout < 1))
        return fault_set(fault, EXIT_REQUEST, "--dropout %g: expected a probability, 0 or more and less than 1",
                         options->dropout);
    if (options->dropout > 0 && !options->seed)
        return fault_set(fault, EXIT_REQUEST, "--dropout %g: expected a --seed too", options->dropout);
    job->seeded = options->dropout > 0;
    job->seed = (clnorm_seed){0, 0};
    *dropout = options->dropout;
    if (options->seed && !parse_seed("--seed", options->seed, &job->seed.seed, fault))
        return false;
    return !options->seed || job->seeded ||
           fault_set(fault, EXIT_REQUEST, "--seed %s: expected a --dropout above 0 too", options->seed);
}

const void *norm_bytes(const struct job *job, const char *role) {
    const struct tensor *const tensor = job_tensor(job, role);
    return tensor ? tensor->data : NULL;
}

void norm_lend(const struct job *job, struct ref_norm *norm) {
    norm->x.elements = norm_bytes(job, "x");
    norm->x.scales = norm_bytes(job, "x_scale");
    norm->weight.elements = norm_bytes(job, "weight");
    norm->bias.elements = norm_bytes(job, "bias");
    norm->z.elements = norm_bytes(job, "z");
    norm->residual.elements = norm_bytes(job, "residual");
    norm->row_scale.elements = norm_bytes(job, "row_scale");
    norm->seed = job->seed;
    rope_lend(job, &norm->rope);
}

bool norm_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    const struct role *const roles = job->operation->roles;
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.norm = job->operation->norm;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.group_size = job->cols / job->groups;
    desc.weight_rows = job->weight_rows;
    desc.weight_repeat = job->weight_repeat;
    desc.x = job->x;
    desc.x.dtype = job_dtype(job, "x");
    desc.y.dtype = desc.x.scaling ? CLNORM_F32 : desc.x.dtype;
    desc.z.dtype = job_dtype(job, "z");
    desc.weight.dtype = job_dtype(job, "weight");
    desc.bias.dtype = job_dtype(job, "bias");
    desc.eps = options->eps;
    desc.weight_offset = options->weight_offset;
    desc.gate_first = options->gate_first != 0;
    desc.batch_invariant = options->batch_invariant != 0;
    desc.residual.dtype = job_dtype(job, "residual");
    desc.row_scale = job_tensor(job, "row_scale") != NULL;
    rope_describe(job, &desc);
    if (!norm_read_activation(options, &desc.activation, fault) || !norm_read_dropout(job, options, &desc.dropout, fault) ||
        !norm_read_gate(job, options, &desc.gate, fault) || !norm_read_quantize(job, options, &desc.y, fault) ||
        !norm_check_quantize(job, &desc, fault) ||
        (options->dtype && !desc.y.scaling && !parse_dtype("--dtype", options->dtype, &desc.y.dtype, fault)) ||
        !job_check_doubles(job, desc.y.dtype, true, fault) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    for (int i = 0; roles[i].name; i++) {
        if (!job->wanted[i])
            continue;
        const bool statistics = roles[i].shape == SHAPE_STATISTICS || roles[i].shape == SHAPE_SCALES;
        const bool sum = !strcmp(roles[i].name, "residual_out") && desc.residual.dtype;
        const clnorm_dtype dtype = sum ? desc.residual.dtype : desc.y.dtype;
        job->tensor[i].element = element_by_dtype(statistics ? statistics_dtype(desc.x.dtype) : dtype);
    }
    if (job_tensor(job, "y_t"))
        desc.y_t.dtype = desc.y.dtype;
    desc.residual_out.dtype = job_dtype(job, "residual_out");
    desc.save_mean = job_tensor(job, "mean") != NULL;
    desc.save_rstd = job_tensor(job, "rstd") != NULL;
    job->desc.norm = desc;
    return true;
}

clnorm_status norm_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_norm_forward_plan_create(context, &job->desc.norm, plan);
}

/* The mean of a segment with an infinity is an infinity or NaN, depending on the order in which its parts are merged. */
static struct ref_value mean_of(const struct ref_segment *segment, const struct ref_norm_error *error,
                                const struct ref_arithmetic *arithmetic) {
    const double slack = isfinite(segment->mean) ? error->mean + arithmetic->tiny : INFINITY;
    return (struct ref_value){segment->mean, slack};
}

bool norm_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    const clnorm_norm_desc *const desc = &job->desc.norm;
    const struct ref_arithmetic arithmetic = estimate_arithmetic(desc->x.dtype, desc->group_size);
    struct ref_norm norm = ref_norm_of(desc);
    norm_lend(job, &norm);
    struct ref_segment segment = ref_segment_make(desc->group_size);
    if (!segment.s)
        return fault_set(fault, EXIT_FAILED, "out of memory for a reference of %" PRIu64 " columns", desc->group_size);
    struct largest largest;
    if (!largest_make(&largest, job, fault)) {
        ref_segment_free(&segment);
        return false;
    }
    const struct judged residual_out = judged_of(job, "residual_out", verdicts);
    const struct judged y = judged_of(job, "y", verdicts), y_t = judged_of(job, "y_t", verdicts);
    const struct judged mean = judged_of(job, "mean", verdicts);
    const struct judged rstd = judged_of(job, "rstd", verdicts);
    for (uint64_t row = 0; row < job->rows; row++)
        for (uint64_t group = 0; group < job->groups; group++) {
            ref_norm_segment(&norm, row, group, &segment);
            const struct ref_norm_error error = ref_norm_error_of(&norm, &arithmetic, &segment);
            judged_add(&mean, group * job->rows + row, mean_of(&segment, &error, &arithmetic));
            judged_add(&rstd, group * job->rows + row, (struct ref_value){segment.rstd, error.rstd});
            for (uint64_t i = 0; i < desc->group_size; i++) {
                const uint64_t column = group * desc->group_size + i, index = row * job->cols + column;
                const struct ref_value value = {segment.y[i], ref_y_error(&error, i)};
                largest_add(&largest, job, row, column, value);
                const struct ref_value stored = norm_stored(job, &desc->y, row, column, value);
                judged_add(&y, index, stored);
                judged_add(&y_t, column * job->rows + row, stored);
                judged_add(&residual_out, index, (struct ref_value){segment.s[i], ref_s_error(&error, i)});
            }
        }
    largest_judge(&largest, job, desc->y.dtype, verdicts);
    largest_free(&largest);
    ref_segment_free(&segment);
    return true;
}
