/* The program clnorm as scripts see it: output, exit codes, one line on stderr for a failure, JSON keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool_process.h"

static void test_usage(void **state) {
    (void)state;
    static const char *const commands[] = {"devices", "select", "run",   "bench",  "profile",
                                           "check",   "tune",   "cache", "tensors"};
    run("%s", "--help");
    assert_done();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        run("%s", "--help");
        assert_says(commands[i]);
        run("%s --help", commands[i]);
        assert_done();
        assert_says("Usage: clnorm ");
        assert_narrow();
        const char *const usage = strstr(result.out, "Usage: clnorm ");
        assert_true(!strncmp(usage + 14, commands[i], strlen(commands[i])));
        run("help %s", commands[i]);
        assert_done();
        assert_true(!strncmp(result.out, usage, 20));
        run("%s --no-such-option", commands[i]);
        assert_failed(EXIT_REQUEST, "--no-such-option");
    }
    run("%s", "run --help");
    assert_says("bias=embeddings.LayerNorm.bias --verify\n"); /* the end: nothing is cut */
    run("%s", "bench --help");
    assert_says("on CPUs memcpy on one thread.\n");
    run("%s", "--version");
    assert_done();
    assert_says(clnorm_version());
    run("%s", "frobnicate");
    assert_failed(EXIT_REQUEST, "'frobnicate' is not a command; see clnorm --help");
    run("%s", "tnue");
    assert_failed(EXIT_REQUEST, "'tnue' is not a command; did you mean tune?");
    run("%s", "run layer_norm --verfy");
    assert_failed(EXIT_REQUEST, "--verfy: unknown option; did you mean --verify?");
    run("%s", "");
    assert_int_equal(result.code, EXIT_REQUEST);
    assert_non_null(strstr(result.err, "Usage: clnorm"));
    run("%s", "--version extra");
    assert_failed(EXIT_REQUEST, "'extra': unexpected argument");
    run("%s", "help run extra");
    assert_failed(EXIT_REQUEST, "'extra': unexpected argument");
    run("%s", "devices extra");
    assert_failed(EXIT_REQUEST, "'extra'");
    run("%s", "--help >/dev/full 2>err.txt #");
    assert_failed(EXIT_FAILED, "standard output");
}

/* Whole numbers are decimal: 010 is not 8. */
static void test_whole_numbers(void **state) {
    (void)state;
    run("%s", "profile gelu --shape 8x64 --runs 010 --warm-up 08 --json");
    assert_done();
    json_t *const profile = json_of(result.out);
    assert_int_equal(json_integer_value(json_object_get(profile, "runs")), 10);
    assert_int_equal(json_integer_value(json_object_get(profile, "warm_up")), 8);
    json_decref(profile);
    run("%s", "bench rms_norm --packed 010 --shapes 20x64 --dtypes f32 --runs 1 --seconds 0 --json -");
    assert_done();
    json_t *const bench = json_of(result.out);
    assert_int_equal(json_integer_value(json_object_get(bench, "packed")), 10);
    json_decref(bench);
    static const struct refused_words wrong[] = {
        {"bench --runs 0x10", "--runs '0x10': expected a whole number"},
        {"bench --seconds=-1", "--seconds -1: expected 0 to 20"},
        {"bench --seconds nan", "--seconds nan: expected 0 to 20"},
        {"bench --seconds 21", "--seconds 21: expected 0 to 20"},
        {"bench --host --seconds 0.3", "--seconds: expected no --host"},
        {"bench --packed=0x10", "--packed '0x10': expected a whole number"},
        {"run gelu --repeat 1e3", "--repeat '1e3': expected a whole number"},
        {"tune --jobs ' 5'", "--jobs ' 5': expected a whole number"},
        {"check --every -", "--every '-': expected a whole number"},
        {"bench --runs 2147483648", "--runs 2147483648: expected at most 2147483647"},
        {"bench --runs -2147483648", "--runs -2147483648: expected 1 or more"},
        {"run group_norm --groups 0", "--groups 0: expected 1 or more"},
        {"run quantize --mode group --group-size 0", "--group-size 0: expected 1 or more"},
        {"bench --packed 9223372036854775808", "--packed 9223372036854775808: expected at most 9223372036854775807"},
        {"bench --runs", "--runs: missing argument"},
    };
    assert_each_refused("", wrong, sizeof wrong / sizeof *wrong);
}

static void test_tensors(void **state) {
    (void)state;
    run("%s", "tensors \"$CLNORM_SAMPLE\"");
    assert_done();
    assert_says("x       BF16        48 KiB  [4, 16, 384]\n");
    assert_says("3 tensors, 51 KiB\n");
    run("%s", "tensors \"$CLNORM_SAMPLE\" --json");
    assert_done();
    json_t *const list = json_of(result.out);
    assert_int_equal(json_array_size(list), 3);
    static const char *const names[] = {"bias", "weight", "x"};
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, i), "name")), names[i]);
    const json_t *const x = json_array_get(list, 2);
    assert_string_equal(json_string_value(json_object_get(x, "dtype")), "BF16");
    assert_int_equal(json_array_size(json_object_get(x, "shape")), 3);
    assert_int_equal(json_integer_value(json_object_get(x, "bytes")), 4 * 16 * 384 * 2);
    json_decref(list);
    run("%s", "tensors");
    assert_failed(EXIT_REQUEST, "expected a FILE");
    run("%s", "tensors none.npy");
    assert_failed(EXIT_REQUEST, "none.npy: No such file");
    run("%s", "tensors a.npy b.npy");
    assert_failed(EXIT_REQUEST, "'b.npy'");
    put_tensor("e.safetensors", "\x1b[31m", "F32", 1, 2, 0);
    run("%s", "tensors e.safetensors");
    assert_done();
    assert_says("?[31m  F32");
}

static void test_devices(void **state) {
    (void)state;
    run("%s", "devices");
    assert_done();
    assert_narrow();

    static const char *const keys[] = {"index",     "name",          "vendor",       "kind", "platform",
                                       "driver",    "memory",        "local_memory", "fp16", "fp64",
                                       "subgroups", "compute_units", "vector_width", NULL};
    run("%s", "devices --json");
    assert_done();
    json_t *const devices = json_of(result.out);
    assert_true(json_array_size(devices) >= 1);
    assert_has_keys(json_array_get(devices, 0), keys);

    run("%s", "select --json");
    assert_done();
    json_t *const best = json_of(result.out);
    assert_has_keys(best, keys);
    assert_non_null(json_object_get(best, "reason"));
    if (!getenv("CLNORM_DEVICE"))
        assert_true(json_equal(json_object_get(best, "index"), json_object_get(json_array_get(devices, 0), "index")));
    json_decref(devices);
    json_decref(best);
}

static void test_select(void **state) {
    (void)state;
    run("%s", "select --env");
    assert_done();
    assert_true(!strncmp(result.out, "CLNORM_DEVICE=", 14));
    char variable[256];
    (void)snprintf(variable, sizeof variable, "%.*s", (int)strcspn(result.out, "\n"), result.out);
    run_in(variable, "%s", "select --env");
    assert_done();
    assert_true(!strncmp(result.out, variable, strlen(variable)));
    run_in(variable, "%s", "select");
    assert_says("CLNORM_DEVICE");

    run("%s", "select 'name=no such device;memory>=1K'");
    assert_done();
    assert_says("alternative 2 of the selector, memory>=1K");
    run("%s", "select 'name=no such device'");
    assert_failed(EXIT_FAILED, "no such device");
    run("%s", "select 'gpu,flavour=mint'");
    assert_failed(EXIT_REQUEST, "flavour=mint");
    run("%s", "select --json --env");
    assert_failed(EXIT_REQUEST, "--json and --env");
    run_in("CLNORM_DEVICE='name=no such device'", "run layer_norm --in \"$CLNORM_SAMPLE\"");
    assert_failed(EXIT_FAILED, "no such device");
}

static void test_check(void **state) {
    (void)state;
    static const char *const keys[] = {"version", "date", "device", "driver", "platform", "cases", NULL};
    run("%s", "check --every 40 --json");
    assert_done();
    json_t *const object = json_of(result.out);
    assert_has_keys(object, keys);
    const json_t *const cases = json_object_get(object, "cases");
    assert_in_range(json_array_size(cases), 3, 10);
    json_int_t outcomes = 0;
    static const char *const words[] = {"right", "wrong", "absent"};
    for (size_t i = 0; i < 3; i++)
        outcomes += json_integer_value(json_object_get(object, words[i]));
    assert_int_equal(outcomes, json_array_size(cases));
    const json_t *const first = json_array_get(cases, 0);
    assert_string_equal(json_string_value(json_object_get(first, "outcome")), "right");
    assert_true(!strncmp(json_string_value(json_object_get(first, "case")), "layer_norm 1x1, x=f32", 21));
    json_decref(object);
    run("%s", "check --every 40 --verbose");
    assert_done();
    assert_narrow();
    assert_says("right   layer_norm 1x1, x=f32");
    run("%s", "check --every 0");
    assert_failed(EXIT_REQUEST, "--every 0");
    run("%s", "check --device 'name=no such device'");
    assert_failed(EXIT_FAILED, "no such device");
}

/* PoCL does not report spills; NVIDIA's compiler does. */
static void test_check_spills(void **state) {
    (void)state;
    run("%s", "check --spills rms_norm softmax --widths 64,257 --dtypes f32 --jobs 2");
    assert_done();
    assert_says("check: 4 points built, 0 without a plan, 0 failed\n");
    assert_true(strstr(result.out, "does not report spills\n") || strstr(result.out, "check: 0 of "));
    run("%s", "check --spills --widths 64,0");
    assert_failed(EXIT_REQUEST, "--widths");
    run("%s", "check --spills rms --widths 64");
    assert_failed(EXIT_REQUEST, "'rms'");
    run("%s", "check --spills gelu --widths 64 --jobs 0");
    assert_failed(EXIT_REQUEST, "--jobs 0");
    run("%s", "check --jobs 2");
    assert_failed(EXIT_REQUEST, "expected --spills");
    run("%s", "check --jobs 1");
    assert_failed(EXIT_REQUEST, "--jobs: expected --spills too");
    run("%s", "check --spills gelu --widths 64 --device 'name=no such device'");
    assert_failed(EXIT_FAILED, "no such device");
    run("%s", "check --spills fp8_rms_norm gelu --widths 33 --dtypes f32");
    assert_done();
    assert_says("fp8_rms_norm f32 33: no plan: fp8_rms_norm needs a multiple of 16 columns, not 33");
    assert_says("check: 1 point built, 1 without a plan, 0 failed\n");
    run("%s", "devices");
    if (strstr(result.out, "Portable Computing Language")) { /* its builds fail without a cache folder */
        run_in("POCL_CACHE_DIR=/dev/full", "%s", "check --spills gelu --widths 64 --dtypes f32 --device platform=portable");
        assert_int_equal(result.code, EXIT_FAILED);
        assert_says("gelu f32 64: FAILED: gelu: gelu.cl does not build");
        assert_non_null(strstr(result.err, "check: 1 of 1 point failed"));
    }
    static const char *const others[] = {"--json", "--verbose", "--every 2", "--every 1"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        run("check --spills gelu --widths 64 %s", others[i]);
        assert_failed(EXIT_REQUEST, ": expected no --spills");
    }
}

/* The only child of a process, once the file that it writes has this many lines; 0 after a minute. */
static pid_t wait_for_child(pid_t parent, const char *path, int lines) {
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/%ld/task/%ld/children", (long)parent, (long)parent);
    for (int i = 0; i < 6000; i++) {
        const struct timespec pause = {0, 10000000};
        (void)nanosleep(&pause, NULL);
        FILE *const text = fopen(path, "r");
        int seen = 0;
        for (int c = text ? fgetc(text) : EOF; c != EOF; c = fgetc(text))
            seen += c == '\n';
        if (text)
            (void)fclose(text);
        FILE *const children = seen >= lines ? fopen(name, "r") : NULL;
        long child = 0;
        const bool found = children && fscanf(children, "%ld", &child) == 1;
        if (children)
            (void)fclose(children);
        if (found)
            return (pid_t)child;
    }
    return 0;
}

/* A signal that no driver catches stands for a driver that ends the process. The running case is named, and later ones
 * still run. */
static void test_check_names_the_case_that_aborts(void **state) {
    (void)state;
    const pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        const char *const tool = getenv("CLNORM_TOOL");
        if (freopen("aborted.txt", "w", stdout) && freopen("aborted.err", "w", stderr))
            execl(tool, "clnorm", "check", "--verbose", "--every", "9", (char *)NULL);
        _exit(127);
    }
    const pid_t child = wait_for_child(parent, "aborted.txt", 3);
    assert_true(child > 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILED);
    assert_int_equal(
        system(
            "tr -s ' \\n' ' ' <aborted.txt | grep -q 'WRONG .*: the driver ended the process: signal 9 \\(right\\|absent\\) ' && "
            "grep -q ' right, 1 wrong, ' aborted.txt && grep -q 'check: 1 of [0-9]* cases' aborted.err"),
        0);
}

/* A signal that the caller ignores, as nohup does with SIGHUP, removes no unfinished file: the run goes on, and its output
 * is there. The signal comes while the file is written. */
static void test_ignored_signals_leave_the_output(void **state) {
    (void)state;
    put_tensor("long.npy", "x", "F32", 2, 8192, 2048);
    run_in("trap '' HUP;", "%s",
           "run gelu --in long.npy --out kept.npy --repeat 1 & "
           "until ls kept.npy.*.tmp || ! kill -0 $!; do :; done >ls.txt 2>&1; kill -HUP $! 2>/dev/null; wait $!");
    assert_int_equal(result.code, EXIT_DONE);
    assert_int_equal(system("[ -s kept.npy ] && ! ls kept.npy.* 2>/dev/null"), 0);
}

/* No file of the program gets the number of a standard descriptor that the caller has closed. */
static void test_closed_descriptors(void **state) {
    (void)state;
    static const char *const words[] = {"devices", "bench gelu --shapes 8x64 --dtypes f32 --runs 1 --json -",
                                        "bench gelu --shapes 8x64 --dtypes f32 --runs 1 --json closed.json"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        run("%s <&- >&- 2>err.txt #", words[i]);
        assert_failed(EXIT_FAILED, "standard output cannot be written");
    }
    static char text[MOST_TEXT];
    read_text("closed.json", text);
    json_decref(json_of(text));
    run("%s", "devices 2>&- #");
    assert_int_equal(result.code, EXIT_DONE);
}

static const char own_cache[] = "env -u CLNORM_CACHE CLNORM_CACHE_DIR=\"$PWD/cache\"";

/* Checks that the output has the name of the device that is used, on one line or on several. */
static void assert_has_device_name(const char *text) {
    static const char words[] = " \n";
    run("%s", "select --json");
    json_t *const device = json_of(result.out);
    char name[256];
    (void)snprintf(name, sizeof name, "%s", json_string_value(json_object_get(device, "name")));
    json_decref(device);
    char *rest = NULL;
    for (const char *word = strtok_r(name, words, &rest); word; word = strtok_r(NULL, words, &rest)) {
        text = strstr(text, word);
        if (!text)
            fail_msg("\"%s\" of the device's name is missing", word);
    }
}

static void test_cache(void **state) {
    (void)state;
    static char text[MOST_TEXT];
    run_in(own_cache, "%s", "cache path");
    assert_done();
    assert_says("/cache\n");
    run_in(own_cache, "%s", "cache list");
    assert_done();
    assert_says("0 files");
    run_in(own_cache, "%s", "run layer_norm --in \"$CLNORM_SAMPLE\" --repeat 1");
    assert_done();
    run_in(own_cache, "%s", "cache");
    assert_done();
    assert_says("norm_forward.cl");
    assert_says("1 file, ");
    run_in(own_cache, "%s", "run layer_norm --in \"$CLNORM_SAMPLE\" --repeat 1 --config vec=4");
    assert_done();
    run_in(own_cache, "%s", "cache");
    assert_done();
    assert_says("     2 x norm_forward.cl ");
    assert_says("2 files");
    assert_narrow();
    memcpy(text, result.out, sizeof text);
    assert_has_device_name(text);
    run_in(own_cache, "%s", "cache --verbose");
    assert_done();
    assert_int_equal(count_of(result.out, "norm_forward.cl, "), 2);
    assert_says("VEC=4 ");
    assert_narrow();
    memcpy(text, result.out, sizeof text);
    assert_has_device_name(text);
    run_in(own_cache, "%s", "cache clear --verbose");
    assert_failed(EXIT_REQUEST, "--verbose: expected no clear");
    run_in(own_cache, "%s", "cache clear");
    assert_done();
    assert_says("2 files removed");
    run_in(own_cache, "%s", "cache list");
    assert_says("0 files");
    run_in(own_cache, "%s", "cache burn");
    assert_failed(EXIT_REQUEST, "cache 'burn': expected path, list or clear");
    run_in("CLNORM_CACHE=0", "%s", "cache path");
    assert_failed(EXIT_FAILED, "CLNORM_CACHE");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_check_spills),
        cmocka_unit_test(test_check_names_the_case_that_aborts),
        cmocka_unit_test(test_ignored_signals_leave_the_output),
        cmocka_unit_test(test_closed_descriptors),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
