#include "reference/descriptor.h"

#include <string.h>

static uint64_t or_else(uint64_t value, uint64_t otherwise) {
    return value ? value : otherwise;
}

/* The dtype of statistics and row_scale with an x of this dtype. */
static clnorm_dtype statistics_dtype_of(clnorm_dtype x) {
    return x == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
}

clnorm_norm_desc ref_norm_complete(const clnorm_norm_desc *desc) {
    clnorm_norm_desc complete = *desc;
    complete.group_size = or_else(desc->group_size, desc->cols);
    complete.x.stride = or_else(desc->x.stride, desc->cols);
    complete.y.stride = or_else(desc->y.stride, desc->cols);
    complete.z.stride = or_else(desc->z.stride, desc->cols);
    complete.residual.stride = or_else(desc->residual.stride, desc->cols);
    complete.residual_out.stride = or_else(desc->residual_out.stride, desc->cols);
    complete.y_t.stride = or_else(desc->y_t.stride, desc->rows);
    complete.y.dtype = desc->y.dtype || desc->y_t.dtype ? desc->y.dtype : desc->x.dtype;
    complete.z.dtype = desc->z.dtype || desc->x.scaling ? desc->z.dtype : desc->x.dtype;
    return complete;
}

clnorm_norm_backward_desc ref_norm_backward_complete(const clnorm_norm_backward_desc *desc) {
    clnorm_norm_backward_desc complete = *desc;
    complete.group_size = or_else(desc->group_size, desc->cols);
    complete.x.stride = or_else(desc->x.stride, desc->cols);
    complete.z.stride = or_else(desc->z.stride, desc->cols);
    complete.dy.stride = or_else(desc->dy.stride, desc->cols);
    complete.dx.stride = or_else(desc->dx.stride, desc->cols);
    complete.dz.stride = or_else(desc->dz.stride, desc->cols);
    complete.y.stride = or_else(desc->y.stride, desc->cols);
    complete.residual.stride = or_else(desc->residual.stride, desc->cols);
    complete.dresidual_out.stride = or_else(desc->dresidual_out.stride, desc->cols);
    complete.dresidual.stride = or_else(desc->dresidual.stride, desc->cols);
    if (desc->y_given) {
        complete.x.dtype = desc->y.dtype;
        complete.x.stride = complete.y.stride;
        memcpy(complete.x.outer, complete.y.outer, sizeof complete.x.outer);
    }
    complete.z.dtype = desc->z.dtype || desc->x.scaling ? desc->z.dtype : complete.x.dtype;
    complete.dy.dtype = desc->dy.dtype ? desc->dy.dtype : complete.x.dtype;
    complete.reduction = desc->reduction ? desc->reduction : CLNORM_REDUCTION_PARTIAL;
    return complete;
}

clnorm_norm_desc ref_norm_forward_of(const clnorm_norm_backward_desc *desc) {
    clnorm_norm_desc forward = CLNORM_NORM_DESC_INIT;
    forward.rows = desc->rows;
    forward.cols = desc->cols;
    forward.group_size = desc->group_size;
    forward.weight_rows = desc->weight_rows;
    forward.weight_repeat = desc->weight_repeat;
    forward.x = desc->x;
    forward.y = desc->y;
    forward.z = desc->z;
    forward.weight = desc->weight;
    forward.bias = desc->bias;
    forward.residual = desc->residual;
    forward.norm = desc->norm;
    forward.gate = desc->gate;
    forward.gate_first = desc->gate_first;
    forward.eps = desc->eps;
    forward.weight_offset = desc->weight_offset;
    forward.activation = desc->activation;
    forward.row_scale = desc->row_scale && !desc->s_given;
    forward.dropout = desc->s_given ? 0 : desc->dropout;
    forward.rope = desc->rope;
    forward.rope_cos = desc->rope_cos;
    forward.rope_sin = desc->rope_sin;
    forward.rope_dims = desc->rope_dims;
    forward.rope_positions = desc->rope_positions;
    forward.rope_repeat = desc->rope_repeat;
    forward.position_given = desc->position_given;
    return ref_norm_complete(&forward);
}

/* The reference's tensor, with rows of cols elements. */
static struct ref_tensor tensor_of(const clnorm_tensor *tensor, uint64_t cols) {
    const uint64_t group = or_else(tensor->scale_group, 1);
    struct ref_tensor ref = {
        .dtype = tensor->dtype,
        .stride = or_else(tensor->stride, cols),
        .scale_dtype = tensor->scale_dtype ? tensor->scale_dtype : CLNORM_F32,
        .scaling = tensor->scaling,
        .scale_group = group,
        .scale_stride = (cols + group - 1) / group,
    };
    memcpy(ref.outer, tensor->outer, sizeof ref.outer);
    return ref;
}

/* row_scale as one row, or statistics as one row for each group. */
static struct ref_tensor statistics_of(clnorm_dtype x, uint64_t rows) {
    return (struct ref_tensor){.dtype = statistics_dtype_of(x), .stride = rows};
}

static struct ref_rope rope_of(const clnorm_norm_desc *desc) {
    const uint64_t dims = or_else(desc->rope_dims, desc->group_size);
    return (struct ref_rope){
        .form = desc->rope,
        .dims = dims,
        .positions = desc->rope_positions,
        .repeat = or_else(desc->rope_repeat, 1),
        .cos = tensor_of(&desc->rope_cos, dims / 2),
        .sin = tensor_of(&desc->rope_sin, dims / 2),
    };
}

struct ref_norm ref_norm_of(const clnorm_norm_desc *desc) {
    const clnorm_norm_desc complete = ref_norm_complete(desc);
    return (struct ref_norm){
        .norm = desc->norm,
        .rows = desc->rows,
        .cols = desc->cols,
        .group_size = complete.group_size,
        .x = tensor_of(&desc->x, desc->cols),
        .z = tensor_of(&complete.z, desc->cols),
        .residual = tensor_of(&desc->residual, desc->cols),
        .weight = tensor_of(&desc->weight, desc->cols),
        .bias = tensor_of(&desc->bias, desc->cols),
        .row_scale = statistics_of(desc->x.dtype, desc->rows),
        .weight_rows = desc->weight_rows,
        .weight_repeat = or_else(desc->weight_repeat, 1),
        .gate = desc->gate,
        .gate_first = desc->gate_first,
        .activation = desc->activation,
        .eps = desc->eps,
        .weight_offset = desc->weight_offset,
        .dropout = desc->dropout,
        .rope = rope_of(&complete),
    };
}

struct ref_norm_backward ref_norm_backward_of(const clnorm_norm_backward_desc *desc) {
    const clnorm_norm_backward_desc complete = ref_norm_backward_complete(desc);
    const clnorm_norm_desc forward = ref_norm_forward_of(&complete);
    struct ref_norm_backward norm = {
        .forward = ref_norm_of(&forward),
        .dy = tensor_of(&complete.dy, desc->cols),
        .dresidual_out = tensor_of(&desc->dresidual_out, desc->cols),
        .mean = statistics_of(complete.x.dtype, desc->rows),
        .rstd = statistics_of(complete.x.dtype, desc->rows),
        .s_given = desc->s_given,
        .y_given = desc->y_given,
    };
    norm.forward.dropout = desc->dropout; /* it applies to dx even where s is given */
    return norm;
}
