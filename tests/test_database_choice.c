/* The shipped rows of the H200: each is valid at its own width, and is used at neighbouring widths that allow vectors as
 * wide. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arithmetic.h"
#include "base/context.h"
#include "config/config.h"
#include "config/database.h"
#include "config/resources.h"
#include "config/tuning.h"
#include "made_up_devices.h"
#include "plan/plan.h"

/* Whether a row's key contains a word. */
static bool has(const char *row, const char *word) {
    const char *const at = strstr(row, word);
    return at && at < strchr(row, ':');
}

static enum cln_kind kind_of(const char *row) {
    if (has(row, "softmax"))
        return has(row, "backward") ? CLN_KIND_SOFTMAX_BACKWARD : CLN_KIND_SOFTMAX;
    if (has(row, "add_dropout") || has(row, "_activated"))
        return CLN_KIND_CHAIN;
    return has(row, "_gated") ? CLN_KIND_GATED : has(row, "add_") ? CLN_KIND_ADD : CLN_KIND_NORM;
}

/* The workload of a row of the database, with many matrix rows. */
static struct cln_workload workload_of(const char *row, uint64_t cols) {
    const uint64_t size = has(row, "bf16") ? 2 : 4;
    const bool softmax = has(row, "softmax"), backward = !softmax && has(row, "backward"), layer = has(row, "layer");
    return (struct cln_workload){.rows = (64 << 20) / size / cols,
                                 .groups = 1,
                                 .group_size = cols,
                                 .alignment = cln_lowest_bit(cols),
                                 .lead_vec = has(row, "quantized") || has(row, "f8e4m3") ? 0 : 16,
                                 .x_size = size,
                                 .held_size = size,
                                 .local_size = size,
                                 .norm = layer ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM,
                                 .users = softmax    ? CLN_KNOBS_SOFTMAX
                                          : backward ? CLN_KNOBS_BACKWARD
                                                     : CLN_KNOBS_FORWARD,
                                 .real_size = 4,
                                 .kind = kind_of(row),
                                 .y_scaled = has(row, "quantized"),
                                 .gated = has(row, "_gated"),
                                 .more_inputs = has(row, "_gated") || has(row, "add_"),
                                 .both_sums = layer,
                                 .sums_rows = backward};
}

/* A row without a tile is for whole segments. */
static void every_row_suits_its_width(void **state) {
    (void)state;
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200);
    unsigned count = 0;
    for (const char *row = cln_database_rows(cln_database_files, &h200); row && *row;
         row = strchr(row, '\n') + 1, count++) {
        const uint64_t cols = strtoull(strchr(strchr(row, ' ') + 1, ' '), NULL, 10);
        char text[512] = "";
        const char *const knobs = strstr(row, ": ") + 2;
        memcpy(text, knobs, strcspn(knobs, " \n"));
        clnorm_config parsed;
        struct cln_config forced, config;
        assert_int_equal(clnorm_config_parse(text, &parsed), CLNORM_SUCCESS);
        assert_int_equal(cln_config_open(&parsed, &forced), CLNORM_SUCCESS);
        const struct cln_workload work = workload_of(row, cols);
        if (work.users == CLN_KNOBS_BACKWARD && !forced.tile)
            forced.tile = (uint32_t)cols;
        if (cln_config_choose(&h200, &work, &forced, &config) != CLNORM_SUCCESS)
            fail_msg("%.*s: %s", (int)strcspn(row, "\n"), row, clnorm_error_detail());
    }
    assert_true(count > 500);
}

static struct cln_config choice_of(const char *row, const struct cln_workload *work) {
    struct clnorm_context context = {.device = made_up_device(MADE_UP_H200)};
    clnorm_plan plan = {.context = &context};
    const bool softmax = has(row, "softmax"), backward = has(row, "backward");
    const struct cln_tuning_key key = {.name = softmax ? backward ? "softmax_backward" : "softmax" : NULL,
                                       .norm = work->norm,
                                       .gated = has(row, "_gated"),
                                       .residual = has(row, "add_"),
                                       .backward = backward,
                                       .dtype = has(row, "bf16") ? CLNORM_BF16 : CLNORM_F32,
                                       .group_size = work->group_size};
    const clnorm_config automatic = CLNORM_CONFIG_AUTOMATIC;
    assert_int_equal(cln_tuning_choose(&plan, &key, cln_config_choose, work, &automatic), CLNORM_SUCCESS);
    return plan.config;
}

static struct cln_config choice_at(const char *row, uint64_t cols) {
    const struct cln_workload work = workload_of(row, cols);
    return choice_of(row, &work);
}

/* Widths at which rows begin anywhere within vectors have database rows of their own. These are not used at other widths,
 * though they may be the nearest, nor where all tensors must be aligned. */
static void unaligned_widths_have_rows_of_their_own(void **state) {
    (void)state;
    static const char *const rows[] = {
        "layer_norm bf16:", "layer_norm f32:", "layer_norm_backward bf16:", "layer_norm_backward f32:"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t widest = has(rows[i], "bf16") ? 8 : 4;
        assert_int_equal(choice_at(rows[i], 1984).vec, widest);
        assert_int_equal(choice_at(rows[i], 2008).vec, widest);
        assert_int_equal(choice_at(rows[i], 9984).vec, widest);
        assert_int_equal(choice_at(rows[i], 1001).lanes, choice_at(rows[i], 1151).lanes);
        assert_int_equal(choice_at(rows[i], 1001).vec, choice_at(rows[i], 1151).vec);
        struct cln_workload aligned = workload_of(rows[i], 1151);
        aligned.lead_vec = 0;
        assert_int_equal(choice_of(rows[i], &aligned).vec, 1);
    }
}

/* A config is taken to another width only if its lanes are about as busy there: else the other neighbour's is taken, or the
 * model's. At all of these widths but 5611 the nearer one's took 1.1 to 1.7 times as long, on an H200. */
static void neighbours_keep_their_lanes_busy(void **state) {
    (void)state;
    static const struct {
        const char *row;
        uint64_t cols;
        uint32_t lanes; /* of the row that is taken; 0: the model's */
    } cases[] = {
        {"softmax_backward bf16:", 4160, 128},  {"layer_norm bf16:", 4160, 64},
        {"rms_norm bf16:", 5611, 64},           {"rms_norm_backward bf16:", 1051, 0},
        {"layer_norm_backward bf16:", 4373, 0}, {"layer_norm_backward bf16:", 1401, 64},
        {"rms_norm f32:", 51001, 512},
    };
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct cln_workload work = workload_of(cases[i].row, cases[i].cols);
        const struct cln_config c = choice_of(cases[i].row, &work);
        struct cln_config model;
        assert_int_equal(cln_config_choose(&h200, &work, &(struct cln_config){0}, &model), CLNORM_SUCCESS);
        const bool expected = cases[i].lanes ? c.lanes == cases[i].lanes : !memcmp(&c, &model, sizeof c);
        if (!expected)
            fail_msg("%s %" PRIu64 ": %" PRIu32 " lanes", cases[i].row, cases[i].cols, c.lanes);
    }
}

/* Rows at 2048, 12288, 16384 and 24576 columns read segments twice, by loops of as many turns for all lanes, which
 * compilers unroll. At these widths such loops took 1.06 to 1.36 times as long as the other neighbour's config, on an H200.
 */
static void loops_that_are_no_longer_unrolled_are_avoided(void **state) {
    (void)state;
    static const struct {
        const char *row;
        uint64_t cols;
        uint32_t lanes;
    } cases[] = {{"softmax_backward f32:", 2024, 64},
                 {"add_rms_norm bf16:", 16256, 512},
                 {"softmax_backward bf16:", 11712, 256},
                 {"softmax_backward bf16:", 24320, 1024},
                 {"softmax_backward bf16:", 26304, 512}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct cln_config c = choice_at(cases[i].row, cases[i].cols);
        assert_int_equal(c.keep, CLN_KEEP_REGISTERS);
        assert_int_equal(c.lanes, cases[i].lanes);
    }
}

/* Wherever a measured tile is taken to another width, and wherever the model chooses one, tiles are as even as whole cache
 * lines of 128 bytes allow, and no lane has more vectors than a measured one. */
static void tiles_of_wide_gradients_are_even(void **state) {
    (void)state;
    static const char *const rows[] = {
        "layer_norm_backward bf16:",     "layer_norm_backward f32:",     "rms_norm_backward bf16:",
        "rms_norm_backward f32:",        "add_rms_norm_backward bf16:",  "add_rms_norm_backward f32:",
        "rms_norm_gated_backward bf16:", "rms_norm_gated_backward f32:",
    };
    const uint64_t widths[] = {9999, 11006, 12416, 13568, 15001, 17408, 25001, 33280, 45003, 50258, 63488, 65535, 100001};
    unsigned tiled = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < sizeof widths / sizeof *widths; j++) {
            const struct cln_workload work = workload_of(rows[i], widths[j]);
            const struct cln_config c = choice_of(rows[i], &work);
            if (c.tile == widths[j])
                continue; /* whole segments */
            tiled++;
            const uint64_t tiles = cln_tiles(&work, &c), spare = tiles * c.tile - cln_reach(&work, &c);
            if (!cln_exchanges(&c) || c.vec * work.x_size != 16 || spare >= tiles * (128 / work.x_size) ||
                cln_elements_per_lane(&work, &c) > 32)
                fail_msg("%s %" PRIu64 ": %" PRIu64 " tiles of %" PRIu32 " columns, vec %" PRIu32 ", lanes %" PRIu32,
                         rows[i], widths[j], tiles, c.tile, c.vec, c.lanes);
        }
    assert_true(tiled > 90);
}

/* RMS norm with an 8-bit output has rows at 1024 and at 12288 columns, and none between. */
static void rows_of_far_widths_are_not_used(void **state) {
    (void)state;
    struct clnorm_context context = {.device = made_up_device(MADE_UP_H200)};
    static const struct {
        uint64_t cols;
        uint32_t lanes; /* of the row; 0: the model's */
    } widths[] = {{1024, 128}, {2048, 128}, {4096, 0}, {5120, 0}, {12288, 256}, {65536, 1024}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        clnorm_plan plan = {.context = &context};
        const struct cln_tuning_key key = {
            .norm = CLNORM_RMS_NORM, .quantized = true, .dtype = CLNORM_F32, .group_size = widths[i].cols};
        const clnorm_config automatic = CLNORM_CONFIG_AUTOMATIC;
        const struct cln_workload work = workload_of("rms_norm_quantized f32:", widths[i].cols);
        struct cln_config model;
        assert_int_equal(cln_config_choose(&context.device, &work, &(struct cln_config){0}, &model), CLNORM_SUCCESS);
        assert_int_equal(cln_tuning_choose(&plan, &key, cln_config_choose, &work, &automatic), CLNORM_SUCCESS);
        assert_string_equal(plan.note, widths[i].lanes ? "from the library's database" : "");
        if (widths[i].lanes)
            assert_int_equal(plan.config.lanes, widths[i].lanes);
        else
            assert_memory_equal(&plan.config, &model, sizeof model);
    }
}

/* The gradient of an 8-bit x has rows for each dtype of dy; dtypes of equal size share them. */
static void rows_tell_the_widest_dtype(void **state) {
    (void)state;
    struct clnorm_context context = {.device = made_up_device(MADE_UP_H200)};
    static const struct {
        clnorm_dtype x, dy;
        uint32_t lanes;
    } cases[] = {
        {CLNORM_F8_E4M3, CLNORM_BF16, 64},
        {CLNORM_F8_E5M2, CLNORM_F16, 64},
        {CLNORM_F8_E4M3, CLNORM_F32, 128},
        {CLNORM_F8_E5M2, CLNORM_F32, 128},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clnorm_plan plan = {.context = &context};
        const struct cln_tuning_key key = {
            .norm = CLNORM_RMS_NORM, .backward = true, .dtype = cases[i].x, .widest = cases[i].dy, .group_size = 1024};
        const clnorm_config automatic = CLNORM_CONFIG_AUTOMATIC;
        const bool half = cases[i].dy != CLNORM_F32;
        const struct cln_workload work =
            workload_of(half ? "rms_norm_backward f8e4m3/bf16:" : "rms_norm_backward f8e4m3/f32:", 1024);
        assert_int_equal(cln_tuning_choose(&plan, &key, cln_config_choose, &work, &automatic), CLNORM_SUCCESS);
        assert_int_equal(plan.config.lanes, cases[i].lanes);
        assert_int_equal(plan.config.segments, 8);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_suits_its_width),
        cmocka_unit_test(rows_of_far_widths_are_not_used),
        cmocka_unit_test(tiles_of_wide_gradients_are_even),
        cmocka_unit_test(unaligned_widths_have_rows_of_their_own),
        cmocka_unit_test(rows_tell_the_widest_dtype),
        cmocka_unit_test(neighbours_keep_their_lanes_busy),
        cmocka_unit_test(loops_that_are_no_longer_unrolled_are_avoided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
