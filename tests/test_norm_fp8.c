/* Forward norms with an x or y of 8 bits, and with y's transposed copy: every two options together, on every kind of
 * kernel. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_case.h"
#include "pairwise.h"
#include "refusal.h"

#define E4M3 CLNORM_F8_E4M3
#define E5M2 CLNORM_F8_E5M2
#define F32 CLNORM_F32
#define BF16 CLNORM_BF16
#define NONE CLNORM_DTYPE_NONE

/* One for each kind of kernel. On a CPU only streaming stores make accesses aligned. */
static const struct cln_config configs[] = {
    {0},
    {.vec = 4, .lanes = 64, .segments = 1, .keep = CLN_KEEP_REGISTERS, .reduce = CLN_REDUCE_TREE},
    {.vec = 4, .lanes = 8, .segments = 2, .keep = CLN_KEEP_REREAD, .unroll = 3, .reduce = CLN_REDUCE_TREE},
    {.vec = 2, .lanes = 4, .segments = 1, .keep = CLN_KEEP_LOCAL, .iterations = 2, .reduce = CLN_REDUCE_TREE},
    {.vec = 16, .lanes = 1, .segments = 1, .keep = CLN_KEEP_REGISTERS},
    {.vec = 8, .lanes = 4, .keep = CLN_KEEP_REREAD, .stores = CLN_STORES_STREAMING, .reduce = CLN_REDUCE_TREE},
};

enum factor {
    SHAPE,
    X_DTYPE,
    X_SCALING,
    X_GROUP,
    X_SCALE_DTYPE,
    Y_KIND,
    Y_SCALE_DTYPE,
    Y_COPIES,
    NORM,
    GATE,
    RESIDUAL,
    DROPOUT,
    ROW_SCALE,
    ACTIVATION,
    PARAMETERS,
    CONFIG,
    LAYOUT,
    FACTORS
};

static const struct shape {
    uint64_t rows, cols, group_size;
} shapes[] = {{3, 192, 0}, {5, 131, 0}, {4, 384, 128}, {2, 320, 64}, {9, 16, 0}};

static const struct kind {
    clnorm_dtype dtype;
    clnorm_scaling scaling;
    double scale;
} y_kinds[] = {
    {F32, CLNORM_SCALING_NONE, 0},    {BF16, CLNORM_SCALING_NONE, 0},  {E4M3, CLNORM_SCALING_TENSOR, 0.02},
    {E5M2, CLNORM_SCALING_ROW, 0},    {E4M3, CLNORM_SCALING_GROUP, 0}, {E4M3, CLNORM_SCALING_TENSOR, 0},
    {E5M2, CLNORM_SCALING_TENSOR, 0},
};

static const uint32_t groups[] = {16, 32, 64, 128};

static const unsigned levels[FACTORS] = {
    [SHAPE] = sizeof shapes / sizeof *shapes,
    [X_DTYPE] = 3,
    [X_SCALING] = 3,
    [X_GROUP] = sizeof groups / sizeof *groups,
    [X_SCALE_DTYPE] = 2,
    [Y_KIND] = sizeof y_kinds / sizeof *y_kinds,
    [Y_SCALE_DTYPE] = 3,
    [Y_COPIES] = 3,
    [NORM] = 2,
    [GATE] = 4,
    [RESIDUAL] = 3,
    [DROPOUT] = 2,
    [ROW_SCALE] = 2,
    [ACTIVATION] = 3,
    [PARAMETERS] = 4,
    [CONFIG] = sizeof configs / sizeof *configs,
    [LAYOUT] = 3,
};

/* The level's group, or the largest one that a segment has a multiple of. */
static uint32_t group_of(const clnorm_norm_desc *desc, unsigned level) {
    const uint64_t size = desc->group_size ? desc->group_size : desc->cols;
    while (size != desc->cols && size % groups[level])
        level--;
    return groups[level];
}

static void set_x(clnorm_norm_desc *desc, const unsigned *level) {
    desc->x.dtype = (const clnorm_dtype[]){E4M3, E5M2, BF16}[level[X_DTYPE]];
    if (desc->x.dtype == BF16)
        return;
    desc->x.scaling = (clnorm_scaling)(CLNORM_SCALING_TENSOR + level[X_SCALING]);
    desc->x.scale_group = desc->x.scaling == CLNORM_SCALING_GROUP ? group_of(desc, level[X_GROUP]) : 0;
    desc->x.scale_dtype = level[X_SCALE_DTYPE] ? BF16 : F32;
}

/* A scale for each row needs segments that are whole rows. */
static void set_y(clnorm_norm_desc *desc, const unsigned *level) {
    const struct kind *kind = &y_kinds[level[Y_KIND]];
    desc->y.dtype = kind->dtype;
    desc->y.scaling = kind->scaling == CLNORM_SCALING_ROW && desc->group_size ? CLNORM_SCALING_GROUP : kind->scaling;
    desc->y.scale_group = desc->y.scaling == CLNORM_SCALING_GROUP ? group_of(desc, level[X_GROUP] ^ 1) : 0;
    desc->y.scale = kind->scale;
    if (!kind->scaling)
        return;
    desc->y.scale_dtype = (const clnorm_dtype[]){F32, BF16, NONE}[level[Y_SCALE_DTYPE]];
    desc->accuracy = level[Y_SCALE_DTYPE] == 2 ? CLNORM_FP8_COMPATIBLE : CLNORM_FP8_FUSED;
    desc->save_y_row_scale = desc->y.scaling == CLNORM_SCALING_TENSOR && kind->scale == 0 && !desc->group_size;
}

/* y, y and its transposed copy, or the copy alone. */
static void set_copies(clnorm_norm_desc *desc, unsigned level) {
    if (!desc->y.scaling || level == 0)
        return;
    desc->y_t.dtype = desc->y.dtype;
    if (level == 2) {
        desc->y_t = desc->y;
        desc->y = (clnorm_tensor)CLNORM_TENSOR_NONE;
    }
    desc->y_t.stride = desc->rows + 16;
}

static void set_fused(struct norm_case *made, const unsigned *level) {
    clnorm_norm_desc *desc = &made->desc;
    desc->gate = (clnorm_gate)((level[GATE] + 1) / 2);
    desc->gate_first = level[GATE] == 3;
    desc->z.dtype = desc->gate ? BF16 : NONE;
    desc->activation = (const clnorm_activation[]){0, CLNORM_ACTIVATION_GELU, CLNORM_ACTIVATION_SILU}[level[ACTIVATION]];
    if (desc->gate_first)
        return;
    desc->residual.dtype = level[RESIDUAL] ? F32 : NONE;
    desc->residual_out.dtype = level[RESIDUAL] == 2 ? F32 : NONE;
    made->residual_in_place = level[RESIDUAL] == 2;
    desc->dropout = level[DROPOUT] ? 0.25 : 0;
    desc->row_scale = level[ROW_SCALE];
}

static void set_layout(struct norm_case *made, unsigned level) {
    clnorm_norm_desc *desc = &made->desc;
    desc->x.stride = desc->cols + 16 * (uint64_t)level;
    desc->y.stride = desc->cols + 32 * (uint64_t)level;
    made->shift.x = made->shift.y = made->shift.y_t = 16 * level + level / 2; /* aligned ones, and ones that are not */
    made->shift.x_scale = made->shift.y_scale = level;
}

static struct norm_case case_of(const unsigned *level) {
    const struct shape *shape = &shapes[level[SHAPE]];
    struct norm_case made = {
        .desc = norm_desc_of(level[NORM] ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, shape->rows, shape->cols), .seed = 11};
    clnorm_norm_desc *desc = &made.desc;
    desc->group_size = shape->group_size;
    desc->weight.dtype = level[PARAMETERS] % 2 ? BF16 : NONE;
    desc->bias.dtype = level[PARAMETERS] / 2 ? F32 : NONE;
    desc->weight_offset = level[PARAMETERS] == 3;
    desc->save_mean = desc->norm == CLNORM_LAYER_NORM;
    desc->save_rstd = 1;
    desc->config = forced(configs[level[CONFIG]]);
    set_x(desc, level);
    set_y(desc, level);
    set_fused(&made, level);
    set_layout(&made, level[LAYOUT]);
    set_copies(desc, level[Y_COPIES]);
    return made;
}

static void every_two_options_together(void **state) {
    const struct fixture *fixture = *state;
    struct pairwise *cases = pairwise_make(levels, FACTORS, 3);
    unsigned level[PAIRWISE_FACTORS], count = 0, failed = 0;
    for (; failed < 10 && pairwise_next(cases, level); count++) {
        struct norm_case made = case_of(level);
        norm_settle(fixture, &made.desc);
        failed += !norm_case_passes(fixture, &made);
    }
    pairwise_free(cases);
    print_message("%u cases\n", count);
    assert_int_equal(failed, 0);
}

/* ------------------------------------------------------------------------------------------------------------ refusals */

static void bad_scales_of_x_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_desc good = norm_desc_of(CLNORM_RMS_NORM, 4, 96);
    good.x = (clnorm_tensor){.dtype = E4M3, .scaling = CLNORM_SCALING_GROUP, .scale_group = 32};
    good.y.dtype = F32;
    clnorm_norm_desc desc = good;
    desc.x.scaling = CLNORM_SCALING_NONE;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.x.scaling is 0: expected a clnorm_scaling");
    desc = good;
    desc.x.scaling = CLNORM_SCALING_ROW;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.x.scale_group is 32: expected 0");
    desc = good;
    desc.x.scale = 2;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE,
                        "desc.x.scale is 2: expected 0, the scales of an input are read");
    desc = good;
    desc.x.scale_dtype = CLNORM_F16;
    assert_norm_refused(fixture, &desc, CLNORM_UNSUPPORTED, "desc.x.scale_dtype is f16");
    desc = good;
    desc.x.scale_group = 24;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.x.scale_group is 24: expected 16, 32, 64 or 128");
    desc = good;
    desc.group_size = 48;
    assert_norm_refused(fixture, &desc, CLNORM_UNSUPPORTED,
                        "desc.x.scale_group is 32: expected a divisor of group_size, 48");
    desc = good;
    desc.gate = CLNORM_GATE_SILU;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.z.dtype is 0: expected f32, f16 or bf16 with a gate");
    desc = good;
    desc.residual.dtype = CLNORM_F64;
    assert_norm_refused(fixture, &desc, CLNORM_UNSUPPORTED, "desc.residual.dtype is f64, desc.x.dtype is f8e4m3");
    desc = good;
    desc.y.dtype = NONE; /* as x */
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.y.scaling is 0");
}

static void bad_copies_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_desc good = norm_desc_of(CLNORM_LAYER_NORM, 4, 96);
    good.y = (clnorm_tensor){.dtype = E4M3, .scaling = CLNORM_SCALING_TENSOR};
    good.y_t.dtype = E4M3;
    clnorm_norm_desc desc = good;
    desc.y_t.dtype = E5M2;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE,
                        "desc.y_t.dtype is f8e5m2: expected desc.y.dtype, f8e4m3, or none");
    desc = good;
    desc.y = (clnorm_tensor)CLNORM_TENSOR_F32;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.y_t.dtype is f8e4m3: expected none with a y of f32");
    desc = good;
    desc.y_t.dtype = BF16;
    assert_norm_refused(fixture, &desc, CLNORM_UNSUPPORTED, "desc.y_t.dtype is bf16");
    desc = good;
    desc.y_t.scaling = CLNORM_SCALING_TENSOR;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE,
                        "desc.y_t.scaling is 1: expected 0, its scales are those of y");
    desc = good;
    desc.y = (clnorm_tensor)CLNORM_TENSOR_NONE;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.y_t.scaling is 0: expected a clnorm_scaling");
    desc = good;
    desc.y_t.scale = 0.5;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.y_t.scale is 0.5: expected 0 without desc.y_t.scaling");
    desc = good;
    desc.y_t.scale_group = 16;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE,
                        "desc.y_t.scale_group is 16: expected 0 without desc.y_t.scaling");
    desc = good;
    desc.y_t.stride = 3;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.y_t.stride is 3");
    desc = good;
    desc.accuracy = (clnorm_fp8_accuracy)2;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.accuracy is 2");
    desc = good;
    desc.y = (clnorm_tensor)CLNORM_TENSOR_NONE;
    desc.y_t.dtype = NONE;
    desc.accuracy = CLNORM_FP8_COMPATIBLE;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.accuracy is 1: expected 0 without a y of 8 bits");
    desc = good;
    desc.save_y_row_scale = 1;
    desc.group_size = 48;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.save_y_row_scale is 1: expected 0, or desc.y.scaling");
    desc = good;
    desc.save_y_row_scale = 1;
    desc.y.scale = 2;
    assert_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.save_y_row_scale is 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_two_options_together),
                                       cmocka_unit_test(bad_scales_of_x_are_refused),
                                       cmocka_unit_test(bad_copies_are_refused)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
