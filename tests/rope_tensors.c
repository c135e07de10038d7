#include "rope_tensors.h"

#include <math.h>

#include "reference/format.h"

const clnorm_rope rope_forms[2] = {CLNORM_ROPE_NEOX, CLNORM_ROPE_INTERLEAVED};

/* Angles of the paper: position · 10000^(−2i / dims). */
static void fill_table(struct tensor *table, double (*function)(double), uint64_t dims) {
    for (uint64_t p = 0; p < table->rows; p++)
        for (uint64_t i = 0; i < table->cols; i++) {
            const double angle = (double)p * pow(10000, -2 * (double)i / (double)dims);
            ref_store(table->dtype, tensor_elements(table), p * table->stride + i, function(angle));
        }
}

static void fill_positions(struct tensor *position, uint64_t positions, bool wild) {
    static const int32_t outside[] = {-1, INT32_MIN, INT32_MAX};
    int32_t *const at = tensor_elements(position);
    for (uint64_t i = 0; i < position->cols; i++) {
        const int32_t inside = (int32_t)((7 * i + 3) % positions);
        const uint64_t kind = i % 5;
        at[i] = !wild || kind > 3 ? inside : kind == 3 ? (int32_t)positions : outside[kind];
    }
}

struct rope_tensors rope_tensors_make(const clnorm_norm_desc *desc, uint64_t shift, bool wild) {
    struct rope_tensors rope = {.cos = {0}};
    if (!desc->rope)
        return rope;
    const uint64_t dims = desc->rope_dims ? desc->rope_dims : desc->group_size;
    const uint64_t repeat = desc->rope_repeat ? desc->rope_repeat : 1, rows = (desc->rows + repeat - 1) / repeat;
    const uint64_t cos_stride = desc->rope_cos.stride ? desc->rope_cos.stride : dims / 2;
    const uint64_t sin_stride = desc->rope_sin.stride ? desc->rope_sin.stride : dims / 2;
    const unsigned char surround = wild ? TENSOR_CANARY : TENSOR_NAN; /* where NaN is right, a table must not bring it */
    rope.cos = tensor_make(desc->rope_cos.dtype, desc->rope_positions, dims / 2, cos_stride, shift, surround);
    rope.sin = tensor_make(desc->rope_sin.dtype, desc->rope_positions, dims / 2, sin_stride, shift, surround);
    fill_table(&rope.cos, cos, dims);
    fill_table(&rope.sin, sin, dims);
    if (desc->position_given) {
        rope.position = tensor_make(CLNORM_F32, 1, rows, rows, 1, TENSOR_NAN);
        fill_positions(&rope.position, desc->rope_positions, wild);
    }
    return rope;
}

void rope_tensors_lend(const struct rope_tensors *rope, struct ref_rope *reference) {
    reference->cos.elements = tensor_elements(&rope->cos);
    reference->sin.elements = tensor_elements(&rope->sin);
    reference->position = tensor_elements(&rope->position);
}

void rope_tensors_give(const struct rope_tensors *rope, clnorm_args *args) {
    args->rope_cos = tensor_buffer(&rope->cos);
    args->rope_sin = tensor_buffer(&rope->sin);
    args->position = tensor_buffer(&rope->position);
}

bool rope_tensors_unchanged(const struct fixture *fixture, const struct rope_tensors *rope) {
    return tensor_unchanged(fixture, &rope->cos, "rope_cos") && tensor_unchanged(fixture, &rope->sin, "rope_sin") &&
           tensor_unchanged(fixture, &rope->position, "position");
}
