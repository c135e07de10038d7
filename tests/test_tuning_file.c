/* The file that `clnorm tune` writes: rows come, go and stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"
#include "tuning_file.h"

static int make_scratch(void **state) {
    *state = scratch_make();
    return 0;
}

static int remove_scratch(void **state) {
    scratch_remove(*state);
    return 0;
}

static clnorm_device_info device_of(const char *driver) {
    clnorm_device_info device = {.name = "A device"};
    (void)snprintf(device.driver, sizeof device.driver, "%s", driver);
    return device;
}

static void assert_file(const char *path, const char *rows) {
    static const char head[] = "# How kernels run best on this device, by measurement: written by clnorm tune.\n"
                               "clnorm tuning 1\ndevice A device\ndriver 1.0\n";
    size_t length;
    unsigned char *const text = scratch_read(path, &length);
    char expected[1024];
    (void)snprintf(expected, sizeof expected, "%s%s", head, rows);
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(text, expected, length);
    free(text);
}

static void test_rows(void **state) {
    const clnorm_device_info device = device_of("1.0");
    const clnorm_config config = {.vec = 4, .lanes = 32};
    const char *const folder = scratch_path(*state, "not/there/yet");
    char path[512];
    (void)snprintf(path, sizeof path, "%s/file", folder);
    struct tuning_file file;
    struct fault fault = {0};
    assert_true(tuning_file_read(&file, path, &device, &fault));
    assert_int_equal(file.count, 0);
    assert_true(tuning_file_put(&file, "rms_norm f32 96", &config, 0.5, &fault));
    assert_true(tuning_file_put(&file, "rms_norm f32 960", &config, 0.75, &fault));
    assert_true(tuning_file_write(&file, &fault));
    tuning_file_free(&file);
    assert_file(path, "rms_norm f32 96: vec=4,lanes=32 # 0.500 of the time of the library's choice\n"
                      "rms_norm f32 960: vec=4,lanes=32 # 0.750 of the time of the library's choice\n");

    assert_true(tuning_file_read(&file, path, &device, &fault));
    assert_int_equal(file.count, 2);
    assert_true(tuning_file_put(&file, "rms_norm f32 96", NULL, 1, &fault));
    assert_true(tuning_file_put(&file, "rms_norm bf16 960", NULL, 1, &fault));
    assert_true(tuning_file_write(&file, &fault));
    tuning_file_free(&file);
    assert_file(path, "rms_norm f32 960: vec=4,lanes=32 # 0.750 of the time of the library's choice\n");
    assert_int_equal(scratch_count(folder), 1);
}

static void test_rows_of_another_driver_are_left(void **state) {
    const char *const path = scratch_path(*state, "file");
    const clnorm_config config = {.vec = 4};
    const clnorm_device_info old = device_of("0.9");
    const clnorm_device_info device = device_of("1.0");
    struct tuning_file file;
    struct fault fault = {0};
    assert_true(tuning_file_read(&file, path, &old, &fault));
    assert_true(tuning_file_put(&file, "rms_norm f32 96", &config, 0.5, &fault));
    assert_true(tuning_file_write(&file, &fault));
    tuning_file_free(&file);
    assert_true(tuning_file_read(&file, path, &device, &fault));
    assert_int_equal(file.count, 0);
    assert_true(tuning_file_write(&file, &fault));
    tuning_file_free(&file);
    assert_file(path, "");
}

static void test_failures(void **state) {
    const clnorm_device_info device = device_of("1.0");
    struct tuning_file file;
    struct fault fault = {0};
    assert_int_equal(setenv("CLNORM_TUNING", "0", 1), 0);
    assert_false(tuning_file_read(&file, NULL, &device, &fault));
    assert_int_equal(fault.code, EXIT_REQUEST);
    assert_true(tuning_file_read(&file, *state, &device, &fault)); /* a folder has no rows, and is not written over */
    assert_false(tuning_file_write(&file, &fault));
    assert_int_equal(fault.code, EXIT_FAILED);
    tuning_file_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(test_rows_of_another_driver_are_left, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(test_failures, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
