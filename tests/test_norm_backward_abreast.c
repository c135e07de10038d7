/* Narrow segments side by side in a work-group of the backward norms, each with weights of its own: groups of a row, or
 * neighbouring rows. Their numbers do not divide each other, so that some work-items are left over. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "config/config.h"
#include "fixture.h"
#include "norm_backward_case.h"
#include "plan/plan.h"

/* abreast: expected segments side by side. */
static const struct {
    clnorm_norm norm;
    clnorm_dtype dtype;
    uint64_t rows, cols, group_size, weight_rows;
    const char *config;
    uint64_t abreast;
} shapes[] = {
    /* 10 rows of weights: 3 rows of each at a time, 2 segments left over */
    {CLNORM_LAYER_NORM, CLNORM_BF16, 370, 3, 3, 10, "accumulator=registers,vec=1,lanes=1,segments=32", 10},
    /* 33 in 3 work-groups of 11, with several runs of rows */
    {CLNORM_RMS_NORM, CLNORM_F32, 1650, 2, 2, 33,
     "accumulator=registers,vec=2,lanes=1,segments=16,keep=registers,pipeline=2,run_length=3,groups_per_cu=1", 11},
    /* one row for each row of weights; the last work-group has 4 of 8 */
    {CLNORM_LAYER_NORM, CLNORM_F32, 44, 4, 4, 44, "accumulator=split,vec=4,lanes=1,segments=8,keep=reread,weights=early",
     8},
    /* 7 groups of a row, 2 rows at a time, 2 segments left over */
    {CLNORM_LAYER_NORM, CLNORM_BF16, 41, 63, 9, 0, "accumulator=split,vec=1,lanes=2,segments=16,run_length=1,prefetch=next",
     7},
    /* 10 groups in 2 work-groups of 5, 3 segments left over */
    {CLNORM_RMS_NORM, CLNORM_F32, 29, 40, 4, 0, "accumulator=local,vec=4,lanes=1,segments=8,keep=registers", 5},
    /* 11 groups of 4 in work-groups of 6 and 5, 2 segments left over */
    {CLNORM_LAYER_NORM, CLNORM_F32, 23, 44, 4, 0, "accumulator=registers,vec=4,lanes=1,segments=8,keep=registers", 6},
    /* groups, each with several rows of weights */
    {CLNORM_LAYER_NORM, CLNORM_F32, 60, 24, 6, 12, "accumulator=registers,vec=2,lanes=2,segments=8", 4},
    /* 6 groups of 48 bytes in 2 work-groups of 3, 2 segments left over */
    {CLNORM_LAYER_NORM, CLNORM_F64, 45, 36, 6, 0, "accumulator=registers,vec=2,lanes=2,segments=8", 3},
};

/* A device without f64 has no case of it. */
static bool has(const struct fixture *fixture, size_t i) {
    return shapes[i].dtype != CLNORM_F64 || fixture->device.fp64;
}

static struct norm_backward_case case_of(size_t i) {
    struct norm_backward_case c = {
        .desc = norm_backward_full_desc(shapes[i].norm, shapes[i].rows, shapes[i].cols, shapes[i].dtype),
        .input = INPUT_NORMAL,
        .seed = 100 + i,
    };
    c.desc.group_size = shapes[i].group_size;
    c.desc.weight_rows = shapes[i].weight_rows;
    c.desc.dweight.dtype = shapes[i].dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    assert_int_equal(clnorm_config_parse(shapes[i].config, &c.desc.config), CLNORM_SUCCESS);
    return c;
}

static void assert_abreast(const struct fixture *fixture, const struct norm_backward_case *c, uint64_t expected) {
    clnorm_plan *plan = NULL;
    if (clnorm_norm_backward_plan_create(fixture->context, &c->desc, &plan) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    assert_int_equal(cln_config_abreast(&plan->work, &plan->config), expected);
    clnorm_plan_destroy(plan);
}

static void partial_sums_are_right(void **state) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (!has(*state, i))
            continue;
        const struct norm_backward_case c = case_of(i);
        assert_abreast(*state, &c, shapes[i].abreast);
        assert_true(norm_backward_case_passes(*state, &c));
    }
}

/* All work-groups of a block share one slot of each row of weights. */
static void shared_slots_are_right(void **state) {
    if (!norm_backward_locks(*state))
        skip();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (!has(*state, i))
            continue;
        struct norm_backward_case c = case_of(i);
        c.desc.reduction = CLNORM_REDUCTION_LOCKED;
        c.desc.slots = 1;
        c.desc.gate = CLNORM_GATE_SILU;
        c.desc.dz.dtype = c.desc.x.dtype;
        assert_true(norm_backward_case_passes(*state, &c));
    }
}

/* Of 16 groups of 16 bytes: 128 bytes are side by side, and from 8 MiB of x on 512, here all of them. */
static void a_large_x_has_more_side_by_side(void **state) {
    struct norm_backward_case c = case_of(4);
    c.desc.cols = 64;
    c.desc.rows = 32767;
    assert_int_equal(clnorm_config_parse("accumulator=registers,vec=4,lanes=1,segments=16", &c.desc.config), 0);
    assert_abreast(*state, &c, 8);
    c.desc.rows++;
    assert_abreast(*state, &c, 16);
}

/* Rows that share weights with their neighbours are not side by side with others. */
static void runs_of_rows_are_taken_apart(void **state) {
    struct norm_backward_case c = case_of(0);
    c.desc.weight_rows = 5;
    c.desc.weight_repeat = 2;
    assert_abreast(*state, &c, 1);
    assert_true(norm_backward_case_passes(*state, &c));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partial_sums_are_right),
        cmocka_unit_test(shared_slots_are_right),
        cmocka_unit_test(a_large_x_has_more_side_by_side),
        cmocka_unit_test(runs_of_rows_are_taken_apart),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
