#include "reference/norm_backward.h"

#include <math.h>
#include <stdlib.h>

#include "reference/activation.h"

struct ref_norm ref_norm_forward(const struct ref_norm_backward *norm) {
    struct ref_norm forward = norm->forward;
    if (norm->s_given) {
        forward.dropout = 0;
        forward.row_scale.elements = NULL;
    }
    return forward;
}

struct ref_gradients ref_gradients_make(uint64_t group_size) {
    double *const memory = ref_arrays(group_size, 14);
    const struct ref_segment forward = ref_segment_make(group_size);
    if (!memory || !forward.s) {
        free(memory);
        free(forward.s);
        return (struct ref_gradients){.dy = NULL};
    }
    return (struct ref_gradients){
        .forward = forward,
        .dy = memory,
        .slope = memory + group_size,
        .xhat = memory + 2 * group_size,
        .n = memory + 3 * group_size,
        .dn = memory + 4 * group_size,
        .wdn = memory + 5 * group_size,
        .ds = memory + 6 * group_size,
        .dx = memory + 7 * group_size,
        .dz = memory + 8 * group_size,
        .x = memory + 9 * group_size,
        .active = memory + 10 * group_size,
        .active_slope = memory + 11 * group_size,
        .factor = memory + 12 * group_size,
        .turned = memory + 13 * group_size,
    };
}

void ref_gradients_free(struct ref_gradients *gradients) {
    ref_segment_free(&gradients->forward);
    free(gradients->dy); /* the others are parts of it */
    *gradients = (struct ref_gradients){.dy = NULL};
}

/* The factor of dropout and row_scale in dx. */
static double factor_of(const struct ref_norm *forward, uint64_t row, uint64_t column) {
    if (forward->dropout > 0 && !ref_norm_keeps(forward, row, column))
        return 0;
    return ref_at_or(&forward->row_scale, 0, row, 1) / (1 - forward->dropout);
}

/* The forward's segment, with the given statistics in place of computed ones. */
static void normalise(const struct ref_norm_backward *norm, uint64_t row, uint64_t group, struct ref_segment *segment) {
    const struct ref_norm forward = ref_norm_forward(norm);
    ref_norm_segment(&forward, row, group, segment);
    segment->mean = ref_at_or(&norm->mean, group, row, segment->mean);
    segment->rstd = ref_at_or(&norm->rstd, group, row, segment->rstd);
    for (uint64_t i = 0; i < forward.group_size; i++)
        segment->centre[i] = segment->s[i] - segment->mean;
}

static void take_dy(const struct ref_norm_backward *norm, uint64_t row, uint64_t column, struct ref_gradients *gradients,
                    uint64_t i) {
    gradients->dy[i] = ref_at(&norm->dy, row, column);
    if (!norm->forward.rope.form)
        return;
    const struct ref_turn turn = ref_rope_turn(&norm->forward.rope, row, i);
    const double own = gradients->dy[i] * turn.cos, other = ref_at(&norm->dy, row, column - i + turn.partner) * turn.sin;
    gradients->dy[i] = own - other;
    gradients->turned[i] = turn.partner == i ? 0 : fabs(own) + fabs(other);
}

/* Computes an element's results up to wdn. */
static void take_element(const struct ref_norm_backward *norm, uint64_t row, uint64_t column,
                         struct ref_gradients *gradients, uint64_t i) {
    const struct ref_norm *const desc = &norm->forward;
    struct ref_segment *const forward = &gradients->forward;
    const double gate = desc->gate && !desc->gate_first ? forward->act[i] : 1;
    gradients->x[i] = ref_at(&desc->x, row, column);
    take_dy(norm, row, column, gradients, i);
    gradients->slope[i] = ref_gate_slope(desc->gate, forward->z[i]);
    gradients->xhat[i] = norm->y_given ? (forward->s[i] - forward->bias[i]) / forward->scale[i] /* s is y */
                                       : forward->centre[i] * forward->rstd;
    gradients->n[i] = gradients->xhat[i] * forward->scale[i] + forward->bias[i];
    gradients->active[i] = ref_activation(desc->activation, gradients->n[i]);
    gradients->active_slope[i] = ref_activation_slope(desc->activation, gradients->n[i]);
    gradients->dn[i] = gradients->dy[i] * gradients->active_slope[i] * gate;
    gradients->wdn[i] = forward->scale[i] * gradients->dn[i];
    forward->y[i] = gradients->active[i] * gate;
}

static void put_element(const struct ref_norm_backward *norm, uint64_t row, uint64_t column,
                        struct ref_gradients *gradients, uint64_t i) {
    const struct ref_norm *const desc = &norm->forward;
    const double ds = gradients->forward.rstd * (gradients->wdn[i] - gradients->xhat[i] * gradients->c1 - gradients->c2);
    gradients->ds[i] = ds + ref_at_or(&norm->dresidual_out, row, column, 0);
    gradients->factor[i] = desc->gate_first ? gradients->forward.act[i] : factor_of(desc, row, column);
    gradients->dx[i] = gradients->ds[i] * gradients->factor[i];
    gradients->dz[i] = desc->gate_first ? gradients->ds[i] * gradients->x[i] * gradients->slope[i]
                                        : gradients->dy[i] * gradients->active[i] * gradients->slope[i];
}

void ref_norm_backward_segment(const struct ref_norm_backward *norm, uint64_t row, uint64_t group,
                               struct ref_gradients *gradients) {
    const uint64_t size = norm->forward.group_size;
    normalise(norm, row, group, &gradients->forward);
    for (uint64_t i = 0; i < size; i++)
        take_element(norm, row, group * size + i, gradients, i);
    gradients->c1 = ref_mean_product(gradients->xhat, gradients->wdn, size);
    gradients->c2 = norm->forward.norm == CLNORM_LAYER_NORM ? ref_mean(gradients->wdn, size) : 0;
    for (uint64_t i = 0; i < size; i++)
        put_element(norm, row, group * size + i, gradients, i);
}
