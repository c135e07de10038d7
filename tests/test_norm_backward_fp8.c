/* The gradients of norms that read an x of 8 bits: of a plain RMS norm with scales of groups, and with every two options
 * together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"
#include "pairwise.h"
#include "refusal.h"

#define E4M3 CLNORM_F8_E4M3
#define E5M2 CLNORM_F8_E5M2
#define F32 CLNORM_F32
#define F16 CLNORM_F16
#define BF16 CLNORM_BF16
#define NONE CLNORM_DTYPE_NONE

static const struct plain_case {
    uint64_t rows, cols;
    uint32_t scale_group;
    clnorm_dtype x, x_scale, weight, dy, dx, dweight;
    uint64_t gap, shift; /* elements */
    struct cln_config config;
} plain_cases[] = {
    {37, 160, 16, E4M3, F32, F32, BF16, BF16, F32, 0, 0, {0}},
    {0, 160, 16, E4M3, F32, F32, BF16, BF16, F32, 0, 0, {0}},
    {9, 384, 128, E5M2, BF16, BF16, F32, F32, NONE, 5, 1, {0}},
    {21, 96, 32, E4M3, BF16, F16, F16, NONE, F16, 0, 3, {0}},
    {9,
     256,
     64,
     E5M2,
     F32,
     F32,
     BF16,
     F16,
     F32,
     0,
     0,
     {.vec = 4,
      .lanes = 16,
      .keep = CLN_KEEP_REGISTERS,
      .accumulator = CLN_ACCUMULATOR_REGISTERS,
      .reduce = CLN_REDUCE_TREE,
      .run_length = 3}},
    {6, 512, 16, E4M3, F32, F32, BF16, BF16, F32, 0, 0, {.vec = 8, .tile = 256}},
};

static struct norm_backward_case plain_case_of(const struct plain_case *c) {
    const uint64_t shift = c->shift;
    struct norm_backward_case made = {
        .desc = norm_backward_desc_of(CLNORM_RMS_NORM, c->rows, c->cols),
        .shift = {.x = shift, .x_scale = shift, .weight = shift, .dy = shift, .rstd = shift, .dx = shift, .dweight = shift},
        .seed = c->cols};
    clnorm_norm_backward_desc *const desc = &made.desc;
    desc->x = (clnorm_tensor){.dtype = c->x,
                              .scaling = CLNORM_SCALING_GROUP,
                              .scale_group = c->scale_group,
                              .scale_dtype = c->x_scale,
                              .stride = c->cols + c->gap};
    desc->weight.dtype = c->weight;
    desc->dy.dtype = c->dy;
    desc->dy.stride = c->cols + 2 * c->gap;
    desc->dx.dtype = c->dx;
    desc->dx.stride = c->dx ? c->cols + 3 * c->gap : 0;
    desc->dweight.dtype = c->dweight;
    desc->rstd_given = 1;
    desc->config = forced(c->config);
    return made;
}

static void plain_gradients_are_right(void **state) {
    const struct fixture *fixture = *state;
    unsigned failed = 0;
    for (size_t i = 0; i < sizeof plain_cases / sizeof *plain_cases; i++) {
        const struct norm_backward_case made = plain_case_of(&plain_cases[i]);
        failed += !norm_backward_case_passes(fixture, &made);
    }
    assert_int_equal(failed, 0);
}

static void locked_sums_are_right_too(void **state) {
    const struct fixture *fixture = *state;
    const struct plain_case c = {50, 96, 16, E4M3, F32, F32, BF16, BF16, F32, 0, 0, {.run_length = 2}};
    struct norm_backward_case made = plain_case_of(&c);
    made.desc.reduction = CLNORM_REDUCTION_LOCKED;
    made.desc.slots = 3;
    if (!norm_backward_locks(fixture))
        skip();
    assert_true(norm_backward_case_passes(fixture, &made));
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    const struct {
        clnorm_dtype x, x_scale, dy;
        uint64_t group_size;
        clnorm_gate gate;
        clnorm_status status;
        const char *said;
    } rows[] = {
        {F32, F32, F32, 0, CLNORM_GATE_NONE, CLNORM_INVALID_VALUE, "desc.x.scale_dtype is f32"},
        {F32, NONE, F32, 16, CLNORM_GATE_NONE, CLNORM_INVALID_VALUE, "desc.x.scaling is 3: expected 0"},
        {E4M3, CLNORM_F16, F32, 16, CLNORM_GATE_NONE, CLNORM_UNSUPPORTED, "desc.x.scale_dtype is f16"},
        {E4M3, F32, F32, 0, CLNORM_GATE_NONE, CLNORM_INVALID_ENUM, "desc.x.scaling is 0"},
        {E4M3, F32, NONE, 16, CLNORM_GATE_NONE, CLNORM_INVALID_ENUM, "desc.dy.dtype is 0: expected f32, f16, bf16 or f64"},
        {E4M3, F32, E4M3, 16, CLNORM_GATE_NONE, CLNORM_UNSUPPORTED, "desc.dy.dtype is f8e4m3"},
        {E4M3, F32, F32, 24, CLNORM_GATE_NONE, CLNORM_INVALID_SHAPE, "desc.x.scale_group is 24: expected 16"},
        {E4M3, F32, F32, 32, CLNORM_GATE_NONE, CLNORM_UNSUPPORTED, "expected a divisor of group_size, 48"},
        {E4M3, F32, F32, 16, CLNORM_GATE_SILU, CLNORM_INVALID_ENUM, "desc.z.dtype is 0: expected f32, f16 or bf16"},
        {E4M3, F32, CLNORM_F64, 16, CLNORM_GATE_NONE, CLNORM_UNSUPPORTED, "desc.dy.dtype is f64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
        desc.norm = CLNORM_RMS_NORM;
        desc.rows = 4;
        desc.cols = 96;
        desc.group_size = 48;
        desc.x.dtype = rows[i].x;
        desc.x.scale_dtype = rows[i].x_scale;
        desc.dy.dtype = rows[i].dy;
        desc.x.scale_group = (uint32_t)rows[i].group_size;
        desc.x.scaling = rows[i].group_size ? CLNORM_SCALING_GROUP : CLNORM_SCALING_NONE;
        desc.gate = rows[i].gate;
        desc.rstd_given = 1;
        desc.dx.dtype = F32;
        clnorm_plan *plan = NULL;
        assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), rows[i].status);
        assert_null(plan);
        assert_detail(rows[i].said);
    }
}

/* ------------------------------------------------------------------------------------- every two options together */

enum factor {
    SHAPE,
    X_DTYPE,
    X_SCALING,
    X_GROUP,
    X_SCALE_DTYPE,
    NORM,
    GATE,
    SUM,
    DROPOUT,
    ROW_SCALE,
    ACTIVATION,
    STATISTICS,
    OUTPUTS,
    CONFIG,
    LAYOUT,
    FACTORS
};

/* s, which the norm is taken of: x alone, x and a residual, or given in place of x. */
enum sum { ALONE, RESIDUAL, S_GIVEN, SUMS };

static const struct shape {
    uint64_t rows, cols, group_size;
} shapes[] = {{17, 192, 0}, {5, 131, 0}, {6, 256, 128}, {9, 16, 0}};

static const struct cln_config configs[] = {
    {0},
    {.vec = 4, .lanes = 16, .segments = 2, .keep = CLN_KEEP_REGISTERS, .accumulator = CLN_ACCUMULATOR_REGISTERS},
    {.vec = 2, .lanes = 4, .tile = 32, .chunks = 2, .keep = CLN_KEEP_REREAD, .accumulator = CLN_ACCUMULATOR_LOCAL},
    {.vec = 8, .lanes = 4, .keep = CLN_KEEP_REGISTERS, .accumulator = CLN_ACCUMULATOR_COLUMNS},
};

static const unsigned levels[FACTORS] = {
    [SHAPE] = sizeof shapes / sizeof *shapes,
    [X_DTYPE] = 2,
    [X_SCALING] = 3,
    [X_GROUP] = 3,
    [X_SCALE_DTYPE] = 2,
    [NORM] = 2,
    [GATE] = 3,
    [SUM] = SUMS,
    [DROPOUT] = 2,
    [ROW_SCALE] = 2,
    [ACTIVATION] = 3,
    [STATISTICS] = 2,
    [OUTPUTS] = 2,
    [CONFIG] = sizeof configs / sizeof *configs,
    [LAYOUT] = 3,
};

static void set_x(clnorm_norm_backward_desc *desc, const unsigned *level) {
    desc->x.dtype = level[X_DTYPE] ? E5M2 : E4M3;
    desc->x.scaling = (clnorm_scaling)(CLNORM_SCALING_TENSOR + level[X_SCALING]);
    desc->x.scale_group = desc->x.scaling == CLNORM_SCALING_GROUP ? (const uint32_t[]){16, 64, 128}[level[X_GROUP]] : 0;
    desc->x.scale_dtype = level[X_SCALE_DTYPE] ? BF16 : F32;
}

static void set_sum(clnorm_norm_backward_desc *desc, const unsigned *level) {
    if (desc->gate_first)
        return;
    desc->s_given = level[SUM] == S_GIVEN;
    desc->residual.dtype = level[SUM] == RESIDUAL ? F32 : NONE;
    desc->dresidual.dtype = level[SUM] != ALONE ? BF16 : NONE;
    desc->dresidual_out.dtype = level[SUM] == RESIDUAL ? BF16 : NONE;
    desc->dropout = level[DROPOUT] ? 0.3 : 0;
    desc->row_scale = level[ROW_SCALE];
}

static struct norm_backward_case case_of(const unsigned *level) {
    const struct shape *shape = &shapes[level[SHAPE]];
    const clnorm_norm norm = level[NORM] ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM;
    struct norm_backward_case made = {.desc = norm_backward_full_desc(norm, shape->rows, shape->cols, F32), .seed = 9};
    clnorm_norm_backward_desc *desc = &made.desc;
    desc->group_size = shape->group_size;
    set_x(desc, level);
    desc->dy.dtype = BF16;
    desc->gate = level[GATE] ? CLNORM_GATE_SILU : CLNORM_GATE_NONE;
    desc->gate_first = level[GATE] == 2;
    desc->z.dtype = desc->dz.dtype = desc->gate ? BF16 : NONE;
    desc->activation = (const clnorm_activation[]){0, CLNORM_ACTIVATION_GELU, CLNORM_ACTIVATION_SILU}[level[ACTIVATION]];
    desc->rstd_given = level[STATISTICS];
    desc->mean_given = desc->rstd_given && norm == CLNORM_LAYER_NORM;
    if (level[OUTPUTS]) {
        desc->dbias.dtype = NONE;
        desc->dx.dtype = F16;
    }
    set_sum(desc, level);
    desc->config = forced(configs[level[CONFIG]]);
    desc->x.stride = desc->cols + 16 * (uint64_t)level[LAYOUT];
    made.shift.x = 16 * level[LAYOUT] + level[LAYOUT] / 2; /* aligned ones, and ones that are not */
    made.shift.x_scale = level[LAYOUT];
    return made;
}

static void every_two_options_together(void **state) {
    const struct fixture *fixture = *state;
    struct pairwise *all = pairwise_make(levels, FACTORS, 5);
    unsigned level[PAIRWISE_FACTORS], count = 0, failed = 0;
    for (; failed < 10 && pairwise_next(all, level); count++) {
        struct norm_backward_case made = case_of(level);
        norm_backward_settle(fixture, &made.desc);
        failed += !norm_backward_case_passes(fixture, &made);
    }
    pairwise_free(all);
    print_message("%u cases\n", count);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_gradients_are_right),
        cmocka_unit_test(locked_sums_are_right_too),
        cmocka_unit_test(bad_descriptors_are_refused),
        cmocka_unit_test(every_two_options_together),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
