#include "job_describe.h"

#include <inttypes.h>
#include <string.h>

#include "closest.h"
#include "options.h"
#include "outer.h"
#include "rope.h"

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
    return job->group_size <= UINT32_MAX ||
           fault_set(fault, EXIT_REQUEST,
                     "tensor '%s' (x_scale): a scale for %" PRIu64 " columns; expected at most %" PRIu32, x_scale->name,
                     job->group_size, UINT32_MAX);
}

/* Whether there is a scale for each row: the shape is x's leading dimensions, or [rows]. */
static bool is_per_row(const struct job *job, const struct tensor *scales) {
    const struct tensor *const x = &job->tensor[0];
    const bool flat = scales->rank == 1 && scales->shape[0] == job->rows;
    return flat || (scales->rank + 1 == x->rank && !memcmp(scales->shape, x->shape, scales->rank * sizeof *scales->shape));
}

/* Takes the scaling of x from the shape of x_scale, which is checked later. */
static bool read_scales_of_x(struct job *job, const struct tensor *x_scale, struct fault *fault) {
    job->x.dtype = job->tensor[0].element->dtype;
    job->x.scale_dtype = x_scale->element->dtype;
    if (x_scale->count == 1 && x_scale->rank < 2) {
        job->x.scaling = CLNORM_SCALING_TENSOR;
        return true;
    }
    if (is_per_row(job, x_scale)) {
        job->x.scaling = CLNORM_SCALING_ROW;
        return true;
    }
    job->x.scaling = CLNORM_SCALING_GROUP;
    const uint64_t groups = x_scale->rank ? x_scale->shape[x_scale->rank - 1] : 0;
    for (job->x.scale_group = 16; job->x.scale_group <= 128; job->x.scale_group *= 2)
        if (job_groups_of_x(job) == groups)
            return true;
    return fault_set(fault, EXIT_REQUEST,
                     "tensor '%s' (x_scale): last size %" PRIu64 "; expected a scale for 16, 32, 64 or 128 of x's %" PRIu64
                     " columns, for a row or for all of x",
                     x_scale->name, groups, job->cols);
}

/* Takes the scaling and groups from the options. */
static bool read_scaling(struct job *job, const struct operation_options *options, struct fault *fault) {
    const char *const mode = options->mode ? options->mode : "tensor";
    job->scaling = (clnorm_scaling)parse_word("--mode", mode, "tensor|row|group", fault);
    if (!job->scaling)
        return false;
    const bool of_groups = job->scaling == CLNORM_SCALING_GROUP;
    if (of_groups && !options->group_size)
        return fault_set(fault, EXIT_REQUEST, "--mode %s: expected a --group-size too", mode);
    if (!of_groups && options->group_size)
        return fault_set(fault, EXIT_REQUEST, "--group-size %lld: expected none with --mode %s", options->group_size, mode);
    if (options->group_size > UINT32_MAX)
        return fault_set(fault, EXIT_REQUEST, "--group-size %lld: expected at most %" PRIu32, options->group_size,
                         UINT32_MAX);
    job->group_size = options->group_size ? (uint64_t)options->group_size : job->cols;
    job->groups = job->cols / job->group_size + (job->cols % job->group_size != 0);
    return true;
}

/* Takes the scaling of an x of samples from the shape of x_scale: [1], or [samples]. */
static bool read_scales_of_samples(struct job *job, const struct tensor *x_scale, struct fault *fault) {
    char shape[SHAPE_TEXT];
    job->x.scale_dtype = x_scale->element->dtype;
    job->x.scaling = x_scale->rank == 1 && x_scale->shape[0] == 1           ? CLNORM_SCALING_TENSOR
                     : x_scale->rank == 1 && x_scale->shape[0] == job->rows ? CLNORM_SCALING_ROW
                                                                            : CLNORM_SCALING_NONE;
    return job->x.scaling ||
           fault_set(fault, EXIT_REQUEST, "tensor '%s' (x_scale): shape %s; expected [1] or [%" PRIu64 "]", x_scale->name,
                     tensor_shape_text(x_scale, shape), job->rows);
}

static bool read_layout(struct job *job, const struct operation_options *options, struct fault *fault) {
    const char *const layout = options->layout ? options->layout : "first";
    const unsigned place = parse_word("--layout", layout, "first|last", fault);
    job->channels_last = place == CLNORM_LAYOUT_LAST;
    return place;
}

/* Takes samples, channels and positions from x, and groups from the options. */
static bool read_channels(struct job *job, const struct operation_options *options, struct fault *fault) {
    const struct tensor *const x = &job->tensor[0];
    if (!read_layout(job, options, fault))
        return false;
    const unsigned channel = job->channels_last ? x->rank - 1 : 1;
    job->spatial = 1;
    bool empty = x->rank < 2, many = false;
    for (unsigned i = 1; i < x->rank; i++) {
        empty = empty || !x->shape[i];
        many = many || (i != channel && __builtin_mul_overflow(job->spatial, x->shape[i], &job->spatial));
    }
    char shape[SHAPE_TEXT];
    if (empty)
        return fault_set(fault, EXIT_REQUEST,
                         "tensor '%s' (x): shape %s; expected rank 2 or more and sizes of 1 or more but for the first",
                         x->name, tensor_shape_text(x, shape));
    if (many)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (x): shape %s; expected fewer than 2^64 positions", x->name,
                         tensor_shape_text(x, shape));
    job->rows = x->shape[0];
    job->cols = x->shape[channel];
    if (job->operation->kind != OPERATION_INSTANCE_NORM && !options->groups)
        return fault_set(fault, EXIT_REQUEST, "--groups: %s needs it, a divisor of x's %" PRIu64 " channels",
                         job->operation->name, job->cols);
    job->groups = job->operation->kind == OPERATION_INSTANCE_NORM ? job->cols : (uint64_t)options->groups;
    if (job->cols % job->groups)
        return fault_set(fault, EXIT_REQUEST, "--groups %lld: expected a divisor of x's %" PRIu64 " channels",
                         options->groups, job->cols);
    const struct tensor *const x_scale = job_tensor(job, "x_scale");
    return !x_scale || read_scales_of_samples(job, x_scale, fault);
}

/* Takes the number of weight rows from the weight or the bias, and the number of rows that share one from the options. */
static bool read_weight_map(struct job *job, const struct operation_options *options, struct fault *fault) {
    const struct tensor *weights = job_tensor(job, "weight");
    if (!weights || weights->rank != 2)
        weights = job_tensor(job, "bias");
    job->weight_rows = weights && weights->rank == 2 ? weights->shape[0] : 0;
    if (!job->weight_rows)
        return !options->weight_repeat ||
               fault_set(fault, EXIT_REQUEST,
                         "--weight-repeat %lld: expected a weight or bias of shape [R, %" PRIu64 "] too",
                         options->weight_repeat, job->cols);
    uint64_t period;
    char shape[SHAPE_TEXT];
    const long long repeat = options->weight_repeat ? options->weight_repeat : 1;
    job->weight_repeat = (uint64_t)repeat;
    if (__builtin_mul_overflow(job->weight_rows, job->weight_repeat, &period) || job->rows % period)
        return fault_set(fault, EXIT_REQUEST,
                         "tensor '%s': shape %s with --weight-repeat %lld; expected a product that divides x's %" PRIu64
                         " rows",
                         weights->name, tensor_shape_text(weights, shape), repeat, job->rows);
    return true;
}

/* Takes rows and cols from x, and groups from the options. */
static bool read_shape(struct job *job, const struct operation_options *options, struct fault *fault) {
    const struct tensor *const x = &job->tensor[0];
    if (operation_has_channels(job->operation))
        return read_channels(job, options, fault);
    if (x->rank == 0 || x->shape[x->rank - 1] == 0) {
        char shape[SHAPE_TEXT];
        return fault_set(fault, EXIT_REQUEST,
                         "tensor '%s' (%s): shape %s; expected rank 1 or more and a last size of 1 or more", x->name,
                         job->operation->roles[0].name, tensor_shape_text(x, shape));
    }
    job->cols = x->shape[x->rank - 1];
    job->rows = x->count / job->cols;
    if (operation_has_weight_map(job->operation) && !read_weight_map(job, options, fault))
        return false;
    const struct tensor *const x_scale = job_tensor(job, "x_scale");
    const bool scaled = job->operation->roles[0].shape == SHAPE_SCALED;
    if (x_scale && !scaled)
        return read_scaled_groups(job, x_scale, fault);
    if (x_scale && !read_scales_of_x(job, x_scale, fault))
        return false;
    if (operation_role(job->operation, "scale") >= 0)
        return read_scaling(job, options, fault);
    if (options->group_size && job->cols % (uint64_t)options->group_size)
        return fault_set(fault, EXIT_REQUEST, "--group-size %lld: expected a divisor of x's %" PRIu64 " columns",
                         options->group_size, job->cols);
    job->groups = options->group_size ? job->cols / (uint64_t)options->group_size : 1;
    return true;
}

/* The dtypes of tensors that are not 8-bit; operations on codes take no doubles. */
static const char *reals_of(const struct operation *operation) {
    const int x_scale = operation_role(operation, "x_scale");
    const bool codes = operation_role(operation, "q") >= 0 || (x_scale >= 0 && !operation->roles[x_scale].optional);
    return codes ? "F32, F16 or BF16" : "F32, F16, BF16 or F64";
}

static bool check_input(struct job *job, int i, struct fault *fault) {
    const struct role *const role = &job->operation->roles[i];
    const struct tensor *const tensor = &job->tensor[i];
    if (!tensor->element)
        return role->optional || fault_set(fault, EXIT_REQUEST, "%s: the operation needs this tensor", role->name);
    if (role->shape == SHAPE_POSITIONS)
        return rope_check_positions(job, i, fault);
    if (tensor->element->dtype == CLNORM_DTYPE_NONE)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): dtype %s; expected %s", tensor->name, role->name,
                         tensor->element->name, reals_of(job->operation));
    const bool codes = role->shape == SHAPE_CODES || (role->shape == SHAPE_SCALED && job->x.scaling);
    if (role->shape == SHAPE_SCALED && tensor->element->bits == 8 && !codes)
        return fault_set(fault, EXIT_REQUEST, "x_scale: tensor '%s' (%s) of dtype %s needs this tensor", tensor->name,
                         role->name, tensor->element->name);
    if ((tensor->element->bits == 8) != codes)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): dtype %s; expected %s", tensor->name, role->name,
                         tensor->element->name,
                         role->shape == SHAPE_SCALED && codes ? "F8_E4M3 or F8_E5M2, as there is an x_scale"
                         : codes                              ? "F8_E4M3 or F8_E5M2"
                                                              : reals_of(job->operation));
    const bool scales = role->shape == SHAPE_SCALES || role->shape == SHAPE_X_GROUPS || role->shape == SHAPE_X_SCALES;
    if (scales && tensor->element->dtype != CLNORM_F32 && tensor->element->dtype != CLNORM_BF16)
        return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): dtype %s; expected F32 or BF16", tensor->name, role->name,
                         tensor->element->name);
    if (!job_check_shape(job, i, fault))
        return false;
    const clnorm_dtype statistics = statistics_dtype(job_dtype(job, job->operation->roles[0].name));
    if (role_is_statistics(role->shape) && tensor->element->dtype != statistics)
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
    struct closest closest = closest_to(word);
    for (int k = 0; roles[k].name; k++)
        if (roles[k].output)
            closest_offer(&closest, roles[k].name);
    char text[CLOSEST_TEXT];
    return fault_set(fault, EXIT_REQUEST, "--outputs '%s': %s has no such output; %s", word, job->operation->name,
                     closest_text(&closest, text));
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
    if (operation_role(job->operation, "rope_cos") >= 0 && job->tensor[0].element && !rope_read(job, options, fault))
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
        job_shape_of_role(job, roles[i].shape, tensor);
        if (!tensor_measure(tensor))
            return fault_set(fault, EXIT_REQUEST, "%s: %s of x's shape has too many bytes", tensor->name,
                             tensor->element->name);
    }
    return outer_read(job, options, fault);
}
