#include "reference/group_norm.h"

#include <stdlib.h>

enum { X, RESIDUAL, DY, DRESIDUAL_OUT, WEIGHT, BIAS, ARRAYS };

uint64_t ref_group_norm_size(const struct ref_group_norm *norm) {
    return norm->cols / norm->groups * norm->spatial;
}

uint64_t ref_group_norm_channel(const struct ref_group_norm *norm, uint64_t group, uint64_t i) {
    return group * (norm->cols / norm->groups) + i / norm->spatial;
}

uint64_t ref_group_norm_at(const struct ref_group_norm *norm, uint64_t group, uint64_t i) {
    const uint64_t channel = ref_group_norm_channel(norm, group, i), position = i % norm->spatial;
    return norm->layout == CLNORM_LAYOUT_LAST ? position * norm->cols + channel : channel * norm->spatial + position;
}

struct ref_gathered ref_gathered_make(const struct ref_group_norm *norm) {
    const uint64_t size = ref_group_norm_size(norm);
    struct ref_gathered made = {.gradients = ref_gradients_make(size),
                                .errors = ref_gradient_errors_make(size),
                                .memory = ref_arrays(size, ARRAYS)};
    if (!made.gradients.dy || !made.errors.xhat || !made.memory)
        ref_gathered_free(&made);
    return made;
}

void ref_gathered_free(struct ref_gathered *gathered) {
    ref_gradients_free(&gathered->gradients);
    ref_gradient_errors_free(&gathered->errors);
    free(gathered->memory);
    gathered->memory = NULL;
}

static double *array(const struct ref_gathered *gathered, uint64_t size, int i) {
    return gathered->memory + size * (uint64_t)i;
}

static void gather(const struct ref_group_norm *norm, uint64_t row, uint64_t group, struct ref_gathered *gathered) {
    const uint64_t size = ref_group_norm_size(norm);
    for (uint64_t i = 0; i < size; i++) {
        const uint64_t at = ref_group_norm_at(norm, group, i), channel = ref_group_norm_channel(norm, group, i);
        array(gathered, size, X)[i] = ref_at(&norm->x, row, at);
        array(gathered, size, RESIDUAL)[i] = ref_at_or(&norm->residual, row, at, 0);
        array(gathered, size, DY)[i] = ref_at_or(&norm->dy, row, at, 0);
        array(gathered, size, DRESIDUAL_OUT)[i] = ref_at_or(&norm->dresidual_out, row, at, 0);
        array(gathered, size, WEIGHT)[i] = ref_at_or(&norm->weight, 0, channel, 1);
        array(gathered, size, BIAS)[i] = ref_at_or(&norm->bias, 0, channel, 0);
    }
    struct ref_norm forward = {.norm = CLNORM_LAYER_NORM,
                               .rows = 1,
                               .cols = size,
                               .group_size = size,
                               .activation = norm->activation,
                               .eps = norm->eps};
    forward.x = ref_doubles(array(gathered, size, X), size);
    forward.weight = ref_doubles(array(gathered, size, WEIGHT), size);
    forward.bias = ref_doubles(array(gathered, size, BIAS), size);
    if (norm->residual.elements)
        forward.residual = ref_doubles(array(gathered, size, RESIDUAL), size);
    gathered->norm = (struct ref_norm_backward){.forward = forward, .dy = ref_doubles(array(gathered, size, DY), size)};
    if (norm->dresidual_out.elements)
        gathered->norm.dresidual_out = ref_doubles(array(gathered, size, DRESIDUAL_OUT), size);
}

/* The statistic of the gathered segment, [1, 1]: element (row, group) of a [rows, groups] tensor. */
static struct ref_tensor statistic_of(const struct ref_tensor *given, uint64_t index) {
    struct ref_tensor one = *given;
    if (given->elements)
        one.elements = (const char *)given->elements + index * clnorm_dtype_size(given->dtype);
    return one;
}

void ref_group_norm_segment(const struct ref_group_norm *norm, uint64_t row, uint64_t group,
                            struct ref_gathered *gathered) {
    gather(norm, row, group, gathered);
    ref_norm_segment(&gathered->norm.forward, 0, 0, &gathered->gradients.forward);
}

void ref_group_norm_gradients(const struct ref_group_norm *norm, const struct ref_arithmetic *arithmetic, uint64_t row,
                              uint64_t group, struct ref_gathered *gathered) {
    gather(norm, row, group, gathered);
    gathered->norm.mean = statistic_of(&norm->mean, row * norm->groups + group);
    gathered->norm.rstd = statistic_of(&norm->rstd, row * norm->groups + group);
    ref_norm_backward_segment(&gathered->norm, 0, 0, &gathered->gradients);
    ref_gradient_errors_of(&gathered->norm, arithmetic, &gathered->gradients, &gathered->errors);
}

void ref_group_norm_add(const struct ref_group_norm *norm, uint64_t group, const struct ref_gathered *gathered,
                        struct ref_row_sum *dweight, struct ref_row_sum *dbias) {
    const struct ref_gradients *const g = &gathered->gradients;
    for (uint64_t i = 0; i < ref_group_norm_size(norm); i++) {
        const uint64_t channel = ref_group_norm_channel(norm, group, i);
        ref_row_sum_add(&dweight[channel], g->dn[i] * g->xhat[i], gathered->errors.dweight[i]);
        ref_row_sum_add(&dbias[channel], g->dn[i], gathered->errors.dbias[i]);
    }
}
