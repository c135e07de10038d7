/* Backward normalisation by teams, whose work-groups exchange the sums of their tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"

/* On any device with a team of one, whose messages go to itself, and on NVIDIA with real ones. */
static void teams_agree(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        clnorm_norm norm;
        uint64_t rows, cols, groups, tile; /* tile: of real teams */
        enum cln_accumulator accumulator;
        uint32_t pipeline;
        enum cln_keep keep;
        uint32_t slots; /* 0: not locked */
    } cases[] = {
        {CLNORM_LAYER_NORM, 40, 64, 1, 16, CLN_ACCUMULATOR_REGISTERS, 3, CLN_KEEP_REGISTERS, 0},
        {CLNORM_RMS_NORM, 70, 96, 2, 16, CLN_ACCUMULATOR_SPLIT, 2, CLN_KEEP_REGISTERS, 3},
        {CLNORM_LAYER_NORM, 21, 48, 1, 32, CLN_ACCUMULATOR_LOCAL, 3, CLN_KEEP_REGISTERS, 1},
        {CLNORM_LAYER_NORM, 33, 64, 1, 16, CLN_ACCUMULATOR_REGISTERS, 1, CLN_KEEP_REREAD, 0},
        {CLNORM_RMS_NORM, 3000, 64, 1, 16, CLN_ACCUMULATOR_REGISTERS, 3, CLN_KEEP_REGISTERS, 0},
        {CLNORM_LAYER_NORM, 3000, 64, 1, 16, CLN_ACCUMULATOR_REGISTERS, 3, CLN_KEEP_REGISTERS, 0},
    };
    const bool teams = fixture->device.family == CLNORM_PLATFORM_NVIDIA, locks = norm_backward_locks(fixture);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct norm_backward_case c = {.desc = norm_backward_full_desc(cases[i].norm,
                                                                       fixture_is_slow(fixture) ? 5 : cases[i].rows,
                                                                       cases[i].cols, CLNORM_F32)};
        const uint64_t group_size = cases[i].cols / cases[i].groups;
        c.desc.group_size = group_size;
        c.desc.reduction = cases[i].slots && locks ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
        c.desc.slots = cases[i].slots ? cases[i].slots : c.desc.slots;
        c.desc.config = forced((struct cln_config){.vec = 4,
                                                   .lanes = teams ? 32 : 1,
                                                   .segments = 1,
                                                   .run_length = i % 2 ? 23 : (uint32_t)c.desc.rows, /* of a team */
                                                   .groups_per_cu = 1, /* so that many rows are more than 23 for each */
                                                   .tile = (uint32_t)(teams ? cases[i].tile : group_size),
                                                   .accumulator = cases[i].accumulator,
                                                   .pipeline = cases[i].pipeline,
                                                   .keep = cases[i].keep,
                                                   .prefetch = i % 2 ? CLN_PREFETCH_NONE : CLN_PREFETCH_NEXT,
                                                   .row_split = CLN_ROW_SPLIT_EXCHANGE});
        assert_true(norm_backward_case_passes(fixture, &c));
    }
}

/* Elsewhere than on NVIDIA they would wait for ever. */
static void lanes_do_not_exchange_sums(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_backward_desc desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 4, 64, CLNORM_F32);
    desc.config = forced((struct cln_config){
        .lanes = 32, .tile = 64, .accumulator = CLN_ACCUMULATOR_REGISTERS, .row_split = CLN_ROW_SPLIT_EXCHANGE});
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_norm_backward_plan_create(fixture->context, &desc, &plan);
    clnorm_plan_destroy(plan);
    if (fixture->device.family == CLNORM_PLATFORM_NVIDIA) {
        assert_int_equal(status, CLNORM_SUCCESS);
        return;
    }
    assert_int_equal(status, CLNORM_INVALID_VALUE);
    assert_non_null(strstr(clnorm_error_detail(),
                           "desc.config.row_split is exchange: expected row_split=two_passes but with one lane"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(teams_agree),
        cmocka_unit_test(lanes_do_not_exchange_sums),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
