/* layer_norm and rms_norm, backward. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config_text.h"
#include "op_norm.h"
#include "options.h"
#include "rope.h"

/* RMS norm has these roles without mean. */
const struct role norm_backward_roles[] = {
    INPUT(x, SHAPE_SCALED),
    OPTIONAL_INPUT(x_scale, SHAPE_X_SCALES),
    INPUT(dy, SHAPE_X),
    OPTIONAL_INPUT(weight, SHAPE_COLS),
    OPTIONAL_INPUT(bias, SHAPE_COLS),
    OPTIONAL_INPUT(z, SHAPE_X),
    OPTIONAL_INPUT(mean, SHAPE_STATISTICS),
    OPTIONAL_INPUT(rstd, SHAPE_STATISTICS),
    OPTIONAL_INPUT(residual, SHAPE_X),
    OPTIONAL_INPUT(row_scale, SHAPE_ROWS),
    OPTIONAL_INPUT(dresidual_out, SHAPE_X),
    OPTIONAL_INPUT(rope_cos, SHAPE_TABLE),
    OPTIONAL_INPUT(rope_sin, SHAPE_TABLE),
    OPTIONAL_INPUT(position, SHAPE_POSITIONS),
    OPTIONAL_OUTPUT(dx, SHAPE_X, "x"),
    OPTIONAL_OUTPUT(dweight, SHAPE_COLS, "weight"),
    OPTIONAL_OUTPUT(dbias, SHAPE_COLS, "bias"),
    OPTIONAL_OUTPUT(dz, SHAPE_X, "z"),
    OPTIONAL_OUTPUT(dresidual, SHAPE_X, "residual"),
    OPTIONAL_OUTPUT(y, SHAPE_X, NULL),
    ROLES_END,
};

/* ---------------------------------------------------------------------------------------------------------- describe */

bool norm_read_reduction(const struct operation_options *options, clnorm_norm_backward_desc *desc, struct fault *fault) {
    if (options->slots > UINT32_MAX)
        return fault_set(fault, EXIT_REQUEST, "--slots %lld: expected below 2^32", options->slots);
    desc->slots = (uint32_t)options->slots;
    const char *const word = options->reduction ? options->reduction : "partial";
    desc->reduction = (clnorm_reduction)parse_word("--reduction", word, "partial|locked", fault);
    return desc->reduction;
}

bool norm_check_statistics(const struct job *job, struct fault *fault) {
    if (operation_role(job->operation, "mean") < 0 || !job_tensor(job, "mean") == !job_tensor(job, "rstd"))
        return true;
    const char *const given = job_tensor(job, "mean") ? "mean" : "rstd";
    const char *const missing = job_tensor(job, "mean") ? "rstd" : "mean";
    return fault_set(fault, EXIT_REQUEST, "%s: expected this tensor too, since %s is given; %s= leaves that out", missing,
                     given, given);
}

/* dx has the main dtype, y that of dy. Other gradients have their input's dtype; in its absence dresidual has that of x, or
 * of dy where x is 8-bit, and the others have that of the statistics. */
static clnorm_dtype output_dtype(const struct job *job, const char *role, clnorm_dtype main_dtype) {
    if (!strcmp(role, "dx"))
        return main_dtype;
    if (!strcmp(role, "y"))
        return job_dtype(job, "dy");
    const bool is_sum = !strcmp(role, "dresidual") && !job_tensor(job, "residual");
    const clnorm_dtype input = job_dtype(job, is_sum && job->x.scaling ? "dy" : is_sum ? "x" : role + 1);
    return input ? input : statistics_dtype(job_dtype(job, "x"));
}

/* Puts the inputs' dtypes and the options into a descriptor. */
static clnorm_norm_backward_desc describe_inputs(const struct job *job, const struct operation_options *options) {
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.norm = job->operation->norm;
    desc.rows = job->rows;
    desc.cols = job->cols;
    desc.group_size = job->cols / job->groups;
    desc.weight_rows = job->weight_rows;
    desc.weight_repeat = job->weight_repeat;
    desc.x = job->x;
    desc.x.dtype = job_dtype(job, "x");
    desc.z.dtype = job_dtype(job, "z");
    desc.dy.dtype = job_dtype(job, "dy");
    desc.weight.dtype = job_dtype(job, "weight");
    desc.bias.dtype = job_dtype(job, "bias");
    desc.mean_given = job_tensor(job, "mean") != NULL;
    desc.rstd_given = job_tensor(job, "rstd") != NULL;
    desc.eps = options->eps;
    desc.weight_offset = options->weight_offset;
    desc.gate_first = options->gate_first != 0;
    desc.batch_invariant = options->batch_invariant != 0;
    desc.residual.dtype = job_dtype(job, "residual");
    desc.dresidual_out.dtype = job_dtype(job, "dresidual_out");
    desc.row_scale = job_tensor(job, "row_scale") != NULL;
    desc.s_given = options->s_given != 0;
    rope_describe_backward(job, &desc);
    return desc;
}

bool norm_backward_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    const struct role *const roles = job->operation->roles;
    clnorm_norm_backward_desc desc = describe_inputs(job, options);
    clnorm_dtype main_dtype = desc.x.scaling ? desc.dy.dtype : desc.x.dtype;
    if (!norm_check_statistics(job, fault) || !norm_read_activation(options, &desc.activation, fault) ||
        !norm_read_dropout(job, options, &desc.dropout, fault) || !norm_read_gate(job, options, &desc.gate, fault) ||
        (options->dtype && !parse_dtype("--dtype", options->dtype, &main_dtype, fault)) ||
        !job_check_doubles(job, main_dtype, true, fault) || !norm_read_reduction(options, &desc, fault) ||
        (options->config && !config_parse(options->config, &desc.config, fault)))
        return false;
    if (options->recompute_output)
        job->wanted[operation_role(job->operation, "y")] = true;
    if (!desc.gate && job->wanted[operation_role(job->operation, "dz")])
        return fault_set(fault, EXIT_REQUEST, "--outputs dz: expected a --gate too");
    for (int i = 0; roles[i].name; i++)
        if (job->wanted[i])
            job->tensor[i].element = element_by_dtype(output_dtype(job, roles[i].name, main_dtype));
    desc.dx.dtype = job_dtype(job, "dx");
    desc.dz.dtype = job_dtype(job, "dz");
    desc.dweight.dtype = job_dtype(job, "dweight");
    desc.dbias.dtype = job_dtype(job, "dbias");
    desc.y.dtype = job_dtype(job, "y");
    desc.dresidual.dtype = job_dtype(job, "dresidual");
    job->desc.norm_backward = desc;
    return true;
}

clnorm_status norm_backward_plan(clnorm_context *context, const struct job *job, clnorm_plan **plan) {
    return clnorm_norm_backward_plan_create(context, &job->desc.norm_backward, plan);
}

/* ------------------------------------------------------------------------------------------------------------ verify */

/* The memory of the reference. */
struct memory {
    struct ref_gradients gradients;
    struct ref_gradient_errors errors;
    struct ref_row_sum *dweight, *dbias; /* [sums]; one block of memory */
    uint64_t sums;                       /* weight_rows x cols */
};

static void free_memory(struct memory *memory) {
    ref_gradients_free(&memory->gradients);
    ref_gradient_errors_free(&memory->errors);
    free(memory->dweight);
}

static bool make_memory(struct memory *memory, uint64_t group_size, uint64_t sums, struct fault *fault) {
    memory->gradients = ref_gradients_make(group_size);
    memory->errors = ref_gradient_errors_make(group_size);
    memory->dweight = calloc((size_t)sums, 2 * sizeof *memory->dweight);
    memory->sums = sums;
    if (memory->gradients.dy && memory->errors.xhat && memory->dweight) {
        memory->dbias = memory->dweight + sums;
        return true;
    }
    free_memory(memory);
    fault_set(fault, EXIT_FAILED, "out of memory for a reference of %" PRIu64 " columns", sums);
    return false;
}

static struct ref_norm_backward reference_of(const struct job *job) {
    const clnorm_norm_backward_desc *const desc = &job->desc.norm_backward;
    struct ref_norm_backward norm = ref_norm_backward_of(desc);
    norm_lend(job, &norm.forward);
    if (desc->y_given)
        norm.forward.x.elements = norm_bytes(job, "y");
    norm.dy.elements = norm_bytes(job, "dy");
    norm.mean.elements = desc->mean_given ? norm_bytes(job, "mean") : NULL;
    norm.rstd.elements = desc->rstd_given ? norm_bytes(job, "rstd") : NULL;
    norm.dresidual_out.elements = norm_bytes(job, "dresidual_out");
    return norm;
}

bool norm_backward_verify(const struct job *job, struct verdict *verdicts, struct fault *fault) {
    const clnorm_norm_backward_desc *const desc = &job->desc.norm_backward;
    const struct ref_norm_backward norm = reference_of(job);
    const struct ref_arithmetic arithmetic = estimate_arithmetic(desc->x.dtype, desc->group_size);
    const struct judged dresidual = judged_of(job, "dresidual", verdicts);
    const struct judged dx = judged_of(job, "dx", verdicts);
    const struct judged dz = judged_of(job, "dz", verdicts);
    const struct judged y = desc->y_given ? (struct judged){NULL, NULL} : judged_of(job, "y", verdicts);
    const struct judged dweight = judged_of(job, "dweight", verdicts);
    const struct judged dbias = judged_of(job, "dbias", verdicts);
    const uint64_t weight_rows = job->weight_rows ? job->weight_rows : 1;
    struct memory memory;
    if (!make_memory(&memory, desc->group_size, weight_rows * job->cols, fault))
        return false;
    const struct ref_gradients *const gradients = &memory.gradients;
    const struct ref_gradient_errors *const errors = &memory.errors;
    for (uint64_t row = 0; row < job->rows; row++)
        for (uint64_t first = 0; first < job->cols; first += desc->group_size) {
            ref_norm_backward_segment(&norm, row, first / desc->group_size, &memory.gradients);
            ref_gradient_errors_of(&norm, &arithmetic, gradients, &memory.errors);
            const uint64_t sum = ref_norm_weight_row(&norm.forward, row) * job->cols + first;
            ref_add_row(gradients, errors, desc->group_size, &memory.dweight[sum], &memory.dbias[sum]);
            for (uint64_t i = 0; i < desc->group_size; i++) {
                const uint64_t index = row * job->cols + first + i;
                judged_add(&dx, index, (struct ref_value){gradients->dx[i], errors->dx[i]});
                judged_add(&dz, index, (struct ref_value){gradients->dz[i], errors->dz[i]});
                judged_add(&y, index, (struct ref_value){gradients->forward.y[i], errors->y[i]});
                judged_add(&dresidual, index, (struct ref_value){gradients->ds[i], errors->dresidual[i]});
            }
        }
    const double error = error_over_rows(&arithmetic, job->rows / weight_rows);
    judged_add_sums(&dweight, memory.dweight, memory.sums, error);
    judged_add_sums(&dbias, memory.dbias, memory.sums, error);
    free_memory(&memory);
    return true;
}
