/* The program clnorm as scripts see it: words, exit codes, one line on stderr for a failure, JSON keys, files.
 * CLNORM_TOOL and CLNORM_SAMPLE in the environment are the program and the sample tensors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temporary.h"
#include "tensor_file.h"
#include "tensor_write.h"

static char folder[TEMPORARY_PATH];

enum { MOST_TEXT = 1 << 17 };

/* What a run of the program left. */
static struct {
    int code;
    char out[MOST_TEXT], err[MOST_TEXT];
} result;

static void read_text(const char *path, char *text) {
    FILE *const stream = fopen(path, "r");
    assert_non_null(stream);
    text[fread(text, 1, MOST_TEXT - 1, stream)] = '\0';
    assert_int_equal(fclose(stream), 0);
}

/* Runs the program in the scratch folder, as a shell would: words may be quoted, variables may stand before. */
__attribute__((format(printf, 2, 3))) static void run_in(const char *environment, const char *format, ...) {
    char words[4096];
    char command[8192];
    va_list arguments;
    va_start(arguments, format);
    assert_in_range(vsnprintf(words, sizeof words, format, arguments), 0, sizeof words - 1);
    va_end(arguments);
    (void)snprintf(command, sizeof command, "%s \"$CLNORM_TOOL\" %s >out.txt 2>err.txt", environment, words);
    const int status = system(command);
    assert_true(WIFEXITED(status));
    result.code = WEXITSTATUS(status);
    read_text("out.txt", result.out);
    read_text("err.txt", result.err);
}

#define run(...) run_in("", __VA_ARGS__)

/* It did what it was asked to, and had nothing to say on stderr, which is no terminal. */
static void assert_done(void) {
    if (result.code != EXIT_DONE || *result.err)
        fail_msg("exit code %d, stderr: %s", result.code, result.err);
}

/* It failed with this code and one line that has part in it. */
static void assert_failed(int code, const char *part) {
    const char *const newline = strchr(result.err, '\n');
    if (result.code != code || strncmp(result.err, "clnorm: ", 8) != 0 || !strstr(result.err, part) || !newline ||
        newline[1])
        fail_msg("exit code %d, not %d, or not \"%s\" in the one line: %s", result.code, code, part, result.err);
}

static void assert_says(const char *part) {
    if (!strstr(result.out, part))
        fail_msg("\"%s\" is not in: %s", part, result.out);
}

static json_t *json_of(const char *text) {
    json_error_t error;
    json_t *const json = json_loads(text, 0, &error);
    if (!json)
        fail_msg("no JSON, %s: %s", error.text, text);
    return json;
}

static void assert_has_keys(const json_t *object, const char *const *keys) {
    for (; *keys; keys++)
        if (!json_object_get(object, *keys))
            fail_msg("no key %s", *keys);
}

/* --------------------------------------------------------------------------------------------------------- the words */

static void test_usage(void **state) {
    (void)state;
    static const char *const commands[] = {"devices", "select", "run", "bench", "check", "cache"};
    run("%s", "--help");
    assert_done();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        run("%s", "--help");
        assert_says(commands[i]);
        run("%s --help", commands[i]);
        assert_done();
        assert_says("Usage: clnorm ");
        run("%s --no-such-option", commands[i]);
        assert_failed(EXIT_REQUEST, "--no-such-option");
    }
    run("%s", "--version");
    assert_done();
    assert_says(clnorm_version());
    run("%s", "frobnicate");
    assert_failed(EXIT_REQUEST, "'frobnicate' is no command");
    run("%s", "");
    assert_int_equal(result.code, EXIT_REQUEST);
    assert_non_null(strstr(result.err, "Usage: clnorm"));
    run("%s", "devices extra");
    assert_failed(EXIT_REQUEST, "'extra'");
    run("%s", "--help >/dev/full 2>err.txt #");
    assert_failed(EXIT_FAILED, "standard output");
}

static void test_devices(void **state) {
    (void)state;
    run("%s", "devices");
    assert_done();
    for (const char *line = result.out; *line; line += strcspn(line, "\n") + 1)
        assert_in_range(strcspn(line, "\n"), 0, 80);

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

/* --------------------------------------------------------------------------------------------------------------- run */

static void open_file(struct tensor_file *file, const char *path) {
    struct fault fault = {0};
    if (!tensor_file_open(file, path, &fault))
        fail_msg("%s", fault.text);
}

static const struct tensor *find(const struct tensor_file *file, const char *name, clnorm_dtype dtype, unsigned rank) {
    const struct tensor *const tensor = tensor_file_find(file, name);
    assert_non_null(tensor);
    assert_int_equal(tensor->element->dtype, dtype);
    assert_int_equal(tensor->rank, rank);
    return tensor;
}

static double at(const struct tensor *tensor, uint64_t i) {
    return element_load(tensor->element, tensor->data, i);
}

/* y is the layer norm of x, computed here, within one unit of its element type in the last place. */
static void assert_normalised(const struct tensor_file *in, const struct tensor_file *out) {
    const struct tensor *const x = find(in, "x", CLNORM_BF16, 3);
    const struct tensor *const weight = find(in, "weight", CLNORM_F32, 1);
    const struct tensor *const bias = find(in, "bias", CLNORM_F32, 1);
    const struct tensor *const y = find(out, "y", CLNORM_BF16, 3);
    const struct tensor *const mean = find(out, "mean", CLNORM_F32, 2);
    const struct tensor *const rstd = find(out, "rstd", CLNORM_F32, 2);
    const uint64_t cols = weight->count;
    assert_int_equal(memcmp(x->shape, y->shape, sizeof x->shape), 0);
    assert_int_equal(mean->shape[0], 1);
    assert_int_equal(mean->shape[1], x->count / cols);
    assert_int_equal(rstd->count, mean->count);
    for (uint64_t row = 0; row < x->count / cols; row++) {
        double sum = 0, squares = 0;
        for (uint64_t i = 0; i < cols; i++)
            sum += at(x, row * cols + i) / (double)cols;
        for (uint64_t i = 0; i < cols; i++)
            squares += pow(at(x, row * cols + i) - sum, 2) / (double)cols;
        assert_true(fabs(at(mean, row) - sum) < 1e-5);
        assert_true(fabs(at(rstd, row) * sqrt(squares + 1e-5) - 1) < 1e-5);
        for (uint64_t i = 0; i < cols; i++) {
            const double expected = (at(x, row * cols + i) - sum) / sqrt(squares + 1e-5) * at(weight, i) + at(bias, i);
            assert_true(fabs(at(y, row * cols + i) - expected) <= fabs(expected) * 0x1p-8 + 1e-5);
        }
    }
}

static void test_run_normalises_the_sample(void **state) {
    (void)state;
    run("%s", "run layer_norm --in \"$CLNORM_SAMPLE\" --out y.safetensors --verify --repeat 3");
    assert_done();
    assert_says("device   ");
    assert_says("x        BF16 [4, 16, 384]");
    assert_says("the median of 3 runs");
    assert_says("GB/s");
    assert_says("verify   y ");
    assert_says("verify   rstd");
    assert_says("y BF16 [4, 16, 384]");
    struct tensor_file in;
    struct tensor_file out;
    open_file(&in, getenv("CLNORM_SAMPLE"));
    open_file(&out, "y.safetensors");
    assert_int_equal(out.count, 3);
    assert_normalised(&in, &out);
    tensor_file_close(&in);
    tensor_file_close(&out);
}

static void test_run_options(void **state) {
    (void)state;
    static const char *const options[] = {
        "run rms_norm --in \"$CLNORM_SAMPLE\" --eps 1e-3 --weight-offset 1 bias=",
        "run rms_norm --in \"$CLNORM_SAMPLE\" --group-size 48 --dtype f16",
        "run layer_norm --in \"$CLNORM_SAMPLE\" --gate silu z=x",
        "run layer_norm --in \"$CLNORM_SAMPLE\" --gate sigmoid --gate-first z=x weight= bias=weight --dtype f32",
        "run layer_norm --in \"$CLNORM_SAMPLE\" --config vec=4,lanes=4,keep=registers,reduce=tree",
        "run layer_norm --in \"$CLNORM_SAMPLE\" x=bias weight= bias=",
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        run("%s --verify --repeat 1", options[i]);
        assert_done();
        assert_says("good");
    }
    run("%s --repeat 1 --out y.npy", options[1]);
    assert_done();
    struct tensor_file out;
    open_file(&out, "y.npy");
    assert_int_equal(find(&out, "y", CLNORM_F16, 3)->shape[2], 384);
    tensor_file_close(&out);
    run("%s --repeat 1 --out y.safetensors", options[1]);
    open_file(&out, "y.safetensors");
    assert_int_equal(out.count, 2);
    assert_int_equal(find(&out, "rstd", CLNORM_F32, 2)->shape[0], 8);
    tensor_file_close(&out);
    run("%s --repeat 1", options[4]);
    assert_says("vec=4,lanes=4,");
}

/* A tensor of numbers that count. */
static void put_tensor(const char *path, const char *name, const char *element, unsigned rank, uint64_t rows,
                       uint64_t cols) {
    struct tensor tensor = {.name = name, .element = element_by_name(element), .rank = rank, .shape = {rows, cols}};
    assert_true(tensor_measure(&tensor));
    unsigned char *const bytes = calloc(1, tensor.size + 1);
    assert_non_null(bytes);
    for (uint64_t i = 0; tensor.element->dtype && i < tensor.count; i++)
        element_store(tensor.element, bytes, i, (double)(i % 17));
    tensor.data = bytes;
    const struct tensor *const tensors[] = {&tensor};
    struct fault fault = {0};
    if (!tensor_write(path, tensors, 1, &fault))
        fail_msg("%s", fault.text);
    free(bytes);
}

static void test_run_takes_arrays_of_any_rank(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 10);
    put_tensor("weight.npy", "weight", "F16", 1, 10, 0);
    run("%s", "run layer_norm --in x.npy --in weight.npy --verify --out y.npy --repeat 1");
    assert_done();
    assert_says("y F32 [6, 10]");
    run("%s", "run layer_norm --in y.npy x=y --verify --repeat 1");
    assert_done();
    put_tensor("x.npy", "x", "F64", 1, 10, 0);
    run("%s", "run rms_norm --in x.npy --verify --out y.npy --repeat 1");
    assert_done();
    assert_says("y F64 [10]");
    put_tensor("x.npy", "x", "F32", 2, 0, 10);
    run("%s", "run rms_norm --in x.npy --verify --out y.npy --repeat 1");
    assert_done();
    assert_says("y F32 [0, 10]");
}

static void test_run_refuses(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 10);
    put_tensor("x.safetensors", "x", "F32", 2, 6, 10);
    put_tensor("weight.npy", "weight", "F32", 1, 9, 0);
    put_tensor("z.npy", "z", "F32", 2, 6, 11);
    put_tensor("int.npy", "int", "I32", 2, 6, 10);
    put_tensor("fp8.safetensors", "x", "F8_E4M3", 2, 6, 10);
    put_tensor("scalar.npy", "scalar", "F32", 0, 0, 0);
    put_tensor("narrow.npy", "narrow", "F32", 2, 3, 0);
    put_tensor("double.npy", "double", "F64", 1, 10, 0);
    static const struct {
        const char *words;
        const char *part;
    } requests[] = {
        {"", "expected an operation"},
        {"batch_norm --in x.npy", "'batch_norm' is no operation; they are layer_norm, rms_norm"},
        {"layer_norm", "--in FILE"},
        {"layer_norm --in none.npy", "none.npy: No such file"},
        {"layer_norm --in /dev/null", "/dev/null: a tensor file's name ends in"},
        {"layer_norm --in x.npy x=other", "tensor 'other' (x) is not in x.npy, which has 'x'"},
        {"layer_norm --in weight.npy", "tensor 'x' (x) is not in weight.npy"},
        {"layer_norm --in x.npy --in x.safetensors", "tensor 'x' is in two files, x.npy and x.safetensors"},
        {"layer_norm --in x.npy bias=none", "tensor 'none' (bias)"},
        {"layer_norm --in x.npy y=x", "has no input of that role; it reads x, weight, bias, z"},
        {"layer_norm --in x.npy x=x x=x", "given twice"},
        {"layer_norm --in x.npy words", "expected ROLE=TENSOR"},
        {"layer_norm --in x.npy --in weight.npy", "tensor 'weight' (weight): shape [9]; expected [10]"},
        {"layer_norm --in x.npy --in z.npy --gate silu", "tensor 'z' (z): shape [6, 11]; expected [6, 10]"},
        {"layer_norm --in x.npy --gate silu", "z: --gate needs"},
        {"layer_norm --in x.npy z=x", "tensor 'x' (z): it is read only with --gate"},
        {"layer_norm --in x.npy --gate tanh z=x", "--gate 'tanh'"},
        {"layer_norm --in x.npy --gate-first", "--gate-first"},
        {"layer_norm --in int.npy x=int", "tensor 'int' (x): dtype I32"},
        {"layer_norm --in fp8.safetensors", "tensor 'x' (x): dtype F8_E4M3"},
        {"layer_norm --in scalar.npy x=scalar", "tensor 'scalar' (x): shape []"},
        {"layer_norm --in narrow.npy x=narrow", "tensor 'narrow' (x): shape [3, 0]"},
        {"layer_norm --in x.npy --in double.npy weight=double",
         "tensor 'double' (weight): dtype F64; expected F32, F16 or BF16"},
        {"layer_norm --in x.npy --dtype f64", "--dtype f64"},
        {"layer_norm --in x.npy --eps -1", "eps"},
        {"layer_norm --in x.npy --eps nan", "eps"},
        {"layer_norm --in x.npy --eps much", "--eps"},
        {"layer_norm --in x.npy --group-size 3", "--group-size 3"},
        {"layer_norm --in x.npy --group-size -5", "--group-size -5"},
        {"layer_norm --in x.npy --weight-offset 1", "weight_offset"},
        {"layer_norm --in x.npy --dtype f8", "'f8' is no dtype"},
        {"layer_norm --in x.npy --dtype bf16 --out y.npy", "npy has no BF16"},
        {"layer_norm --in x.npy --out y.txt", "y.txt: a tensor file's name ends in"},
        {"layer_norm --in x.npy --repeat 0", "--repeat 0"},
        {"layer_norm --in x.npy --device 'flavour=mint'", "flavour=mint"},
        {"layer_norm --in x.npy --config vec=3", "vec"},
        {"layer_norm --in x.npy --config vec", "--config 'vec'"},
        {"layer_norm --in x.npy --config vec=4,keep=forever", "--config keep: 'forever'"},
        {"layer_norm --in x.npy --config vec=4,,lanes=1", "commas"},
        {"layer_norm --in x.npy --config ve=4", "--config 've=4'"},
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        run("run %s", requests[i].words);
        assert_failed(EXIT_REQUEST, requests[i].part);
    }
    run("%s", "run layer_norm --in x.npy --out no/folder/y.npy --repeat 1");
    assert_failed(EXIT_FAILED, "no/folder/y.npy");
}

/* ------------------------------------------------------------------------------------------------------------- bench */

static void test_bench(void **state) {
    (void)state;
    static const char *const keys[] = {"op",       "provider", "rows",   "cols",   "dtype", "us",
                                       "limit_us", "gb_s",     "config", "device", "runs",  NULL};
    static const char *const names[] = {"layer_norm_forward", "rms_norm_forward", "rms_norm_gated_forward"};
    run("%s", "bench --shapes 64x96 --dtypes f32 --runs 2 --json b.json");
    assert_done();
    assert_says("limit_us");
    FILE *const stream = fopen("b.json", "r");
    assert_non_null(stream);
    char line[4096];
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(fgets(line, sizeof line, stream));
        json_t *const object = json_of(line);
        assert_has_keys(object, keys);
        assert_string_equal(json_string_value(json_object_get(object, "op")), names[i]);
        assert_string_equal(json_string_value(json_object_get(object, "provider")), "clnorm");
        assert_string_equal(json_string_value(json_object_get(object, "dtype")), "f32");
        assert_int_equal(json_integer_value(json_object_get(object, "rows")), 64);
        assert_int_equal(json_integer_value(json_object_get(object, "cols")), 96);
        assert_true(json_number_value(json_object_get(object, "us")) > 0);
        assert_true(json_number_value(json_object_get(object, "limit_us")) > 0);
        assert_true(json_is_object(json_object_get(object, "config")));
        json_decref(object);
    }
    assert_null(fgets(line, sizeof line, stream));
    assert_int_equal(fclose(stream), 0);

    run("%s", "bench rms_norm_forward --shapes 8x64 --dtypes bf16 --runs 1 --config lanes=1 --json -");
    assert_done();
    json_t *const object = json_of(result.out);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "config"), "lanes")), 1);
    json_decref(object);

    run("%s", "bench softmax");
    assert_failed(EXIT_REQUEST, "'softmax'");
    static const char *const shapes[] = {"8", "8x", "x8", "0x8", "-8x8", "8x-8", "8x8x8", "8x8,"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        run("bench --shapes=%s", shapes[i]);
        assert_failed(EXIT_REQUEST, "--shapes");
    }
    run("%s", "bench --dtypes i8 --shapes 8x8");
    assert_failed(EXIT_REQUEST, "'i8'");
    run("%s", "bench --shapes 8x8 --json no/folder/b.json");
    assert_failed(EXIT_REQUEST, "no/folder/b.json");
    run("%s", "bench --shapes 4294967296x4294967296");
    assert_failed(EXIT_REQUEST, "too many");
}

static void test_bench_host(void **state) {
    (void)state;
    static const char *const keys[] = {"enqueue_us", "bare_us", "plan_cold_us", "plan_disk_us", "plan_memory_us", NULL};
    run_in("env -u CLNORM_CACHE", "%s", "bench --host --shapes 4x64 --json -");
    assert_done();
    json_t *const object = json_of(result.out);
    assert_has_keys(object, keys);
    assert_true(json_number_value(json_object_get(object, "plan_cold_us")) >
                json_number_value(json_object_get(object, "plan_memory_us")));
    json_decref(object);
    run("%s", "bench --host layer_norm rms_norm");
    assert_failed(EXIT_REQUEST, "--host");
}

/* ------------------------------------------------------------------------------------------------------------- cache */

static const char own_cache[] = "env -u CLNORM_CACHE CLNORM_CACHE_DIR=\"$PWD/cache\"";

static void test_cache(void **state) {
    (void)state;
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
    assert_says("1 files");
    run_in(own_cache, "%s", "cache clear");
    assert_done();
    assert_says("1 files removed");
    run_in(own_cache, "%s", "cache list");
    assert_says("0 files");
    run_in(own_cache, "%s", "cache burn");
    assert_failed(EXIT_REQUEST, "'burn'");
    run_in("CLNORM_CACHE=0", "%s", "cache path");
    assert_failed(EXIT_FAILED, "CLNORM_CACHE");
}

/* ----------------------------------------------------------------------------------------------------------------- */

static int make_folder(void **state) {
    (void)state;
    struct fault fault = {0};
    if (!getenv("CLNORM_TOOL") || !getenv("CLNORM_SAMPLE") || !temporary_make(folder, &fault) || chdir(folder)) {
        print_error("CLNORM_TOOL, CLNORM_SAMPLE or a scratch folder is missing: %s\n", fault.text);
        return -1;
    }
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    temporary_remove(folder);
    return access(folder, F_OK) ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage),       cmocka_unit_test(test_devices),
        cmocka_unit_test(test_select),      cmocka_unit_test(test_run_normalises_the_sample),
        cmocka_unit_test(test_run_options), cmocka_unit_test(test_run_takes_arrays_of_any_rank),
        cmocka_unit_test(test_run_refuses), cmocka_unit_test(test_bench),
        cmocka_unit_test(test_bench_host),  cmocka_unit_test(test_cache),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
