#include "reference_backward.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t or_else(uint64_t value, uint64_t otherwise) {
    return value ? value : otherwise;
}

clnorm_norm_backward_desc ref_norm_backward_complete(const clnorm_norm_backward_desc *desc) {
    clnorm_norm_backward_desc complete = *desc;
    complete.group_size = or_else(desc->group_size, desc->cols);
    complete.x_stride = or_else(desc->x_stride, desc->cols);
    complete.z_stride = or_else(desc->z_stride, desc->cols);
    complete.dy_stride = or_else(desc->dy_stride, desc->cols);
    complete.dx_stride = or_else(desc->dx_stride, desc->cols);
    complete.dz_stride = or_else(desc->dz_stride, desc->cols);
    complete.y_stride = or_else(desc->y_stride, desc->cols);
    complete.residual_stride = or_else(desc->residual_stride, desc->cols);
    complete.dresidual_out_stride = or_else(desc->dresidual_out_stride, desc->cols);
    complete.dresidual_stride = or_else(desc->dresidual_stride, desc->cols);
    if (desc->y_given) {
        complete.x_dtype = desc->y_dtype;
        complete.x_stride = complete.y_stride;
    }
    complete.z_dtype = desc->z_dtype ? desc->z_dtype : complete.x_dtype;
    complete.dy_dtype = desc->dy_dtype ? desc->dy_dtype : complete.x_dtype;
    complete.reduction = desc->reduction ? desc->reduction : CLNORM_REDUCTION_PARTIAL;
    return complete;
}

clnorm_norm_desc ref_norm_forward_of(const clnorm_norm_backward_desc *desc) {
    clnorm_norm_desc forward = CLNORM_NORM_DESC_INIT;
    forward.rows = desc->rows;
    forward.cols = desc->cols;
    forward.group_size = desc->group_size;
    forward.x_stride = desc->x_stride;
    forward.y_stride = desc->y_stride;
    forward.z_stride = desc->z_stride;
    forward.norm = desc->norm;
    forward.x_dtype = desc->x_dtype;
    forward.y_dtype = desc->y_dtype;
    forward.z_dtype = desc->z_dtype;
    forward.weight_dtype = desc->weight_dtype;
    forward.bias_dtype = desc->bias_dtype;
    forward.gate = desc->gate;
    forward.gate_first = desc->gate_first;
    forward.eps = desc->eps;
    forward.weight_offset = desc->weight_offset;
    forward.activation = desc->activation;
    forward.residual_stride = desc->residual_stride;
    forward.residual_dtype = desc->residual_dtype;
    forward.row_scale = desc->row_scale && !desc->s_given;
    forward.dropout = desc->s_given ? 0 : desc->dropout;
    return ref_norm_complete(&forward);
}

struct ref_norm ref_forward_operands(const struct ref_norm_backward *norm) {
    return (struct ref_norm){.desc = ref_norm_forward_of(&norm->desc),
                             .x = norm->x,
                             .weight = norm->weight,
                             .bias = norm->bias,
                             .z = norm->z,
                             .residual = norm->residual,
                             .row_scale = norm->desc.s_given ? NULL : norm->row_scale,
                             .seed = norm->seed};
}

struct ref_gradients ref_gradients_make(uint64_t group_size) {
    double *room = calloc(group_size, 13 * sizeof(double));
    if (room == NULL) {
        fprintf(stderr, "no memory for the gradients of %llu elements\n", (unsigned long long)group_size);
        exit(1);
    }
    const struct ref_gradients gradients = {
        .forward = ref_segment_make(group_size),
        .dy = room,
        .slope = room + group_size,
        .xhat = room + 2 * group_size,
        .n = room + 3 * group_size,
        .dn = room + 4 * group_size,
        .wdn = room + 5 * group_size,
        .ds = room + 6 * group_size,
        .dx = room + 7 * group_size,
        .dz = room + 8 * group_size,
        .x = room + 9 * group_size,
        .active = room + 10 * group_size,
        .active_slope = room + 11 * group_size,
        .factor = room + 12 * group_size,
    };
    return gradients;
}

void ref_gradients_free(struct ref_gradients *gradients) {
    ref_segment_free(&gradients->forward);
    free(gradients->dy); /* the others are parts of it */
    *gradients = (struct ref_gradients){0};
}

/* act′(z): with σ = sigmoid(z), whose own slope is σ · (1 − σ). */
static double slope_of(clnorm_gate gate, double z) {
    const double sigmoid = 1 / (1 + exp(-z));
    const double rest = 1 / (1 + exp(z));
    switch (gate) {
    case CLNORM_GATE_SILU:
        return sigmoid + z * sigmoid * rest;
    case CLNORM_GATE_SIGMOID:
        return sigmoid * rest;
    default:
        return 0;
    }
}

/* activation(n), and its derivative: with φ and Φ of the normal distribution, Φ(n) + n · φ(n); else sigmoid(a) for an a
 * that is a function of n, times n. */
static double activate(clnorm_activation activation, double n, double *slope) {
    const double tanh_scale = 2 * sqrt(2 / acos(-1));
    const bool is_silu = activation == CLNORM_ACTIVATION_SILU;
    const double a = is_silu ? n : tanh_scale * (n + 0.044715 * n * n * n);
    const double a_slope = is_silu ? 1 : tanh_scale * (1 + 3 * 0.044715 * n * n);
    const double below = activation == CLNORM_ACTIVATION_GELU ? erfc(-n / sqrt(2)) / 2 : 1 / (1 + exp(-a));
    switch (activation) {
    case CLNORM_ACTIVATION_NONE:
        *slope = 1;
        return n;
    case CLNORM_ACTIVATION_GELU:
        *slope = below + n * exp(-n * n / 2) / sqrt(2 * acos(-1));
        break;
    default:
        *slope = below + n * a_slope * below / (1 + exp(a));
    }
    return n * below;
}

/* What s goes through on its way back to x. */
static double factor_of(const struct ref_norm_backward *norm, uint64_t row, uint64_t column) {
    const clnorm_norm_backward_desc *desc = &norm->desc;
    const clnorm_dtype real = desc->x_dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    const double scale = norm->row_scale != NULL ? ref_load(real, norm->row_scale, row) : 1;
    if (desc->dropout > 0 && !ref_kept(norm->seed, desc->dropout, row, column))
        return 0;
    return scale / (1 - desc->dropout);
}

/* The forward's side: x̂ and n, from the statistics that are given where they are. */
static void normalise(const struct ref_norm_backward *norm, uint64_t row, uint64_t group, struct ref_segment *segment) {
    const clnorm_norm_backward_desc *desc = &norm->desc;
    const struct ref_norm forward = ref_forward_operands(norm);
    const clnorm_dtype statistics = desc->x_dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    const uint64_t statistic = group * desc->rows + row;
    ref_norm_segment(&forward, row, group, segment);
    if (norm->mean != NULL)
        segment->mean = ref_load(statistics, norm->mean, statistic);
    if (norm->rstd != NULL)
        segment->rstd = ref_load(statistics, norm->rstd, statistic);
    for (uint64_t i = 0; i < desc->group_size; i++)
        segment->centre[i] = segment->s[i] - segment->mean;
}

static double mean_of_products(const double *a, const double *b, uint64_t n) {
    long double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += (long double)a[i] * b[i];
    return (double)(sum / n);
}

static double mean_of(const double *values, uint64_t n) {
    long double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += values[i];
    return (double)(sum / n);
}

void ref_norm_backward_segment(const struct ref_norm_backward *norm, uint64_t row, uint64_t group,
                               struct ref_gradients *gradients) {
    const clnorm_norm_backward_desc *desc = &norm->desc;
    const uint64_t n = desc->group_size;
    const uint64_t column = group * n;
    const bool gate_last = desc->gate && !desc->gate_first;
    struct ref_segment *forward = &gradients->forward;
    normalise(norm, row, group, forward);
    for (uint64_t i = 0; i < n; i++) {
        gradients->x[i] = ref_load(desc->x_dtype, norm->x, row * desc->x_stride + column + i);
        gradients->dy[i] = ref_load(desc->dy_dtype, norm->dy, row * desc->dy_stride + column + i);
        gradients->slope[i] = slope_of(desc->gate, forward->z[i]);
        gradients->xhat[i] = desc->y_given ? (forward->s[i] - forward->bias[i]) / forward->scale[i] /* s is y */
                                           : forward->centre[i] * forward->rstd;
        gradients->n[i] = gradients->xhat[i] * forward->scale[i] + forward->bias[i];
        gradients->active[i] = activate(desc->activation, gradients->n[i], &gradients->active_slope[i]);
        gradients->dn[i] = gradients->dy[i] * gradients->active_slope[i] * (gate_last ? forward->act[i] : 1);
        gradients->wdn[i] = forward->scale[i] * gradients->dn[i];
        forward->y[i] = gradients->active[i] * (gate_last ? forward->act[i] : 1);
    }
    gradients->c1 = mean_of_products(gradients->xhat, gradients->wdn, n);
    gradients->c2 = desc->norm == CLNORM_LAYER_NORM ? mean_of(gradients->wdn, n) : 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t at = row * desc->dresidual_out_stride + column + i;
        const double later = norm->dresidual_out != NULL ? ref_load(desc->dresidual_out_dtype, norm->dresidual_out, at) : 0;
        const double ds = forward->rstd * (gradients->wdn[i] - gradients->xhat[i] * gradients->c1 - gradients->c2);
        gradients->ds[i] = ds + later;
        gradients->factor[i] = desc->gate_first ? forward->act[i] : factor_of(norm, row, column + i);
        gradients->dx[i] = gradients->ds[i] * gradients->factor[i];
        gradients->dz[i] = desc->gate_first ? gradients->ds[i] * gradients->x[i] * gradients->slope[i]
                                            : gradients->dy[i] * gradients->active[i] * gradients->slope[i];
    }
}
