/* Backward normalisation over shapes, dtypes, options and outputs, with the config that the library chooses. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"
#include "norm_backward_case.h"
#include "pairwise.h"

/* Factors of a build, besides cols. */
enum build_factor {
    GROUP,
    NORM,
    X_DTYPE,
    Z_DTYPE,
    DY_DTYPE,
    WEIGHT_DTYPE,
    BIAS_DTYPE,
    OUT_DTYPE,
    SUM_DTYPE,
    GATE,
    OUTPUTS,
    STATISTICS,
    ACCUMULATE,
    OFFSET,
    REDUCTION,
    BUILD_FACTORS
};

/* Factors of a run of such a build. */
enum run_factor { ROWS, STRIDES, SHIFTS, INPUT, EPS, SLOTS, DX_PLACE, DZ_PLACE, RUN_FACTORS };

static const uint64_t cols_levels[] = {1, 3, 7, 15, 16, 17, 33, 64, 65, 127, 257, 768, 1000, 4096, 5003, 65537, 262144};
static const uint64_t rows_levels[] = {0, 1, 3, 7, 64, 1000};
static const clnorm_dtype dtype_levels[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16, CLNORM_DTYPE_NONE};
static const double eps_levels[] = {1e-5, 1e-12, 0.5};
static const uint32_t slots_levels[] = {128, 1, 3};

/* Elements from the end of a row to the next one, for x, z, dy, dx, dz and y. */
static const uint64_t gap_levels[][6] = {{0}, {1, 13, 7, 3, 5, 9}, {16, 32, 64, 16, 48, 32}, {0, 5, 0, 3, 0, 1}};

/* Elements before the first one, for x, weight, bias, z, dy, mean, rstd, dx, dz, y, dweight and dbias. */
static const uint64_t shift_levels[][12] = {
    {0}, {1, 3, 5, 7, 9, 1, 3, 5, 7, 9, 11, 13}, {8, 4, 2, 1, 4, 2, 1, 16, 8, 4, 2, 1}};

/* Requested outputs. */
enum { DX = 1, DZ = 2, Y = 4, DWEIGHT = 8, DBIAS = 16, ALL = 31 };

static const unsigned output_levels[] = {
    ALL, ALL - DX, ALL - DZ, ALL - Y, ALL - DWEIGHT,   ALL - DBIAS, DX,
    DZ,  Y,        DWEIGHT,  DBIAS,   DWEIGHT | DBIAS, DX | DZ,     DX | DWEIGHT | DBIAS};

enum { ALL_F64 = 4 }; /* the level of X_DTYPE after those of dtype_levels that x can have, where the device has fp64 */

static clnorm_dtype dtype_of(const unsigned *level, enum build_factor factor) {
    const clnorm_dtype dtype = dtype_levels[level[factor]];
    return level[X_DTYPE] + 1 == ALL_F64 && dtype != CLNORM_DTYPE_NONE ? CLNORM_F64 : dtype;
}

/* An output of that dtype, or of x's where the level is none. */
static clnorm_dtype output_dtype(const clnorm_norm_backward_desc *desc, const unsigned *level, enum build_factor factor) {
    const clnorm_dtype dtype = dtype_of(level, factor);
    return dtype ? dtype : desc->x.dtype;
}

static void set_outputs(clnorm_norm_backward_desc *desc, const unsigned *level) {
    const unsigned listed = output_levels[level[OUTPUTS]];
    const unsigned possible = desc->gate ? listed : listed & ~(unsigned)DZ;
    const unsigned requested = possible ? possible : DX;
    const clnorm_dtype out = output_dtype(desc, level, OUT_DTYPE);
    const clnorm_dtype sum = output_dtype(desc, level, SUM_DTYPE);
    desc->dx.dtype = requested & DX ? out : CLNORM_DTYPE_NONE;
    desc->dz.dtype = requested & DZ ? out : CLNORM_DTYPE_NONE;
    desc->y.dtype = requested & Y ? desc->x.dtype : CLNORM_DTYPE_NONE;
    desc->dweight.dtype = requested & DWEIGHT ? sum : CLNORM_DTYPE_NONE;
    desc->dbias.dtype = requested & DBIAS ? output_dtype(desc, level, WEIGHT_DTYPE) : CLNORM_DTYPE_NONE;
    desc->accumulate = level[ACCUMULATE] && requested & (DWEIGHT | DBIAS);
}

/* The group size of a level; the whole row where that is no multiple of it. */
static uint64_t group_size_of(uint64_t cols, unsigned level) {
    const uint64_t sizes[] = {0, 1, 3, 64, cols / 2};
    const uint64_t size = sizes[level];
    return size == 0 || cols % size != 0 ? 0 : size;
}

static void set_build(clnorm_norm_backward_desc *desc, const unsigned *level) {
    const bool layer = desc->norm == CLNORM_LAYER_NORM;
    desc->group_size = group_size_of(desc->cols, level[GROUP]);
    desc->x.dtype = level[X_DTYPE] + 1 == ALL_F64 ? CLNORM_F64 : dtype_levels[level[X_DTYPE]];
    desc->z.dtype = dtype_of(level, Z_DTYPE);
    desc->dy.dtype = dtype_of(level, DY_DTYPE);
    desc->weight.dtype = dtype_of(level, WEIGHT_DTYPE);
    desc->bias.dtype = dtype_of(level, BIAS_DTYPE);
    desc->gate = (clnorm_gate)((level[GATE] + 1) / 2);
    desc->gate_first = level[GATE] == 2 || level[GATE] == 4;
    desc->rstd_given = level[STATISTICS] > 0;
    desc->mean_given = desc->rstd_given && layer;
    desc->weight_offset = desc->weight.dtype ? level[OFFSET] : 0;
    desc->reduction = level[REDUCTION] ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
    set_outputs(desc, level);
}

static uint64_t stride_of(uint64_t cols, uint64_t gap) {
    return gap ? cols + gap : 0;
}

static void set_strides(clnorm_norm_backward_desc *desc, const uint64_t gap[6]) {
    desc->x.stride = stride_of(desc->cols, gap[0]);
    desc->z.stride = stride_of(desc->cols, gap[1]);
    desc->dy.stride = stride_of(desc->cols, gap[2]);
    desc->dx.stride = stride_of(desc->cols, gap[3]);
    desc->dz.stride = stride_of(desc->cols, gap[4]);
    desc->y.stride = stride_of(desc->cols, gap[5]);
}

static void set_shifts(struct norm_backward_case *backward_case, const uint64_t shift[12]) {
    backward_case->shift.x = shift[0];
    backward_case->shift.weight = shift[1];
    backward_case->shift.bias = shift[2];
    backward_case->shift.z = shift[3];
    backward_case->shift.dy = shift[4];
    backward_case->shift.mean = shift[5];
    backward_case->shift.rstd = shift[6];
    backward_case->shift.dx = shift[7];
    backward_case->shift.dz = shift[8];
    backward_case->shift.y = shift[9];
    backward_case->shift.dweight = shift[10];
    backward_case->shift.dbias = shift[11];
}

static bool same_size(clnorm_dtype a, clnorm_dtype b, clnorm_dtype b_default) {
    return clnorm_dtype_size(a) == clnorm_dtype_size(b ? b : b_default);
}

/* Lets outputs lie over inputs whose elements have the same size. */
static void set_places(struct norm_backward_case *backward_case, const unsigned *level) {
    const clnorm_norm_backward_desc *desc = &backward_case->desc;
    const enum dx_place place = (enum dx_place)level[DX_PLACE];
    const clnorm_dtype below = place == DX_OVER_X ? desc->x.dtype : desc->dy.dtype;
    if (desc->dx.dtype && same_size(desc->dx.dtype, below, desc->x.dtype))
        backward_case->dx_place = place;
    backward_case->dz_over_z = level[DZ_PLACE] && desc->dz.dtype && same_size(desc->dz.dtype, desc->z.dtype, desc->x.dtype);
}

static struct norm_backward_case case_of(uint64_t cols, const unsigned *build, const unsigned *run, uint64_t element_limit,
                                         uint64_t seed) {
    const uint64_t most = element_limit > cols ? element_limit / cols : 1;
    const uint64_t rows = rows_levels[run[ROWS]] < most ? rows_levels[run[ROWS]] : most;
    const clnorm_norm norm = build[NORM] ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM;
    struct norm_backward_case backward_case = {
        .desc = norm_backward_desc_of(norm, rows, cols), .input = (enum input)run[INPUT], .seed = seed};
    clnorm_norm_backward_desc *desc = &backward_case.desc;
    set_build(desc, build);
    set_strides(desc, gap_levels[run[STRIDES]]);
    set_shifts(&backward_case, shift_levels[run[SHIFTS]]);
    set_places(&backward_case, run);
    desc->slots = slots_levels[run[SLOTS]];
    desc->eps = backward_case.input == INPUT_CONSTANT
                    ? 0.5
                    : eps_levels[run[EPS]]; /* a small eps would magnify the roundings of constant rows */
    return backward_case;
}

/* Every value of cols has two builds. With two, four of five pairs of the other factors' levels meet; every pair would take
 * twice the builds. In a quick set it has the first one, and the second one only for a new level. Those keep the cols and
 * the runs of the whole sweep: the driver's cache has their kernels. */
static void shapes_dtypes_options_and_outputs(void **state) {
    enum { COLS = sizeof cols_levels / sizeof *cols_levels };
    const struct fixture *fixture = *state;
    const unsigned build_levels[BUILD_FACTORS] = {
        [GROUP] = 5,      [NORM] = 2,       [X_DTYPE] = fixture->device.fp64 ? 4 : 3,
        [Z_DTYPE] = 4,    [DY_DTYPE] = 4,   [WEIGHT_DTYPE] = 4,
        [BIAS_DTYPE] = 4, [OUT_DTYPE] = 4,  [SUM_DTYPE] = 4,
        [GATE] = 5,       [STATISTICS] = 3, [OUTPUTS] = sizeof output_levels / sizeof *output_levels,
        [ACCUMULATE] = 2, [OFFSET] = 2,     [REDUCTION] = norm_backward_locks(fixture) ? 2 : 1,
    };
    const unsigned run_levels[RUN_FACTORS] = {
        [ROWS] = sizeof rows_levels / sizeof *rows_levels,
        [STRIDES] = sizeof gap_levels / sizeof *gap_levels,
        [SHIFTS] = sizeof shift_levels / sizeof *shift_levels,
        [INPUT] = INPUTS,
        [EPS] = sizeof eps_levels / sizeof *eps_levels,
        [SLOTS] = sizeof slots_levels / sizeof *slots_levels,
        [DX_PLACE] = 3,
        [DZ_PLACE] = 2,
    };
    const uint64_t limit = fixture_element_limit(fixture);
    const bool slow = fixture_is_slow(fixture);
    const unsigned runs_per_build = slow ? 1 : 6;
    struct pairwise *builds = pairwise_make(build_levels, BUILD_FACTORS, 1);
    struct pairwise *runs = NULL;
    unsigned cases = 0;
    unsigned skipped = 0;
    unsigned failed = 0;
    unsigned build[PAIRWISE_FACTORS];
    bool is_new;
    for (unsigned i = 0; failed < 10 && i < 2 * COLS && pairwise_next_of_all(builds, build, &is_new); i++) {
        const bool taken = i < COLS || is_new || !(slow || fixture_is_quick());
        const uint64_t cols = cols_levels[i % COLS];
        for (unsigned j = 0; j < runs_per_build && (cols <= limit || !slow); j++) {
            unsigned run[PAIRWISE_FACTORS];
            pairwise_cycle(&runs, run_levels, RUN_FACTORS, run, i);
            const struct norm_backward_case backward_case = case_of(cols, build, run, limit, cases++);
            skipped += !taken;
            failed += taken && !norm_backward_case_passes(fixture, &backward_case);
        }
    }
    pairwise_free(builds);
    pairwise_free(runs);
    print_message("%u cases\n", cases - skipped);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes_dtypes_options_and_outputs)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
