/* The path of a device's tuning file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "clnorm/clnorm.h"

enum { PATH = 128 };

static void set(const char *tuning, const char *config_home, const char *home) {
    assert_int_equal(tuning ? setenv("CLNORM_TUNING", tuning, 1) : unsetenv("CLNORM_TUNING"), 0);
    assert_int_equal(setenv("XDG_CONFIG_HOME", config_home, 1), 0);
    assert_int_equal(setenv("HOME", home, 1), 0);
}

static void assert_path(const clnorm_device_info *device, const char *expected) {
    char path[PATH];
    assert_int_equal(clnorm_tuning_path(device, path, sizeof path), strlen(expected));
    assert_string_equal(path, expected);
}

static void the_environment_has_the_path(void **state) {
    (void)state;
    const clnorm_device_info device = {.name = "Some GPU (TM) 9000!"};
    set(NULL, "/config", "/home/her");
    assert_path(&device, "/config/clnorm/some-gpu-tm-9000.tuning");
    set(NULL, "relative", "/home/her");
    assert_path(&device, "/home/her/.config/clnorm/some-gpu-tm-9000.tuning");
    set(NULL, "relative", "");
    assert_path(&device, "");
    set("/a/file", "/config", "/home/her");
    assert_path(&device, "/a/file");
    set("0", "/config", "/home/her");
    assert_path(&device, "");
}

static void a_path_may_be_cut(void **state) {
    (void)state;
    const clnorm_device_info device = {.name = "A device"};
    char path[PATH];
    set("/a/file", "/config", "/home/her");
    assert_int_equal(clnorm_tuning_path(&device, path, 4), 7);
    assert_string_equal(path, "/a/");
    assert_int_equal(clnorm_tuning_path(&device, NULL, sizeof path), 7);
}

static void no_device_has_no_path(void **state) {
    (void)state;
    set("/a/file", "/config", "/home/her");
    assert_path(NULL, "");
    set(NULL, "/config", "/home/her");
    assert_path(NULL, "");
    assert_int_equal(clnorm_tuning_path(NULL, NULL, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_has_the_path),
        cmocka_unit_test(a_path_may_be_cut),
        cmocka_unit_test(no_device_has_no_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
