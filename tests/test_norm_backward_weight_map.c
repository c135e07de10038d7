/* Backward norms with several rows of weights: every two options together on each kind of kernel, exact sums of both
 * reductions, and descriptors that are refused. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"
#include "pairwise.h"
#include "reference/reference.h"

enum factor {
    NORM,
    X_DTYPE,
    WEIGHT_DTYPE,
    BIAS,
    SUM_DTYPE,
    GATE,
    ACTIVATION,
    RESIDUAL,
    STATISTICS,
    REDUCTION,
    ACCUMULATE,
    OUTPUTS,
    SHAPE,
    STRIDE,
    CONFIG,
    SHIFT,
    FACTORS
};

static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_BF16, CLNORM_F16, CLNORM_F64};

static const struct {
    clnorm_gate gate;
    bool first;
} gates[] = {{CLNORM_GATE_NONE, false}, {CLNORM_GATE_SILU, false}, {CLNORM_GATE_SIGMOID, true}};

/* Rows of weights for the heads of a token; for the samples of a batch, in one run and in several; for each row; for more
 * rows than work-groups; a single one. */
static const struct {
    uint64_t rows, cols, group_size, weight_rows, weight_repeat;
} shapes[] = {{192, 96, 24, 4, 0},  {35, 63, 0, 5, 7},  {60, 7, 0, 3, 4},
              {6, 1040, 208, 6, 1}, {600, 40, 0, 2, 3}, {10, 128, 0, 1, 5}};

/* One for each kind of kernel; {0} is the library's choice. */
static const struct cln_config configs[] = {
    {0},
    {.accumulator = CLN_ACCUMULATOR_MEMORY, .lanes = 1, .vec = 4},
    {.accumulator = CLN_ACCUMULATOR_LOCAL, .lanes = 4, .vec = 1, .reduce = CLN_REDUCE_TREE, .run_length = 3},
    {.accumulator = CLN_ACCUMULATOR_REGISTERS, .keep = CLN_KEEP_REGISTERS, .lanes = 32, .segments = 4, .pipeline = 2},
    {.accumulator = CLN_ACCUMULATOR_SPLIT, .keep = CLN_KEEP_REREAD, .lanes = 16, .segments = 2, .run_length = 1},
    {.accumulator = CLN_ACCUMULATOR_REGISTERS, .lanes = 4, .vec = 4, .tile = 16, .groups_per_cu = 1}, /* two passes */
    {.accumulator = CLN_ACCUMULATOR_LOCAL,
     .lanes = 4,
     .vec = 1,
     .tile = 5,
     .prefetch = CLN_PREFETCH_NEXT,
     .keep = CLN_KEEP_REGISTERS,
     .segments = 1},
};

static void set_weights(struct norm_backward_case *c, const unsigned *level) {
    clnorm_norm_backward_desc *const desc = &c->desc;
    const bool wide = desc->x.dtype == CLNORM_F64;
    desc->weight_rows = shapes[level[SHAPE]].weight_rows;
    desc->weight_repeat = shapes[level[SHAPE]].weight_repeat;
    desc->weight.dtype = level[WEIGHT_DTYPE] == 3 ? CLNORM_DTYPE_NONE : wide ? CLNORM_F64 : dtypes[level[WEIGHT_DTYPE]];
    desc->weight_offset = desc->weight.dtype && level[SHIFT] == 0 ? 1 : 0;
    desc->bias.dtype = !level[BIAS] ? CLNORM_DTYPE_NONE : wide ? CLNORM_F64 : dtypes[level[BIAS]];
    const clnorm_dtype sum = wide ? CLNORM_F64 : dtypes[level[SUM_DTYPE]];
    desc->dweight.dtype = level[OUTPUTS] != 1 ? sum : CLNORM_DTYPE_NONE;
    desc->dbias.dtype = level[OUTPUTS] != 2 ? sum : CLNORM_DTYPE_NONE;
    desc->accumulate = level[ACCUMULATE];
    desc->reduction = level[REDUCTION] ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
    desc->slots = level[REDUCTION] == 2 ? 1 : 64;
    if (level[STRIDE] && desc->weight.dtype)
        desc->weight.stride = desc->cols + 8;
    if (level[STRIDE] > 1 && desc->bias.dtype)
        desc->bias.stride = 2 * desc->cols;
    if (level[STRIDE] && desc->dweight.dtype)
        desc->dweight.stride = 2 * desc->cols;
    if (level[STRIDE] > 1 && desc->dbias.dtype)
        desc->dbias.stride = desc->cols + 3;
    c->shift.weight = level[SHIFT];
    c->shift.bias = (uint64_t)2 * level[SHIFT];
    c->shift.dweight = level[SHIFT];
}

static struct norm_backward_case case_of(const struct fixture *fixture, const unsigned *level, uint64_t seed) {
    const clnorm_norm norm = level[NORM] ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM;
    struct norm_backward_case c = {.desc =
                                       norm_backward_desc_of(norm, shapes[level[SHAPE]].rows, shapes[level[SHAPE]].cols),
                                   .input = INPUT_NORMAL,
                                   .seed = seed};
    clnorm_norm_backward_desc *const desc = &c.desc;
    desc->x.dtype = level[X_DTYPE] == 3 && !fixture->device.fp64 ? CLNORM_F32 : dtypes[level[X_DTYPE]];
    desc->dx.dtype = level[OUTPUTS] == 3 ? CLNORM_DTYPE_NONE : desc->x.dtype;
    desc->x.stride = desc->cols + (level[SHIFT] ? 8 : 0);
    desc->group_size = shapes[level[SHAPE]].group_size;
    desc->gate = gates[level[GATE]].gate;
    desc->gate_first = gates[level[GATE]].first;
    desc->dz.dtype = desc->gate ? desc->x.dtype : CLNORM_DTYPE_NONE;
    desc->y.dtype = level[OUTPUTS] == 0 ? desc->x.dtype : CLNORM_DTYPE_NONE;
    desc->activation = (clnorm_activation)level[ACTIVATION];
    if (level[RESIDUAL] && !desc->gate_first)
        desc->residual.dtype = desc->dresidual_out.dtype = desc->dresidual.dtype = desc->x.dtype;
    desc->rstd_given = level[STATISTICS];
    desc->mean_given = level[STATISTICS] && norm == CLNORM_LAYER_NORM;
    desc->config = forced(configs[level[CONFIG]]);
    set_weights(&c, level);
    return c;
}

/* Takes back vectors, tiles and accumulators that the shape, the strides or the reduction do not allow. */
static void settle(const struct fixture *fixture, clnorm_norm_backward_desc *desc) {
    clnorm_plan *plan = NULL;
    while (clnorm_norm_backward_plan_create(fixture->context, desc, &plan) == CLNORM_INVALID_VALUE) {
        if (strstr(clnorm_error_detail(), "desc.config.vec") && KNOB(desc->config, vec) > 1)
            KNOB(desc->config, vec) /= 2;
        else if (strstr(clnorm_error_detail(), "desc.config.tile") && KNOB(desc->config, tile))
            KNOB(desc->config, tile) = 0;
        else if (strstr(clnorm_error_detail(), "desc.config.accumulator"))
            KNOB(desc->config, accumulator) = CLN_ACCUMULATOR_REGISTERS; /* locked slots allow no sums in memory */
        else
            return;
    }
    clnorm_plan_destroy(plan);
}

static void every_two_options_together(void **state) {
    const struct fixture *fixture = *state;
    const unsigned levels[FACTORS] = {[NORM] = 2,
                                      [X_DTYPE] = 4,
                                      [WEIGHT_DTYPE] = 4,
                                      [BIAS] = 3,
                                      [SUM_DTYPE] = 3,
                                      [GATE] = 3,
                                      [ACTIVATION] = 4,
                                      [RESIDUAL] = 2,
                                      [STATISTICS] = 2,
                                      [REDUCTION] = norm_backward_locks(fixture) ? 3 : 1,
                                      [ACCUMULATE] = 2,
                                      [OUTPUTS] = 4,
                                      [SHAPE] = sizeof shapes / sizeof *shapes,
                                      [STRIDE] = 3,
                                      [CONFIG] = sizeof configs / sizeof *configs,
                                      [SHIFT] = 3};
    struct pairwise *pairwise = pairwise_make(levels, FACTORS, 1);
    unsigned level[PAIRWISE_FACTORS];
    unsigned cases = 0, failed = 0;
    while (failed < 10 && pairwise_next(pairwise, level)) {
        struct norm_backward_case c = case_of(fixture, level, ++cases);
        settle(fixture, &c.desc);
        failed += !norm_backward_case_passes(fixture, &c);
    }
    pairwise_free(pairwise);
    print_message("%u cases\n", cases);
    assert_int_equal(failed, 0);
}

/* Teams of work-groups that exchange the sums of a segment's tiles. */
static void teams_with_rows_of_weights(void **state) {
    for (unsigned i = 0; i < 4; i++) {
        struct norm_backward_case c = {
            .desc = norm_backward_full_desc(i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 72, 64, CLNORM_F32),
            .dx_place = i == 3 ? DX_OVER_X : DX_APART,
            .seed = i};
        c.desc.weight_rows = i < 2 ? 3 : 12;
        c.desc.weight_repeat = i < 2 ? 4 : 6;
        c.desc.reduction = i == 2 && norm_backward_locks(*state) ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
        c.desc.slots = 2;
        c.desc.config = forced((struct cln_config){.vec = 4,
                                                   .lanes = 4,
                                                   .segments = 1,
                                                   .groups_per_cu = 1,
                                                   .run_length = i % 2 ? 3 : 100,
                                                   .tile = 16,
                                                   .accumulator = CLN_ACCUMULATOR_REGISTERS,
                                                   .pipeline = 1 + i % 3,
                                                   .keep = CLN_KEEP_REGISTERS,
                                                   .row_split = CLN_ROW_SPLIT_EXCHANGE});
        assert_true(norm_backward_case_passes(*state, &c));
    }
}

/* FP8 x with scales. */
static void fp8_with_rows_of_weights(void **state) {
    for (unsigned i = 0; i < 2; i++) {
        struct norm_backward_case c = {.desc = norm_backward_desc_of(i ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 24, 128),
                                       .seed = i};
        c.desc.x = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_GROUP, .scale_group = 32};
        c.desc.dy.dtype = c.desc.weight.dtype = CLNORM_BF16;
        c.desc.dweight.dtype = CLNORM_F32;
        c.desc.weight_rows = 4;
        c.desc.weight_repeat = 1 + i;
        assert_true(norm_backward_case_passes(*state, &c));
    }
}

/* ----------------------------------------------------------------------------------------------------------- the bits */

/* dy and x are whole numbers, mean is 2 and rstd 1/2: every sum is exact in any order. */
static void fill_exact(struct norm_backward_run *run) {
    struct random random = {run->desc.rows};
    for (uint64_t i = 0; i < run->desc.rows * run->desc.cols; i++) {
        ref_store(run->dy.dtype, tensor_elements(&run->dy), i, (double)random_below(&random, 17) - 8);
        ref_store(run->x.dtype, tensor_elements(&run->x), i, (double)random_below(&random, 9) - 2);
    }
    for (uint64_t i = 0; i < run->desc.rows; i++) {
        ref_store(run->mean.dtype, tensor_elements(&run->mean), i, 2);
        ref_store(run->rstd.dtype, tensor_elements(&run->rstd), i, 0.5);
    }
}

static void expect_exact(const struct norm_backward_run *run) {
    const clnorm_norm_backward_desc *const desc = &run->desc;
    double *const sums = calloc(desc->weight_rows * desc->cols, 2 * sizeof *sums);
    assert_non_null(sums);
    double *const dbias = sums + desc->weight_rows * desc->cols;
    for (uint64_t i = 0; i < desc->rows * desc->cols; i++) {
        const uint64_t row = i / desc->cols / desc->weight_repeat % desc->weight_rows;
        const double dy = ref_load(run->dy.dtype, tensor_elements(&run->dy), i);
        sums[row * desc->cols + i % desc->cols] += dy * (ref_load(run->x.dtype, tensor_elements(&run->x), i) - 2) / 2;
        dbias[row * desc->cols + i % desc->cols] += dy;
    }
    for (uint64_t i = 0; i < desc->weight_rows * desc->cols; i++) {
        assert_true(ref_load(CLNORM_F32, tensor_elements(&run->dweight), i) == sums[i]);
        assert_true(ref_load(CLNORM_F32, tensor_elements(&run->dbias), i) == dbias[i]);
    }
    free(sums);
}

/* No row is lost or counted twice, whatever weight_rows and weight_repeat are. */
static void sums_are_exact(void **state) {
    static const struct {
        uint64_t rows, weight_rows, weight_repeat;
    } maps[] = {{6000, 1, 1}, {6000, 2, 3}, {6000, 600, 1}, {6000, 3, 2000}, {6000, 6000, 1}, {9000, 7, 0}, {1, 1, 1}};
    const struct fixture *const fixture = *state;
    for (size_t i = 0; i < 2 * sizeof maps / sizeof *maps; i++) {
        const bool locked = i % 2 && norm_backward_locks(fixture);
        struct norm_backward_case c = {.desc =
                                           norm_backward_full_desc(CLNORM_LAYER_NORM, maps[i / 2].rows, 12, CLNORM_F32)};
        c.desc.weight_rows = maps[i / 2].weight_rows;
        c.desc.weight_repeat = maps[i / 2].weight_repeat ? maps[i / 2].weight_repeat : 1;
        c.desc.rows -= c.desc.rows % (c.desc.weight_rows * c.desc.weight_repeat);
        c.desc.mean_given = c.desc.rstd_given = 1;
        c.desc.reduction = locked ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
        c.desc.slots = 5;
        struct norm_backward_run run = norm_backward_run_make(&c);
        fill_exact(&run);
        assert_int_equal(norm_backward_run_go(fixture, &run), CLNORM_SUCCESS);
        assert_true(norm_backward_run_receive(fixture, &run));
        expect_exact(&run);
        norm_backward_run_free(&run);
    }
}

/* The order of partial sums is fixed: sums that round have the same bits in every run. */
static void partial_sums_have_the_same_bits(void **state) {
    const struct fixture *const fixture = *state;
    struct norm_backward_case c = {.desc = norm_backward_full_desc(CLNORM_RMS_NORM, 3000, 48, CLNORM_BF16), .seed = 9};
    c.desc.dweight.dtype = c.desc.dbias.dtype = CLNORM_F32;
    c.desc.weight_rows = 5;
    c.desc.weight_repeat = 3;
    struct norm_backward_run first = norm_backward_run_make(&c);
    assert_int_equal(norm_backward_run_go(fixture, &first), CLNORM_SUCCESS);
    assert_true(norm_backward_run_receive(fixture, &first));
    for (int i = 0; i < 5; i++) {
        struct norm_backward_run again = norm_backward_run_make(&c);
        assert_int_equal(norm_backward_run_go(fixture, &again), CLNORM_SUCCESS);
        assert_true(norm_backward_run_receive(fixture, &again));
        assert_memory_equal(first.dweight.host, again.dweight.host, first.dweight.size);
        assert_memory_equal(first.dbias.host, again.dbias.host, first.dbias.size);
        norm_backward_run_free(&again);
    }
    norm_backward_run_free(&first);
}

/* Without rows, sums are 0, or with accumulate unchanged. */
static void no_rows_give_zeros(void **state) {
    for (uint32_t accumulate = 0; accumulate < 2; accumulate++) {
        struct norm_backward_case c = {.desc = norm_backward_full_desc(CLNORM_RMS_NORM, 0, 8, CLNORM_F32)};
        c.desc.weight_rows = 3;
        c.desc.dweight.stride = 11;
        c.desc.accumulate = accumulate;
        assert_true(norm_backward_case_passes(*state, &c));
    }
}

/* With many rows of weights each has few slots: the workspace grows by little more than one slot each. */
static void the_workspace_is_bounded(void **state) {
    const struct fixture *const fixture = *state;
    clnorm_norm_backward_desc desc = norm_backward_desc_of(CLNORM_RMS_NORM, UINT64_C(1) << 20, 64);
    desc.rstd_given = 1;
    desc.dweight.dtype = CLNORM_F32;
    clnorm_requirements plain = CLNORM_REQUIREMENTS_INIT, mapped = CLNORM_REQUIREMENTS_INIT;
    assert_int_equal(clnorm_norm_backward_validate(fixture->context, &desc, &plain), CLNORM_SUCCESS);
    desc.weight_rows = 4096;
    assert_int_equal(clnorm_norm_backward_validate(fixture->context, &desc, &mapped), CLNORM_SUCCESS);
    assert_true(mapped.workspace_size <= 4 * plain.workspace_size + (uint64_t)4096 * 64 * sizeof(float));
    desc.weight_rows = 2;
    assert_int_equal(clnorm_norm_backward_validate(fixture->context, &desc, &mapped), CLNORM_SUCCESS);
    assert_true(mapped.workspace_size <= 4 * plain.workspace_size + (uint64_t)2 * 64 * sizeof(float));
}

/* ------------------------------------------------------------------------------------------------------------ refusal */

static void refuse(const struct fixture *fixture, const clnorm_norm_backward_desc *desc, clnorm_status status,
                   const char *text) {
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, desc, &plan), status);
    assert_string_equal(clnorm_error_detail(), text);
    assert_null(plan);
}

static void bad_maps_are_refused(void **state) {
    clnorm_norm_backward_desc desc = norm_backward_desc_of(CLNORM_RMS_NORM, 12, 8);
    desc.weight_rows = 2;
    refuse(*state, &desc, CLNORM_INVALID_VALUE,
           "desc.weight_rows is 2: expected 0 without weight or bias or dweight or dbias");
    desc.dweight.dtype = CLNORM_F32;
    desc.weight_repeat = 5;
    refuse(*state, &desc, CLNORM_INVALID_SHAPE,
           "desc.rows is 12: expected a multiple of weight_rows x weight_repeat, 2 x 5");
    desc.weight_repeat = 3;
    desc.dweight.stride = 7;
    refuse(*state, &desc, CLNORM_INVALID_SHAPE, "desc.dweight.stride is 7: expected at least cols, 8");
    desc.dweight.stride = 0;
    KNOB(desc.config, accumulator) = CLN_ACCUMULATOR_COLUMNS;
    refuse(*state, &desc, CLNORM_INVALID_VALUE,
           "desc.config.accumulator is columns: expected another value with weight_rows above 1");
    KNOB(desc.config, accumulator) = 0;
    desc.rows = desc.weight_rows = UINT64_C(1) << 31;
    desc.weight_repeat = 0;
    refuse(*state, &desc, CLNORM_UNSUPPORTED,
           "desc.weight_rows is 2147483648: expected at most 1073741824, a launch has up to 2^30 work-groups");
    desc.rows = 12;
    desc.weight_rows = 2;
    desc.y_given = desc.rstd_given = 1;
    desc.y.dtype = CLNORM_F32;
    refuse(*state, &desc, CLNORM_INVALID_VALUE, "desc.weight_rows is set: expected none with y_given");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_two_options_together),      cmocka_unit_test(teams_with_rows_of_weights),
        cmocka_unit_test(fp8_with_rows_of_weights),        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(partial_sums_have_the_same_bits), cmocka_unit_test(no_rows_give_zeros),
        cmocka_unit_test(the_workspace_is_bounded),        cmocka_unit_test(bad_maps_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
