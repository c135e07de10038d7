#include "operation.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "closest.h"

int operation_role(const struct operation *operation, const char *name) {
    for (int i = 0; operation->roles[i].name; i++)
        if (closest_is(name, strlen(name), operation->roles[i].name))
            return i;
    return -1;
}

const struct tensor *job_tensor(const struct job *job, const char *role) {
    const int i = operation_role(job->operation, role);
    return i >= 0 && job->tensor[i].element ? &job->tensor[i] : NULL;
}

clnorm_dtype job_dtype(const struct job *job, const char *role) {
    const struct tensor *const tensor = job_tensor(job, role);
    return tensor ? tensor->element->dtype : CLNORM_DTYPE_NONE;
}

clnorm_dtype statistics_dtype(clnorm_dtype x) {
    return x == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
}

void job_init(struct job *job, const struct operation *operation) {
    *job = (struct job){.operation = operation};
}

bool role_is_statistics(enum role_shape shape) {
    return shape == SHAPE_STATISTICS || shape == SHAPE_ROW_STATISTICS || shape == SHAPE_ROWS || shape == SHAPE_GROUPS ||
           shape == SHAPE_MOMENTS || shape == SHAPE_SUMS;
}

bool job_add_input(struct job *job, const char *role, clnorm_dtype dtype, uint64_t rows, uint64_t cols, uint64_t groups,
                   struct fault *fault) {
    const int i = operation_role(job->operation, role);
    const enum role_shape shape = job->operation->roles[i].shape;
    struct tensor *const tensor = &job->tensor[i];
    *tensor = (struct tensor){.name = role, .rank = 2, .shape = {rows, cols}};
    if (job->spatial) {
        tensor->rank = 3;
        tensor->shape[1] = job->channels_last ? job->spatial : cols;
        tensor->shape[2] = job->channels_last ? cols : job->spatial;
    }
    tensor->element = element_by_dtype(role_is_statistics(shape) ? statistics_dtype(dtype) : dtype);
    if (shape == SHAPE_POSITIONS)
        tensor->element = element_by_name("I32");
    job->rows = rows;
    job->cols = cols;
    job->groups = groups;
    if (shape != SHAPE_X && shape != SHAPE_CODES && shape != SHAPE_SCALED)
        job_shape_of_role(job, shape, tensor);
    return tensor_measure(tensor) ||
           fault_set(fault, EXIT_REQUEST, "%s: %" PRIu64 " x %" PRIu64 " elements are too many", role, rows, cols);
}

bool job_check_doubles(const struct job *job, clnorm_dtype main_dtype, bool mixed, struct fault *fault) {
    const struct role *const roles = job->operation->roles;
    const struct element *const first = job->tensor[0].element;
    const bool wide = first->dtype == CLNORM_F64;
    const char *const expected = wide ? "F64" : "F32, F16 or BF16";
    for (int i = 0; roles[i].name && !roles[i].output; i++) {
        const struct element *const element = job->tensor[i].element;
        const bool any =
            roles[i].shape == SHAPE_POSITIONS || (mixed && roles[i].shape == SHAPE_COLS && element &&
                                                  (element->dtype == CLNORM_F64 || element->dtype == CLNORM_F32));
        if (element && !any && (element->dtype == CLNORM_F64) != wide)
            return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): dtype %s; expected %s, since %s is %s",
                             job->tensor[i].name, roles[i].name, element->name, expected, roles[0].name, first->name);
    }
    return (main_dtype == CLNORM_F64) == wide ||
           fault_set(fault, EXIT_REQUEST, "--dtype %s: expected %s, since %s is %s", clnorm_dtype_name(main_dtype),
                     expected, roles[0].name, first->name);
}

void job_set_output(struct job *job, const char *role, clnorm_dtype dtype) {
    const int i = operation_role(job->operation, role);
    if (job->wanted[i])
        job->tensor[i].element = element_by_dtype(dtype);
}

bool job_allocate_outputs(struct job *job, struct fault *fault) {
    for (int i = 0; job->operation->roles[i].name; i++) {
        struct tensor *const tensor = &job->tensor[i];
        if (!job->wanted[i])
            continue;
        free(job->output[i]);
        job->output[i] = malloc(tensor->size ? (size_t)tensor->size : 1);
        if (!job->output[i])
            return fault_set(fault, EXIT_FAILED, "%s: out of memory for %" PRIu64 " bytes", tensor->name, tensor->size);
        memset(job->output[i], 0xff, (size_t)tensor->size);
        tensor->data = job->output[i];
    }
    return true;
}

void job_free(struct job *job) {
    for (int i = 0; i < ROLES; i++)
        free(job->output[i]);
    free(job->position);
    *job = (struct job){0};
}

uint64_t job_bytes(const struct job *job) {
    uint64_t bytes = 0;
    for (int i = 0; i < ROLES; i++)
        bytes += job->tensor[i].element ? job->tensor[i].size : 0;
    return bytes;
}

struct judged judged_of(const struct job *job, const char *role, struct verdict *verdicts) {
    const struct tensor *const tensor = job_tensor(job, role);
    return (struct judged){tensor, tensor ? &verdicts[tensor - job->tensor] : NULL};
}

void judged_add(const struct judged *judged, uint64_t index, struct ref_value expected) {
    if (judged->tensor)
        verdict_add(judged->verdict, judged->tensor->element, index,
                    element_load(judged->tensor->element, judged->tensor->data, index), expected.value,
                    isnan(expected.error) ? 0 : expected.error);
}

void judged_add_sums(const struct judged *judged, const struct ref_row_sum *sums, uint64_t cols, double error) {
    for (uint64_t i = 0; i < cols; i++)
        judged_add(judged, i,
                   (struct ref_value){ref_sum_value(&sums[i].sum),
                                      ref_sum_value(&sums[i].error) + error * ref_sum_value(&sums[i].magnitude)});
}
