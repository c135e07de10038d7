/* The shapes of a job's tensors. */
#include "operation.h"

#include <string.h>

#include "base/arithmetic.h"

/* The number of scales that a row has, one for each group. */
static uint64_t scales_of_row(const struct job *job) {
    const uint64_t size = job->group_size ? job->group_size : job->cols;
    return job->cols / size + (job->cols % size != 0);
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

uint64_t job_groups_of_x(const struct job *job) {
    return job->x.scale_group ? (job->cols + job->x.scale_group - 1) / job->x.scale_group : 1;
}

static void shape_of_scales(clnorm_scaling scaling, uint64_t rows, uint64_t groups, struct tensor *tensor) {
    switch (scaling) {
    case CLNORM_SCALING_GROUP:
        set_shape(tensor, 2, rows, groups);
        break;
    case CLNORM_SCALING_ROW:
        set_shape(tensor, 1, rows, 0);
        break;
    default:
        set_shape(tensor, 1, 1, 0);
    }
}

/* Writes the shape of a role in a job whose rows, cols and groups are known. */
void job_shape_of_role(const struct job *job, enum role_shape shape, struct tensor *tensor) {
    switch (shape) {
    case SHAPE_X:
    case SHAPE_CODES:
    case SHAPE_SCALED:
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
        shape_of_scales(job->scaling, job->rows, scales_of_row(job), tensor);
        break;
    case SHAPE_X_SCALES:
        shape_of_scales(job->x.scaling, job->rows, job_groups_of_x(job), tensor);
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
        if (job->weight_rows)
            set_shape(tensor, 2, job->weight_rows, job->cols);
        else
            set_shape(tensor, 1, job->cols, 0);
        break;
    case SHAPE_TABLE:
        set_shape(tensor, 2, job->rope.positions, job->rope.dims / 2);
        break;
    case SHAPE_POSITIONS:
        set_shape(tensor, 1, cln_divide_up(job->rows, job->rope.repeat), 0);
        break;
    case SHAPE_STATISTICS:
        tensor->rank = 2;
        tensor->shape[0] = job->groups;
        tensor->shape[1] = job->rows;
        break;
    case SHAPE_MOMENTS:
    case SHAPE_SUMS:
        set_shape(tensor, 3, job->groups, job->rows);
        tensor->shape[2] = shape == SHAPE_MOMENTS ? 3 : 2;
        break;
    case SHAPE_GROUPS:
        set_shape(tensor, 2, job->rows, job->groups);
        break;
    case SHAPE_ROWS:
        tensor->rank = 1;
        tensor->shape[0] = job->rows;
        break;
    }
}

/* Scales of rows and of groups may have x's leading dimensions, or one dimension of all rows. Writes the shape that
 * job_shape_of_role does not. false: there is only one shape. */
static bool other_shape(const struct job *job, enum role_shape shape, struct tensor *tensor) {
    const clnorm_scaling scaling = shape == SHAPE_SCALES     ? job->scaling
                                   : shape == SHAPE_X_SCALES ? job->x.scaling
                                                             : CLNORM_SCALING_NONE;
    const bool rows = scaling == CLNORM_SCALING_ROW && !job->spatial, groups = scaling == CLNORM_SCALING_GROUP;
    if (shape == SHAPE_X_GROUPS)
        set_shape(tensor, 2, job->rows, job->groups);
    else if (rows || groups) {
        const struct tensor *const x = &job->tensor[0];
        memcpy(tensor->shape, x->shape, sizeof tensor->shape);
        tensor->rank = x->rank - rows;
        tensor->shape[x->rank - 1] = rows ? 0 : shape == SHAPE_SCALES ? scales_of_row(job) : job_groups_of_x(job);
    }
    return shape == SHAPE_X_GROUPS || rows || groups;
}

static bool same_shape(const struct tensor *a, const struct tensor *b) {
    return a->rank == b->rank && !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape);
}

bool job_check_shape(const struct job *job, int i, struct fault *fault) {
    const struct role *const role = &job->operation->roles[i];
    const struct tensor *const tensor = &job->tensor[i];
    struct tensor expected = *tensor;
    struct tensor other = *tensor;
    job_shape_of_role(job, role->shape, &expected);
    if (same_shape(tensor, &expected))
        return true;
    const bool either = other_shape(job, role->shape, &other) && !same_shape(&other, &expected);
    if (either && same_shape(tensor, &other))
        return true;
    char found[SHAPE_TEXT];
    char wanted[SHAPE_TEXT];
    char wanted_too[SHAPE_TEXT] = "";
    if (either)
        tensor_shape_text(&other, wanted_too);
    return fault_set(fault, EXIT_REQUEST, "tensor '%s' (%s): shape %s; expected %s%s%s", tensor->name, role->name,
                     tensor_shape_text(tensor, found), tensor_shape_text(&expected, wanted), either ? " or " : "",
                     wanted_too);
}
