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
    complete.z_dtype = desc->z_dtype ? desc->z_dtype : desc->x_dtype;
    complete.dy_dtype = desc->dy_dtype ? desc->dy_dtype : desc->x_dtype;
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
    return ref_norm_complete(&forward);
}

struct ref_gradients ref_gradients_make(uint64_t group_size) {
    double *room = calloc(group_size, 10 * sizeof(double));
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

/* The forward's side: x̂ and n, from the statistics that are given where they are. */
static void normalise(const struct ref_norm_backward *norm, uint64_t row, uint64_t group, struct ref_segment *segment) {
    const clnorm_norm_backward_desc *desc = &norm->desc;
    const struct ref_norm forward = {
        .desc = ref_norm_forward_of(desc), .x = norm->x, .weight = norm->weight, .bias = norm->bias, .z = norm->z};
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
        gradients->xhat[i] = forward->centre[i] * forward->rstd;
        gradients->n[i] = gradients->xhat[i] * forward->scale[i] + forward->bias[i];
        gradients->dn[i] = gate_last ? gradients->dy[i] * forward->act[i] : gradients->dy[i];
        gradients->wdn[i] = forward->scale[i] * gradients->dn[i];
        forward->y[i] = gate_last ? gradients->n[i] * forward->act[i] : gradients->n[i];
    }
    gradients->c1 = mean_of_products(gradients->xhat, gradients->wdn, n);
    gradients->c2 = desc->norm == CLNORM_LAYER_NORM ? mean_of(gradients->wdn, n) : 0;
    for (uint64_t i = 0; i < n; i++) {
        const double ds = forward->rstd * (gradients->wdn[i] - gradients->xhat[i] * gradients->c1 - gradients->c2);
        gradients->ds[i] = ds;
        gradients->dx[i] = desc->gate_first ? ds * forward->act[i] : ds;
        gradients->dz[i] = desc->gate_first ? ds * gradients->x[i] * gradients->slope[i]
                                            : gradients->dy[i] * gradients->n[i] * gradients->slope[i];
    }
}
