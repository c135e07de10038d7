/* `clnorm profile` as scripts see it: JSON keys, lines, and the folder of its programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool_process.h"

static void test_profile(void **state) {
    (void)state;
    static const char *const keys[] = {"op",      "device",   "driver",          "rows", "cols",     "dtype", "runs",
                                       "warm_up", "build_us", "first_launch_us", "us",   "least_us", "bytes", "gb_s",
                                       "config",  NULL};
    static const char *const kernel_keys[] = {"name",        "groups",    "items",        "us",    "least_us",
                                              "gb_s",        "bytes",     "copy_share",   "local", "private",
                                              "spill_loads", "registers", "spill_stores", "stack", NULL};
    run("%s", "profile layer_norm_backward --shape 4096x64 --dtype bf16 --runs 2 --warm-up 0 --json");
    assert_done();
    json_t *const object = json_of(result.out);
    assert_has_keys(object, keys);
    assert_string_equal(json_string_value(json_object_get(object, "op")), "layer_norm_backward");
    assert_int_equal(json_integer_value(json_object_get(object, "bytes")), 3 * 4096 * 64 * 2);
    assert_true(json_number_value(json_object_get(object, "build_us")) > 0);
    const json_t *const kernels = json_object_get(object, "kernels");
    assert_true(json_array_size(kernels) >= 2);
    double us = 0;
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const json_t *const kernel = json_array_get(kernels, i);
        assert_has_keys(kernel, kernel_keys);
        us += json_number_value(json_object_get(kernel, "least_us"));
    }
    assert_true(us > 0);
    json_decref(object);

    run("%s", "profile group_norm --shape 2x8x5x5/4 --dtype f32 --runs 1 --warm-up 0 --json");
    assert_done();
    json_t *const image = json_of(result.out);
    assert_int_equal(json_integer_value(json_object_get(image, "positions")), 25);
    assert_int_equal(json_integer_value(json_object_get(image, "groups")), 4);
    json_decref(image);

    run("%s", "profile gelu --shape 8x64 --runs 1 --config unroll=2");
    assert_done();
    assert_says("unroll=2");
    assert_says("kernel   gelu_rows, ");
    assert_says("GB/s of its ");
    assert_narrow();
    run("%s", "profile");
    assert_failed(EXIT_REQUEST, "expected an operation");
    run("%s", "profile gelu softmax");
    assert_failed(EXIT_REQUEST, "'softmax'");
    run("%s", "profile sofmax");
    assert_failed(EXIT_REQUEST, "'sofmax'");
    run("%s", "profile gelu --shape 8x");
    assert_failed(EXIT_REQUEST, "--shape '8x'");
    run("%s", "profile gelu --dtype i8");
    assert_failed(EXIT_REQUEST, "--dtype 'i8': expected f32");
    run("%s", "profile gelu --runs 0");
    assert_failed(EXIT_REQUEST, "--runs 0: expected 1 or more");
    run("%s", "profile gelu --warm-up -1");
    assert_failed(EXIT_REQUEST, "--warm-up -1: expected 0 or more");
}

/* Waits until a folder has count names. */
static void assert_becomes(const char *dir, size_t count) {
    char command[256];
    (void)snprintf(command, sizeof command,
                   "for i in $(seq 600); do [ $(ls %s | wc -l) -eq %zu ] && exit; sleep 0.05; done; "
                   "ls %s; exit 1",
                   dir, count, dir);
    assert_int_equal(system(command), 0);
}

/* Starts a long profile that makes its folder in dir. */
static pid_t start_profile(const char *dir) {
    const char *const tool = getenv("CLNORM_TOOL");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0 && tool) {
        (void)setenv("TMPDIR", dir, 1);
        execl(tool, "clnorm", "profile", "gelu", "--shape", "8x64", "--runs", "1000000", (char *)NULL);
    }
    if (child == 0)
        _exit(127);
    return child;
}

/* The folder of compiled programs is removed, however the process ends. */
static void test_profile_leaves_no_folder(void **state) {
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGKILL};
    assert_int_equal(mkdir("profiles", 0700), 0);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        int status;
        const pid_t child = start_profile("profiles");
        assert_becomes("profiles", 1);
        assert_int_equal(kill(child, signals[i]), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        assert_becomes("profiles", 0);
    }
    run_in("env TMPDIR=profiles", "%s", "profile gelu --shape 8x64 --runs 1");
    assert_done();
    assert_becomes("profiles", 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_profile_leaves_no_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
