/* Backward normalisation by teams, whose work-groups exchange the sums of their tiles. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"

enum { CASES = 7, QUEUES = 32 };

/* Teams of 2 to 33 tiles. PoCL runs the work-groups of a team one after the other: the first one finds no message. */
static struct norm_backward_case case_of(const struct fixture *fixture, int i, enum cln_row_split row_split) {
    static const struct {
        clnorm_norm norm;
        uint64_t rows, cols, groups, tile;
        enum cln_accumulator accumulator;
        uint32_t pipeline;
        enum cln_keep keep;
        uint32_t slots; /* 0: not locked */
        enum dx_place dx_place;
    } cases[CASES] = {
        {CLNORM_LAYER_NORM, 40, 64, 1, 16, CLN_ACCUMULATOR_REGISTERS, 3, CLN_KEEP_REGISTERS, 0, DX_APART},
        {CLNORM_RMS_NORM, 70, 96, 2, 16, CLN_ACCUMULATOR_SPLIT, 2, CLN_KEEP_REGISTERS, 3, DX_APART},
        {CLNORM_LAYER_NORM, 21, 48, 1, 32, CLN_ACCUMULATOR_LOCAL, 3, CLN_KEEP_REGISTERS, 1, DX_OVER_DY},
        {CLNORM_LAYER_NORM, 33, 64, 1, 16, CLN_ACCUMULATOR_REGISTERS, 1, CLN_KEEP_REREAD, 0, DX_APART},
        {CLNORM_LAYER_NORM, 3000, 64, 1, 16, CLN_ACCUMULATOR_REGISTERS, 3, CLN_KEEP_REGISTERS, 0, DX_APART},
        {CLNORM_RMS_NORM, 19, 328, 1, 64, CLN_ACCUMULATOR_REGISTERS, 2, CLN_KEEP_REGISTERS, 0, DX_OVER_X},
        {CLNORM_LAYER_NORM, 9, 528, 1, 16, CLN_ACCUMULATOR_REGISTERS, 3, CLN_KEEP_REGISTERS, 0, DX_APART},
    };
    const bool locks = norm_backward_locks(fixture);
    const uint64_t rows = fixture_is_slow(fixture) ? 5 : cases[i].rows;
    struct norm_backward_case c = {.desc = norm_backward_full_desc(cases[i].norm, rows, cases[i].cols, CLNORM_F32),
                                   .dx_place = cases[i].dx_place};
    if (i % 3 != 1) { /* with a residual's gradient, in its own place or not */
        c.desc.s_given = true;
        c.desc.dresidual.dtype = c.desc.dresidual_out.dtype = CLNORM_F32;
        c.dresidual_in_place = i % 2;
    }
    c.desc.group_size = cases[i].cols / cases[i].groups;
    c.desc.reduction = cases[i].slots && locks ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
    c.desc.slots = cases[i].slots ? cases[i].slots : c.desc.slots;
    c.desc.config =
        forced((struct cln_config){.vec = 4,
                                   .lanes = fixture->device.kind == CLNORM_DEVICE_GPU ? 32
                                            : i % 2                                   ? 1
                                                                                      : 4,
                                   .segments = 1,
                                   .run_length = i % 2 ? 23 : (uint32_t)rows, /* rows of a team */
                                   .groups_per_cu = 1, /* few teams, so that one has more than 23 of 3000 rows */
                                   .tile = (uint32_t)cases[i].tile,
                                   .accumulator = cases[i].accumulator,
                                   .pipeline = cases[i].pipeline,
                                   .keep = cases[i].keep,
                                   .prefetch = i % 2 ? CLN_PREFETCH_NONE : CLN_PREFETCH_NEXT,
                                   .row_split = row_split});
    return c;
}

static struct norm_backward_run received(const struct fixture *fixture, const struct norm_backward_case *c) {
    struct norm_backward_run run = norm_backward_run_make(c);
    assert_int_equal(norm_backward_run_go(fixture, &run), CLNORM_SUCCESS);
    assert_true(norm_backward_run_receive(fixture, &run));
    return run;
}

/* Teams agree with the reference. With a bound of zero no work-group waits: on a CPU, the first one of a team sums all
 * tiles itself, to the same bits. */
static void a_bound_of_zero_changes_no_bit(void **state) {
    const struct fixture *fixture = *state;
    for (int i = 0; i < CASES; i++) {
        struct norm_backward_run run[2];
        for (int k = 0; k < 2; k++) {
            const struct norm_backward_case c = case_of(fixture, i, k ? CLN_ROW_SPLIT_NO_WAIT : CLN_ROW_SPLIT_EXCHANGE);
            run[k] = received(fixture, &c);
        }
        if (!norm_backward_runs_check(run, 2))
            fail_msg("case %d", i);
        assert_memory_equal(run[0].dx.host, run[1].dx.host, run[0].dx.size);
        if (run[0].desc.reduction == CLNORM_REDUCTION_PARTIAL) {
            assert_memory_equal(run[0].dweight.host, run[1].dweight.host, run[0].dweight.size);
            assert_memory_equal(run[0].dbias.host, run[1].dbias.host, run[0].dbias.size);
        }
        norm_backward_run_free(&run[0]);
        norm_backward_run_free(&run[1]);
    }
}

/* Launches in many queues at once fill the device with incomplete teams; all of them must end. */
static void many_queues_end(void **state) {
    const struct fixture *fixture = *state;
    const struct norm_backward_case c = case_of(fixture, 4, CLN_ROW_SPLIT_EXCHANGE);
    struct norm_backward_run run[QUEUES];
    cl_command_queue queue[QUEUES];
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &c.desc, &plan), CLNORM_SUCCESS);
    for (int i = 0; i < QUEUES; i++) {
        run[i] = norm_backward_run_make(&c);
        norm_backward_run_prepare(plan, &run[i]);
        norm_backward_run_upload(fixture, &run[i]);
        queue[i] = fixture_queue(fixture, 0);
    }
    const int turns = fixture_is_slow(fixture) ? 1 : 3; /* a simulator runs one launch after the other */
    for (int turn = 0; turn < turns; turn++)
        for (int i = 0; i < QUEUES; i++) {
            const clnorm_args args = norm_backward_run_args(&run[i]);
            assert_int_equal(clnorm_plan_enqueue(plan, queue[i], &args, 0, NULL, NULL), CLNORM_SUCCESS);
            assert_int_equal(clFlush(queue[i]), CL_SUCCESS);
        }
    for (int i = 0; i < QUEUES; i++) {
        assert_int_equal(clFinish(queue[i]), CL_SUCCESS);
        assert_true(norm_backward_run_receive(fixture, &run[i]));
        clReleaseCommandQueue(queue[i]);
    }
    assert_true(norm_backward_runs_check(run, QUEUES));
    for (int i = 0; i < QUEUES; i++)
        norm_backward_run_free(&run[i]);
    clnorm_plan_destroy(plan);
}

/* Rows of which no vector divides the stride (cl/common/lead.h). One tile begins before each row. CPUs take such vectors
 * with streaming stores only. The tiles of 63 columns are 4, and a fifth for the lead. */
static struct norm_backward_case odd_case(const struct fixture *fixture, clnorm_norm norm, uint64_t rows) {
    const bool cpu = fixture->device.kind == CLNORM_DEVICE_CPU;
    struct norm_backward_case own = {.desc = norm_backward_full_desc(norm, rows, 63, CLNORM_BF16)};
    own.desc.dweight.dtype = own.desc.dbias.dtype = CLNORM_F32;
    own.desc.y.dtype = CLNORM_DTYPE_NONE;
    own.desc.config = forced((struct cln_config){.stores = cpu ? CLN_STORES_STREAMING : CLN_STORES_CACHED,
                                                 .vec = 8,
                                                 .lanes = cpu ? 1 : 8,
                                                 .tile = 16,
                                                 .accumulator = CLN_ACCUMULATOR_REGISTERS,
                                                 .row_split = CLN_ROW_SPLIT_EXCHANGE});
    return own;
}

static void rows_begin_anywhere_within_vectors(void **state) {
    const struct fixture *fixture = *state;
    for (uint32_t split = CLN_ROW_SPLIT_EXCHANGE; split <= CLN_ROW_SPLIT_NO_WAIT; split++)
        for (unsigned layer = 0; layer < 2; layer++) {
            struct norm_backward_case own = odd_case(fixture, layer ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM, 29);
            own.desc.s_given = true;
            own.desc.dresidual.dtype = own.desc.dresidual_out.dtype = layer ? CLNORM_BF16 : CLNORM_F32;
            own.dresidual_in_place = layer;
            KNOB(own.desc.config, row_split) = split;
            assert_true(norm_backward_case_passes(fixture, &own));
            own.desc.rows = 3; /* fewer than begin differently within a vector */
            KNOB(own.desc.config, keep) = CLN_KEEP_REGISTERS;
            KNOB(own.desc.config, pipeline) = 3;
            assert_true(norm_backward_case_passes(fixture, &own));
        }
}

/* A tile of rows that begin differently has other columns, and each tile of a slot has a lock of its own. So work-groups
 * share a slot only if their rows begin alike: every other one of 60 columns does within a vector of 8, which takes two
 * slots. */
static void rows_that_begin_alike_share_slots(void **state) {
    enum { TURNS = 5 }; /* slots of unlike rows pass by chance in some of them */
    static const uint32_t slots[] = {2, 3, 5};
    const struct fixture *fixture = *state;
    if (!norm_backward_locks(fixture))
        skip();
    struct norm_backward_case own = odd_case(fixture, CLNORM_RMS_NORM, fixture_is_slow(fixture) ? 33 : 20000);
    own.desc.cols = 60;
    own.desc.reduction = CLNORM_REDUCTION_LOCKED;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        struct norm_backward_run run[TURNS];
        own.desc.slots = slots[i];
        for (int turn = 0; turn < TURNS; turn++)
            run[turn] = received(fixture, &own);
        if (!norm_backward_runs_check(run, TURNS))
            fail_msg("slots %" PRIu64, (uint64_t)slots[i]);
        for (int turn = 0; turn < TURNS; turn++)
            norm_backward_run_free(&run[turn]);
    }
    own.desc.slots = 1;
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &own.desc, &plan), CLNORM_INVALID_VALUE);
    assert_non_null(strstr(clnorm_error_detail(), "config.vec is 8"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_begin_anywhere_within_vectors),
        cmocka_unit_test(rows_that_begin_alike_share_slots),
        cmocka_unit_test(a_bound_of_zero_changes_no_bit),
        cmocka_unit_test(many_queues_end),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
