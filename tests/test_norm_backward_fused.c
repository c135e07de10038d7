/* The gradients of operations that are fused with the norm: residual, dropout, row scale and activation, every two of them
 * together, on every kind of kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"
#include "norm_case.h"
#include "pairwise.h"
#include "reference/reference.h"

enum factor { NORM, X_DTYPE, SUM, LATER, DROPOUT, ROW_SCALE, ACTIVATION, GATE, SHAPE, CONFIG, SHIFT, FACTORS };

/* s, which the norm is taken of: x alone, x and a residual, or given in place of x. */
enum sum { ALONE, RESIDUAL, S_GIVEN, SUMS };

static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_BF16, CLNORM_F64};

static const struct {
    clnorm_gate gate;
    bool first;
} gates[] = {{CLNORM_GATE_NONE, false}, {CLNORM_GATE_SILU, false}, {CLNORM_GATE_SILU, true}};

static const struct { uint64_t rows, cols, group_size, gap; } shapes[] = {{33, 7, 0, 1}, {5, 48, 3, 0}, {6, 416, 208, 16}};

/* One for each kind of kernel; {0} is the library's choice. */
static const struct cln_config configs[] = {
    {0},
    {.vec = 4,
     .lanes = 16,
     .segments = 2,
     .keep = CLN_KEEP_REGISTERS,
     .accumulator = CLN_ACCUMULATOR_REGISTERS,
     .pipeline = 2,
     .weights = CLN_WEIGHTS_EARLY},
    {.vec = 2, .lanes = 4, .tile = 32, .chunks = 2, .keep = CLN_KEEP_REREAD, .accumulator = CLN_ACCUMULATOR_LOCAL},
};

/* An option's dtype: dtype, but f64 with an x of f64. */
static clnorm_dtype beside(clnorm_dtype x, clnorm_dtype dtype) {
    return x == CLNORM_F64 ? CLNORM_F64 : dtype;
}

static void set_sum(struct norm_backward_case *backward_case, const unsigned *level) {
    clnorm_norm_backward_desc *desc = &backward_case->desc;
    if (desc->gate_first)
        return;
    desc->s_given = level[SUM] == S_GIVEN;
    desc->residual.dtype = level[SUM] == RESIDUAL ? beside(desc->x.dtype, CLNORM_F32) : CLNORM_DTYPE_NONE;
    desc->dresidual.dtype = level[SUM] != ALONE ? beside(desc->x.dtype, CLNORM_BF16) : CLNORM_DTYPE_NONE;
    desc->dresidual_out.dtype = level[LATER] ? beside(desc->x.dtype, CLNORM_BF16) : CLNORM_DTYPE_NONE;
    backward_case->dresidual_in_place = desc->dresidual.dtype && level[LATER] && level[SHIFT] == 0;
    desc->dropout = level[DROPOUT] ? 0.3 : 0;
    desc->row_scale = level[ROW_SCALE];
}

static void set_layout(struct norm_backward_case *backward_case, const unsigned *level) {
    clnorm_norm_backward_desc *desc = &backward_case->desc;
    const uint64_t gap = shapes[level[SHAPE]].gap;
    const uint64_t shift = level[SHIFT];
    desc->x.stride = desc->cols + gap;
    desc->dx.stride = desc->cols + 2 * gap;
    desc->residual.stride = desc->cols + 3 * gap;
    desc->dresidual_out.stride = desc->cols + gap;
    desc->dresidual.stride = desc->cols + 4 * gap;
    backward_case->shift.residual = shift;
    backward_case->shift.dresidual_out = 3 * shift;
    backward_case->shift.dresidual = 5 * shift;
}

static struct norm_backward_case case_of(const unsigned *level, uint64_t seed) {
    const clnorm_norm norm = level[NORM] ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM;
    const clnorm_dtype x = dtypes[level[X_DTYPE]];
    struct norm_backward_case backward_case = {
        .desc = norm_backward_full_desc(norm, shapes[level[SHAPE]].rows, shapes[level[SHAPE]].cols, x),
        .input = (enum input)(seed % INPUTS),
        .seed = seed};
    clnorm_norm_backward_desc *desc = &backward_case.desc;
    desc->group_size = shapes[level[SHAPE]].group_size;
    desc->bias.dtype = level[NORM] ? CLNORM_DTYPE_NONE : x;
    desc->gate = gates[level[GATE]].gate;
    desc->gate_first = gates[level[GATE]].first;
    desc->dz.dtype = desc->gate ? x : CLNORM_DTYPE_NONE;
    desc->activation = (clnorm_activation)level[ACTIVATION];
    desc->rstd_given = level[CONFIG] > 0; /* not given: a kernel of the forward computes it */
    desc->mean_given = desc->rstd_given && norm == CLNORM_LAYER_NORM;
    desc->eps =
        backward_case.input == INPUT_CONSTANT ? 0.5 : 1e-5; /* a small eps would magnify the roundings of constant rows */
    desc->config = forced(configs[level[CONFIG]]);
    if (KNOB(desc->config, pipeline) && seed % 2) {
        KNOB(desc->config, accumulator) = CLN_ACCUMULATOR_COLUMNS;
        KNOB(desc->config, pipeline) = 1;
    }
    set_sum(&backward_case, level);
    set_layout(&backward_case, level);
    return backward_case;
}

static void every_two_options_together(void **state) {
    const struct fixture *fixture = *state;
    const unsigned levels[FACTORS] = {
        [NORM] = 2,
        [X_DTYPE] = fixture->device.fp64 ? 3 : 2,
        [SUM] = SUMS,
        [LATER] = 2,
        [DROPOUT] = 2,
        [ROW_SCALE] = 2,
        [ACTIVATION] = 4,
        [GATE] = sizeof gates / sizeof *gates,
        [SHAPE] = sizeof shapes / sizeof *shapes,
        [CONFIG] = sizeof configs / sizeof *configs,
        [SHIFT] = 2,
    };
    struct pairwise *pairwise = pairwise_make(levels, FACTORS, 1);
    unsigned level[PAIRWISE_FACTORS];
    unsigned cases = 0;
    unsigned failed = 0;
    while (failed < 10 && pairwise_next(pairwise, level)) {
        struct norm_backward_case backward_case = case_of(level, ++cases);
        norm_backward_settle(fixture, &backward_case.desc);
        failed += !norm_backward_case_passes(fixture, &backward_case);
    }
    pairwise_free(pairwise);
    print_message("%u cases\n", cases);
    assert_int_equal(failed, 0);
}

/* The backward's dropout keeps the same elements as the forward's, whatever their configs. */
static void masks_are_the_forwards(void **state) {
    enum { ROWS = 5, COLS = 96 };
    const struct fixture *fixture = *state;
    struct norm_case forward_case = {.desc = norm_desc_of(CLNORM_RMS_NORM, ROWS, COLS), .seed = 3};
    forward_case.desc.dropout = 0.4;
    forward_case.desc.save_mask = true;
    struct norm_run forward = norm_run_make(&forward_case);
    assert_int_equal(norm_run_go(fixture, &forward), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, &forward));
    const unsigned char *mask = tensor_elements(&forward.mask);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        struct norm_backward_case backward_case = {.desc = norm_backward_desc_of(CLNORM_RMS_NORM, ROWS, COLS), .seed = 3};
        backward_case.desc.dropout = 0.4;
        backward_case.desc.s_given = true;
        backward_case.desc.config = forced(configs[i]);
        struct norm_backward_run backward = norm_backward_run_make(&backward_case);
        assert_int_equal(norm_backward_run_go(fixture, &backward), CLNORM_SUCCESS);
        assert_true(norm_backward_run_receive(fixture, &backward));
        for (uint64_t k = 0; k < (uint64_t)ROWS * COLS; k++)
            assert_int_equal(ref_load(CLNORM_F32, tensor_elements(&backward.dx), k) != 0, mask[k]);
        norm_backward_run_free(&backward);
    }
    norm_run_free(&forward);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_two_options_together),
        cmocka_unit_test(masks_are_the_forwards),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
