#include "reference/norm.h"

#include <math.h>
#include <stdlib.h>

#include "reference/activation.h"
#include "reference/philox.h"
#include "reference/sum.h"

struct ref_segment ref_segment_make(uint64_t group_size) {
    double *const memory = ref_arrays(group_size, 11);
    if (!memory)
        return (struct ref_segment){.s = NULL};
    return (struct ref_segment){
        .s = memory,
        .act = memory + group_size,
        .centre = memory + 2 * group_size,
        .scale = memory + 3 * group_size,
        .bias = memory + 4 * group_size,
        .y = memory + 5 * group_size,
        .z = memory + 6 * group_size,
        .part = memory + 7 * group_size,
        .n = memory + 8 * group_size,
        .cos = memory + 9 * group_size,
        .sin = memory + 10 * group_size,
    };
}

void ref_segment_free(struct ref_segment *segment) {
    free(segment->s); /* the others are parts of it */
    *segment = (struct ref_segment){.s = NULL};
}

uint64_t ref_norm_weight_row(const struct ref_norm *norm, uint64_t row) {
    return norm->weight_rows ? row / norm->weight_repeat % norm->weight_rows : 0;
}

bool ref_norm_keeps(const struct ref_norm *norm, uint64_t row, uint64_t column) {
    return norm->mask ? norm->mask[row * norm->cols + column] : ref_kept(norm->seed, norm->dropout, row, column);
}

static double part_of(const struct ref_norm *norm, uint64_t row, uint64_t column) {
    const double scaled = ref_at_or(&norm->row_scale, 0, row, 1) * ref_at(&norm->x, row, column);
    if (norm->dropout == 0)
        return scaled;
    return ref_norm_keeps(norm, row, column) ? scaled / (1 - norm->dropout) : 0;
}

/* An element of a weight or bias. Where it is F64 and x is not, it is rounded to f32 as it is read. */
static double weight_at(const struct ref_norm *norm, const struct ref_tensor *weights, uint64_t row, uint64_t column) {
    const double value = ref_at_or(weights, ref_norm_weight_row(norm, row), column, 0);
    return weights->dtype == CLNORM_F64 && norm->x.dtype != CLNORM_F64 ? (float)value : value;
}

static void load_element(const struct ref_norm *norm, uint64_t row, uint64_t column, struct ref_segment *segment,
                         uint64_t i) {
    segment->z[i] = norm->gate ? ref_at(&norm->z, row, column) : 0;
    segment->act[i] = ref_gate(norm->gate, segment->z[i]);
    segment->part[i] = part_of(norm, row, column);
    segment->s[i] =
        ref_at_or(&norm->residual, row, column, 0) + segment->part[i] * (norm->gate_first ? segment->act[i] : 1);
    segment->scale[i] = norm->weight.elements ? norm->weight_offset + weight_at(norm, &norm->weight, row, column) : 1;
    segment->bias[i] = weight_at(norm, &norm->bias, row, column);
}

/* Rotates n into y. */
static void rotate(const struct ref_norm *norm, uint64_t row, struct ref_segment *segment) {
    for (uint64_t i = 0; i < norm->group_size; i++) {
        const struct ref_turn turn = ref_rope_turn(&norm->rope, row, i);
        segment->cos[i] = turn.cos;
        segment->sin[i] = turn.sin;
        if (norm->rope.form)
            segment->y[i] = segment->n[i] * turn.cos + segment->n[turn.partner] * turn.sin;
    }
}

void ref_norm_segment(const struct ref_norm *norm, uint64_t row, uint64_t group, struct ref_segment *segment) {
    const uint64_t size = norm->group_size;
    for (uint64_t i = 0; i < size; i++)
        load_element(norm, row, group * size + i, segment, i);
    segment->mean = norm->norm == CLNORM_LAYER_NORM ? ref_mean(segment->s, size) : 0;
    for (uint64_t i = 0; i < size; i++)
        segment->centre[i] = segment->s[i] - segment->mean;
    segment->variance = ref_mean_product(segment->centre, segment->centre, size);
    segment->rstd = 1 / sqrt(segment->variance + norm->eps);
    for (uint64_t i = 0; i < size; i++) {
        segment->n[i] = segment->centre[i] * segment->rstd * segment->scale[i] + segment->bias[i];
        segment->y[i] = ref_activation(norm->activation, segment->n[i]) * (norm->gate_first ? 1 : segment->act[i]);
    }
    rotate(norm, row, segment);
}
