/* The database of measured configs: the file of a device, the rows around a width, and that every shipped row can be
 * read. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/comment.h"
#include "clnorm/clnorm.h"
#include "config/config.h"
#include "config/database.h"

static const struct cln_database_file files[] = {
    {"a", "# a comment\nclnorm database 1\nmatch platform=nvidia capability=90\nrms_norm bf16 64: lanes=8\n"},
    {"b", "clnorm database 1\nmatch platform=pocl vector=8\nrms_norm f32 64: lanes=1\n"},
    {"c", "clnorm database 1\nmatch vendor=Devices name=gfx9\nrms_norm f32 64: lanes=4\n"},
    {NULL, NULL},
};

static void files_match_devices(void **state) {
    (void)state;
    clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
    assert_null(cln_database_rows(files, &device));
    device.family = CLNORM_PLATFORM_NVIDIA;
    device.compute_capability = 80;
    assert_null(cln_database_rows(files, &device));
    device.compute_capability = 90;
    assert_string_equal(cln_database_rows(files, &device), "rms_norm bf16 64: lanes=8\n");
    device.family = CLNORM_PLATFORM_POCL;
    device.native_vector_float = 16;
    assert_null(cln_database_rows(files, &device));
    device.native_vector_float = 8;
    assert_string_equal(cln_database_rows(files, &device), "rms_norm f32 64: lanes=1\n");
    device.family = CLNORM_PLATFORM_OTHER;
    (void)snprintf(device.vendor, sizeof device.vendor, "Advanced Micro Devices");
    assert_null(cln_database_rows(files, &device));
    (void)snprintf(device.name, sizeof device.name, "gfx942");
    assert_string_equal(cln_database_rows(files, &device), "rms_norm f32 64: lanes=4\n");
}

static void widths_lie_between_rows(void **state) {
    (void)state;
    static const char rows[] =
        "rms_norm bf16 64: lanes=8 # 1 us\nrms_norm bf16 1024: lanes=64\nrms_norm bf16 256: lanes=32\n"
        "rms_norm bf16 256 few: lanes=16\nrms_norm_gated bf16 300: lanes=2\nrms_norm f32 300: lanes=4\n"
        "rms_norm bf16 4096: lanes=x\nrms_norm bf16 257: lanes=1\nrms_norm bf16 1001: lanes=2\n"
        "rms_norm bf16 301: vec=8,lanes=16\nrms_norm bf16 900: vec=8,lanes=64\n";
    static const struct cln_database_widths aligned = {8, 8, false}, odd_widths = {1, 8, false}, anywhere = {1, 8, true};
    static const struct {
        uint64_t cols;
        bool few;
        uint64_t below, above; /* widths; 0: none */
        uint32_t lanes_below, lanes_above;
    } cases[] = {
        {63, false, 0, 64, 0, 8},        {64, false, 64, 256, 8, 32},     {255, false, 64, 256, 8, 32},
        {256, false, 256, 1024, 32, 64}, {300, false, 256, 1024, 32, 64}, {1024, false, 1024, 0, 64, 0},
        {256, true, 256, 0, 16, 0},      {100, true, 0, 256, 0, 16},      {5000, false, 0, 0, 0, 0}, /* not readable */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct cln_database_rows found =
            cln_database_find(rows, "rms_norm bf16", cases[i].cols, cases[i].few, aligned);
        assert_int_equal(found.below.cols, cases[i].below);
        assert_int_equal(found.above.cols, cases[i].above);
        assert_int_equal(found.below.knobs.lanes, cases[i].lanes_below);
        assert_int_equal(found.above.knobs.lanes, cases[i].lanes_above);
    }
    const struct cln_database_rows odd = cln_database_find(rows, "rms_norm bf16", 300, false, odd_widths);
    assert_int_equal(odd.below.cols, 257);
    assert_int_equal(odd.above.cols, 301);
    const struct cln_database_rows lead = cln_database_find(rows, "rms_norm bf16", 400, false, anywhere);
    assert_int_equal(lead.below.cols, 301);
    assert_int_equal(lead.above.cols, 900); /* a multiple of 4, not of 8 */
    assert_int_equal(lead.above.knobs.lanes, 64);
    assert_int_equal(cln_database_find(rows, "layer_norm bf16", 64, false, aligned).below.cols, 0);
}

/* Whether exactly one line of the text begins with this line's key. */
static bool is_unique(const char *rows, const char *line, size_t key) {
    unsigned count = 0;
    for (const char *at = rows; *at; at = strchr(at, '\n') + 1)
        count += !strncmp(at, line, key);
    return count == 1;
}

static void shipped_rows_can_be_read(void **state) {
    (void)state;
    assert_non_null(cln_database_files->name);
    for (const struct cln_database_file *file = cln_database_files; file->name; file++) {
        const char *const match = strstr(file->text, "\nclnorm database 1\nmatch ");
        assert_non_null(match);
        const char *const rows = strchr(match + strlen("\nclnorm database 1\n"), '\n') + 1;
        unsigned count = 0;
        for (const char *line = rows; *line; line = strchr(line, '\n') + 1, count++) {
            char knobs[512] = "";
            struct cln_config config;
            const char *const colon = strstr(line, ": ");
            if (!colon || !strchr(line, '\n')) {
                fail_msg("%s: row %u: expected OPERATION DTYPE COLUMNS: KNOBS", file->name, count);
                return;
            }
            const size_t length = cln_before_comment(colon + 2, strcspn(colon + 2, "\n"));
            assert_true(length > 0 && length < sizeof knobs);
            memcpy(knobs, colon + 2, length);
            const bool softmax = !strncmp(line, "softmax", 7);
            const char *const gradient = strstr(line, "_backward ");
            const bool backward = !softmax && gradient && gradient < colon;
            const enum cln_knob_users users = backward  ? CLN_KNOBS_BACKWARD
                                              : softmax ? CLN_KNOBS_SOFTMAX
                                                        : CLN_KNOBS_FORWARD;
            if (cln_config_parse(knobs, &config) || cln_knobs_check(&config, users))
                fail_msg("%s: %.*s: %s", file->name, (int)(colon - line), line, clnorm_error_detail());
            if (!is_unique(rows, line, (size_t)(colon + 1 - line)))
                fail_msg("%s: %.*s: several rows have this key", file->name, (int)(colon - line), line);
        }
        assert_true(count > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_match_devices),
        cmocka_unit_test(widths_lie_between_rows),
        cmocka_unit_test(shipped_rows_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
