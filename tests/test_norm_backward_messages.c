/* Teams of the backward whose messages are missing from some row on. On PoCL the work-groups of a team run one after the
 * other, so every message of a launch would be missing. Here each launch has the number of the first one, so that its
 * messages count, and those of later rows are cleared. */
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
#include "plan/launch_number.h"
#include "plan/plan.h"

enum { ROWS = 23, COLS = 64, TILE = 16, TILES = COLS / TILE };

/* A run whose launches all have the same number. */
struct kept {
    clnorm_plan *plan;
    struct norm_backward_run run;
    uint64_t count;   /* of launch numbers, before each launch */
    size_t mailboxes; /* bytes of the workspace before the first message */
};

static void execute(const struct fixture *fixture, struct kept *kept) {
    norm_backward_run_upload(fixture, &kept->run);
    const clnorm_args args = norm_backward_run_args(&kept->run);
    cln_launch_numbers_from(kept->count);
    assert_int_equal(clnorm_plan_enqueue(kept->plan, fixture->queue, &args, 0, NULL, NULL), CLNORM_SUCCESS);
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    assert_true(norm_backward_run_receive(fixture, &kept->run));
}

/* Bytes of the workspace before the messages, which are the part with elements of 16 bytes. */
static size_t find_mailboxes(const clnorm_plan *plan) {
    for (unsigned i = 0; i < plan->stages; i++)
        for (cl_uint k = 0; k < plan->stage[i].tensors; k++) {
            const struct cln_binding *const binding = &plan->stage[i].tensor[k].binding;
            if (plan->stage[i].launch && binding->role == CLN_WORKSPACE && binding->element == sizeof(cl_uint4))
                return (size_t)binding->offset;
        }
    fail_msg("the plan exchanges no messages");
    return 0;
}

static struct kept kept_make(const struct fixture *fixture, clnorm_norm norm, uint32_t pipeline, enum cln_keep keep,
                             enum dx_place dx_place) {
    struct norm_backward_case c = {.desc = norm_backward_full_desc(norm, ROWS, COLS, CLNORM_F32), .dx_place = dx_place};
    c.desc.config = forced((struct cln_config){.vec = 4,
                                               .lanes = fixture->device.kind == CLNORM_DEVICE_GPU ? 32 : 1,
                                               .segments = 1,
                                               .run_length = ROWS,
                                               .groups_per_cu = 1,
                                               .tile = TILE,
                                               .accumulator = CLN_ACCUMULATOR_REGISTERS,
                                               .pipeline = pipeline,
                                               .keep = keep,
                                               .prefetch = CLN_PREFETCH_NONE,
                                               .row_split = CLN_ROW_SPLIT_NO_WAIT});
    struct kept kept = {.run = norm_backward_run_make(&c)};
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &c.desc, &kept.plan), CLNORM_SUCCESS);
    kept.count = cln_launch_numbers_from(1000);
    kept.mailboxes = find_mailboxes(kept.plan);
    norm_backward_run_prepare(kept.plan, &kept.run);
    return kept;
}

static void kept_free(struct kept *kept) {
    clnorm_plan_destroy(kept->plan);
    norm_backward_run_free(&kept->run);
}

/* The messages of a row. */
static cl_uint4 *messages_of(const struct kept *kept, uint64_t row) {
    char *const workspace = tensor_elements(&kept->run.workspace);
    return (cl_uint4 *)(void *)(workspace + kept->mailboxes) + row * TILES;
}

/* Makes the messages of some rows wrong: a word and its seal, so that they count. */
static void falsify(const struct kept *kept, uint64_t first, uint64_t rows) {
    for (uint64_t i = 0; i < rows * TILES; i++)
        for (int word = 0; word < 2; word++)
            messages_of(kept, first)[i].s[word] ^= 0x01000000U;
}

/* A row before the first missing one uses its messages: wrong ones give a wrong row. Not on GPUs, where the work-groups of
 * a team run side by side and post right messages over the wrong ones. dx: the right result. */
static void wrong_messages_show(const struct fixture *fixture, struct kept *kept, const unsigned char *dx) {
    enum { WRONG = 6 };
    const unsigned char *const right = dx + kept->run.dx.first;
    const size_t row = sizeof(float) * COLS;
    memset(messages_of(kept, WRONG + 1), 0, TILES * sizeof(cl_uint4));
    falsify(kept, WRONG, 1);
    execute(fixture, kept);
    const unsigned char *const result = tensor_elements(&kept->run.dx);
    assert_memory_not_equal(result + WRONG * row, right + WRONG * row, row);
    assert_memory_equal(result, right, WRONG * row);
}

/* The results have the same bits, whichever row is the first without messages. */
static void later_rows_are_finished(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        clnorm_norm norm;
        uint32_t pipeline;
        enum cln_keep keep;
    } kinds[] = {
        {CLNORM_LAYER_NORM, 1, CLN_KEEP_REGISTERS},
        {CLNORM_RMS_NORM, 2, CLN_KEEP_REGISTERS},
        {CLNORM_LAYER_NORM, 3, CLN_KEEP_REGISTERS},
        {CLNORM_LAYER_NORM, 1, CLN_KEEP_REREAD},
    };
    static const uint64_t missing_from[] = {1, 2, 7, ROWS - 1};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct kept kept = kept_make(fixture, kinds[i].norm, kinds[i].pipeline, kinds[i].keep, DX_APART);
        execute(fixture, &kept);
        assert_true(norm_backward_run_check(&kept.run));
        const struct tensor *const outputs[] = {&kept.run.dx, &kept.run.dweight, &kept.run.dbias};
        unsigned char *expected[3];
        for (int k = 0; k < 3; k++) {
            expected[k] = malloc(outputs[k]->size);
            assert_non_null(expected[k]);
            memcpy(expected[k], outputs[k]->host, outputs[k]->size);
        }
        for (size_t m = 0; m < sizeof missing_from / sizeof *missing_from; m++) {
            for (uint64_t row = missing_from[m]; row < ROWS; row++)
                memset(messages_of(&kept, row), 0, TILES * sizeof(cl_uint4));
            memset(tensor_elements(&kept.run.dx), 0, sizeof(float) * ROWS * COLS);
            execute(fixture, &kept);
            for (int k = 0; k < 3; k++)
                assert_memory_equal(outputs[k]->host, expected[k], outputs[k]->size);
        }
        if (fixture->device.kind == CLNORM_DEVICE_CPU)
            wrong_messages_show(fixture, &kept, expected[0]);
        for (int k = 0; k < 3; k++)
            free(expected[k]);
        kept_free(&kept);
    }
}

/* Without a message every work-group computes the sums of all tiles. In place, the tiles of work-groups that run at the
 * same time are overwritten meanwhile. */
static void sums_are_computed_in_place(void **state) {
    const struct fixture *fixture = *state;
    static const enum dx_place places[] = {DX_OVER_DY, DX_OVER_X};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct kept kept = kept_make(fixture, i ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 1, CLN_KEEP_REGISTERS, places[i]);
        execute(fixture, &kept);
        assert_true(norm_backward_run_check(&kept.run));
        kept_free(&kept);
    }
}

/* A work-group that computes the sums of a row's other tiles looks for their messages again: here they are wrong, which a
 * right result would not show. Not on GPUs, as in wrong_messages_show. */
static void messages_that_have_arrived_count(void **state) {
    enum { WRONG = 6 };
    const struct fixture *fixture = *state;
    if (fixture->device.kind != CLNORM_DEVICE_CPU)
        skip();
    struct kept kept = kept_make(fixture, CLNORM_LAYER_NORM, 1, CLN_KEEP_REGISTERS, DX_APART);
    execute(fixture, &kept);
    assert_true(norm_backward_run_check(&kept.run));
    const size_t row = sizeof(float) * COLS;
    unsigned char *const right = malloc(ROWS * row);
    assert_non_null(right);
    memcpy(right, tensor_elements(&kept.run.dx), ROWS * row);
    memset(messages_of(&kept, 0), 0, TILES * sizeof(cl_uint4));
    falsify(&kept, WRONG, 1);
    execute(fixture, &kept);
    const unsigned char *const result = tensor_elements(&kept.run.dx);
    assert_memory_not_equal(result + WRONG * row, right + WRONG * row, row);
    assert_memory_equal(result, right, WRONG * row);
    free(right);
    kept_free(&kept);
}

/* Messages of an earlier launch, here wrong ones, and other contents of a workspace are no messages. */
static void only_messages_of_the_launch_count(void **state) {
    const struct fixture *fixture = *state;
    static const clnorm_norm norms[] = {CLNORM_LAYER_NORM, CLNORM_RMS_NORM};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        struct kept kept = kept_make(fixture, norms[i], 1, CLN_KEEP_REGISTERS, DX_APART);
        execute(fixture, &kept);
        falsify(&kept, 0, ROWS);
        kept.count++;
        execute(fixture, &kept);
        assert_true(norm_backward_run_check(&kept.run));
        for (int byte = 0; byte <= 0xff; byte += 0x11) {
            memset(messages_of(&kept, 0), byte, (size_t)ROWS * TILES * sizeof(cl_uint4));
            execute(fixture, &kept);
            assert_true(norm_backward_run_check(&kept.run));
        }
        kept_free(&kept);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_rows_are_finished),
        cmocka_unit_test(sums_are_computed_in_place),
        cmocka_unit_test(messages_that_have_arrived_count),
        cmocka_unit_test(only_messages_of_the_launch_count),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
