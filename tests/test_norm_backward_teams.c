/* Backward normalisation by teams, whose work-groups exchange the sums of their tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "norm_backward_case.h"

/* On any device with a team of one, whose letters go to itself, and on NVIDIA with real ones. */
static void teams_agree(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        clnorm_norm norm;
        uint64_t rows, cols, groups, tile; /* tile: of real teams */
        clnorm_gather gather;
        clnorm_fetch fetch;
        clnorm_keep keep;
        uint32_t slots; /* 0: not locked */
    } cases[] = {
        {CLNORM_LAYER_NORM, 40, 64, 1, 16, CLNORM_GATHER_REGISTERS, CLNORM_FETCH_FAR, CLNORM_KEEP_REGISTERS, 0},
        {CLNORM_RMS_NORM, 70, 96, 2, 16, CLNORM_GATHER_SPLIT, CLNORM_FETCH_AHEAD, CLNORM_KEEP_REGISTERS, 3},
        {CLNORM_LAYER_NORM, 21, 48, 1, 32, CLNORM_GATHER_LOCAL, CLNORM_FETCH_FAR, CLNORM_KEEP_REGISTERS, 1},
        {CLNORM_LAYER_NORM, 33, 64, 1, 16, CLNORM_GATHER_REGISTERS, CLNORM_FETCH_IN_TURN, CLNORM_KEEP_REREAD, 0},
        {CLNORM_RMS_NORM, 3000, 64, 1, 16, CLNORM_GATHER_REGISTERS, CLNORM_FETCH_FAR, CLNORM_KEEP_REGISTERS, 0},
        {CLNORM_LAYER_NORM, 3000, 64, 1, 16, CLNORM_GATHER_REGISTERS, CLNORM_FETCH_FAR, CLNORM_KEEP_REGISTERS, 0},
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
        c.desc.config = (clnorm_config){.vec = 4,
                                        .lanes = teams ? 32 : 1,
                                        .segments = 1,
                                        .rounds = i % 2 ? 23 : (uint32_t)c.desc.rows, /* of a team */
                                        .walkers = 1, /* so that many rows are more than 23 for each */
                                        .tile = (uint32_t)(teams ? cases[i].tile : group_size),
                                        .gather = cases[i].gather,
                                        .fetch = cases[i].fetch,
                                        .keep = cases[i].keep,
                                        .prefetch = i % 2 ? CLNORM_PREFETCH_NONE : CLNORM_PREFETCH_NEXT,
                                        .sums = CLNORM_SUMS_EXCHANGED};
        assert_true(norm_backward_case_passes(fixture, &c));
    }
}

/* Elsewhere than on NVIDIA they would wait for ever. */
static void lanes_do_not_exchange_sums(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_backward_desc desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 4, 64, CLNORM_F32);
    desc.config =
        (clnorm_config){.lanes = 32, .tile = 64, .gather = CLNORM_GATHER_REGISTERS, .sums = CLNORM_SUMS_EXCHANGED};
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_norm_backward_plan_create(fixture->context, &desc, &plan);
    clnorm_plan_destroy(plan);
    if (fixture->device.family == CLNORM_PLATFORM_NVIDIA) {
        assert_int_equal(status, CLNORM_SUCCESS);
        return;
    }
    assert_int_equal(status, CLNORM_INVALID_VALUE);
    assert_non_null(strstr(clnorm_error_detail(), "desc.config.sums is 2: expected CLNORM_SUMS_BEFORE but with one lane"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(teams_agree),
        cmocka_unit_test(lanes_do_not_exchange_sums),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
