#include "operation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct operation operations[] = {
    {"layer_norm", "(x - mean) / sqrt(var + eps) * weight + bias", CLNORM_LAYER_NORM, layer_norm_roles, norm_describe,
     norm_plan, norm_verify},
    {"rms_norm", "x / sqrt(mean of squares + eps) * weight + bias", CLNORM_RMS_NORM, rms_norm_roles, norm_describe,
     norm_plan, norm_verify},
    {NULL, NULL, 0, NULL, NULL, NULL, NULL},
};

bool operation_find(const char *name, const struct operation **operation, struct fault *fault) {
    char known[128] = "";
    for (const struct operation *row = operations; row->name; row++) {
        if (!strcmp(row->name, name)) {
            *operation = row;
            return true;
        }
        strncat(known, row == operations ? "" : ", ", sizeof known - strlen(known) - 1);
        strncat(known, row->name, sizeof known - strlen(known) - 1);
    }
    return fault_set(fault, EXIT_REQUEST, "'%s' is no operation; they are %s", name, known);
}

int operation_role(const struct operation *operation, const char *name) {
    for (int i = 0; operation->roles[i].name; i++)
        if (!strcmp(operation->roles[i].name, name))
            return i;
    return -1;
}

const struct tensor *job_tensor(const struct job *job, const char *role) {
    const int i = operation_role(job->operation, role);
    return i >= 0 && job->tensor[i].element ? &job->tensor[i] : NULL;
}

void job_init(struct job *job, const struct operation *operation) {
    *job = (struct job){.operation = operation};
}

/* Writes the shape that a role has in this job, whose rows, cols and groups are known. x's own is x's. */
static void shape_of_role(const struct job *job, enum role_shape shape, struct tensor *tensor) {
    switch (shape) {
    case SHAPE_X:
        tensor->rank = job->tensor[0].rank;
        memcpy(tensor->shape, job->tensor[0].shape, sizeof tensor->shape);
        break;
    case SHAPE_COLS:
        tensor->rank = 1;
        tensor->shape[0] = job->cols;
        break;
    case SHAPE_STATISTICS:
        tensor->rank = 2;
        tensor->shape[0] = job->groups;
        tensor->shape[1] = job->rows;
        break;
    }
}

bool job_add_input(struct job *job, const char *role, clnorm_dtype dtype, uint64_t rows, uint64_t cols,
                   struct fault *fault) {
    const int i = operation_role(job->operation, role);
    struct tensor *const tensor = &job->tensor[i];
    *tensor = (struct tensor){.name = role, .element = element_by_dtype(dtype), .rank = 2, .shape = {rows, cols}};
    if (job->operation->roles[i].shape == SHAPE_COLS) {
        tensor->rank = 1;
        tensor->shape[0] = cols;
    }
    return tensor_measure(tensor) ||
           fault_set(fault, EXIT_REQUEST, "%s: %" PRIu64 " x %" PRIu64 " elements are too many", role, rows, cols);
}

/* Takes rows and cols from x. */
static bool read_shape(struct job *job, struct fault *fault) {
    const struct tensor *const x = &job->tensor[0];
    if (x->rank == 0 || x->shape[x->rank - 1] == 0) {
        char shape[SHAPE_TEXT];
        return fault_set(fault, EXIT_REQUEST,
                         "tensor '%s' (x): shape %s; expected rank 1 or more and a last size of 1 or more", x->name,
                         tensor_shape_text(x, shape));
    }
    job->cols = x->shape[x->rank - 1];
    job->rows = x->count / job->cols;
    return true;
}

static bool check_input(const struct job *job, int i, struct fault *fault) {
    const struct role *const role = &job->operation->roles[i];
    const struct tensor *const tensor = &job->tensor[i];
    if (!tensor->element)
        return role->optional || fault_set(fault, EXIT_REQUEST, "%s: the operation needs this tensor", role->name);
    if (tensor->element->dtype == CLNORM_DTYPE_NONE)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): dtype %s; expected F32, F16, BF16 or F64", tensor->name,
                         role->name, tensor->element->name);
    struct tensor expected = *tensor;
    shape_of_role(job, role->shape, &expected);
    if (tensor->rank != expected.rank || memcmp(tensor->shape, expected.shape, tensor->rank * sizeof *tensor->shape) != 0) {
        char found[SHAPE_TEXT];
        char wanted[SHAPE_TEXT];
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): shape %s; expected %s", tensor->name, role->name,
                         tensor_shape_text(tensor, found), tensor_shape_text(&expected, wanted));
    }
    return true;
}

bool job_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    const struct role *const roles = job->operation->roles;
    if (job->tensor[0].element && !read_shape(job, fault))
        return false;
    for (int i = 0; roles[i].name; i++)
        if (!roles[i].output && !check_input(job, i, fault))
            return false;
    if (!job->operation->describe(job, options, fault))
        return false;
    for (int i = 0; roles[i].name; i++) {
        struct tensor *const tensor = &job->tensor[i];
        if (!roles[i].output)
            continue;
        tensor->name = roles[i].name;
        if (!tensor->element)
            continue; /* an output that is not asked for */
        shape_of_role(job, roles[i].shape, tensor);
        if (!tensor_measure(tensor))
            return fault_set(fault, EXIT_REQUEST, "%s: %s of x's shape has too many bytes", tensor->name,
                             tensor->element->name);
    }
    return true;
}

bool job_allocate_outputs(struct job *job, struct fault *fault) {
    for (int i = 0; job->operation->roles[i].name; i++) {
        struct tensor *const tensor = &job->tensor[i];
        if (!job->operation->roles[i].output)
            continue;
        free(job->output[i]);
        job->output[i] = malloc(tensor->size ? tensor->size : 1);
        if (!job->output[i])
            return fault_set(fault, EXIT_FAILED, "%s: out of memory for %" PRIu64 " bytes", tensor->name, tensor->size);
        memset(job->output[i], 0xff, tensor->size);
        tensor->data = job->output[i];
    }
    return true;
}

void job_free(struct job *job) {
    for (int i = 0; i < ROLES; i++)
        free(job->output[i]);
    *job = (struct job){0};
}

uint64_t job_bytes(const struct job *job) {
    uint64_t bytes = 0;
    for (int i = 0; i < ROLES; i++)
        bytes += job->tensor[i].element ? job->tensor[i].size : 0;
    return bytes;
}
