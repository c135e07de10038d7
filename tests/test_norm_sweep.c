/* Forward normalisation over shapes, dtypes and options, with the config that the library chooses. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "norm_case.h"
#include "pairwise.h"

/* Factors of a build, besides cols. */
enum build_factor {
    GROUP,
    NORM,
    X_DTYPE,
    Y_DTYPE,
    Z_DTYPE,
    WEIGHT_DTYPE,
    BIAS_DTYPE,
    GATE,
    STATISTICS,
    IN_PLACE,
    OFFSET,
    BUILD_FACTORS
};

/* Factors of a run of such a build. */
enum run_factor { ROWS, STRIDES, SHIFTS, INPUT, EPS, RUN_FACTORS };

static const uint64_t cols_levels[] = {1,    2,    3,    7,    15,   16,   17,   31,    32,     33,
                                       63,   64,   65,   127,  128,  129,  255,  256,   257,    768,
                                       1000, 1023, 1024, 1025, 4096, 5003, 8192, 65537, 1048576};
static const uint64_t rows_levels[] = {0, 1, 2, 3, 5, 64, 1000};
static const clnorm_dtype dtype_levels[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16, CLNORM_DTYPE_NONE};
static const double eps_levels[] = {1e-5, 1e-12, 0.5};

/* Elements from the end of a row to the next one, for x, y and z. */
static const uint64_t gap_levels[][3] = {{0, 0, 0}, {1, 13, 7}, {16, 32, 64}, {0, 5, 3}};
/* Elements before the first one, for x, y, z, weight, bias, mean and rstd. */
static const uint64_t shift_levels[][7] = {{0, 0, 0, 0, 0, 0, 0}, {1, 3, 5, 7, 9, 1, 3}, {8, 4, 2, 1, 4, 2, 1}};

enum { ALL_F64 = 4 }; /* the level of X_DTYPE after those of dtype_levels that x can have, where the device has fp64 */

static void set_dtypes(clnorm_norm_desc *desc, const unsigned *level) {
    if (level[X_DTYPE] + 1 == ALL_F64) {
        desc->x.dtype = desc->y.dtype = desc->z.dtype = CLNORM_F64;
        desc->weight.dtype = level[WEIGHT_DTYPE] < 3 ? CLNORM_F64 : CLNORM_DTYPE_NONE;
        desc->bias.dtype = level[BIAS_DTYPE] < 3 ? CLNORM_F64 : CLNORM_DTYPE_NONE;
        return;
    }
    desc->x.dtype = dtype_levels[level[X_DTYPE]];
    desc->y.dtype = dtype_levels[level[Y_DTYPE]];
    desc->z.dtype = dtype_levels[level[Z_DTYPE]];
    desc->weight.dtype = dtype_levels[level[WEIGHT_DTYPE]];
    desc->bias.dtype = dtype_levels[level[BIAS_DTYPE]];
}

/* The group size of a level; the whole row where that is no multiple of it. */
static uint64_t group_size_of(uint64_t cols, unsigned level) {
    const uint64_t sizes[] = {0, 1, 3, 64, cols / 2};
    const uint64_t size = sizes[level];
    return size == 0 || cols % size != 0 ? 0 : size;
}

static void set_build(struct norm_case *norm_case, const unsigned *level) {
    clnorm_norm_desc *desc = &norm_case->desc;
    desc->group_size = group_size_of(desc->cols, level[GROUP]);
    set_dtypes(desc, level);
    desc->gate = (clnorm_gate)((level[GATE] + 1) / 2);
    desc->gate_first = level[GATE] == 2 || level[GATE] == 4;
    desc->save_mean = level[STATISTICS] % 2 == 1 && desc->norm == CLNORM_LAYER_NORM;
    desc->save_rstd = level[STATISTICS] >= 2;
    desc->weight_offset = desc->weight.dtype ? level[OFFSET] : 0;
    norm_case->in_place = level[IN_PLACE];
    if (norm_case->in_place)
        desc->y.dtype = desc->x.dtype;
}

static void set_run(struct norm_case *norm_case, const unsigned *level) {
    clnorm_norm_desc *desc = &norm_case->desc;
    const uint64_t *gap = gap_levels[level[STRIDES]];
    const uint64_t *shift = shift_levels[level[SHIFTS]];
    desc->x.stride = gap[0] ? desc->cols + gap[0] : 0;
    desc->y.stride = gap[1] ? desc->cols + gap[1] : 0;
    desc->z.stride = gap[2] ? desc->cols + gap[2] : 0;
    norm_case->shift.x = shift[0];
    norm_case->shift.y = shift[1];
    norm_case->shift.z = shift[2];
    norm_case->shift.weight = shift[3];
    norm_case->shift.bias = shift[4];
    norm_case->shift.mean = shift[5];
    norm_case->shift.rstd = shift[6];
    norm_case->input = (enum input)level[INPUT];
    desc->eps = norm_case->input == INPUT_CONSTANT
                    ? 0.5
                    : eps_levels[level[EPS]]; /* a small eps would magnify the roundings of constant rows */
    if (norm_case->in_place)
        desc->y.stride = desc->x.stride;
}

static struct norm_case case_of(uint64_t cols, const unsigned *build, const unsigned *run, uint64_t element_limit,
                                uint64_t seed) {
    const uint64_t most = element_limit > cols ? element_limit / cols : 1;
    const uint64_t rows = rows_levels[run[ROWS]] < most ? rows_levels[run[ROWS]] : most;
    struct norm_case norm_case = {.desc = norm_desc_of(build[NORM] ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, rows, cols),
                                  .seed = seed};
    set_build(&norm_case, build);
    set_run(&norm_case, run);
    return norm_case;
}

/* Builds take the values of cols in turn, until every two levels of the other factors have met. Quick tests have each of
 * cols once, and builds with new levels, which all keep the cols and the runs of the whole sweep: the driver's cache has
 * their kernels. */
static void shapes_dtypes_and_options(void **state) {
    enum { COLS = sizeof cols_levels / sizeof *cols_levels };
    const struct fixture *fixture = *state;
    const unsigned build_levels[BUILD_FACTORS] = {
        [GROUP] = 5,      [NORM] = 2,    [X_DTYPE] = fixture->device.fp64 ? 4 : 3,
        [Y_DTYPE] = 4,    [Z_DTYPE] = 4, [WEIGHT_DTYPE] = 4,
        [BIAS_DTYPE] = 4, [GATE] = 5,    [STATISTICS] = 4,
        [IN_PLACE] = 2,   [OFFSET] = 2,
    };
    const unsigned run_levels[RUN_FACTORS] = {
        [ROWS] = sizeof rows_levels / sizeof *rows_levels,     [STRIDES] = sizeof gap_levels / sizeof *gap_levels,
        [SHIFTS] = sizeof shift_levels / sizeof *shift_levels, [INPUT] = INPUTS,
        [EPS] = sizeof eps_levels / sizeof *eps_levels,
    };
    const uint64_t limit = fixture_element_limit(fixture);
    const bool slow = fixture_is_slow(fixture);
    struct pairwise *builds = pairwise_make(build_levels, BUILD_FACTORS, 1);
    struct pairwise *runs = NULL;
    unsigned cases = 0;
    unsigned skipped = 0;
    unsigned failed = 0;
    unsigned build[PAIRWISE_FACTORS];
    bool is_new = true;
    for (unsigned i = 0; failed < 10 && (pairwise_next_of_all(builds, build, &is_new) || i < COLS); i++) {
        const bool taken = !fixture_is_quick() || i < COLS || is_new;
        const uint64_t cols = cols_levels[i % COLS];
        const unsigned runs_per_build = cols > limit ? !slow : slow ? 1 : 4;
        for (unsigned j = 0; j < runs_per_build; j++) {
            unsigned run[PAIRWISE_FACTORS];
            pairwise_cycle(&runs, run_levels, RUN_FACTORS, run, i);
            const struct norm_case norm_case = case_of(cols, build, run, limit, cases++);
            skipped += !taken;
            failed += taken && !norm_case_passes(fixture, &norm_case);
        }
    }
    pairwise_free(builds);
    pairwise_free(runs);
    print_message("%u cases\n", cases - skipped);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes_dtypes_and_options)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
