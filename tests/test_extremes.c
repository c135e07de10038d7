/* Shapes at the limits of 64 bits. Each gets a plan with sound knobs and at most 2^30 work-groups a launch, or is refused
 * with a message. Nothing is enqueued. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arithmetic.h"
#include "config/config.h"
#include "fixture.h"
#include "knob.h"
#include "made_up_devices.h"
#include "operation/operation.h"
#include "refusal.h"

static const char *const configs[] = {"",
                                      "reduce=shuffle",
                                      "reduce=tree,lanes=32",
                                      "keep=registers",
                                      "chunks=4294967295",
                                      "iterations=4294967295",
                                      "lanes=1024",
                                      "vec=16,segments=2"};
enum { CONFIGS = sizeof configs / sizeof *configs };

/* ----------------------------------------------------------------------------------------------- on devices made up */

static void check_choice(const clnorm_device_info *device, const struct cln_workload *work, const char *text) {
    struct cln_config forced, config = {0};
    clnorm_config words;
    assert_int_equal(clnorm_config_parse(text, &words), CLNORM_SUCCESS);
    assert_int_equal(cln_config_open(&words, &forced), CLNORM_SUCCESS);
    const clnorm_status status = cln_config_choose(device, work, &forced, &config);
    if (status && *text && *clnorm_error_detail())
        return; /* a forced knob that does not suit the shape */
    if (status || !cln_power_of_two(config.vec) || !cln_power_of_two(config.lanes))
        fail_msg("%s, knobs of %d, %" PRIu64 " x %" PRIu64 ", '%s': vec %" PRIu32 ", lanes %" PRIu32 ", %s", device->name,
                 (int)work->users, work->rows, work->group_size, text, config.vec, config.lanes, clnorm_error_detail());
}

static void knobs_are_sound_for_any_shape(void **state) {
    (void)state;
    static const uint64_t rows[] = {0, 1, UINT64_C(1) << 33, UINT64_C(1) << 60};
    static const uint64_t columns[] = {
        1,         (UINT64_C(1) << 32) - 1, UINT64_C(1) << 32, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, UINT64_MAX - 1,
        UINT64_MAX};
    static const enum cln_knob_users users[] = {CLN_KNOBS_FORWARD,  CLN_KNOBS_BACKWARD, CLN_KNOBS_SOFTMAX,
                                                CLN_KNOBS_QUANTIZE, CLN_KNOBS_ELEMENTS, CLN_KNOBS_SLICES};
    for (size_t d = 0; d < MADE_UP_DEVICES; d++) {
        const clnorm_device_info device = made_up_device(d);
        for (size_t i = 0; i < sizeof rows / sizeof *rows * (sizeof columns / sizeof *columns); i++)
            for (size_t u = 0; u < sizeof users / sizeof *users; u++)
                for (size_t c = 0; c < CONFIGS; c++) {
                    const uint64_t wide = columns[i % (sizeof columns / sizeof *columns)];
                    const struct cln_workload work = {.users = users[u],
                                                      .rows = rows[i / (sizeof columns / sizeof *columns)],
                                                      .groups = 1,
                                                      .group_size = wide,
                                                      .whole = users[u] == CLN_KNOBS_QUANTIZE ? cln_lowest_bit(wide) : 0,
                                                      .alignment = cln_lowest_bit(wide),
                                                      .x_size = 4,
                                                      .held_size = 4,
                                                      .local_size = 4,
                                                      .norm = CLNORM_LAYER_NORM,
                                                      .real_size = 4,
                                                      .sums_rows = true};
                    check_choice(&device, &work, configs[c]);
                }
    }
}

/* ---------------------------------------------------------------------------------------------- plans of a real one */

/* Makes the plan of any operation, with a default descriptor of this shape. */
static void check_plan(const struct fixture *fixture, const struct cln_operation *operation, uint64_t rows, uint64_t cols,
                       const char *text) {
    _Alignas(max_align_t) unsigned char desc[CLN_DESC_MOST];
    clnorm_config config;
    clnorm_plan *plan = NULL;
    cln_operation_init(operation, desc);
    ((struct cln_desc_head *)(void *)desc)->rows = rows;
    ((struct cln_desc_head *)(void *)desc)->cols = cols;
    assert_int_equal(clnorm_config_parse(text, &config), CLNORM_SUCCESS);
    memcpy(desc + operation->config, &config, sizeof config);
    const clnorm_status status = cln_operation_plan_create(operation, fixture->context, desc, &plan);
    const bool refused = status == CLNORM_INVALID_SHAPE || status == CLNORM_INVALID_VALUE || status == CLNORM_OVERFLOW ||
                         status == CLNORM_UNSUPPORTED;
    if (status && !(refused && strstr(clnorm_error_detail(), ": ")))
        fail_msg("%s, %" PRIu64 " x %" PRIu64 ": '%s'", operation->name, rows, cols, clnorm_error_detail());
    for (cl_uint i = 0; i < clnorm_plan_kernel_count(plan); i++) {
        clnorm_kernel_info info = CLNORM_KERNEL_INFO_INIT;
        assert_int_equal(clnorm_plan_kernel(plan, i, &info), CLNORM_SUCCESS);
        if (!info.groups || !info.items || info.groups > (size_t)CLN_MOST_GROUPS)
            fail_msg("%s, %" PRIu64 " x %" PRIu64 ": %zu work-groups x %zu", operation->name, rows, cols, info.groups,
                     info.items);
    }
    clnorm_plan_destroy(plan);
}

static void plans_of_any_shape_can_be_launched(void **state) {
    static const uint64_t shapes[][2] = {{0, UINT64_MAX},        {0, UINT64_MAX - 1},     {UINT64_C(1) << 33, 1},
                                         {UINT64_C(1) << 40, 1}, {UINT64_C(1) << 62, 1},  {1, UINT64_C(1) << 32},
                                         {1, UINT64_MAX},        {UINT64_MAX, UINT64_MAX}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t o = 0; cln_operations[o]; o++)
            for (size_t c = 0; c < CONFIGS; c += 3)
                check_plan(*state, cln_operations[o], shapes[i][0], shapes[i][1], configs[c]);
}

/* A transposed copy has a work-group for each tile, and the number of work-groups is limited. */
static void too_many_tiles_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_plan *plan = NULL;
    clnorm_quantize_desc desc = CLNORM_QUANTIZE_DESC_INIT;
    desc.rows = UINT64_C(1) << 40;
    desc.cols = 1;
    desc.q_t.dtype = desc.q.dtype;
    assert_int_equal(clnorm_quantize_plan_create(fixture->context, &desc, &plan), CLNORM_UNSUPPORTED);
    assert_detail("desc.rows");
    assert_detail("1073741824");
    desc.rows = UINT64_C(1) << 30;
    assert_int_equal(clnorm_quantize_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
    clnorm_plan_destroy(plan);
}

/* Each lane of a backward adds up at most 4096 rows, so that the number of work-groups grows with the rows. */
static void too_many_rows_of_a_backward_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_plan *plan = NULL;
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.rows = UINT64_C(1) << 55;
    desc.cols = 1;
    desc.dy.dtype = desc.x.dtype;
    desc.weight.dtype = desc.dweight.dtype = CLNORM_F32;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_UNSUPPORTED);
    assert_detail("desc.rows is 36028797018963968, desc.cols is 1: expected fewer");
    desc.rows = 1024;
    desc.cols = 1024;
    assert_int_equal(clnorm_config_parse("groups_per_cu=4294967295,lanes=1,segments=1,run_length=1", &desc.config),
                     CLNORM_SUCCESS);
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
    clnorm_plan_destroy(plan);
    desc.rows = UINT64_C(1) << 40;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE);
    assert_detail("desc.config.groups_per_cu is 4294967295: expected fewer");
}

/* An expanded x repeats one row more often than any memory has bytes. The sums of the rows' chunks would take 2^93
 * bytes. */
static void sums_of_too_many_chunks_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_plan *plan = NULL;
    clnorm_norm_backward_statistics_desc desc = CLNORM_NORM_BACKWARD_STATISTICS_DESC_INIT;
    desc.rows = UINT64_C(1) << 59;
    desc.cols = UINT64_C(1) << 37;
    desc.dy.dtype = desc.x.dtype;
    desc.x.outer[0] = desc.dy.outer[0] = (clnorm_dim){desc.rows, 0};
    assert_int_equal(clnorm_config_parse("chunks=2147483648,vec=1,lanes=1,segments=1", &desc.config), CLNORM_SUCCESS);
    assert_int_equal(clnorm_norm_backward_statistics_plan_create(fixture->context, &desc, &plan), CLNORM_OVERFLOW);
    assert_detail("the workspace has a part of 18446744073709551615 elements");
    clnorm_norm_statistics_desc moments = CLNORM_NORM_STATISTICS_DESC_INIT;
    moments.rows = desc.rows;
    moments.cols = desc.cols;
    moments.x.outer[0] = desc.x.outer[0];
    moments.config = desc.config;
    assert_int_equal(clnorm_norm_statistics_plan_create(fixture->context, &moments, &plan), CLNORM_OVERFLOW);
    assert_detail("the workspace has a part of 18446744073709551615 elements of 4 bytes: expected less than 2^63 bytes");
}

/* The workspace has the moments of 2^20 chunks of 2^52 positions, of each group in each of two blocks of channels, and a
 * largest magnitude for each of the 4 phases of a unit of y, whose chunks have 32 positions for each phase. */
static void magnitudes_of_group_norm_are_counted(void **state) {
    const struct fixture *fixture = *state;
    clnorm_requirements requirements = CLNORM_REQUIREMENTS_INIT;
    clnorm_group_norm_desc desc = CLNORM_GROUP_NORM_DESC_INIT;
    desc.rows = 3;
    desc.cols = 64;
    desc.spatial = UINT64_C(1) << 52;
    desc.layout = CLNORM_LAYOUT_LAST;
    desc.y = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_ROW};
    desc.save_mean = desc.save_rstd = 1;
    assert_int_equal(clnorm_config_parse("chunks=1048576,vec=4,lanes=8,segments=4", &desc.config), CLNORM_SUCCESS);
    assert_int_equal(clnorm_group_norm_validate(fixture->context, &desc, &requirements), CLNORM_SUCCESS);
    const uint64_t part_rows = 3 * (desc.groups + 2), parts = part_rows * (UINT64_C(2) << 20);
    const uint64_t units = 3 * (desc.spatial / 128) * 2;
    assert_true(requirements.workspace_size == sizeof(float) * (parts + 4 * units));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knobs_are_sound_for_any_shape),           cmocka_unit_test(plans_of_any_shape_can_be_launched),
        cmocka_unit_test(too_many_rows_of_a_backward_are_refused), cmocka_unit_test(too_many_tiles_are_refused),
        cmocka_unit_test(sums_of_too_many_chunks_are_refused),     cmocka_unit_test(magnitudes_of_group_norm_are_counted),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
