/* The file that `clnorm tune` writes: rows are added, replaced and removed, and other lines stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "knob.h"
#include "scratch.h"
#include "tuning_file.h"

static clnorm_device_info device_of(const char *driver) {
    clnorm_device_info device = {.name = "A device"};
    (void)snprintf(device.driver, sizeof device.driver, "%s", driver);
    return device;
}

static const char head[] = "# Configs that were measured on this device: written by clnorm tune.\n"
                           "clnorm tuning 1\ndevice A device\ndriver 1.0\n";

static void assert_text(const char *path, const char *text) {
    size_t length;
    unsigned char *const bytes = scratch_read(path, &length);
    if (length != strlen(text) || memcmp(bytes, text, length) != 0)
        fail_msg("%.*s\nis not\n%s", (int)length, (const char *)bytes, text);
    free(bytes);
}

static void assert_file(const char *path, const char *rows) {
    char expected[1024];
    (void)snprintf(expected, sizeof expected, "%s%s", head, rows);
    assert_text(path, expected);
}

static void read_file(struct tuning_file *file, const char *path, const clnorm_device_info *device) {
    struct fault fault = {0};
    if (!tuning_file_read(file, path, device, false, &fault))
        fail_msg("%s", fault.text);
}

static void test_rows(void **state) {
    const clnorm_device_info device = device_of("1.0");
    const clnorm_config config = {{4, 32}};
    const char *const folder = scratch_path(*state, "not/there/yet");
    char path[512];
    (void)snprintf(path, sizeof path, "%s/file", folder);
    struct tuning_file file;
    struct fault fault = {0};
    read_file(&file, path, &device);
    assert_int_equal(tuning_file_rows(&file), 0);
    assert_true(tuning_file_put(&file, "rms_norm f32 96", &config, 0.5, &fault));
    assert_true(tuning_file_put(&file, "rms_norm f32 960", &config, 0.75, &fault));
    assert_true(tuning_file_write(&file, &fault));
    tuning_file_free(&file);
    assert_file(path, "rms_norm f32 96: vec=4,lanes=32 # 0.500 of the time of the library's choice\n"
                      "rms_norm f32 960: vec=4,lanes=32 # 0.750 of the time of the library's choice\n");

    read_file(&file, path, &device);
    assert_int_equal(tuning_file_rows(&file), 2);
    assert_true(tuning_file_put(&file, "rms_norm f32 96", NULL, 1, &fault));
    assert_true(tuning_file_put(&file, "rms_norm bf16 960", NULL, 1, &fault));
    assert_true(tuning_file_write(&file, &fault));
    tuning_file_free(&file);
    assert_file(path, "rms_norm f32 960: vec=4,lanes=32 # 0.750 of the time of the library's choice\n");
    assert_int_equal(scratch_count(folder), 1);
}

/* Two that have read the file add a row each, in turn: none removes the other's. */
static void test_updates_in_turn(void **state) {
    const clnorm_device_info device = device_of("1.0");
    const clnorm_config config = {{4}};
    const char *const path = scratch_path(*state, "file");
    struct tuning_file one, other;
    struct fault fault = {0};
    read_file(&one, path, &device);
    read_file(&other, path, &device);
    assert_true(tuning_file_update(&one, &device, "gelu f32 96", &config, 0.5, &fault));
    assert_true(tuning_file_update(&other, &device, "gelu f32 97", &config, 0.5, &fault));
    assert_true(tuning_file_update(&one, &device, "gelu f32 98", &config, 0.5, &fault));
    assert_int_equal(tuning_file_rows(&one), 3);
    tuning_file_free(&one);
    tuning_file_free(&other);
    assert_file(path, "gelu f32 96: vec=4 # 0.500 of the time of the library's choice\n"
                      "gelu f32 97: vec=4 # 0.500 of the time of the library's choice\n"
                      "gelu f32 98: vec=4 # 0.500 of the time of the library's choice\n");
}

/* Comments and other rows keep their places. A new row replaces the first one of its key, and removes the others. */
static void test_other_lines_stay(void **state) {
    static const char before[] = "# mine\n\nclnorm tuning 1\n# device?\ndevice A device\ndriver 1.0\n"
                                 "# widths that matter\nrms_norm f32 96: vec=2\ngelu f32 96: vec=1 # slow\n"
                                 "rms_norm f32 96: vec=1\n# the end\n";
    const char *const path = scratch_path(*state, "file");
    const clnorm_device_info device = device_of("1.0");
    const clnorm_config config = {{4}};
    struct tuning_file file;
    struct fault fault = {0};
    scratch_write(path, before, strlen(before));
    read_file(&file, path, &device);
    assert_int_equal(tuning_file_rows(&file), 3);
    assert_true(tuning_file_write(&file, &fault));
    assert_text(path, before);
    assert_true(tuning_file_put(&file, "rms_norm f32 96", &config, 0.5, &fault));
    assert_true(tuning_file_write(&file, &fault));
    tuning_file_free(&file);
    assert_text(path, "# mine\n\nclnorm tuning 1\n# device?\ndevice A device\ndriver 1.0\n"
                      "# widths that matter\nrms_norm f32 96: vec=4 # 0.500 of the time of the library's choice\n"
                      "gelu f32 96: vec=1 # slow\n# the end\n");

    scratch_write(path, "# a note\n", 9); /* the head follows a file of comments */
    read_file(&file, path, &device);
    assert_true(tuning_file_put(&file, "rms_norm f32 96", &config, 0.5, &fault));
    assert_true(tuning_file_write(&file, &fault));
    tuning_file_free(&file);
    assert_text(path, "# a note\nclnorm tuning 1\ndevice A device\ndriver 1.0\n"
                      "rms_norm f32 96: vec=4 # 0.500 of the time of the library's choice\n");
}

/* A file that the library would not use is refused, or with force started anew. */
static void test_other_files_are_refused(void **state) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"clnorm tuning 1\ndevice A device\ndriver 0.9\ngelu f32 96: vec=1\n",
         "file: line 3: 'driver 0.9'; expected 'driver 1.0'; --force replaces the file"},
        {"clnorm tuning 1\ndevice B\ndriver 1.0\n", "line 2: 'device B'; expected 'device A device'"},
        {"clnorm tuning 2\n", "line 1: 'clnorm tuning 2'; expected 'clnorm tuning 1'"},
        {"clnorm tuning 1\ndevice A device\n", "line 2: the head of the file is incomplete"},
        {"clnorm tuning 1\ndevice A device\ndriver 1.0\ngelu f32 96 vec=1\n", "line 4: expected OPERATION"},
        {"clnorm tuning 1\ndevice A device\ndriver 1.0\n\ngelu f32 96: vec=1x\n", "line 5: vec=1x"},
        {"clnorm tuning 1\ndevice A device\ndriver 1.0\ngelu f32 96: vec=1 lanes=2 # 1 us\n", "line 4: vec=1 lanes=2: "},
    };
    const char *const path = scratch_path(*state, "file");
    const clnorm_device_info device = device_of("1.0");
    struct tuning_file file;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fault fault = {0};
        scratch_write(path, cases[i].text, strlen(cases[i].text));
        assert_false(tuning_file_read(&file, path, &device, false, &fault));
        assert_int_equal(fault.code, EXIT_REQUEST);
        if (!strstr(fault.text, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", fault.text, cases[i].says);
        assert_text(path, cases[i].text);
        fault = (struct fault){0};
        assert_true(tuning_file_read(&file, path, &device, true, &fault));
        assert_string_equal(fault.text, "");
        assert_true(tuning_file_write(&file, &fault));
        tuning_file_free(&file);
        assert_file(path, "");
    }
}

static void test_failures(void **state) {
    const clnorm_device_info device = device_of("1.0");
    const char *const fifo = scratch_path(*state, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(setenv("CLNORM_TUNING", "0", 1), 0);
    const char *const paths[] = {NULL, *state, fifo, "/proc/no/such/file"};
    static const char *const says[] = {"--out: expected a file", "not a regular file", "not a regular file",
                                       "cannot be written"};
    (void)alarm(60); /* against waiting for a writer of the pipe */
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct tuning_file file;
        struct fault fault = {0};
        assert_false(tuning_file_read(&file, paths[i], &device, true, &fault));
        assert_int_equal(fault.code, EXIT_REQUEST);
        if (!strstr(fault.text, says[i]))
            fail_msg("\"%s\" does not say \"%s\"", fault.text, says[i]);
    }
    (void)alarm(0);
    assert_int_equal(scratch_count(*state), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        scratch_test(test_rows),
        scratch_test(test_updates_in_turn),
        scratch_test(test_other_lines_stay),
        scratch_test(test_other_files_are_refused),
        scratch_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
