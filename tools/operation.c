#include "operation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

const struct operation operations[] = {
    {"layer_norm", "(x - mean) / sqrt(var + eps) * weight + bias", OPERATION_NORM, CLNORM_LAYER_NORM, layer_norm_roles,
     norm_describe, norm_plan, norm_verify},
    {"rms_norm", "x / sqrt(mean of squares + eps) * weight + bias", OPERATION_NORM, CLNORM_RMS_NORM, rms_norm_roles,
     norm_describe, norm_plan, norm_verify},
    {"layer_norm_backward", "the gradients of layer_norm", OPERATION_NORM_BACKWARD, CLNORM_LAYER_NORM,
     layer_norm_backward_roles, norm_backward_describe, norm_backward_plan, norm_backward_verify},
    {"rms_norm_backward", "the gradients of rms_norm", OPERATION_NORM_BACKWARD, CLNORM_RMS_NORM, rms_norm_backward_roles,
     norm_backward_describe, norm_backward_plan, norm_backward_verify},
    {"layer_norm_backward_from_y", "the same where y is read, and no x", OPERATION_NORM_BACKWARD_FROM_Y, CLNORM_LAYER_NORM,
     norm_backward_from_y_roles, norm_backward_from_y_describe, norm_backward_plan, norm_backward_verify},
    {"rms_norm_backward_from_y", "the same where y is read, and no x", OPERATION_NORM_BACKWARD_FROM_Y, CLNORM_RMS_NORM,
     norm_backward_from_y_roles, norm_backward_from_y_describe, norm_backward_plan, norm_backward_verify},
    {"softmax", "exp(x - max) / sum of exp(x - max) over a row", OPERATION_SOFTMAX, 0, softmax_roles, softmax_describe,
     softmax_plan, softmax_verify},
    {"softmax_backward", "the gradient of softmax, from what it gave", OPERATION_SOFTMAX, 0, softmax_backward_roles,
     softmax_backward_describe, softmax_backward_plan, softmax_backward_verify},
    {"gelu", "x times the normal distribution function of x", OPERATION_GELU, 0, gelu_roles, gelu_describe, gelu_plan,
     gelu_verify},
    {"gelu_backward", "the gradient of gelu", OPERATION_GELU, 0, gelu_backward_roles, gelu_backward_describe,
     gelu_backward_plan, gelu_backward_verify},
    {"quantize", "x / scale in 8 bits, with scale = (the largest |x| + 1e-10) / the largest number", OPERATION_QUANTIZE, 0,
     quantize_roles, quantize_describe, quantize_plan, quantize_verify},
    {"dequantize", "q * scale", OPERATION_DEQUANTIZE, 0, dequantize_roles, dequantize_describe, dequantize_plan,
     dequantize_verify},
    {"fp8_rms_norm", "rms_norm of x * x_scale, quantised", OPERATION_FP8_NORM, CLNORM_RMS_NORM, fp8_rms_norm_roles,
     fp8_rms_norm_describe, fp8_rms_norm_plan, fp8_rms_norm_verify},
    {"fp8_rms_norm_backward", "the gradients of fp8_rms_norm", OPERATION_FP8_NORM_BACKWARD, CLNORM_RMS_NORM,
     fp8_rms_norm_backward_roles, fp8_rms_norm_backward_describe, norm_backward_plan, fp8_rms_norm_backward_verify},
    {.name = NULL},
};

bool operation_find(const char *name, const struct operation **operation, struct fault *fault) {
    char known[512] = "";
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

const struct operation *operation_from_y(const struct operation *operation) {
    const size_t length = strlen(operation->name);
    for (const struct operation *row = operations; row->name; row++)
        if (!strncmp(row->name, operation->name, length) && !strcmp(row->name + length, "_from_y"))
            return row;
    return NULL;
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

/* With a scale for each group. */
static uint64_t scales_of_row(const struct job *job) {
    return job->cols / job->group_size + (job->cols % job->group_size != 0);
}

uint64_t job_scale_index(const struct job *job, uint64_t row, uint64_t column) {
    switch (job->scaling) {
    case CLNORM_SCALING_GROUP:
        return row * scales_of_row(job) + column / job->group_size;
    case CLNORM_SCALING_ROW:
        return row;
    default:
        return 0;
    }
}

static void set_shape(struct tensor *tensor, unsigned rank, uint64_t first, uint64_t second) {
    tensor->rank = rank;
    tensor->shape[0] = first;
    tensor->shape[1] = second;
}

static void shape_of_scales(const struct job *job, struct tensor *tensor) {
    switch (job->scaling) {
    case CLNORM_SCALING_GROUP:
        set_shape(tensor, 2, job->rows, scales_of_row(job));
        break;
    case CLNORM_SCALING_ROW:
        set_shape(tensor, 1, job->rows, 0);
        break;
    default:
        set_shape(tensor, 1, 1, 0);
    }
}

/* Writes the shape that a role has in this job, whose rows, cols and groups are known. x's own is x's. */
static void shape_of_role(const struct job *job, enum role_shape shape, struct tensor *tensor) {
    switch (shape) {
    case SHAPE_X:
    case SHAPE_CODES:
    case SHAPE_X_GROUPS:
        tensor->rank = job->tensor[0].rank;
        memcpy(tensor->shape, job->tensor[0].shape, sizeof tensor->shape);
        if (shape == SHAPE_X_GROUPS)
            tensor->shape[tensor->rank - 1] = job->groups;
        break;
    case SHAPE_TRANSPOSED:
        set_shape(tensor, 2, job->cols, job->rows);
        break;
    case SHAPE_SCALES:
        shape_of_scales(job, tensor);
        break;
    case SHAPE_ROW_STATISTICS:
        set_shape(tensor, 2, 1, job->rows);
        break;
    case SHAPE_ROW_SCALES:
        set_shape(tensor, 1, job->rows, 0);
        break;
    case SHAPE_ONE:
        set_shape(tensor, 1, 1, 0);
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
    case SHAPE_ROWS:
        tensor->rank = 1;
        tensor->shape[0] = job->rows;
        break;
    }
}

static bool is_statistics(enum role_shape shape) {
    return shape == SHAPE_STATISTICS || shape == SHAPE_ROW_STATISTICS || shape == SHAPE_ROWS;
}

bool job_add_input(struct job *job, const char *role, clnorm_dtype dtype, uint64_t rows, uint64_t cols, uint64_t groups,
                   struct fault *fault) {
    const int i = operation_role(job->operation, role);
    const enum role_shape shape = job->operation->roles[i].shape;
    struct tensor *const tensor = &job->tensor[i];
    *tensor = (struct tensor){.name = role, .rank = 2, .shape = {rows, cols}};
    tensor->element = element_by_dtype(is_statistics(shape) ? statistics_dtype(dtype) : dtype);
    job->rows = rows;
    job->cols = cols;
    job->groups = groups;
    if (shape != SHAPE_X && shape != SHAPE_CODES)
        shape_of_role(job, shape, tensor);
    return tensor_measure(tensor) ||
           fault_set(fault, EXIT_REQUEST, "%s: %" PRIu64 " x %" PRIu64 " elements are too many", role, rows, cols);
}

/* Takes groups from x_scale. */
static bool read_scaled_groups(struct job *job, const struct tensor *x_scale, struct fault *fault) {
    const uint64_t groups = x_scale->rank ? x_scale->shape[x_scale->rank - 1] : 0;
    job->scaling = CLNORM_SCALING_GROUP;
    if (groups == 0 || job->cols % groups)
        return fault_set(fault, EXIT_REQUEST,
                         "tensor '%s' (x_scale): last size %" PRIu64 "; expected a divisor of x's %" PRIu64 " columns",
                         x_scale->name, groups, job->cols);
    job->groups = groups;
    job->group_size = job->cols / groups;
    return true;
}

/* Takes the scaling and groups from the options. */
static bool read_scaling(struct job *job, const struct operation_options *options, struct fault *fault) {
    const char *const mode = options->mode ? options->mode : "tensor";
    if (!strcmp(mode, "tensor"))
        job->scaling = CLNORM_SCALING_TENSOR;
    else if (!strcmp(mode, "row"))
        job->scaling = CLNORM_SCALING_ROW;
    else if (!strcmp(mode, "group"))
        job->scaling = CLNORM_SCALING_GROUP;
    else
        return fault_set(fault, EXIT_REQUEST, "--mode '%s': expected tensor, row or group", mode);
    if ((job->scaling == CLNORM_SCALING_GROUP) != (options->group_size > 0))
        return fault_set(fault, EXIT_REQUEST,
                         "--mode %s with --group-size %lld: expected a group size, 1 or more, just with "
                         "--mode group",
                         mode, options->group_size);
    job->group_size = options->group_size ? (uint64_t)options->group_size : job->cols;
    job->groups = job->cols / job->group_size + (job->cols % job->group_size != 0);
    return true;
}

/* Takes rows and cols from x, and groups from the options. */
static bool read_shape(struct job *job, const struct operation_options *options, struct fault *fault) {
    const struct tensor *const x = &job->tensor[0];
    if (x->rank == 0 || x->shape[x->rank - 1] == 0) {
        char shape[SHAPE_TEXT];
        return fault_set(fault, EXIT_REQUEST,
                         "tensor '%s' (%s): shape %s; expected rank 1 or more and a last size of 1 or more", x->name,
                         job->operation->roles[0].name, tensor_shape_text(x, shape));
    }
    job->cols = x->shape[x->rank - 1];
    job->rows = x->count / job->cols;
    const struct tensor *const x_scale = job_tensor(job, "x_scale");
    if (x_scale)
        return read_scaled_groups(job, x_scale, fault);
    if (operation_role(job->operation, "scale") >= 0)
        return read_scaling(job, options, fault);
    if (options->group_size < 0 || (options->group_size && job->cols % (uint64_t)options->group_size))
        return fault_set(fault, EXIT_REQUEST, "--group-size %lld: expected a divisor of x's %" PRIu64 " columns",
                         options->group_size, job->cols);
    job->groups = options->group_size ? job->cols / (uint64_t)options->group_size : 1;
    return true;
}

/* What tensors that are not of 8 bits may be: doubles do not go with those. */
static const char *reals_of(const struct operation *operation) {
    const bool codes = operation_role(operation, "q") >= 0 || operation_role(operation, "x_scale") >= 0;
    return codes ? "F32, F16 or BF16" : "F32, F16, BF16 or F64";
}

static bool check_input(const struct job *job, int i, struct fault *fault) {
    const struct role *const role = &job->operation->roles[i];
    const struct tensor *const tensor = &job->tensor[i];
    if (!tensor->element)
        return role->optional || fault_set(fault, EXIT_REQUEST, "%s: the operation needs this tensor", role->name);
    if (tensor->element->dtype == CLNORM_DTYPE_NONE)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): dtype %s; expected %s", tensor->name, role->name,
                         tensor->element->name, reals_of(job->operation));
    if ((tensor->element->bits == 8) != (role->shape == SHAPE_CODES))
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): dtype %s; expected %s", tensor->name, role->name,
                         tensor->element->name,
                         role->shape == SHAPE_CODES ? "F8_E4M3 or F8_E5M2" : reals_of(job->operation));
    const bool scales = role->shape == SHAPE_SCALES || role->shape == SHAPE_X_GROUPS;
    if (scales && tensor->element->dtype != CLNORM_F32 && tensor->element->dtype != CLNORM_BF16)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): dtype %s; expected F32 or BF16", tensor->name, role->name,
                         tensor->element->name);
    struct tensor expected = *tensor;
    shape_of_role(job, role->shape, &expected);
    if (tensor->rank != expected.rank || memcmp(tensor->shape, expected.shape, tensor->rank * sizeof *tensor->shape) != 0) {
        char found[SHAPE_TEXT];
        char wanted[SHAPE_TEXT];
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): shape %s; expected %s", tensor->name, role->name,
                         tensor_shape_text(tensor, found), tensor_shape_text(&expected, wanted));
    }
    const clnorm_dtype statistics = statistics_dtype(job_dtype(job, job->operation->roles[0].name));
    if (is_statistics(role->shape) && tensor->element->dtype != statistics)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): dtype %s; expected %s", tensor->name, role->name,
                         tensor->element->name, element_by_dtype(statistics)->name);
    return true;
}

static bool want_output(const char *word, void *user, struct fault *fault) {
    struct job *const job = user;
    const struct role *const roles = job->operation->roles;
    const int i = operation_role(job->operation, word);
    if (i >= 0 && roles[i].output) {
        job->wanted[i] = true;
        return true;
    }
    char known[128] = "";
    for (int k = 0; roles[k].name; k++) {
        if (!roles[k].output)
            continue;
        strncat(known, *known ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, roles[k].name, sizeof known - strlen(known) - 1);
    }
    return fault_set(fault, EXIT_REQUEST, "--outputs '%s': %s has no such output; it writes %s", word, job->operation->name,
                     known);
}

static bool choose_outputs(struct job *job, const struct operation_options *options, struct fault *fault) {
    for (int i = 0; job->operation->roles[i].name; i++) {
        const struct role *const role = &job->operation->roles[i];
        const bool usual = role->with && job_tensor(job, role->with);
        job->wanted[i] = role->output && (!role->optional || (usual && !options->outputs));
    }
    return !options->outputs || each_word(options->outputs, "--outputs", want_output, job, fault);
}

bool job_describe(struct job *job, const struct operation_options *options, struct fault *fault) {
    const struct role *const roles = job->operation->roles;
    if (!operation_check_options(job->operation, options, fault))
        return false;
    if (job->tensor[0].element && !read_shape(job, options, fault))
        return false;
    for (int i = 0; roles[i].name; i++)
        if (!roles[i].output && !check_input(job, i, fault))
            return false;
    if (!choose_outputs(job, options, fault) || !job->operation->describe(job, options, fault))
        return false;
    for (int i = 0; roles[i].name; i++) {
        struct tensor *const tensor = &job->tensor[i];
        if (!job->wanted[i])
            continue;
        tensor->name = roles[i].name;
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
        if (!job->wanted[i])
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

struct judged judged_of(const struct job *job, const char *role, struct verdict *verdicts) {
    const struct tensor *const tensor = job_tensor(job, role);
    return (struct judged){tensor, tensor ? &verdicts[tensor - job->tensor] : NULL};
}

void judged_add(const struct judged *judged, uint64_t index, struct estimate estimate) {
    if (judged->tensor)
        verdict_add(judged->verdict, judged->tensor->element, index,
                    element_load(judged->tensor->element, judged->tensor->data, index), estimate.value, estimate.slack);
}
