#include "op_norm_quantized.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op_quantize.h"
#include "options.h"

/* ------------------------------------------------------------------------------------------------------------ options */

/* Without --quantize: refuses the options that need it. */
static bool check_unquantized(const struct operation_options *options, struct fault *fault) {
    if (options->quantize_group)
        return fault_set(fault, EXIT_REQUEST, "--quantize-group %lld: expected --quantize group too",
                         options->quantize_group);
    if (options->quantize_scale_given)
        return fault_set(fault, EXIT_REQUEST, "--quantize-scale %g: expected --quantize tensor too",
                         options->quantize_scale);
    const bool codes = options->dtype && (!strcmp(options->dtype, "f8e4m3") || !strcmp(options->dtype, "f8e5m2"));
    return !codes ||
           fault_set(fault, EXIT_REQUEST, "--dtype %s: expected --quantize tensor, row or group too", options->dtype);
}

/* With --quantize: checks the options that depend on its scaling. */
static bool check_quantized(const struct operation_options *options, clnorm_scaling scaling, struct fault *fault) {
    const long long group = options->quantize_group;
    const double scale = options->quantize_scale;
    if (scaling == CLNORM_SCALING_GROUP && !group)
        return fault_set(fault, EXIT_REQUEST, "--quantize group: expected a --quantize-group of 16, 32, 64 or 128 too");
    if (scaling == CLNORM_SCALING_GROUP && group != 16 && group != 32 && group != 64 && group != 128)
        return fault_set(fault, EXIT_REQUEST, "--quantize-group %lld: expected 16, 32, 64 or 128 with --quantize group",
                         group);
    if (scaling != CLNORM_SCALING_GROUP && group)
        return fault_set(fault, EXIT_REQUEST, "--quantize-group %lld: expected none with --quantize %s", group,
                         options->quantize);
    if (options->quantize_scale_given && (scaling != CLNORM_SCALING_TENSOR || !(scale >= FLT_MIN && scale <= FLT_MAX)))
        return fault_set(fault, EXIT_REQUEST,
                         "--quantize %s with --quantize-scale %g: expected a positive normal f32, only "
                         "with --quantize tensor",
                         options->quantize, scale);
    return true;
}

bool norm_check_quantize(const struct job *job, const clnorm_norm_desc *desc, struct fault *fault) {
    if (!desc->y.scaling || job->groups == 1 || desc->y.scaling == CLNORM_SCALING_TENSOR)
        return true;
    if (desc->y.scaling == CLNORM_SCALING_ROW)
        return fault_set(fault, EXIT_REQUEST, "--quantize row: expected no --group-size, but it is %" PRIu64,
                         desc->group_size);
    return desc->group_size % desc->y.scale_group == 0 ||
           fault_set(fault, EXIT_REQUEST, "--quantize-group %" PRIu32 ": expected a divisor of --group-size %" PRIu64,
                     desc->y.scale_group, desc->group_size);
}

bool norm_read_quantize(struct job *job, const struct operation_options *options, clnorm_tensor *y, struct fault *fault) {
    const int y_scale = operation_role(job->operation, "y_scale"), y_t = operation_role(job->operation, "y_t");
    if (job->wanted[y_scale] && (!options->quantize || options->quantize_scale != 0))
        return fault_set(fault, EXIT_REQUEST, "--outputs y_scale: expected --quantize too, without --quantize-scale");
    if (y_t >= 0 && job->wanted[y_t] && !options->quantize)
        return fault_set(fault, EXIT_REQUEST, "--outputs y_t: expected --quantize tensor, row or group too");
    if (!options->quantize)
        return check_unquantized(options, fault);
    y->dtype = CLNORM_F8_E4M3;
    y->scaling = (clnorm_scaling)parse_word("--quantize", options->quantize, "tensor|row|group", fault);
    if (!y->scaling || !check_quantized(options, y->scaling, fault) ||
        (options->dtype && !parse_fp8(options->dtype, &y->dtype, fault)))
        return false;
    y->scale_group = (uint32_t)options->quantize_group;
    y->scale = options->quantize_scale;
    job->scaling = y->scaling;
    job->group_size = y->scale_group;
    job->wanted[y_scale] = y->scale == 0;
    return true;
}

/* ------------------------------------------------------------------------------------------------------- verification */

bool largest_make(struct largest *largest, const struct job *job, struct fault *fault) {
    const struct tensor *const y_scale = job_tensor(job, "y_scale");
    *largest = (struct largest){NULL};
    if (!y_scale)
        return true;
    largest->of_scale = calloc(y_scale->count ? (size_t)y_scale->count : 1, sizeof *largest->of_scale);
    return largest->of_scale || fault_set(fault, EXIT_FAILED, "out of memory for a reference of scales");
}

void largest_free(struct largest *largest) {
    free(largest->of_scale);
}

void largest_add(const struct largest *largest, const struct job *job, uint64_t row, uint64_t column, struct ref_value y) {
    if (!largest->of_scale || !isfinite(y.value))
        return;
    struct ref_value *const so_far = &largest->of_scale[job_scale_index(job, row, column)];
    so_far->value = fmax(so_far->value, fabs(y.value));
    so_far->error = fmax(so_far->error, y.error);
}

void largest_judge(const struct largest *largest, const struct job *job, clnorm_dtype dtype, struct verdict *verdicts) {
    const struct judged y_scale = judged_of(job, "y_scale", verdicts);
    const struct element *const codes = element_by_dtype(dtype);
    for (uint64_t i = 0; job->rows && largest->of_scale && i < y_scale.tensor->count; i++) {
        struct ref_value scale = scale_estimate(codes, largest->of_scale[i].value, 4 * ref_arithmetic_of(CLNORM_F32).unit);
        scale.error += largest->of_scale[i].error / element_largest(codes);
        judged_add(&y_scale, i, scale);
    }
}

struct ref_value norm_stored(const struct job *job, const clnorm_tensor *to, uint64_t row, uint64_t column,
                             struct ref_value y) {
    if (!to->scaling)
        return y;
    const struct tensor *const y_scale = job_tensor(job, "y_scale");
    const double scale = y_scale ? element_load(y_scale->element, y_scale->data, job_scale_index(job, row, column))
                                 : (double)(float)to->scale;
    const double quotient = y.value / scale;
    const double slack = y.error / scale + 4 * ref_arithmetic_of(CLNORM_F32).unit * fabs(quotient);
    return code_estimate(element_by_dtype(to->dtype), (struct ref_value){quotient, isfinite(slack) ? slack : 0});
}
