/* The gradients of group norm in one launch whose work-groups hold pieces of segments or slices and exchange their sums:
 * the results are those of the reference, and have the same bits where every message counts as missing, where dx lies over
 * dy, at any address, and dx for any number of samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "group_norm_case.h"
#include "group_norm_verify.h"
#include "knob.h"
#include "made_up_devices.h"
#include "operation/operations.h"
#include "refusal.h"

enum { F32 = CLNORM_F32, F16 = CLNORM_F16, BF16 = CLNORM_BF16 };
enum { FIRST = CLNORM_LAYOUT_FIRST, LAST = CLNORM_LAYOUT_LAST };
enum { NORMAL = INPUT_NORMAL, FAR = INPUT_FAR, SPIKES = INPUT_SPIKES };
enum { GELU = CLNORM_ACTIVATION_GELU, SILU = CLNORM_ACTIVATION_SILU };

struct pieces_case {
    struct group_case c;
    struct group_more more;
};

/* Slices: even chunks; a last chunk that is short, and vectors that span groups; chunks without positions; idle lanes; many
 * slices; the gradient of a residual, and sums that are added to; narrow rows, as the numbers of wide ones are many.
 * Segments: pieces of whole channels; chunks of a channel; idle sets of lanes; many segments; a copy of the gradient, and
 * sums that are added to; more pieces than lanes, without weights and their gradients; dy and the gradient of a residual
 * with 2 bytes an element, beside an x with 4; as many pieces as lanes receive messages. */
static const struct pieces_case cases[] = {
    {{3, 64, 32, 2, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=16,segments=1,chunks=8"}, {0}},
    {{2, 60, 37, 10, LAST, BF16, BF16, F32, 0, 0, FAR, 4, 0, "vec=4,lanes=64,segments=1,chunks=4"}, {0}},
    {{2, 32, 10, 4, LAST, F32, F32, 0, 0, 0, NORMAL, 0, 0, "vec=2,lanes=16,segments=1,chunks=7"}, {0}},
    {{4, 48, 50, 4, LAST, F16, F16, F32, 0, GELU, SPIKES, 0, 0, "vec=4,lanes=16,segments=1,chunks=13"}, {0}},
    {{90, 64, 18, 1, LAST, BF16, BF16, BF16, 0, SILU, FAR, 0, 0, "vec=4,lanes=16,segments=1,chunks=5"}, {0}},
    {{3, 64, 24, 2, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=16,segments=1,chunks=12"},
     {.dresidual_out = F32, .dresidual = BF16, .accumulate = true}},
    {{2, 32, 85, 32, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=2,lanes=64,segments=1,chunks=17"}, {0}},
    {{3, 12, 64, 2, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=16,segments=1,chunks=3"}, {0}},
    {{2, 6, 96, 3, FIRST, F32, F32, BF16, 0, 0, FAR, 4, 0, "vec=4,lanes=8,segments=1,chunks=6"}, {0}},
    {{4, 40, 16, 4, FIRST, F32, F32, F32, 0, GELU, SPIKES, 0, 0, "vec=2,lanes=16,segments=1,chunks=2"}, {0}},
    {{90, 64, 18, 2, FIRST, F32, F32, F32, 0, SILU, FAR, 0, 0, "vec=2,lanes=16,segments=1,chunks=8"}, {0}},
    {{3, 16, 32, 2, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=1,chunks=8"},
     {.dresidual = BF16, .accumulate = true}},
    {{2, 24, 16, 2, FIRST, F32, F32, 0, 0, 0, NORMAL, 0, 0, "vec=2,lanes=4,segments=1,chunks=12"}, {0}},
    {{2, 16, 32, 2, FIRST, F32, BF16, F32, 0, SILU, NORMAL, 0, 0, "vec=2,lanes=8,segments=1,chunks=8"},
     {.dresidual_out = BF16, .dresidual = BF16}},
    {{2, 16, 16, 2, FIRST, F32, F32, F32, 0, 0, FAR, 0, 0, "vec=2,lanes=8,segments=1,chunks=4"}, {0}},
};
enum { CASES = sizeof cases / sizeof *cases, SLICES = 7 /* cases of slices, which come first */ };

static struct group_run run_of(const struct group_case *c, const struct group_more *more, bool given) {
    struct group_run run = group_run_make_more(c, more);
    if (given)
        group_statistics_fill(&run);
    return run;
}

static bool has_kernel(const clnorm_plan *plan, const char *name) {
    clnorm_kernel_info info = CLNORM_KERNEL_INFO_INIT;
    bool has = false;
    for (unsigned i = 0; i < clnorm_plan_kernel_count(plan); i++) {
        assert_int_equal(clnorm_plan_kernel(plan, i, &info), CLNORM_SUCCESS);
        has = has || strstr(info.name, name);
    }
    return has;
}

/* Whether a device takes a config: some lack vectors at such strides, several lanes, or the wait. */
static bool is_taken(const struct fixture *fixture, const struct group_case *c, const struct group_more *more, bool given) {
    struct group_run run = run_of(c, more, given);
    const clnorm_group_norm_backward_desc desc = group_backward_desc(&run, given);
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_group_norm_backward_plan_create(fixture->context, &desc, &plan);
    assert_true(!status || status == CLNORM_INVALID_VALUE);
    if (!status)
        assert_true(
            has_kernel(plan, c->layout == FIRST ? "group_norm_backward_pieces" : "group_norm_last_backward_exchange"));
    clnorm_plan_destroy(plan);
    group_run_free(&run);
    return !status;
}

/* A run of a case has the gradients of another one, which are right. */
static void compare(const struct fixture *fixture, const struct group_run *expected, const struct group_case *c, bool given,
                    bool in_place) {
    struct group_run run = run_of(c, &expected->more, given);
    if (!group_backward_execute(fixture, &run, given, in_place))
        group_case_fail(fixture, c, 0);
    assert_true(group_samples_equal(c, in_place ? &run.dy : &run.dx, &expected->dx));
    assert_true(group_samples_equal(c, &run.dresidual, &expected->dresidual));
    assert_true(c->rows < expected->c->rows ||
                (tensor_equals(&run.dweight, &expected->dweight) && tensor_equals(&run.dbias, &expected->dbias)));
    group_run_free(&run);
}

/* The way without a wait is compared with the one that waits, which CPUs alone lack: as it is, in place, at
 * another address, and with one sample. */
static bool bits_are_those_of_any_way(const struct fixture *fixture, size_t i) {
    char config[2][128];
    const bool given = i % 2 == 0, has_residual = cases[i].more.dresidual;
    const struct group_case alone = group_case_with_row_split(&cases[i].c, "no_wait", config[0], sizeof config[0]);
    struct group_case other = group_case_with_row_split(&cases[i].c, "exchange", config[1], sizeof config[1]);
    if (!is_taken(fixture, &alone, &cases[i].more, given))
        return false;
    const bool waits = is_taken(fixture, &other, &cases[i].more, given);
    assert_int_equal(waits, fixture->device.kind != CLNORM_DEVICE_CPU);
    if (!waits)
        other = alone;
    struct group_run expected = run_of(&alone, &cases[i].more, given);
    if (!group_backward_execute(fixture, &expected, given, false) || !group_backward_is_right(&expected, given))
        group_case_fail(fixture, &alone, i);
    struct group_case shifted = other, one = other;
    shifted.shift = 1;
    one.rows = 1;
    compare(fixture, &expected, &other, given, false);
    if (!has_residual)
        compare(fixture, &expected, &other, given, true);
    if (!has_residual && waits)
        compare(fixture, &expected, &alone, given, true);
    compare(fixture, &expected, &shifted, given, false);
    compare(fixture, &expected, &one, given, false);
    group_run_free(&expected);
    return true;
}

/* Slow devices take a case of each layout. */
static void all_ways_are_alike(void **state) {
    size_t taken[] = {[FIRST] = 0, [LAST] = 0}, count[] = {[FIRST] = 0, [LAST] = 0};
    for (size_t i = 0; i < CASES; i += fixture_is_slow(*state) ? SLICES : 1) {
        const int layout = cases[i].c.layout;
        taken[layout] += bits_are_those_of_any_way(*state, i);
        count[layout]++;
    }
    assert_true(2 * taken[FIRST] >= count[FIRST] && 2 * taken[LAST] >= count[LAST]); /* drivers refuse some */
}

static void work_that_is_refused(void **state) {
    static const struct {
        const char *config, *detail;
        int dtype;
        uint64_t groups;
    } refused[] = {
        {"vec=4,lanes=16,chunks=1,row_split=no_wait", "row_split is no_wait: expected two_passes", F32, 2},
        {"vec=4,lanes=16,chunks=8,isa=portable,row_split=no_wait", "row_split is no_wait: expected two_passes", F32, 2},
        {"vec=4,lanes=16,chunks=16,segments=2,row_split=no_wait", "row_split is no_wait: expected two_passes", F32, 2},
        {"vec=4,lanes=16,chunks=16,iterations=2,row_split=no_wait", "iterations is 2: expected 1", F32, 2},
        {"vec=4,lanes=16,chunks=16,row_split=no_wait", "row_split is no_wait: expected two_passes", CLNORM_F64, 2},
        {"vec=1,lanes=16,chunks=16,row_split=no_wait", "row_split is no_wait: expected two_passes", F32,
         64}, /* few lanes */
    };
    const struct fixture *const fixture = *state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        clnorm_group_norm_backward_desc desc = CLNORM_GROUP_NORM_BACKWARD_DESC_INIT;
        clnorm_plan *plan = NULL;
        if (refused[i].dtype == CLNORM_F64 && !fixture->device.fp64)
            continue;
        desc.rows = 2;
        desc.cols = 64;
        desc.groups = refused[i].groups;
        desc.spatial = 64;
        desc.layout = CLNORM_LAYOUT_LAST;
        desc.x.dtype = desc.dy.dtype = desc.dx.dtype = (clnorm_dtype)refused[i].dtype;
        assert_int_equal(clnorm_config_parse(refused[i].config, &desc.config), CLNORM_SUCCESS);
        assert_int_equal(clnorm_group_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE);
        assert_detail(refused[i].detail);
    }
}

static struct cln_config chosen(size_t device, uint64_t rows, uint64_t cols, uint64_t spatial, clnorm_dtype dtype) {
    const clnorm_device_info info = made_up_device(device);
    static const struct cln_config automatic = {0};
    clnorm_group_norm_backward_desc desc = CLNORM_GROUP_NORM_BACKWARD_DESC_INIT;
    struct cln_config config;
    desc.rows = rows;
    desc.cols = cols;
    desc.groups = 32;
    desc.spatial = spatial;
    desc.layout = CLNORM_LAYOUT_LAST;
    desc.x.dtype = desc.dy.dtype = desc.dx.dtype = dtype;
    desc.x.stride = desc.dy.stride = desc.dx.stride = cols * spatial;
    const struct cln_workload work = cln_group_norm_backward.workload(&cln_group_norm_backward, &desc);
    assert_int_equal(cln_group_norm_backward.choose(&info, &work, &automatic, &config), CLNORM_SUCCESS);
    return config;
}

/* As in the forward, and with half of its positions in a chunk, since dy is held too. */
static void large_slices_are_exchanged(void **state) {
    (void)state;
    for (uint64_t rows = 1; rows <= 64; rows *= 8) {
        const struct cln_config c = chosen(MADE_UP_H200, rows, 512, 4096, CLNORM_F32);
        assert_int_equal(c.row_split, CLN_ROW_SPLIT_EXCHANGE);
        assert_int_equal(c.lanes, 128);
        assert_int_equal(c.chunks, 32);
    }
    assert_int_equal(chosen(MADE_UP_H200, 8, 512, 4096, CLNORM_BF16).row_split, CLN_ROW_SPLIT_TWO_PASSES);
    assert_int_equal(chosen(MADE_UP_H200, 8, 512, 4099, CLNORM_F32).chunks, 33);   /* uneven */
    assert_int_equal(chosen(MADE_UP_H200, 12, 128, 16384, CLNORM_F32).chunks, 64); /* narrow rows */
    assert_int_equal(chosen(MADE_UP_H200, 8, 320, 4096, CLNORM_F32).vec, 2);       /* of a group's 10 channels */
    assert_int_equal(chosen(MADE_UP_H200, 8, 288, 4096, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES); /* 9 */
    assert_int_equal(chosen(MADE_UP_H200, 8, 1280, 64, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES);  /* held */
    assert_int_equal(chosen(MADE_UP_H200, 1, 512, 262144, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES);
    assert_int_equal(chosen(MADE_UP_T4, 8, 512, 4096, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES);
}

/* A forced exchange of 2-byte elements, for which GPUs would not choose it. */
static void an_exchange_may_be_forced(void **state) {
    (void)state;
    const clnorm_device_info info = made_up_device(MADE_UP_H200);
    static const struct cln_config forced = {.row_split = CLN_ROW_SPLIT_EXCHANGE};
    clnorm_group_norm_backward_desc desc = CLNORM_GROUP_NORM_BACKWARD_DESC_INIT;
    struct cln_config config;
    desc.rows = 16;
    desc.cols = 512;
    desc.groups = 32;
    desc.spatial = 4096;
    desc.layout = CLNORM_LAYOUT_LAST;
    desc.x.dtype = desc.dy.dtype = desc.dx.dtype = CLNORM_BF16;
    const struct cln_workload work = cln_group_norm_backward.workload(&cln_group_norm_backward, &desc);
    assert_int_equal(cln_group_norm_backward.choose(&info, &work, &forced, &config), CLNORM_SUCCESS);
    assert_true(cln_config_slice_groups(&work, &config) > 0 && config.chunks > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_are_alike),
        cmocka_unit_test(work_that_is_refused),
        cmocka_unit_test(large_slices_are_exchanged),
        cmocka_unit_test(an_exchange_may_be_forced),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
