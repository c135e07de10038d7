/* GELU, forward and backward. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "knob.h"
#include "pairwise.h"
#include "reference/reference.h"
#include "refusal.h"
#include "rows_case.h"

/* Tensors without gaps are one row, whose length is no macro of the kernel: shapes need no builds. */
static const struct {
    uint64_t rows, cols;
} shapes[] = {{0, 5},    {1, 1},   {3, 1},    {7, 15},   {9, 16},    {2, 63},    {5, 257},
              {3, 1000}, {64, 67}, {17, 128}, {1, 4099}, {2, 65521}, {1, 262147}};

static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16, CLNORM_F64};
static const uint64_t gaps[][ROWS_TENSORS] = {{0, 0, 0}, {16, 32, 64}, {1, 13, 7}, {0, 0, 5}};
static const uint64_t shifts[][ROWS_TENSORS] = {{0, 0, 0}, {1, 3, 5}, {16, 32, 8}};

enum factor { OPERATION, FORM, DTYPE, DY, OUT, GAP, SHIFT, PLACE, INPUT, FACTORS };

static struct rows_case case_of(const unsigned *level, unsigned shape, uint64_t seed) {
    struct rows_case c =
        rows_case_of(level[OPERATION] ? ROWS_GELU_BACKWARD : ROWS_GELU, shapes[shape].rows, shapes[shape].cols);
    c.form = level[FORM] ? CLNORM_GELU_TANH : CLNORM_GELU_ERF;
    c.dtype[ROWS_FIRST] = dtypes[level[DTYPE]];
    const bool wide = c.dtype[ROWS_FIRST] == CLNORM_F64;
    c.dtype[ROWS_DY] = wide ? CLNORM_DTYPE_NONE : dtypes[level[DY]];
    c.dtype[ROWS_OUT] = wide ? CLNORM_F64 : dtypes[level[OUT]];
    memcpy(c.gap, gaps[level[GAP]], sizeof c.gap);
    memcpy(c.shift, shifts[level[SHIFT]], sizeof c.shift);
    c.in_place = level[PLACE] > 0;
    c.place = rows_backward(c.operation) && level[PLACE] > 1 ? ROWS_DY : ROWS_FIRST;
    if (c.in_place) {
        c.dtype[ROWS_OUT] = c.dtype[c.place] ? c.dtype[c.place] : c.dtype[ROWS_FIRST];
        c.gap[ROWS_OUT] = c.gap[c.place];
    }
    c.special = level[INPUT] == 0;
    c.input = level[INPUT] == 1 ? INPUT_WIDE : INPUT_NORMAL;
    c.one_call = seed % 5 == 0;
    c.seed = seed;
    return c;
}

static void shapes_dtypes_and_places(void **state) {
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    const struct fixture *fixture = *state;
    const unsigned levels[FACTORS] = {
        [OPERATION] = 2, [FORM] = 2, [DTYPE] = fixture->device.fp64 ? 4 : 3, [DY] = 3, [OUT] = 3, [GAP] = 4, [SHIFT] = 3,
        [PLACE] = 3,     [INPUT] = 3};
    struct pairwise *pairwise = pairwise_make(levels, FACTORS, 1);
    unsigned level[PAIRWISE_FACTORS];
    unsigned failed = 0;
    const unsigned most = fixture_is_slow(fixture) ? 6 : 100;
    for (unsigned i = 0; i < most && failed < 10 && pairwise_next(pairwise, level); i++)
        for (unsigned shape = i % 3; shape < SHAPES; shape += 3) {
            const struct rows_case rows_case = case_of(level, shape, i + shape);
            const uint64_t elements = shapes[shape].rows * shapes[shape].cols;
            const bool fits = elements <= fixture_element_limit(fixture);
            if (fixture_takes(i) && (fits || (shapes[shape].rows == 1 && !fixture_is_slow(fixture))))
                failed += !rows_case_passes(fixture, &rows_case);
        }
    pairwise_free(pairwise);
    assert_int_equal(failed, 0);
}

/* Every 16-bit element. */
static void every_half(void **state) {
    const struct fixture *fixture = *state;
    if (fixture_is_slow(fixture))
        skip();
    for (int i = 0; i < 8; i++) {
        struct rows_case c = rows_case_of(i & 1 ? ROWS_GELU_BACKWARD : ROWS_GELU, 1, 65536);
        c.form = i & 2 ? CLNORM_GELU_TANH : CLNORM_GELU_ERF;
        c.dtype[ROWS_FIRST] = i & 4 ? CLNORM_BF16 : CLNORM_F16;
        c.dtype[ROWS_OUT] = CLNORM_F32;
        c.every_half = true;
        assert_true(rows_case_passes(fixture, &c));
    }
}

/* operation: bit 0 chooses the backward, bit 1 the tanh form. Every vector divides the stride. */
static struct rows_case zeros_of(unsigned dtype, uint32_t vec, unsigned operation) {
    const uint64_t cols = vec % 3 == 1 ? 51 : 48, gap = 64 - cols;
    struct rows_case c = rows_case_of(operation & 1 ? ROWS_GELU_BACKWARD : ROWS_GELU, 3, cols);
    c.form = operation & 2 ? CLNORM_GELU_TANH : CLNORM_GELU_ERF;
    c.dtype[ROWS_FIRST] = dtypes[dtype];
    c.gap[ROWS_FIRST] = c.gap[ROWS_DY] = c.gap[ROWS_OUT] = gap;
    c.config.vec = vec;
    c.zeros = true;
    c.seed = 16 * dtype + vec;
    return c;
}

/* Zeros of either sign, in every dtype, with and without a partial vector. The erf form's forward has every width of
 * vectors, the other operations and a quick set have some. */
static void zeros_keep_their_signs(void **state) {
    const struct fixture *fixture = *state;
    const unsigned dtype_count = fixture->device.fp64 ? 4 : 3;
    for (unsigned i = 0; i < dtype_count; i++)
        for (uint32_t vec = 1; vec <= 16; vec *= 2)
            for (unsigned j = 0; j < 4; j++) {
                const bool some = j > 0 || fixture_is_quick();
                const struct rows_case c = zeros_of(i, vec, j);
                if (!some || vec == 1U << (i + j) % 5)
                    assert_true(rows_case_passes(fixture, &c));
            }
}

/* Forced knobs: a device has them, or refuses the knob by name. */
static void forced_knobs(void **state) {
    static const struct cln_config configs[] = {
        {.vec = 1, .lanes = 1, .unroll = 1, .iterations = 3},
        {.vec = 16, .lanes = 1, .unroll = 3},
        {.vec = 4, .lanes = 64, .unroll = 2, .iterations = 2},
        {.vec = 8, .lanes = 16, .unroll = 1, .stores = CLN_STORES_STREAMING},
        {.vec = 2, .lanes = 32, .unroll = 4, .stores = CLN_STORES_STREAMING},
        {.isa = CLN_ISA_PTX},
    };
    static const uint64_t rounding_gaps[ROWS_TENSORS] = {21, 37, 53}; /* to strides that every vector divides */
    const struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        for (size_t j = 0; j < 2; j++) {
            struct rows_case c = rows_case_of(j ? ROWS_GELU_BACKWARD : ROWS_GELU, 5, 1003);
            c.dtype[ROWS_FIRST] = (i + j) % 2 ? CLNORM_BF16 : CLNORM_F32;
            memcpy(c.gap, rounding_gaps, sizeof c.gap);
            c.form = i / 2 % 2 ? CLNORM_GELU_TANH : CLNORM_GELU_ERF;
            c.special = true;
            c.config = configs[i];
            c.seed = i;
            clnorm_plan *plan = NULL;
            const clnorm_status status = rows_case_plan(fixture->context, &c, &plan);
            clnorm_plan_destroy(plan);
            if (status == CLNORM_INVALID_VALUE && configs[i].isa && fixture->device.compute_capability < 80)
                assert_detail("desc.config.isa");
            else
                assert_true(rows_case_passes(fixture, &c));
        }
}

/* A row's bits do not depend on the number of rows, nor on its address and stride. */
static void bits_do_not_depend_on_rows(void **state) {
    enum { COLS = 1003, ROWS = 9 };
    const struct fixture *fixture = *state;
    float *const one = malloc(sizeof(float) * COLS), *const many = malloc(sizeof(float) * ROWS * COLS);
    assert_true(one && many);
    for (int operation = ROWS_GELU; operation <= ROWS_GELU_BACKWARD; operation++) {
        struct rows_case c = rows_case_of((enum rows_operation)operation, 1, COLS);
        assert_true(rows_case_output(fixture, &c, one));
        c.rows = ROWS;
        memcpy(c.shift, shifts[1], sizeof c.shift);
        memcpy(c.gap, gaps[2], sizeof c.gap);
        assert_true(rows_case_output(fixture, &c, many));
        assert_memory_equal(one, many, sizeof(float) * COLS);
    }
    free(one);
    free(many);
}

/* The reference's gradient against differences of the reference itself. */
static void reference_gradient(void **state) {
    (void)state;
    const struct ref_arithmetic arithmetic = ref_arithmetic_of(CLNORM_F64);
    const double step = 1e-5;
    for (int form = CLNORM_GELU_ERF; form <= CLNORM_GELU_TANH; form++)
        for (int i = -32; i <= 32; i++) {
            const double x = 0.37 * i;
            const double after = ref_gelu(&arithmetic, (clnorm_gelu_form)form, x + step).value;
            const double before = ref_gelu(&arithmetic, (clnorm_gelu_form)form, x - step).value;
            const double slope = ref_gelu_backward(&arithmetic, (clnorm_gelu_form)form, x, 3).value;
            assert_true(fabs(slope - 3 * (after - before) / (2 * step)) < 1e-8);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_gradient), cmocka_unit_test(shapes_dtypes_and_places),
        cmocka_unit_test(every_half),         cmocka_unit_test(zeros_keep_their_signs),
        cmocka_unit_test(forced_knobs),       cmocka_unit_test(bits_do_not_depend_on_rows),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
