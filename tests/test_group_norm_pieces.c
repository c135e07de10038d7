/* Group norm in one launch whose work-groups hold pieces of segments or slices and exchange their moments: the results are
 * those of the reference, and have the same bits where every message counts as missing, where y lies over x, for any number
 * of samples, and at any address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/group_parts.h"
#include "config/group_registers.h"
#include "config/resources.h"
#include "group_norm_case.h"
#include "group_norm_verify.h"
#include "knob.h"
#include "made_up_devices.h"
#include "operation/operations.h"
#include "reference/format.h"
#include "refusal.h"

enum { F32 = CLNORM_F32, F16 = CLNORM_F16, BF16 = CLNORM_BF16, E4M3 = CLNORM_F8_E4M3 };
enum { FIRST = CLNORM_LAYOUT_FIRST, LAST = CLNORM_LAYOUT_LAST };
enum { NORMAL = INPUT_NORMAL, FAR = INPUT_FAR, SPIKES = INPUT_SPIKES };
enum { GELU = CLNORM_ACTIVATION_GELU, SILU = CLNORM_ACTIVATION_SILU };

struct pieces_case {
    struct group_case c;
    struct group_more more;
};

/* Slices: even chunks; a last chunk that is short, and vectors that span groups; chunks without positions; idle lanes; many
 * slices; an 8-bit y; narrow rows, as the numbers of wide ones are many. Segments: more chunks than lanes; idle lanes;
 * vectors that span channels; many segments; an 8-bit y. They have vec=2, since PoCL 3.1 takes minutes to build their
 * kernel with vec=4. */
static const struct pieces_case cases[] = {
    {{3, 64, 32, 2, LAST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=4,lanes=16,segments=1,chunks=8"}, {0}},
    {{2, 60, 37, 10, LAST, BF16, BF16, F32, 0, 0, FAR, 4, 0, "vec=4,lanes=64,segments=1,chunks=6"}, {0}},
    {{2, 32, 10, 4, LAST, F32, F32, 0, 0, 0, NORMAL, 0, 0, "vec=2,lanes=16,segments=1,chunks=7"}, {0}},
    {{4, 48, 50, 4, LAST, F16, F16, F32, 0, GELU, SPIKES, 0, 0, "vec=4,lanes=16,segments=1,chunks=13"}, {0}},
    {{90, 64, 18, 1, LAST, BF16, BF16, F32, BF16, SILU, FAR, 0, 0, "vec=4,lanes=16,segments=1,chunks=5"}, {0}},
    {{3, 64, 24, 2, LAST, BF16, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=16,segments=1,chunks=6"},
     {.y = E4M3, .y_scaling = CLNORM_SCALING_TENSOR, .y_given = 0.125}},
    {{2, 32, 85, 32, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=2,lanes=64,segments=1,chunks=17"}, {0}},
    {{3, 12, 64, 2, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=2,lanes=8,segments=1,chunks=12"}, {0}},
    {{2, 30, 36, 3, FIRST, F32, BF16, F32, 0, 0, FAR, 4, 0, "vec=2,lanes=8,segments=1,chunks=5"}, {0}},
    {{2, 8, 27, 2, FIRST, F32, F32, BF16, 0, GELU, SPIKES, 0, 0, "vec=2,lanes=8,segments=1,chunks=6"}, {0}},
    {{90, 64, 18, 2, FIRST, F32, F32, F32, 0, SILU, FAR, 0, 0, "vec=2,lanes=8,segments=1,chunks=18"}, {0}},
    {{3, 64, 24, 4, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=2,lanes=8,segments=1,chunks=12"},
     {.y = E4M3, .y_scaling = CLNORM_SCALING_TENSOR, .y_given = 0.125}},
};
enum { CASES = sizeof cases / sizeof *cases, SLICES = 7 /* cases of slices, which come first */ };

/* Whether a device takes a config: some lack vectors at such strides, several lanes, or the wait. */
static bool is_taken(const struct fixture *fixture, const struct group_case *c, const struct group_more *more) {
    struct group_run run = group_run_make_more(c, more);
    const clnorm_group_norm_desc desc = group_forward_desc(&run);
    clnorm_kernel_info info = CLNORM_KERNEL_INFO_INIT;
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_group_norm_plan_create(fixture->context, &desc, &plan);
    assert_true(!status || status == CLNORM_INVALID_VALUE);
    if (!status) {
        assert_int_equal(clnorm_plan_kernel_count(plan), c->layout == FIRST ? 1 : 2); /* words of slices are cleared */
        assert_int_equal(clnorm_plan_kernel(plan, c->layout == FIRST ? 0 : 1, &info), CLNORM_SUCCESS);
        assert_non_null(strstr(info.name, c->layout == FIRST ? "group_norm_pieces" : "group_norm_last_exchange"));
    }
    clnorm_plan_destroy(plan);
    group_run_free(&run);
    return !status;
}

/* A run of a case has the outputs of another one, which are right. */
static void compare(const struct fixture *fixture, const struct group_run *expected, const struct group_case *c,
                    const struct group_more *more, bool in_place) {
    struct group_run run = group_run_make_more(c, more);
    if (!group_forward_execute(fixture, &run, in_place))
        group_case_fail(fixture, c, 0);
    assert_true(group_samples_equal(c, in_place ? &run.x : &run.y, &expected->y));
    assert_true(group_samples_equal(c, &run.residual_out, &expected->residual_out));
    assert_memory_equal(tensor_elements(&run.mean), tensor_elements(&expected->mean), c->rows * c->groups * sizeof(float));
    assert_memory_equal(tensor_elements(&run.rstd), tensor_elements(&expected->rstd), c->rows * c->groups * sizeof(float));
    group_run_free(&run);
}

/* Only CPUs lack the way that waits. */
static bool waits(const struct fixture *fixture, const struct group_case *c, const struct group_more *more) {
    const bool taken = is_taken(fixture, c, more);
    assert_int_equal(taken, fixture->device.kind != CLNORM_DEVICE_CPU);
    if (!taken)
        assert_detail("two_passes on CPUs");
    return taken;
}

/* The way without a wait is compared with itself with y over x, and with the one that waits, if the device has it: as it
 * is, with y over x, at another address, and with one sample. */
static bool bits_are_those_of_any_way(const struct fixture *fixture, size_t i) {
    char config[2][128];
    const struct group_more *const more = &cases[i].more;
    const struct group_case alone = group_case_with_row_split(&cases[i].c, "no_wait", config[0], sizeof config[0]);
    struct group_case other = group_case_with_row_split(&cases[i].c, "exchange", config[1], sizeof config[1]);
    if (!is_taken(fixture, &alone, more))
        return false;
    const bool both = waits(fixture, &other, more);
    if (!both)
        other = alone;
    struct group_run expected = group_run_make_more(&alone, more);
    if (!group_forward_execute(fixture, &expected, false) || !group_forward_is_right(&expected))
        group_case_fail(fixture, &alone, i);
    struct group_case shifted = other, one = other;
    shifted.shift = 1;
    one.rows = 1;
    compare(fixture, &expected, &other, more, false);
    if (alone.x == alone.out && !more->y)
        compare(fixture, &expected, &other, more, true);
    if (alone.x == alone.out && !more->y && both)
        compare(fixture, &expected, &alone, more, true);
    compare(fixture, &expected, &shifted, more, false);
    compare(fixture, &expected, &one, more, false);
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

/* Chunks whose means are so far apart that the variance is infinite: rstd is 0, and y is 0, no NaN. There are more lanes
 * than chunks. */
static void a_variance_may_be_infinite(void **state) {
    const struct fixture *fixture = *state;
    const struct group_case c = {1, 2, 64, 1,      FIRST, F32, F32,
                                 0, 0, 0,  NORMAL, 0,     0,   "vec=2,lanes=8,segments=1,chunks=4,row_split=no_wait"};
    struct group_run run = group_run_make(&c);
    for (uint64_t i = 0; i < c.cols * c.spatial; i++)
        ref_store(run.x.dtype, tensor_elements(&run.x), i, i / 32 % 2 ? 1e20 : 0);
    assert_true(group_forward_execute(fixture, &run, false));
    for (uint64_t i = 0; i < c.cols * c.spatial; i++)
        assert_true(ref_load(run.y.dtype, tensor_elements(&run.y), i) == 0);
    group_run_free(&run);
}

static void work_that_is_refused(void **state) {
    static const struct {
        const char *config, *detail;
        int dtype, scaling;
    } refused[] = {
        {"vec=4,lanes=16,chunks=1,row_split=no_wait", "row_split is no_wait: expected two_passes", F32, 0},
        {"vec=4,lanes=16,chunks=2,isa=portable,row_split=no_wait", "row_split is no_wait: expected two_passes", F32, 0},
        {"vec=4,lanes=16,chunks=8,segments=2,row_split=no_wait", "row_split is no_wait: expected two_passes", F32, 0},
        {"vec=4,lanes=16,chunks=8,iterations=2,row_split=no_wait", "iterations is 2: expected 1", F32, 0},
        {"vec=4,lanes=16,chunks=8,row_split=no_wait", "row_split is no_wait: expected two_passes", CLNORM_F64, 0},
        {"vec=4,lanes=16,chunks=8,row_split=no_wait", "row_split is no_wait: expected two_passes", E4M3,
         CLNORM_SCALING_TENSOR},
    };
    const struct fixture *const fixture = *state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        clnorm_group_norm_desc desc = CLNORM_GROUP_NORM_DESC_INIT;
        clnorm_plan *plan = NULL;
        if (refused[i].dtype == CLNORM_F64 && !fixture->device.fp64)
            continue;
        desc.rows = 2;
        desc.cols = 64;
        desc.groups = 2;
        desc.spatial = 64;
        desc.layout = CLNORM_LAYOUT_LAST;
        desc.x.dtype = refused[i].scaling ? CLNORM_F32 : (clnorm_dtype)refused[i].dtype;
        desc.y = (clnorm_tensor){.dtype = (clnorm_dtype)refused[i].dtype,
                                 .scaling = (clnorm_scaling)refused[i].scaling,
                                 .scale_dtype = refused[i].scaling ? CLNORM_F32 : CLNORM_DTYPE_NONE};
        assert_int_equal(clnorm_config_parse(refused[i].config, &desc.config), CLNORM_SUCCESS);
        assert_int_equal(clnorm_group_norm_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE);
        assert_detail(refused[i].detail);
    }
}

/* An image in 32 groups. */
static clnorm_group_norm_desc image_of(uint64_t rows, uint64_t cols, uint64_t spatial, int layout, clnorm_dtype dtype) {
    clnorm_group_norm_desc desc = CLNORM_GROUP_NORM_DESC_INIT;
    desc.rows = rows;
    desc.cols = cols;
    desc.groups = 32;
    desc.spatial = spatial;
    desc.layout = (clnorm_layout)layout;
    desc.x.dtype = desc.y.dtype = dtype;
    desc.x.stride = desc.y.stride = cols * spatial;
    return desc;
}

static struct cln_config chosen_for(size_t device, const struct cln_workload *work) {
    const clnorm_device_info info = made_up_device(device);
    static const struct cln_config automatic = {0};
    struct cln_config config;
    assert_int_equal(cln_group_norm.choose(&info, work, &automatic, &config), CLNORM_SUCCESS);
    return config;
}

static struct cln_config chosen(size_t device, uint64_t rows, uint64_t cols, uint64_t spatial, clnorm_dtype dtype) {
    const clnorm_group_norm_desc desc = image_of(rows, cols, spatial, LAST, dtype);
    const struct cln_workload work = cln_group_norm.workload(&cln_group_norm, &desc);
    return chosen_for(device, &work);
}

/* Slices of f32 that no work-group holds are exchanged on NVIDIA's GPUs from compute capability 8.0 on, whatever the number
 * of samples, unless vectors span groups, or there are too many pieces. So are slices whose lanes would hold many elements
 * of narrow rows. Chunks are equally large if not many more are. */
static void large_slices_are_exchanged(void **state) {
    (void)state;
    for (uint64_t rows = 1; rows <= 64; rows *= 8) {
        const struct cln_config c = chosen(MADE_UP_H200, rows, 512, 4096, CLNORM_F32);
        assert_int_equal(c.row_split, CLN_ROW_SPLIT_EXCHANGE);
        assert_int_equal(c.lanes, 128);
        assert_int_equal(c.chunks, 16);
    }
    assert_int_equal(chosen(MADE_UP_H200, 8, 512, 4096, CLNORM_BF16).row_split, CLN_ROW_SPLIT_TWO_PASSES);
    assert_int_equal(chosen(MADE_UP_H200, 8, 512, 4099, CLNORM_F32).chunks, 17);   /* uneven */
    assert_int_equal(chosen(MADE_UP_H200, 8, 640, 4096, CLNORM_F32).chunks, 32);   /* even ones, for 22 */
    assert_int_equal(chosen(MADE_UP_H200, 8, 320, 19321, CLNORM_F32).chunks, 101); /* 139 even ones would be too many */
    assert_int_equal(chosen(MADE_UP_H200, 64, 256, 3136, CLNORM_F32).chunks, 14);  /* a whole slice has narrow rows */
    assert_int_equal(chosen(MADE_UP_H200, 8, 256, 32400, CLNORM_F32).chunks, 72);  /* even, of narrow rows */
    assert_int_equal(chosen(MADE_UP_H200, 64, 512, 784, CLNORM_F32).chunks, 1);    /* of few elements */
    assert_int_equal(chosen(MADE_UP_H200, 8, 320, 4096, CLNORM_F32).vec, 2);       /* of a group's 10 channels */
    assert_int_equal(chosen(MADE_UP_H200, 8, 288, 4096, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES); /* 9 */
    assert_int_equal(chosen(MADE_UP_H200, 8, 1280, 64, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES);  /* held */
    assert_int_equal(chosen(MADE_UP_H200, 1, 512, 262144, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES);
    assert_int_equal(chosen(MADE_UP_H200, UINT64_C(1) << 30, 512, 4096, CLNORM_F32).row_split,
                     CLN_ROW_SPLIT_TWO_PASSES); /* tickets have 32 bits */
    assert_int_equal(chosen(MADE_UP_H200, 8, 512, 4096, CLNORM_F64).row_split, CLN_ROW_SPLIT_TWO_PASSES);
    assert_int_equal(chosen(MADE_UP_T4, 8, 512, 4096, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES);
}

/* Rows are narrow where work-groups would receive more than 512 pairs of numbers of wide ones: 32 groups, 17 chunks. */
static void numbers_bound_rows(void **state) {
    (void)state;
    const clnorm_device_info info = made_up_device(MADE_UP_H200);
    const clnorm_group_norm_desc desc = image_of(2, 32, 85, LAST, CLNORM_F32);
    const struct cln_workload work = cln_group_norm.workload(&cln_group_norm, &desc);
    for (uint32_t chunks = 16; chunks <= 17; chunks++) {
        const struct cln_config forced = {
            .vec = 2, .lanes = 64, .segments = 1, .chunks = chunks, .row_split = CLN_ROW_SPLIT_NO_WAIT};
        struct cln_config c;
        assert_int_equal(cln_group_norm.choose(&info, &work, &forced, &c), CLNORM_SUCCESS);
        assert_int_equal(cln_config_slice_groups(&work, &c), chunks == 16 ? 32 : 16);
    }
}

/* A compute unit has registers for four work-groups of 128 items, or for three that hold more. Those that hold nothing are
 * not bounded. */
static void registers_are_bounded(void **state) {
    (void)state;
    const clnorm_device_info info = made_up_device(MADE_UP_H200);
    const struct {
        clnorm_group_norm_desc desc;
        uint64_t most, groups;
    } bounded[] = {{image_of(8, 512, 16384, LAST, CLNORM_F32), 168, 3},
                   {image_of(8, 512, 16384, FIRST, CLNORM_F32), 128, 4},
                   {image_of(8, 512, 16384, LAST, CLNORM_BF16), 0, 0}};
    for (size_t i = 0; i < sizeof bounded / sizeof *bounded; i++) {
        const struct cln_workload work = cln_group_norm.workload(&cln_group_norm, &bounded[i].desc);
        const struct cln_config c = chosen_for(MADE_UP_H200, &work);
        assert_int_equal(cln_group_most_registers(&work, &c), bounded[i].most);
        assert_true(!bounded[i].most || cln_group_exchangers(&info, &work, &c) == bounded[i].groups * info.compute_units);
    }
}

/* A work-group has at most the 65536 registers of a compute unit. */
static void bounds_fit_a_work_group(void **state) {
    (void)state;
    static const struct {
        uint32_t lanes, isa;
        uint64_t held, most;
    } bounds[] = {{128, CLN_ISA_PTX, 40, 128}, {128, CLN_ISA_PTX, 41, 168}, {128, CLN_ISA_PTX, 64, 168},
                  {128, CLN_ISA_PTX, 65, 0},   {512, CLN_ISA_PTX, 40, 128}, {1024, CLN_ISA_PTX, 40, 0},
                  {256, CLN_ISA_PTX, 41, 168}, {512, CLN_ISA_PTX, 41, 0},   {128, CLN_ISA_PORTABLE, 40, 0}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const struct cln_config c = {.lanes = bounds[i].lanes, .segments = 1, .isa = bounds[i].isa};
        assert_int_equal(cln_most_registers(&c, bounds[i].held), bounds[i].most);
    }
}

/* With channels first, f32. held: whether registers hold pieces. */
static struct cln_config chosen_first(size_t device, uint64_t rows, uint64_t cols, uint64_t spatial, bool backward,
                                      bool *held) {
    const clnorm_group_norm_desc desc = image_of(rows, cols, spatial, FIRST, CLNORM_F32);
    struct cln_workload work = cln_group_norm.workload(&cln_group_norm, &desc);
    work.channel_sums = backward;
    work.held_size *= backward ? 2 : 1;
    const struct cln_config config = chosen_for(device, &work);
    *held = cln_group_holds_pieces(&work, &config);
    return config;
}

/* Segments of f32 that no work-group holds are exchanged in equally large pieces, whatever the number of samples; larger
 * ones by more lanes. Vectors have 4 elements, or 2 where 4 do not divide a channel. */
static void large_segments_are_exchanged(void **state) {
    (void)state;
    static const struct {
        uint64_t cols, spatial;
        struct {
            uint32_t lanes, chunks; /* chunks: 0 if there is no such choice */
        } choice[2];                /* forward, backward */
    } images[] = {
        {512, 4096, {{128, 16}, {128, 32}}},    {512, 16384, {{128, 64}, {128, 128}}},
        {768, 2304, {{128, 12}, {128, 24}}},    {1920, 1024, {{128, 15}, {128, 20}}},
        {512, 65536, {{256, 128}, {256, 256}}}, {512, 131072, {{256, 256}, {0, 0}}},
        {512, 4098, {{128, 16}, {128, 48}}},    {512, 4099, {{0, 0}, {0, 0}}},
        {32, 1024, {{0, 0}, {0, 0}}}, /* held whole */
    };
    bool held;
    for (size_t i = 0; i < 2 * sizeof images / sizeof *images; i++)
        for (uint64_t rows = 1; rows <= 64; rows *= 8) {
            const uint64_t cols = images[i / 2].cols, spatial = images[i / 2].spatial;
            const struct cln_config c = chosen_first(MADE_UP_H200, rows, cols, spatial, i % 2, &held);
            assert_int_equal(held, images[i / 2].choice[i % 2].chunks > 0);
            assert_true(!held || c.lanes == images[i / 2].choice[i % 2].lanes);
            assert_true(!held || c.chunks == images[i / 2].choice[i % 2].chunks);
            assert_int_equal(chosen_first(MADE_UP_T4, rows, cols, spatial, i % 2, &held).row_split,
                             CLN_ROW_SPLIT_TWO_PASSES);
        }
    const uint64_t many = UINT64_C(1) << 30; /* pieces have 32-bit numbers */
    assert_int_equal(chosen_first(MADE_UP_H200, many, 512, 4096, false, &held).row_split, CLN_ROW_SPLIT_TWO_PASSES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_are_alike),           cmocka_unit_test(a_variance_may_be_infinite),
        cmocka_unit_test(work_that_is_refused),         cmocka_unit_test(large_slices_are_exchanged),
        cmocka_unit_test(large_segments_are_exchanged), cmocka_unit_test(registers_are_bounded),
        cmocka_unit_test(numbers_bound_rows),           cmocka_unit_test(bounds_fit_a_work_group),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
