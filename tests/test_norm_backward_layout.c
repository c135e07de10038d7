/* How the rows of a gradient are shared out where a work-group takes rows of one class alone: of one row of weights, or
 * rows that begin alike within a vector; and to the lanes that sum columns. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arithmetic.h"
#include "config/config.h"
#include "made_up_devices.h"
#include "norm_backward_case.h"
#include "operation/norm_backward_layout.h"

struct shape {
    uint64_t rows, cols, weight_rows;
    uint32_t lanes, tile, groups_per_cu;
};

static struct cln_config config_for(const struct shape *shape) {
    return (struct cln_config){.vec = 8,
                               .lanes = shape->lanes,
                               .segments = 1,
                               .keep = CLN_KEEP_REGISTERS,
                               .tile = shape->tile,
                               .accumulator = CLN_ACCUMULATOR_REGISTERS,
                               .pipeline = 3,
                               .chunks = 1,
                               .row_split = CLN_ROW_SPLIT_EXCHANGE,
                               .groups_per_cu = shape->groups_per_cu,
                               .run_length = 1};
}

static struct cln_workload workload_of(const struct shape *shape) {
    return (struct cln_workload){.users = CLN_KNOBS_BACKWARD,
                                 .rows = shape->rows,
                                 .groups = 1,
                                 .group_size = shape->cols,
                                 .alignment = cln_lowest_bit(shape->cols),
                                 .lead_vec = shape->weight_rows > 1 ? 0 : 8,
                                 .x_size = 2,
                                 .held_size = 2,
                                 .real_size = 4,
                                 .sums_rows = true,
                                 .weight_rows = shape->weight_rows};
}

/* slots: of locks; 0: none. */
static struct cln_backward_layout laid_out(const clnorm_device_info *device, const struct shape *shape,
                                           const struct cln_config *config, uint32_t slots) {
    clnorm_norm_backward_desc desc = norm_backward_full_desc(CLNORM_RMS_NORM, shape->rows, shape->cols, CLNORM_BF16);
    desc.group_size = shape->cols;
    desc.weight_rows = shape->weight_rows;
    desc.slots = slots;
    struct cln_workload work = workload_of(shape);
    work.locked = slots > 0;
    work.slots = slots;
    struct cln_backward_layout layout;
    assert_int_equal(cln_backward_lay_out(device, &desc, &work, config, &layout), CLNORM_SUCCESS);
    return layout;
}

static struct cln_backward_layout layout_of(const clnorm_device_info *device, const struct shape *shape) {
    const struct cln_config config = config_for(shape);
    return laid_out(device, shape, &config, 0);
}

/* The H200 runs 132 · groups_per_cu work-groups at once, so it has room for 14 teams of the first shape. Each of the 8 ways
 * in which its rows begin needs as many teams as the others: one for each would leave 6 of 14 places empty. */
static void few_places_stay_empty(void **state) {
    (void)state;
    static const struct shape shapes[] = {
        {1006, 33333, 1, 256, 3712, 1}, {745, 45003, 1, 256, 4096, 1},   {1342, 25001, 1, 256, 3576, 1},
        {2236, 15001, 1, 128, 3752, 2}, {3048, 11006, 1, 64, 1840, 4},   {511, 65535, 1, 64, 1528, 4},
        {2048, 16384, 8, 64, 2048, 4},  {1000, 32768, 10, 256, 4096, 1},
    };
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct cln_backward_layout layout = layout_of(&h200, &shapes[i]);
        const struct cln_config config = config_for(&shapes[i]);
        const uint64_t places = cln_config_row_groups(&h200, &config, layout.blocks);
        const uint64_t groups = layout.row_groups * shapes[i].weight_rows, waves = cln_divide_up(groups, places);
        if (5 * groups < 4 * waves * places)
            fail_msg("%" PRIu64 " x %" PRIu64 ": %" PRIu64 " of %" PRIu64 " x %" PRIu64 " places", shapes[i].rows,
                     shapes[i].cols, groups, waves, places);
    }
}

/* Two waves of 28 of 29 teams take longer than one of 24: each team fills its pipeline, and writes a slot. Lanes of further
 * segments take no part where rows are few, so that there are no more slots than they need. */
static void work_groups_are_as_many_as_pay(void **state) {
    (void)state;
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200);
    static const struct shape wide = {1006, 33333, 1, 128, 3712, 2}, few = {3, 33333, 1, 128, 3712, 2};
    assert_int_equal(layout_of(&h200, &wide).row_groups, 24);
    assert_int_equal(layout_of(&h200, &few).row_groups, 3);
    const struct shape narrow = {800, 129, 1, 16, 129, 1};
    struct cln_config config = config_for(&narrow);
    config.segments = 32;
    config.row_split = CLN_ROW_SPLIT_TWO_PASSES;
    assert_int_equal(laid_out(&h200, &narrow, &config, 0).row_groups, 32);
}

/* Slots of work-groups whose rows begin differently are apart. */
static void shared_slots_are_of_rows_that_begin_alike(void **state) {
    (void)state;
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200);
    const struct shape odd = {1006, 33333, 1, 128, 3712, 2};
    const struct cln_config config = config_for(&odd);
    for (uint32_t slots = 8; slots < 60; slots++) {
        const struct cln_backward_layout layout = laid_out(&h200, &odd, &config, slots);
        assert_in_range(layout.slots, 8, slots);
        assert_true(layout.slots % 8 == 0 || layout.slots == layout.row_groups);
    }
}

/* Up to 64 work-groups share a row. */
static void teams_have_a_limit(void **state) {
    (void)state;
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200);
    const struct shape most = {1024, 65536, 1, 64, 1024, 4}, too_many = {1024, 65536, 1, 64, 1016, 4};
    const struct cln_config config[] = {config_for(&most), config_for(&too_many)};
    const struct cln_workload work = workload_of(&most);
    struct cln_config chosen;
    assert_int_equal(cln_config_choose(&h200, &work, &config[0], &chosen), CLNORM_SUCCESS);
    assert_int_equal(cln_config_choose(&h200, &work, &config[1], &chosen), CLNORM_INVALID_VALUE);
    assert_non_null(strstr(clnorm_error_detail(), "64 tiles"));
}

/* Rows that begin alike are as many rows apart as there are work-groups. */
static void rows_of_a_work_group_begin_alike(void **state) {
    (void)state;
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200);
    for (uint64_t rows = 1; rows < 200; rows += 7) {
        const struct shape odd = {rows, 33333, 1, 256, 3712, 1}, even = {rows, 33330, 1, 256, 3712, 1};
        const struct cln_backward_layout of_odd = layout_of(&h200, &odd), of_even = layout_of(&h200, &even);
        assert_true(of_odd.leads && of_even.leads);
        assert_true(of_odd.row_groups == rows || of_odd.row_groups % 8 == 0);
        assert_true(of_even.row_groups == rows || of_even.row_groups % 4 == 0);
        assert_in_range(of_odd.row_groups, 1, rows);
    }
}

/* Work-groups that sum columns have no more lines of lanes than the rows fill, unless compute units would be without one.
 */
static void lines_of_columns_have_rows(void **state) {
    (void)state;
    static const struct shape shapes[] = {{64, 65536, 1, 1024, 65536, 1}, {146, 28672, 1, 512, 28672, 1},
                                          {256, 16384, 1, 256, 16384, 2}, {2048, 2048, 1, 256, 2048, 2},
                                          {1, 65536, 1, 1024, 65536, 1},  {5, 512, 1, 64, 512, 1}};
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct cln_config config = config_for(&shapes[i]);
        config.accumulator = CLN_ACCUMULATOR_COLUMNS;
        config.row_split = CLN_ROW_SPLIT_TWO_PASSES;
        config.unroll = 4;
        const struct cln_backward_layout layout = laid_out(&h200, &shapes[i], &config, 0);
        const uint64_t lines = config.lanes / layout.column_lanes, vectors = shapes[i].cols / config.vec;
        assert_int_equal(lines * layout.column_lanes, config.lanes);
        assert_int_equal(layout.columns, vectors / layout.column_lanes);
        if (lines * config.unroll >= 2 * cln_larger(shapes[i].rows, config.unroll) &&
            layout.columns / 2 >= h200.compute_units)
            fail_msg("%" PRIu64 " x %" PRIu64 ": %" PRIu64 " lines", shapes[i].rows, shapes[i].cols, lines);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_places_stay_empty),
        cmocka_unit_test(work_groups_are_as_many_as_pay),
        cmocka_unit_test(shared_slots_are_of_rows_that_begin_alike),
        cmocka_unit_test(teams_have_a_limit),
        cmocka_unit_test(rows_of_a_work_group_begin_alike),
        cmocka_unit_test(lines_of_columns_have_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
