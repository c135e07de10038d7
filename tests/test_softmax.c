/* Softmax, forward and backward. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "knob.h"
#include "pairwise.h"
#include "reference/reference.h"
#include "rows_case.h"

static const uint64_t cols_levels[] = {1, 7, 16, 257, 1000, 8192, 65537, 1048579};
static const uint64_t rows_levels[] = {1, 5, 37, 0};
static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16, CLNORM_F64};
static const uint64_t gaps[][ROWS_TENSORS] = {{0, 0, 0}, {16, 32, 64}, {1, 13, 7}, {0, 0, 5}};
static const uint64_t shifts[][ROWS_TENSORS] = {{0, 0, 0}, {1, 3, 5}, {16, 32, 8}};

/* Factors of a build, besides cols, and factors of a run. */
enum build_factor { DTYPE, DY, OUT, BUILD_FACTORS };
enum run_factor { ROWS, GAP, SHIFT, PLACE, KIND, RUN_FACTORS };
enum kind { KIND_NORMAL, KIND_MASKED, KIND_SPECIAL, KIND_FAR, KIND_WIDE, KIND_CONSTANT, KINDS };

static void set_kind(struct rows_case *c, enum kind kind) {
    c->masked = kind == KIND_MASKED && c->operation == ROWS_SOFTMAX;
    c->special = kind == KIND_SPECIAL && c->operation == ROWS_SOFTMAX;
    c->input = kind == KIND_FAR        ? INPUT_FAR
               : kind == KIND_WIDE     ? INPUT_WIDE
               : kind == KIND_CONSTANT ? INPUT_CONSTANT
                                       : INPUT_NORMAL;
}

static struct rows_case case_of(enum rows_operation operation, uint64_t cols, const unsigned *build, const unsigned *run,
                                uint64_t limit, uint64_t seed) {
    const uint64_t most = limit > cols ? limit / cols : 1;
    struct rows_case c = rows_case_of(operation, rows_levels[run[ROWS]] < most ? rows_levels[run[ROWS]] : most, cols);
    c.dtype[ROWS_FIRST] = dtypes[build[DTYPE]];
    const bool wide = c.dtype[ROWS_FIRST] == CLNORM_F64;
    c.dtype[ROWS_DY] = wide ? CLNORM_DTYPE_NONE : dtypes[build[DY]];
    c.dtype[ROWS_OUT] = wide ? CLNORM_F64 : dtypes[build[OUT]];
    memcpy(c.gap, gaps[run[GAP]], sizeof c.gap);
    memcpy(c.shift, shifts[run[SHIFT]], sizeof c.shift);
    c.place = rows_backward(operation) && run[PLACE] > 1 ? ROWS_DY : ROWS_FIRST;
    const clnorm_dtype place = c.dtype[c.place] ? c.dtype[c.place] : c.dtype[ROWS_FIRST];
    c.in_place = run[PLACE] > 0 && place == c.dtype[ROWS_OUT];
    if (c.in_place)
        c.gap[ROWS_OUT] = c.gap[c.place];
    set_kind(&c, (enum kind)run[KIND]);
    c.one_call = seed % 5 == 0;
    c.seed = seed;
    return c;
}

/* One build for each cols, and several runs of it. */
static void sweep(const struct fixture *fixture, enum rows_operation operation) {
    enum { COLS = sizeof cols_levels / sizeof *cols_levels };
    const unsigned build_levels[BUILD_FACTORS] = {[DTYPE] = fixture->device.fp64 ? 4 : 3, [DY] = 3, [OUT] = 3};
    const unsigned run_levels[RUN_FACTORS] = {[ROWS] = 4, [GAP] = 4, [SHIFT] = 3, [PLACE] = 3, [KIND] = KINDS};
    const bool slow = fixture_is_slow(fixture);
    const uint64_t limit = fixture_element_limit(fixture);
    struct pairwise *builds = NULL;
    struct pairwise *runs = NULL;
    unsigned failed = 0;
    for (unsigned i = 0; failed < 10 && i < COLS; i++) {
        const uint64_t cols = cols_levels[i];
        unsigned build[PAIRWISE_FACTORS];
        pairwise_cycle(&builds, build_levels, BUILD_FACTORS, build, operation + i);
        const unsigned runs_of_build = cols > limit ? !slow : slow ? cols < 8192 : 4;
        for (unsigned j = 0; j < runs_of_build; j++) {
            unsigned run[PAIRWISE_FACTORS];
            pairwise_cycle(&runs, run_levels, RUN_FACTORS, run, i);
            const struct rows_case rows_case = case_of(operation, cols, build, run, limit, 4 * i + j);
            failed += fixture_takes(i) && !rows_case_passes(fixture, &rows_case);
        }
    }
    pairwise_free(builds);
    pairwise_free(runs);
    assert_int_equal(failed, 0);
}

static void forward_shapes_and_dtypes(void **state) {
    sweep(*state, ROWS_SOFTMAX);
}

static void backward_shapes_and_dtypes(void **state) {
    sweep(*state, ROWS_SOFTMAX_BACKWARD);
}

static bool is_refused(clnorm_status status) {
    if (status == CLNORM_INVALID_VALUE)
        assert_non_null(strstr(clnorm_error_detail(), "desc.config."));
    return status == CLNORM_INVALID_VALUE;
}

/* Rows with and without a last vector that is partly filled; a last work-group that is not full; chunks of unequal length,
 * and empty ones. No device supports all of these configs. */
static void forced_knobs(void **state) {
    static const struct {
        struct cln_config config;
        uint64_t cols;
    } ways[] = {
        {{.keep = CLN_KEEP_REGISTERS, .lanes = 64, .vec = 4, .segments = 1}, 1000},
        {{.keep = CLN_KEEP_REGISTERS, .lanes = 8, .vec = 2, .segments = 4, .iterations = 2}, 257},
        {{.keep = CLN_KEEP_REGISTERS, .lanes = 1, .vec = 8, .segments = 2}, 67},
        {{.keep = CLN_KEEP_REGISTERS, .lanes = 32, .vec = 8, .segments = 2, .reduce = CLN_REDUCE_SHUFFLE}, 1024},
        {{.keep = CLN_KEEP_REGISTERS, .lanes = 128, .segments = 1, .isa = CLN_ISA_PTX}, 4096},
        {{.keep = CLN_KEEP_REREAD, .lanes = 64, .vec = 4, .segments = 1, .unroll = 2}, 4099},
        {{.keep = CLN_KEEP_REREAD, .lanes = 16, .vec = 1, .segments = 4, .unroll = 3, .iterations = 2}, 129},
        {{.keep = CLN_KEEP_REREAD, .lanes = 64, .vec = 8, .segments = 1, .stores = CLN_STORES_STREAMING}, 4096},
        {{.keep = CLN_KEEP_REREAD, .lanes = 1, .vec = 16, .unroll = 1, .iterations = 3}, 1003},
        {{.keep = CLN_KEEP_REREAD, .lanes = 256, .segments = 1, .reduce = CLN_REDUCE_SUBGROUP}, 4096},
        {{.vec = 4, .lanes = 4, .chunks = 24, .unroll = 2}, 1000}, /* the last chunk but one is short, the last one empty */
        {{.vec = 8, .lanes = 1, .chunks = 4, .iterations = 5, .unroll = 5},
         37}, /* one chunk has only the rest of a vector, the last one nothing */
    };
    const struct fixture *fixture = *state;
    unsigned ran = 0;
    unsigned chunked = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (size_t j = 0; j < 2; j++) {
            struct rows_case c = rows_case_of(j ? ROWS_SOFTMAX_BACKWARD : ROWS_SOFTMAX, 7, ways[i].cols);
            c.dtype[ROWS_FIRST] = (i + j) % 2 ? CLNORM_BF16 : CLNORM_F32;
            c.config = ways[i].config;
            c.in_place = i % 3 == 0 || i == 10;
            if (i % 2)
                memcpy(c.gap, gaps[1], sizeof c.gap);
            c.gap[ROWS_OUT] = c.in_place ? c.gap[c.place] : c.gap[ROWS_OUT];
            c.one_call = i % 4 == 0 || i == 11;
            c.seed = i;
            clnorm_plan *plan = NULL;
            const clnorm_status status = rows_case_plan(fixture->context, &c, &plan);
            clnorm_plan_destroy(plan);
            if (is_refused(status) || (c.cols > 1024 && fixture_is_slow(fixture)))
                continue;
            ran++;
            set_kind(&c, KIND_MASKED);
            assert_true(rows_case_passes(fixture, &c));
            set_kind(&c, KIND_SPECIAL);
            assert_true(rows_case_passes(fixture, &c));
            if (!c.config.chunks)
                continue;
            chunked++;
            set_kind(&c, KIND_WIDE);
            assert_true(rows_case_passes(fixture, &c));
        }
    assert_true(ran >= 4);
    assert_true(chunked >= 2); /* CPUs alone have vectors that do not divide the columns */
}

/* Zeros of either sign, in every dtype, with and without a last vector that is partly filled. */
static void zeros_keep_their_signs(void **state) {
    const struct fixture *fixture = *state;
    for (unsigned i = 0; i < (fixture->device.fp64 ? 4U : 3U); i++)
        for (uint32_t vec = 1; vec <= 16; vec *= 2)
            for (uint64_t j = 0; j < 2; j++) {
                const struct cln_config config = {.vec = vec};
                const bool anywhere = cln_config_element_aligned(&fixture->device, &config); /* else vectors divide cols */
                const uint64_t cols = anywhere && vec % 3 == 1 ? 51 : 48,
                               gap = 64 - cols; /* every vector divides the stride */
                if (vec != UINT64_C(1) << (2 * (uint64_t)i + j) % 5)
                    continue; /* a build takes a second */
                struct rows_case c = rows_case_of(j % 2 ? ROWS_SOFTMAX_BACKWARD : ROWS_SOFTMAX, 3, cols);
                c.dtype[ROWS_FIRST] = dtypes[i];
                c.gap[ROWS_FIRST] = c.gap[ROWS_DY] = c.gap[ROWS_OUT] = gap;
                c.config = config;
                c.zeros = true;
                c.seed = 16 * i + vec;
                assert_true(rows_case_passes(fixture, &c));
            }
}

/* A value that is impossible on every device is refused with the knob's name. */
static void impossible_knobs_are_refused(void **state) {
    static const struct {
        struct cln_config config;
        const char *name;
    } impossible[] = {
        {{.vec = 3}, "config.vec"},
        {{.lanes = 12}, "config.lanes"},
        {{.weights = CLN_WEIGHTS_EARLY}, "config.weights"},
        {{.tile = 16}, "config.tile"},
        {{.accumulator = CLN_ACCUMULATOR_LOCAL}, "config.accumulator"},
        {{.lanes = 1, .keep = CLN_KEEP_REGISTERS}, "config.keep"},
        {{.chunks = 2, .segments = 2}, "config.chunks"},
        {{.chunks = 65537, .vec = 1}, "config.chunks"},
        {{.chunks = UINT32_MAX}, "config.chunks"},
    };
    const struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++)
        for (size_t j = 0; j < 2; j++) {
            struct rows_case c = rows_case_of(j ? ROWS_SOFTMAX_BACKWARD : ROWS_SOFTMAX, 4, 65536);
            c.config = impossible[i].config;
            clnorm_plan *plan = NULL;
            assert_int_equal(rows_case_plan(fixture->context, &c, &plan), CLNORM_INVALID_VALUE);
            assert_non_null(strstr(clnorm_error_detail(), impossible[i].name));
        }
}

/* Few wide rows, which leave compute units idle, are cut into chunks; many rows are not, unless work-groups exchange their
 * totals. */
static void few_wide_rows_are_shared(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t units = fixture->device.compute_units;
    for (uint64_t i = 0; i < 4; i++) {
        const bool backward = i % 2, many = i / 2;
        const bool shared = !many && units > 1; /* a row for each unit occupies the device */
        const struct rows_case c = rows_case_of(backward ? ROWS_SOFTMAX_BACKWARD : ROWS_SOFTMAX, many ? units : 1, 262144);
        clnorm_plan *plan = NULL;
        assert_int_equal(rows_case_plan(fixture->context, &c, &plan), CLNORM_SUCCESS);
        const struct cln_config config = chosen_knobs(plan);
        const bool exchanged = config.row_split == CLN_ROW_SPLIT_EXCHANGE; /* test_softmax_exchange has it */
        assert_true(!exchanged || many);
        assert_true(exchanged || (shared ? config.chunks > 1 && config.chunks <= 8 * units : config.chunks == 1));
        assert_int_equal(clnorm_plan_kernel_count(plan), shared ? 2 : 1);
        const uint64_t sums = shared ? (backward ? 1 : 2) * config.chunks : 0;
        assert_true(exchanged || clnorm_plan_workspace_size(plan) == sums * sizeof(float));
        clnorm_plan_destroy(plan);
    }
}

/* A row sums up to 1, and a single entry is exactly 1. A row's bits do not depend on the number of rows, with chunks or
 * without. */
static void properties(void **state) {
    enum { ROWS_MANY = 6, SMALL = 64 };
    const struct fixture *fixture = *state;
    float *const many = malloc(sizeof(float) * ROWS_MANY * 1000), *const one = malloc(sizeof(float) * 1000);
    assert_true(many && one);
    struct rows_case c;
    for (uint32_t chunks = 1; chunks <= 4; chunks += 3) {
        c = rows_case_of(ROWS_SOFTMAX, ROWS_MANY, 1000);
        c.config.chunks = chunks;
        assert_true(rows_case_output(fixture, &c, many));
        for (int row = 0; row < ROWS_MANY; row++) {
            double sum = 0;
            for (int i = 0; i < 1000; i++)
                sum += (double)many[1000 * row + i];
            assert_true(fabs(sum - 1) < 32 * 0x1p-24);
        }
        c.rows = 1;
        assert_true(rows_case_output(fixture, &c, one));
        assert_memory_equal(one, many, sizeof(float) * 1000);
    }

    c = rows_case_of(ROWS_SOFTMAX, SMALL, 1);
    assert_true(rows_case_output(fixture, &c, many));
    for (int i = 0; i < SMALL; i++)
        assert_true(many[i] == 1);
    free(many);
    free(one);
}

/* The reference's gradient agrees with differences of the reference's loss, L = Σ dy · y. */
static void reference_gradient(void **state) {
    (void)state;
    enum { N = 9 };
    const struct ref_arithmetic arithmetic = ref_arithmetic_of(CLNORM_F64);
    const double step = 1e-5;
    double x[N], dy[N], y[N];
    struct ref_value value[N], gradient[N];
    struct random random = {1};
    for (int i = 0; i < N; i++) {
        x[i] = random_normal(&random);
        dy[i] = random_normal(&random);
    }
    ref_softmax(&arithmetic, x, N, value);
    for (int i = 0; i < N; i++)
        y[i] = value[i].value;
    ref_softmax_backward(&arithmetic, y, dy, N, gradient);
    for (int i = 0; i < N; i++) {
        double loss[2] = {0, 0};
        for (int side = 0; side < 2; side++) {
            double moved[N];
            memcpy(moved, x, sizeof x);
            moved[i] += side ? step : -step;
            ref_softmax(&arithmetic, moved, N, value);
            for (int j = 0; j < N; j++)
                loss[side] += dy[j] * value[j].value;
        }
        assert_true(fabs((loss[1] - loss[0]) / (2 * step) - gradient[i].value) < 1e-8);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_gradient),         cmocka_unit_test(forward_shapes_and_dtypes),
        cmocka_unit_test(backward_shapes_and_dtypes), cmocka_unit_test(forced_knobs),
        cmocka_unit_test(zeros_keep_their_signs),     cmocka_unit_test(impossible_knobs_are_refused),
        cmocka_unit_test(few_wide_rows_are_shared),   cmocka_unit_test(properties),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
