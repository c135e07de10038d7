/* Operations that are fused with the forward norm: residual, dropout, row scale and activation, every two of them together,
 * on every kind of kernel. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_case.h"
#include "pairwise.h"

enum factor {
    NORM,
    X_DTYPE,
    RESIDUAL_DTYPE,
    RESIDUAL_OUT,
    DROPOUT,
    ROW_SCALE,
    ACTIVATION,
    GATE,
    SHAPE,
    CONFIG,
    SHIFT,
    FACTORS
};

static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_BF16, CLNORM_F16, CLNORM_DTYPE_NONE};
static const double dropouts[] = {0, 0.1, 0.75};

static const struct {
    clnorm_gate gate;
    bool first;
} gates[] = {{CLNORM_GATE_NONE, false}, {CLNORM_GATE_SILU, false}, {CLNORM_GATE_SILU, true}};

static const struct {
    uint64_t rows, cols, group_size, gap;
} shapes[] = {{33, 7, 0, 1}, {3, 192, 3, 0}, {4, 1040, 208, 16}};

/* One for each kind of kernel; {0} is the library's choice. */
static const struct cln_config configs[] = {
    {0},
    {.vec = 4, .lanes = 64, .keep = CLN_KEEP_REGISTERS, .reduce = CLN_REDUCE_TREE},
    {.vec = 8, .lanes = 16, .segments = 2, .keep = CLN_KEEP_REREAD, .unroll = 3, .reduce = CLN_REDUCE_TREE},
    {.vec = 2, .lanes = 2, .segments = 2, .keep = CLN_KEEP_REREAD, .iterations = 2, .reduce = CLN_REDUCE_TREE},
    {.vec = 8, .lanes = 8, .segments = 1, .keep = CLN_KEEP_LOCAL, .reduce = CLN_REDUCE_TREE, .local_vectors = 1},
};

/* Residual, dropout and row scale, none of which goes with gate_first. */
static void set_sum(struct norm_case *norm_case, const unsigned *level) {
    clnorm_norm_desc *desc = &norm_case->desc;
    const bool wide = desc->x.dtype == CLNORM_F64;
    if (desc->gate_first)
        return;
    const clnorm_dtype residual = (const clnorm_dtype[]){CLNORM_DTYPE_NONE, CLNORM_F32, CLNORM_BF16}[level[RESIDUAL_DTYPE]];
    if (residual) {
        const clnorm_dtype out = (const clnorm_dtype[]){CLNORM_DTYPE_NONE, CLNORM_F16, residual}[level[RESIDUAL_OUT]];
        desc->residual.dtype = wide ? CLNORM_F64 : residual;
        desc->residual_out.dtype = wide && out ? CLNORM_F64 : out;
    }
    norm_case->residual_in_place =
        desc->residual_out.dtype && desc->residual_out.dtype == desc->residual.dtype && level[SHIFT] == 0;
    desc->dropout = dropouts[level[DROPOUT]];
    desc->save_mask = desc->dropout > 0 && level[SHIFT] > 0;
    desc->row_scale = level[ROW_SCALE];
}

static void set_layout(struct norm_case *norm_case, const unsigned *level) {
    clnorm_norm_desc *desc = &norm_case->desc;
    const uint64_t gap = shapes[level[SHAPE]].gap;
    const uint64_t shift = level[SHIFT] ? 2 * level[SHIFT] - 1 : 0;
    desc->x.stride = desc->cols + gap;
    desc->residual.stride = desc->cols + 2 * gap;
    desc->residual_out.stride = norm_case->residual_in_place ? desc->residual.stride : 0;
    norm_case->shift.x = shift;
    norm_case->shift.residual = 2 * shift;
    norm_case->shift.residual_out = norm_case->residual_in_place ? norm_case->shift.residual : 3 * shift;
    norm_case->shift.row_scale = shift;
}

static struct norm_case case_of(const struct fixture *fixture, const unsigned *level, uint64_t seed) {
    const clnorm_norm norm = level[NORM] ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM;
    struct norm_case norm_case = {.desc = norm_desc_of(norm, shapes[level[SHAPE]].rows, shapes[level[SHAPE]].cols),
                                  .input = (enum input)(seed % INPUTS),
                                  .seed = seed};
    clnorm_norm_desc *desc = &norm_case.desc;
    const clnorm_dtype x = dtypes[level[X_DTYPE]];
    desc->x.dtype = x ? x : fixture->device.fp64 ? CLNORM_F64 : CLNORM_F32;
    desc->weight.dtype = desc->x.dtype;
    desc->bias.dtype = level[NORM] ? CLNORM_DTYPE_NONE : desc->x.dtype;
    desc->group_size = shapes[level[SHAPE]].group_size;
    desc->gate = gates[level[GATE]].gate;
    desc->gate_first = gates[level[GATE]].first;
    desc->activation = (clnorm_activation)level[ACTIVATION];
    desc->save_mean = desc->norm == CLNORM_LAYER_NORM;
    desc->save_rstd = true;
    desc->eps =
        norm_case.input == INPUT_CONSTANT ? 0.5 : 1e-5; /* a small eps would magnify the roundings of constant rows */
    desc->config = forced(configs[level[CONFIG]]);
    set_sum(&norm_case, level);
    set_layout(&norm_case, level);
    return norm_case;
}

static void every_two_options_together(void **state) {
    const struct fixture *fixture = *state;
    const unsigned levels[FACTORS] = {
        [NORM] = 2,
        [X_DTYPE] = 4,
        [RESIDUAL_DTYPE] = 3,
        [RESIDUAL_OUT] = 3,
        [DROPOUT] = 3,
        [ROW_SCALE] = 2,
        [ACTIVATION] = 4,
        [GATE] = 3,
        [SHAPE] = sizeof shapes / sizeof *shapes,
        [CONFIG] = sizeof configs / sizeof *configs,
        [SHIFT] = 3,
    };
    struct pairwise *pairwise = pairwise_make(levels, FACTORS, 1);
    unsigned level[PAIRWISE_FACTORS];
    unsigned cases = 0;
    unsigned failed = 0;
    while (failed < 10 && pairwise_next(pairwise, level)) {
        struct norm_case norm_case = case_of(fixture, level, ++cases);
        norm_settle(fixture, &norm_case.desc);
        failed += !norm_case_passes(fixture, &norm_case);
    }
    pairwise_free(pairwise);
    print_message("%u cases\n", cases);
    assert_int_equal(failed, 0);
}

/* Makes every x +0, or with signs a zero of either sign. A layer norm keeps no sign of −0: it subtracts the mean. */
static void fill_zeros(struct tensor *x, bool signs, uint64_t seed) {
    const size_t size = clnorm_dtype_size(x->dtype);
    struct random random = {seed};
    for (uint64_t row = 0; row < x->rows; row++)
        for (uint64_t column = 0; column < x->cols; column++) {
            unsigned char *const element = (unsigned char *)tensor_elements(x) + (row * x->stride + column) * size;
            memset(element, 0, size);
            element[size - 1] = signs && random_below(&random, 2) ? 0x80 : 0;
        }
}

/* Whether y has x's bits. */
static bool zeros_pass(const struct fixture *fixture, const struct norm_case *norm_case) {
    struct norm_run run = norm_run_make(norm_case);
    fill_zeros(&run.x, norm_case->desc.norm == CLNORM_RMS_NORM, norm_case->seed);
    bool good = norm_run_go(fixture, &run) == CLNORM_SUCCESS && norm_run_verify(fixture, &run) &&
                memcmp(tensor_elements(&run.y), tensor_elements(&run.x),
                       run.x.rows * run.x.cols * clnorm_dtype_size(run.x.dtype)) == 0;
    if (!good)
        norm_case_print(norm_case);
    norm_run_free(&run);
    return good;
}

/* Every dtype and activation, on each kind of kernel in turn. */
static void zeros_keep_their_signs(void **state) {
    const struct fixture *fixture = *state;
    for (uint64_t i = 0; i < (fixture->device.fp64 ? 4U : 3U); i++)
        for (uint64_t activation = 0; activation < 4; activation++)
            for (uint64_t j = 0; j < 2; j++) {
                struct norm_case norm_case = {.desc = norm_desc_of(j ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 3, 48)};
                norm_case.seed = 8 * i + 2 * activation + j;
                norm_case.desc.x.dtype = i < 3 ? dtypes[i] : CLNORM_F64;
                norm_case.desc.activation = (clnorm_activation)activation;
                norm_case.desc.config = forced(configs[norm_case.seed % (sizeof configs / sizeof *configs)]);
                assert_true(zeros_pass(fixture, &norm_case));
            }
}

/* ------------------------------------------------------------------------------------------------------------ dropout */

/* With local_vectors, a part of the row is kept in local memory with its mask applied; the rest is read and masked again.
 */
static void masked_elements_are_kept(void **state) {
    const struct fixture *fixture = *state;
    for (uint32_t i = 0; i < 6; i++) {
        struct norm_case norm_case = {.desc = norm_desc_of(i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 7, 192),
                                      .input = (enum input)(i % INPUTS),
                                      .seed = i};
        clnorm_norm_desc *desc = &norm_case.desc;
        desc->x.dtype = desc->weight.dtype = dtypes[i / 2];
        desc->bias.dtype = i % 2 ? CLNORM_DTYPE_NONE : desc->x.dtype;
        desc->dropout = 0.3;
        desc->save_rstd = true;
        desc->eps = 0.5;
        desc->config = forced(configs[sizeof configs / sizeof *configs - 1]);
        KNOB(desc->config, local_vectors) = i % 4;
        assert_true(norm_case_passes(fixture, &norm_case));
    }
}

/* The mask of a call of this seed and config, [rows, cols] bytes to be freed. */
static unsigned char *mask_of(const struct fixture *fixture, uint64_t rows, uint64_t cols, double dropout, clnorm_seed seed,
                              struct cln_config config) {
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_RMS_NORM, rows, cols)};
    norm_case.desc.dropout = dropout;
    norm_case.desc.save_mask = true;
    norm_case.desc.config = forced(config);
    struct norm_run run = norm_run_make(&norm_case);
    run.seed = seed;
    assert_int_equal(norm_run_go(fixture, &run), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, &run));
    unsigned char *mask = malloc(rows * cols);
    assert_non_null(mask);
    memcpy(mask, tensor_elements(&run.mask), rows * cols);
    norm_run_free(&run);
    return mask;
}

static double share_kept(const unsigned char *mask, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        kept += mask[i];
    return (double)kept / (double)count;
}

/* Six deviations of a binomial share. */
static double bound_of(double share, size_t count) {
    return 6 * sqrt(share * (1 - share) / (double)count);
}

static void keep_rate_is_as_requested(void **state) {
    enum { ROWS = 16, COLS = 1000, COUNT = ROWS * COLS };
    const double probabilities[] = {0.01, 0.1, 0.5, 0.9};
    for (size_t i = 0; i < sizeof probabilities / sizeof *probabilities; i++) {
        const double p = probabilities[i];
        unsigned char *mask = mask_of(*state, ROWS, COLS, p, (clnorm_seed){i, 7}, (struct cln_config){0});
        const double kept = share_kept(mask, COUNT);
        if (fabs(kept - (1 - p)) > bound_of(p, COUNT))
            fail_msg("p = %g keeps %g", p, kept);
        free(mask);
    }
}

/* Masks of neighbours, rows, seeds and offsets agree as often as independent ones. Some neighbours share a random word. */
static void masks_are_independent(void **state) {
    enum { ROWS = 8, COLS = 512, COUNT = ROWS * COLS };
    const double p = 0.3, chance = p * p + (1 - p) * (1 - p);
    const clnorm_seed seeds[] = {{1, 1}, {2, 1}, {1, 2}, {1, UINT64_C(1) << 32 | 1}, {UINT64_C(1) << 32 | 1, 1}};
    enum { SEEDS = sizeof seeds / sizeof *seeds };
    unsigned char *masks[SEEDS];
    for (int i = 0; i < SEEDS; i++)
        masks[i] = mask_of(*state, ROWS, COLS, p, seeds[i], (struct cln_config){0});
    const size_t distances[] = {1, 2, 4, COLS, COLS + 1};
    unsigned char same[COUNT] = {0};
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        const size_t count = COUNT - distances[i];
        for (size_t k = 0; k < count; k++)
            same[k] = masks[0][k] == masks[0][k + distances[i]];
        assert_true(fabs(share_kept(same, count) - chance) < bound_of(chance, count));
    }
    for (int i = 1; i < SEEDS; i++) {
        for (size_t k = 0; k < COUNT; k++)
            same[k] = masks[0][k] == masks[i][k];
        assert_true(fabs(share_kept(same, COUNT) - chance) < bound_of(chance, COUNT));
    }
    for (int i = 0; i < SEEDS; i++)
        free(masks[i]);
}

/* A mask depends neither on the config nor on the width of rows. */
static void masks_do_not_depend_on_the_config(void **state) {
    enum { ROWS = 6, COLS = 96 };
    const clnorm_seed seed = {42, 3};
    unsigned char *mask = mask_of(*state, ROWS, COLS, 0.3, seed, (struct cln_config){0});
    for (size_t i = 1; i < sizeof configs / sizeof *configs; i++) {
        unsigned char *other = mask_of(*state, ROWS, COLS, 0.3, seed, configs[i]);
        assert_memory_equal(other, mask, (size_t)ROWS * COLS);
        free(other);
    }
    unsigned char *narrow = mask_of(*state, ROWS, COLS / 3, 0.3, seed, (struct cln_config){0});
    for (size_t row = 0; row < ROWS; row++)
        assert_memory_equal(narrow + row * (COLS / 3), mask + row * COLS, COLS / 3);
    free(narrow);
    free(mask);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_two_options_together), cmocka_unit_test(zeros_keep_their_signs),
        cmocka_unit_test(masked_elements_are_kept),   cmocka_unit_test(keep_rate_is_as_requested),
        cmocka_unit_test(masks_are_independent),      cmocka_unit_test(masks_do_not_depend_on_the_config),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
