/* Descriptors of group norm: the largest ones, and those that are refused. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/arithmetic.h"
#include "fixture.h"
#include "knob.h"
#include "plan/plan.h"
#include "refusal.h"

/* Bytes of the parts, rounded up to the alignment of a workspace. */
static uint64_t workspace_of(const clnorm_group_norm_desc *desc, const clnorm_plan *plan) {
    clnorm_config config;
    clnorm_plan_config(plan, &config);
    const bool first = desc->layout == CLNORM_LAYOUT_FIRST, blocks = KNOB(config, lanes) > 1 && KNOB(config, segments) > 1;
    const uint64_t block = (uint64_t)KNOB(config, lanes) * KNOB(config, vec);
    const uint64_t rows = first || !blocks ? desc->cols : desc->groups + cln_divide_up(desc->cols, block);
    const uint64_t chunks = first ? cln_divide_up(KNOB(config, chunks), desc->cols / desc->groups) : KNOB(config, chunks);
    return cln_divide_up(desc->rows * rows * chunks * 2 * sizeof(float), CLN_WORKSPACE_ALIGNMENT) * CLN_WORKSPACE_ALIGNMENT;
}

/* Sizes of 64 bits: 2^48 elements of a sample. The workspace has two numbers for each chunk of each channel, or of each
 * group in a block of channels. */
static void large_samples_have_plans(void **state) {
    const struct fixture *fixture = *state;
    for (int layout = CLNORM_LAYOUT_FIRST; layout <= (int)CLNORM_LAYOUT_LAST; layout++) {
        clnorm_group_norm_desc desc = CLNORM_GROUP_NORM_DESC_INIT;
        clnorm_plan *plan = NULL;
        desc.rows = 3;
        desc.cols = 1 << 16;
        desc.spatial = UINT64_C(1) << 32;
        desc.groups = 4;
        desc.layout = (clnorm_layout)layout;
        desc.save_mean = desc.save_rstd = 1;
        if (clnorm_group_norm_plan_create(fixture->context, &desc, &plan))
            fail_msg("%s", clnorm_error_detail());
        assert_int_equal(clnorm_plan_workspace_size(plan), workspace_of(&desc, plan));
        clnorm_plan_destroy(plan);
    }
}

/* Backward over slices: a channel has a part for each four samples, whose slices a work-group takes. */
static void samples_of_a_work_group_have_one_part(void **state) {
    const struct fixture *fixture = *state;
    clnorm_group_norm_backward_desc desc = CLNORM_GROUP_NORM_BACKWARD_DESC_INIT;
    clnorm_plan *plan = NULL;
    desc.rows = 41;
    desc.cols = 8;
    desc.spatial = 4;
    desc.groups = 2;
    desc.layout = CLNORM_LAYOUT_LAST;
    desc.statistics_given = 1;
    desc.dweight.dtype = CLNORM_F32;
    assert_int_equal(clnorm_config_parse("vec=4,lanes=8,segments=4,chunks=1", &desc.config), CLNORM_SUCCESS);
    if (clnorm_group_norm_backward_plan_create(fixture->context, &desc, &plan))
        fail_msg("%s", clnorm_error_detail());
    assert_int_equal(clnorm_plan_workspace_size(plan), sizeof(float) * 11 * 8 * 2); /* a multiple of its alignment */
    clnorm_plan_destroy(plan);
}

/* With forced lanes, the library chooses vectors that divide a row, or a group: the caller need not force them too. */
static void lanes_alone_may_be_forced(void **state) {
    const struct fixture *fixture = *state;
    static const uint64_t shapes[][3] = {{31, 259, 31}, {5, 10, 1}, {257, 11, 1}, {24, 64, 3}, {6, 49, 2}, {3, 1, 3}};
    for (size_t i = 0; i < 4 * sizeof shapes / sizeof *shapes; i++)
        for (uint32_t lanes = 2; lanes <= 64; lanes *= 2) {
            clnorm_group_norm_desc desc = CLNORM_GROUP_NORM_DESC_INIT;
            clnorm_requirements requirements = CLNORM_REQUIREMENTS_INIT;
            char text[16];
            desc.rows = 2;
            desc.cols = shapes[i / 4][0];
            desc.spatial = shapes[i / 4][1];
            desc.groups = shapes[i / 4][2];
            desc.layout = i % 2 ? CLNORM_LAYOUT_LAST : CLNORM_LAYOUT_FIRST;
            desc.x.dtype = i % 4 < 2 ? CLNORM_F32 : CLNORM_BF16;
            (void)snprintf(text, sizeof text, "lanes=%" PRIu32, lanes);
            assert_int_equal(clnorm_config_parse(text, &desc.config), CLNORM_SUCCESS);
            if (clnorm_group_norm_validate(fixture->context, &desc, &requirements))
                fail_msg("%" PRIu64 " channels, %" PRIu64 " positions, %s: %s", desc.cols, desc.spatial, text,
                         clnorm_error_detail());
        }
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_group_norm_desc good;
    clnorm_group_norm_desc_init(&good);
    good.rows = 4;
    good.cols = 64;
    good.spatial = 97;
    good.groups = 8;
    clnorm_group_norm_desc desc = good;
    desc.groups = 48;
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.groups is 48: expected a divisor of cols, 64");
    desc = good;
    desc.groups = 0;
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.groups is 0: expected a divisor of cols, 64");
    desc = good;
    desc.spatial = 0;
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_SHAPE, "desc.spatial is 0: expected 1 or more");
    desc = good;
    desc.spatial = UINT64_MAX / 8;
    assert_group_norm_refused(fixture, &desc, CLNORM_OVERFLOW, "desc.spatial is ");
    desc = good;
    desc.rows = UINT64_MAX / 64;
    assert_group_norm_refused(fixture, &desc, CLNORM_OVERFLOW, "x has ");
    desc = good;
    desc.x.stride = 64 * 97 - 1;
    assert_group_norm_refused(
        fixture, &desc, CLNORM_INVALID_SHAPE,
        "desc.x.stride is 6207: expected at least cols x spatial, 6208; it leads from sample to sample");
    desc = good;
    desc.layout = (clnorm_layout)3;
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_ENUM, "desc.layout is 3: expected a clnorm_layout");
    desc = good;
    desc.residual_out.dtype = CLNORM_F32;
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE,
                              "desc.residual_out.dtype is f32: expected none without a residual");
    desc = good;
    assert_int_equal(clnorm_config_parse("keep=reread", &desc.config), CLNORM_SUCCESS);
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE,
                              "desc.config.keep is reread: expected 0, this operation has no such knob");
    assert_int_equal(clnorm_config_parse("lanes=2,vec=16", &desc.config), CLNORM_SUCCESS);
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE,
                              "desc.config.vec is 16: expected a divisor of a group's elements");
    desc.layout = CLNORM_LAYOUT_LAST;
    desc.cols = 60;
    desc.groups = 4;
    assert_int_equal(clnorm_config_parse("lanes=2,vec=8,chunks=8", &desc.config), CLNORM_SUCCESS);
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE, "desc.config.vec is 8: expected a divisor of cols");
    assert_int_equal(clnorm_config_parse("chunks=98", &desc.config), CLNORM_SUCCESS);
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE,
                              "desc.config.chunks is 98: expected at most one per position");
    desc.cols = desc.groups = 3;
    desc.spatial = 1225;
    assert_int_equal(clnorm_config_parse("chunks=176", &desc.config), CLNORM_SUCCESS);
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE,
                              "desc.config.chunks is 176: expected at most one per 7 positions");
    assert_int_equal(clnorm_config_parse("lanes=2,vec=2", &desc.config), CLNORM_SUCCESS);
    assert_group_norm_refused(
        fixture, &desc, CLNORM_INVALID_VALUE,
        "desc.config.vec is 2: expected a divisor of the elements of 7 positions where there are several lanes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_samples_have_plans),
        cmocka_unit_test(samples_of_a_work_group_have_one_part),
        cmocka_unit_test(lanes_alone_may_be_forced),
        cmocka_unit_test(bad_descriptors_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
