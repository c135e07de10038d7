/* Many work-groups share few slots under locks, in many runs: no row may be lost or counted twice. The same holds with a
 * slot for each work-group. Inputs are such that every sum is exact in any order, and so is known to the bit. */
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
#include "reference/reference.h"

/* dy and x are whole numbers, the given mean is 2 and rstd is 1/2 or 2: x̂ is a multiple of 1/2. */
static void fill_exact(struct norm_backward_run *run, uint64_t seed) {
    struct random random = {seed};
    for (uint64_t i = 0; i < run->desc.rows * run->desc.cols; i++) {
        ref_store(run->dy.dtype, tensor_elements(&run->dy), i, (double)random_below(&random, 17) - 8);
        ref_store(run->x.dtype, tensor_elements(&run->x), i, (double)random_below(&random, 9) - 2);
    }
    const uint64_t statistics = run->rstd.rows * run->rstd.cols;
    for (uint64_t i = 0; i < statistics; i++) {
        ref_store(run->mean.dtype, tensor_elements(&run->mean), i, 2);
        ref_store(run->rstd.dtype, tensor_elements(&run->rstd), i, random_below(&random, 2) ? 0.5 : 2);
    }
}

/* The exact sums. */
static void expect(const struct norm_backward_run *run, double *dweight, double *dbias) {
    const uint64_t cols = run->desc.cols;
    for (uint64_t i = 0; i < run->desc.rows * cols; i++) {
        const uint64_t row = i / cols;
        const uint64_t column = i % cols;
        const uint64_t statistic = column / run->desc.group_size * run->desc.rows + row;
        const double dy = ref_load(run->dy.dtype, tensor_elements(&run->dy), i);
        const double x = ref_load(run->x.dtype, tensor_elements(&run->x), i);
        dweight[column] += dy * (x - 2) * ref_load(run->rstd.dtype, tensor_elements(&run->rstd), statistic);
        dbias[column] += dy;
    }
}

static void compare(const char *name, const struct tensor *sums, const double *expected, unsigned turn) {
    for (uint64_t column = 0; column < sums->cols; column++) {
        const double sum = ref_load(sums->dtype, tensor_elements(sums), column);
        if (sum != expected[column])
            fail_msg("run %u: %s[%" PRIu64 "] is %g, not %g", turn, name, column, sum, expected[column]);
    }
}

/* Runs one plan in one workspace, whose locks stay as the last run left them. */
static void hammer(const struct fixture *fixture, const clnorm_norm_backward_desc *desc, unsigned turns) {
    const struct norm_backward_case backward_case = {.desc = *desc};
    struct norm_backward_run run = norm_backward_run_make(&backward_case);
    const uint64_t cols = desc->cols;
    double *dweight = calloc(cols, 2 * sizeof *dweight);
    assert_non_null(dweight);
    double *dbias = dweight + cols;
    fill_exact(&run, cols + desc->slots);
    expect(&run, dweight, dbias);
    clnorm_plan *plan = NULL;
    if (clnorm_norm_backward_plan_create(fixture->context, &run.desc, &plan) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    norm_backward_run_prepare(plan, &run);
    norm_backward_run_upload(fixture, &run);
    const clnorm_args args = norm_backward_run_args(&run);
    for (unsigned turn = 0; turn < turns; turn++) {
        if (clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL) != CLNORM_SUCCESS)
            fail_msg("%s", clnorm_error_detail());
        assert_true(tensor_receive(fixture, &run.dweight, "dweight") && tensor_receive(fixture, &run.dbias, "dbias"));
        compare("dweight", &run.dweight, dweight, turn);
        compare("dbias", &run.dbias, dbias, turn);
        memset(tensor_elements(&run.dweight), TENSOR_NAN, cols * sizeof(float));
        memset(tensor_elements(&run.dbias), TENSOR_NAN, cols * sizeof(float));
        tensor_upload(fixture, &run.dweight);
        tensor_upload(fixture, &run.dbias);
    }
    assert_true(tensor_receive(fixture, &run.workspace, "workspace"));
    clnorm_plan_destroy(plan);
    free(dweight);
    norm_backward_run_free(&run);
}

/* slots: 0 for a slot for each work-group. */
static void hammer_slots(const struct fixture *fixture, clnorm_norm_backward_desc desc, uint32_t slots, unsigned turns) {
    desc.reduction = slots ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
    desc.slots = slots ? slots : desc.slots;
    hammer(fixture, &desc, turns);
}

/* The groups_per_cu that allows this many work-groups, of all tiles together. */
static uint32_t groups_per_cu_of(const struct fixture *fixture, uint64_t work_groups) {
    return (uint32_t)(work_groups / fixture->device.compute_units) + 1;
}

static clnorm_norm_backward_desc exact_desc(const struct fixture *fixture, uint64_t rows, uint64_t cols, uint32_t tile) {
    clnorm_norm_backward_desc desc = norm_backward_desc_of(CLNORM_LAYER_NORM, rows, cols);
    desc.dweight.dtype = desc.dbias.dtype = CLNORM_F32;
    desc.mean_given = desc.rstd_given = true;
    KNOB(desc.config, tile) = tile;
    KNOB(desc.config, lanes) = 8;
    KNOB(desc.config, segments) = KNOB(desc.config, run_length) = 1;
    KNOB(desc.config, groups_per_cu) = groups_per_cu_of(fixture, rows * (cols / tile)); /* a work-group for each row */
    return desc;
}

static unsigned turns_of(const struct fixture *fixture) {
    return fixture_is_slow(fixture) ? 2 : fixture->device.kind == CLNORM_DEVICE_GPU ? 1000 : 100;
}

static void exact_sums_stay_exact(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        uint64_t rows, cols, group_size;
        uint32_t tile;
        enum cln_accumulator accumulator;
    } shapes[] = {{512, 24, 0, 24, CLN_ACCUMULATOR_REGISTERS},    {300, 257, 0, 257, CLN_ACCUMULATOR_LOCAL},
                  {200, 96, 32, 32, CLN_ACCUMULATOR_REGISTERS},   {200, 96, 32, 32, CLN_ACCUMULATOR_LOCAL},
                  {100, 1024, 0, 256, CLN_ACCUMULATOR_REGISTERS}, {100, 1024, 0, 256, CLN_ACCUMULATOR_LOCAL}};
    if (!norm_backward_locks(fixture))
        skip();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const uint64_t rows = fixture_is_slow(fixture) ? 16 : shapes[i].rows;
        clnorm_norm_backward_desc desc = exact_desc(fixture, rows, shapes[i].cols, shapes[i].tile);
        desc.group_size = shapes[i].group_size;
        desc.dx.dtype = CLNORM_DTYPE_NONE;
        KNOB(desc.config, accumulator) = shapes[i].accumulator;
        for (uint32_t slots = 1; slots <= 3; slots++)
            hammer_slots(fixture, desc, slots, turns_of(fixture));
    }
}

/* The sums of rows side by side are merged in local memory before they go to a slot; several work-groups run at once. */
static void folded_sums_stay_exact(void **state) {
    const struct fixture *fixture = *state;
    static const enum cln_accumulator accumulators[] = {CLN_ACCUMULATOR_REGISTERS, CLN_ACCUMULATOR_LOCAL};
    for (int i = 0; i < 2; i++) {
        const uint64_t rows = fixture_is_slow(fixture) ? 10 : 62;
        const uint64_t cols = fixture_is_slow(fixture) ? 128 : 4096;
        clnorm_norm_backward_desc desc = exact_desc(fixture, rows, cols, 64);
        KNOB(desc.config, accumulator) = accumulators[i];
        KNOB(desc.config, keep) = CLN_KEEP_REGISTERS;
        KNOB(desc.config, vec) = 2; /* more than one vector for a lane */
        KNOB(desc.config, segments) = 4;
        KNOB(desc.config, groups_per_cu) = groups_per_cu_of(fixture, rows / 4 * (cols / 64));
        hammer_slots(fixture, desc, 0, turns_of(fixture) / 2);
        if (norm_backward_locks(fixture))
            hammer_slots(fixture, desc, 2, turns_of(fixture) / 2);
    }
}

/* PoCL and NVIDIA have the fences that locks need. */
static void devices_with_fences_have_locks(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_platform_family family = fixture->device.family;
    const bool locks = norm_backward_locks(fixture);
    if (family == CLNORM_PLATFORM_POCL || family == CLNORM_PLATFORM_NVIDIA)
        assert_true(locks);
    if (!locks)
        assert_non_null(strstr(clnorm_error_detail(), "fence"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_with_fences_have_locks),
        cmocka_unit_test(exact_sums_stay_exact),
        cmocka_unit_test(folded_sums_stay_exact),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
