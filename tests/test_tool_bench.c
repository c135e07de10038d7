/* `clnorm bench` as scripts see it: tables, JSON keys, plots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool_process.h"

static void test_bench(void **state) {
    (void)state;
    static const char *const keys[] = {"op",       "provider", "rows",   "cols",   "dtype", "us",
                                       "limit_us", "gb_s",     "config", "device", "runs",  NULL};
    static const char *const names[] = {"rms_norm", "softmax_backward"};
    run("%s", "bench rms_norm softmax_backward --shapes 64x96 --dtypes f32 --runs 2 --seconds 0 --json b.json");
    assert_done();
    assert_says("limit_us");
    FILE *const stream = fopen("b.json", "r");
    assert_non_null(stream);
    char line[4096];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_non_null(fgets(line, sizeof line, stream));
        json_t *const object = json_of(line);
        assert_has_keys(object, keys);
        assert_string_equal(json_string_value(json_object_get(object, "op")), names[i]);
        assert_string_equal(json_string_value(json_object_get(object, "provider")), "clnorm");
        assert_string_equal(json_string_value(json_object_get(object, "dtype")), "f32");
        assert_int_equal(json_integer_value(json_object_get(object, "rows")), 64);
        assert_int_equal(json_integer_value(json_object_get(object, "cols")), 96);
        assert_int_equal(json_integer_value(json_object_get(object, "runs")), 2);
        assert_true(json_number_value(json_object_get(object, "us")) > 0);
        assert_true(json_number_value(json_object_get(object, "limit_us")) > 0);
        assert_true(json_is_object(json_object_get(object, "config")));
        json_decref(object);
    }
    assert_null(fgets(line, sizeof line, stream));
    assert_int_equal(fclose(stream), 0);

    run("%s", "bench rms-norm --shapes 8x64 --dtypes bf16 --runs 1 --seconds 0 --config lanes=1 --json -");
    assert_done();
    json_t *const object = json_of(result.out);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "config"), "lanes")), 1);
    json_decref(object);
    run("%s", "bench norm_backward_statistics_rms --shapes 8x64 --dtypes bf16 --runs 1 --seconds 0"); /* the longest name */
    assert_done();
    assert_narrow();
}

static void test_bench_unfused(void **state) {
    (void)state;
    static const char *const both[] = {"clnorm", "clnorm_unfused"};
    static const double moved[] = {4, 9}, most_us = 0.3e6; /* of all runs but the last */
    run("%s", "bench norm_chain --shapes 512x1024 --dtypes f32 --runs 1 --warm-up 0 --unfused --json -");
    assert_done();
    char *rest = result.out;
    for (size_t i = 0; i < 2; i++) {
        char *const words = strtok_r(rest, "\n", &rest);
        assert_non_null(words);
        json_t *const row = json_of(words);
        assert_string_equal(json_string_value(json_object_get(row, "provider")), both[i]);
        assert_true(json_number_value(json_object_get(row, "bytes")) == moved[i] * 512 * 1024 * 4);
        const double us = json_number_value(json_object_get(row, "us"));
        assert_true(us > 0);
        assert_true((json_number_value(json_object_get(row, "runs")) - 1) * us <= most_us);
        assert_int_equal(json_array_size(json_object_get(row, "steps")), i ? 4 : 0);
        json_decref(row);
    }
    run("%s",
        "bench add_rms_norm_backward rms_norm_gated --shapes 8x64 --dtypes bf16 --runs 1 --seconds 0 --median --unfused");
    assert_done();
    assert_says("= rms_norm_backward, add: ");
    assert_says("= rms_norm, gate: ");
}

static void test_bench_layouts(void **state) {
    (void)state;
    run("%s",
        "bench layer_norm_backward --shapes 24x64 --dtypes f32 --runs 1 --seconds 0 --weight-rows 4 --weight-repeat 3 --json -");
    assert_done();
    assert_non_null(strstr(result.out, "\"weight_rows\": 4, \"weight_repeat\": 3"));
    run("%s", "bench rms_norm --shapes 24x64 --dtypes f32 --runs 1 --seconds 0 --weight-rows 5");
    assert_failed(EXIT_REQUEST, "tensor 'weight': shape [5, 64] with --weight-repeat 1; expected a product");
    run("%s", "bench gelu --shapes 8x64 --weight-rows 2");
    assert_failed(EXIT_REQUEST, "--weight-rows: gelu has no such option");
    run("%s", "bench rms_norm --shapes 8x64 --weight-repeat 2");
    assert_failed(EXIT_REQUEST, "--weight-repeat 2: expected --weight-rows too");
    run("%s", "bench rms_norm --sweep 64 --weight-rows 2");
    assert_failed(EXIT_REQUEST, "--weight-rows: expected no --sweep");

    run("%s", "bench rms_norm_backward --packed 4 --shapes 8x64 --dtypes f32 --runs 1 --seconds 0 --json -");
    assert_done();
    json_t *const packed = json_of(result.out);
    assert_int_equal(json_integer_value(json_object_get(packed, "packed")), 4);
    json_decref(packed);
    run("%s", "bench rms_norm --packed 3 --shapes 8x64 --runs 1 --seconds 0");
    assert_failed(EXIT_REQUEST, "--packed 3: expected a divisor of the 8 rows");
    run("%s", "bench quantize --packed 4 --shapes 8x64 --runs 1 --seconds 0");
    assert_failed(EXIT_REQUEST, "--packed: tensors of quantize have no outer dimensions");
    run("%s", "bench dropout_rms_norm --packed 4 --unfused");
    assert_failed(EXIT_REQUEST, "--packed: expected no --unfused");
}

/* An output of another type than the input has a place of its own, and so does the dx of L2 norm beside a dweight. */
static void test_bench_in_place(void **state) {
    (void)state;
    static const struct {
        const char *operation;
        bool in_place;
    } cases[] = {{"softmax", true},    {"softmax_backward", true},  {"rms_norm_rope_backward", true},
                 {"group_norm", true}, {"l2_norm_backward", false}, {"add_rms_norm_backward", true},
                 {"quantize", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run("bench %s --in-place --shapes 8x64 --dtypes f32 --runs 1 --seconds 0 --warm-up 0 --json -", cases[i].operation);
        assert_done();
        assert_int_equal(strstr(result.out, "\"in_place\": true") != NULL, cases[i].in_place);
    }
    run("%s", "bench softmax --in-place --unfused --shapes 8x64");
    assert_failed(EXIT_REQUEST, "--in-place: expected no --unfused");
}

static void test_bench_refuses(void **state) {
    (void)state;
    run("%s", "bench rms_norm_forward");
    assert_failed(EXIT_REQUEST, "'rms_norm_forward' is not an operation; did you mean rms_norm?");
    run("%s", "bench sofmax");
    assert_failed(EXIT_REQUEST, "'sofmax' is not an operation; did you mean softmax?");
    run("%s", "bench conv");
    assert_failed(EXIT_REQUEST, "'conv' is not an operation; expected one of layer_norm, ");
    static const char *const shapes[] = {"8", "8x", "x8", "0x8", "-8x8", "8x-8", "8x8x", "8x8/2", "8x8x8", "8x8,"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        run("bench --shapes=%s", shapes[i]);
        assert_failed(EXIT_REQUEST, "--shapes");
    }
    run("%s", "bench --dtypes i8 --shapes 8x8");
    assert_failed(EXIT_REQUEST, "--dtypes 'i8': expected f32");
    run("%s", "bench --shapes 8x8 --json no/folder/b.json");
    assert_failed(EXIT_REQUEST, "no/folder/b.json");
    run("%s", "bench --dtypes $(seq -s , 65)");
    assert_failed(EXIT_REQUEST, "--dtypes '1': expected f32");
    run("%s", "bench --shapes $(seq -s , -f %gx8 65)");
    assert_failed(EXIT_REQUEST, "--shapes: expected at most 64");
    run("%s", "bench --shapes 4294967296x4294967296");
    assert_failed(EXIT_REQUEST, "too many");
}

/* A value that is listed twice would be measured twice. */
static void test_bench_refuses_repeated_values(void **state) {
    (void)state;
    static const struct refused_words table[] = {
        {"gelu softmax gelu --shapes 8x8", "'gelu': the operation gelu is given twice"},
        {"rms_norm rms-norm --shapes 8x8", "'rms-norm': the operation rms_norm is given twice"},
        {"gelu --shapes 8x8 --dtypes f32,bf16,f32", "--dtypes 'f32,bf16,f32': f32 is given twice"},
        {"gelu --shapes 8x8,8x81,8x8", "--shapes '8x8,8x81,8x8': 8x8 is given twice"},
        {"gelu --sweep 128,64,64 --bytes 4K", "--sweep 128,64,64: 64 is given twice"},
        {"gelu --sweep 1024,1K --bytes 4K", "--sweep 1024,1K: 1K is given twice"},
    };
    assert_each_refused("bench", table, sizeof table / sizeof *table);
    static const struct refused_words others[] = {
        {"check --spills gelu --widths 64,64", "--widths 64,64: 64 is given twice"},
        {"tune gelu --grid --bytes 8M,8M --out grid", "--bytes 8M,8M: 8M is given twice"},
        {"run gelu --in x.npy --outputs y,y", "--outputs 'y,y': y is given twice"},
    };
    put_tensor("x.npy", "x", "F32", 2, 4, 8);
    assert_each_refused("", others, sizeof others / sizeof *others);
}

static void assert_holds(const char *path, const char *text) {
    static char held[MOST_TEXT];
    read_text(path, held);
    assert_string_equal(held, text);
}

/* A request that is refused leaves existing files as they are, and makes no new ones. */
static void test_bench_refuses_before_it_writes(void **state) {
    (void)state;
    static const struct {
        const char *words, *part;
        int code;
    } wrong[] = {{"--svg old.svg --device 'name=no such device'", "no such device", EXIT_FAILED},
                 {"--svg old.svg --config nope=3", "--config 'nope=3'", EXIT_REQUEST},
                 {"--svg no/folder/b.svg", "no/folder/b.svg: cannot be written", EXIT_REQUEST},
                 {"--host --device 'name=no such device'", "no such device", EXIT_FAILED}};
    static const char *const outputs[] = {"old.json", "new.json"};
    assert_int_equal(system("printf lines >old.json; printf picture >old.svg; rm -f new.json"), 0);
    for (size_t i = 0; i < 2 * (sizeof wrong / sizeof *wrong); i++) {
        run("bench gelu --shapes 8x64 --json %s %s", outputs[i % 2], wrong[i / 2].words);
        assert_failed(wrong[i / 2].code, wrong[i / 2].part);
        assert_holds("old.json", "lines");
        assert_holds("old.svg", "picture");
        assert_int_equal(access("new.json", F_OK), -1);
    }
    run("%s", "bench gelu --shapes 8x64 --runs 1 --seconds 0 --json old.json --svg ./old.json");
    assert_failed(EXIT_REQUEST, "--json old.json, --svg ./old.json: expected two files");
    assert_holds("old.json", "lines");
    run("%s", "bench gelu --shapes 8x64 --runs 1 --seconds 0 --json new.json --svg ./new.json");
    assert_failed(EXIT_REQUEST, "--json new.json, --svg ./new.json: expected two files");
    assert_int_equal(access("new.json", F_OK), -1);
    run("%s", "bench gelu --shapes 8x64 --runs 1 --seconds 0 --dtypes f32 --json old.json --svg old.svg");
    assert_done();
    assert_int_equal(
        system("! grep -q lines old.json && [ $(wc -l <old.json) -eq 1 ] && head -c 4 old.svg | grep -q '<svg'"), 0);
}

/* A file without a name is none, and one that another run writes is left alone. A sweep's widths ascend. */
static void test_bench_of_odd_requests(void **state) {
    (void)state;
    run("%s", "bench gelu --shapes 8x64 --json ''");
    assert_failed(EXIT_REQUEST, "--json '': expected the name of a file");
    run("%s", "bench gelu --shapes 8x64 --svg ''");
    assert_failed(EXIT_REQUEST, "--svg '': expected the name of a file");
    run_in("exec 9>>busy; flock -n 9; exec", "%s", "bench gelu --shapes 8x64 --json busy");
    assert_failed(EXIT_REQUEST, "busy: another clnorm writes it");
    run("%s", "bench gelu --sweep 128,64 --bytes 0");
    assert_failed(EXIT_REQUEST, "--bytes 0: expected at most 1 number from 1 to 4294967295, such as 64 or 64M");
    run("%s", "bench gelu --sweep 128,64 --bytes 4K --dtypes f32 --runs 1 --seconds 0 --json widths");
    assert_done();
    assert_int_equal(system("[ \"$(grep -o '\"cols\": [0-9]*' widths | tr -d '\\n')\" = '\"cols\": 64\"cols\": 128' ]"), 0);
}

/* Of several operations, one without the dtype is left out. One alone is refused. */
static void test_bench_leaves_out_dtypes(void **state) {
    (void)state;
    run("%s", "bench quantize gelu --sweep 64,128 --bytes 4K --dtypes f64 --runs 1 --seconds 0");
    assert_int_equal(result.code, EXIT_DONE);
    assert_string_equal(result.err, "clnorm: quantize f64 is left out: x: dtype F64; expected F32, F16 or BF16\n");
    assert_int_equal(count_of(result.out, "\ngelu "), 2);
    run("%s", "bench quantize --sweep 64,128 --bytes 4K --dtypes f64");
    assert_failed(EXIT_REQUEST, "x: dtype F64; expected F32, F16 or BF16");
    run("%s", "bench quantize gelu --sweep 64 --bytes 4K --dtypes f64 --config vec=1");
    assert_failed(EXIT_REQUEST, "x: dtype F64; expected F32, F16 or BF16");
}

/* Of a list of all operations or widths, those that an operation does not take are skipped; those that were named with it
 * are refused. */
static void test_bench_skips_widths(void **state) {
    (void)state;
    run("%s", "bench --shapes 4x3 --dtypes f32 --runs 1 --seconds 0 --warm-up 0");
    assert_int_equal(result.code, EXIT_DONE);
    assert_non_null(strstr(result.err, "clnorm: rms_norm_rope needs an even number of columns; skipped at 3\n"));
    assert_non_null(strstr(result.err, "clnorm: fp8_rms_norm needs a multiple of 16 columns; skipped at 3\n"));
    assert_null(strstr(result.out, "rms_norm_rope"));
    assert_says("norm_backward_apply_rms"); /* the last one */
    run("%s", "bench rms_norm_rope gelu --sweep 257,64,33 --bytes 4K --dtypes f32 --runs 1 --seconds 0");
    assert_int_equal(result.code, EXIT_DONE);
    assert_string_equal(result.err, "clnorm: rms_norm_rope needs an even number of columns; skipped at 33, 257\n");
    assert_int_equal(count_of(result.out, "\nrms_norm_rope "), 1);
    assert_int_equal(count_of(result.out, "\ngelu "), 3);
    run("%s", "bench gelu rms_norm_rope --shapes 4x64,4x3 --json none.json");
    assert_failed(EXIT_REQUEST, "--shapes 4x3: rms_norm_rope needs an even number of columns");
    assert_string_equal(result.out, "");
    run("%s", "bench fp8_rms_norm_backward --shapes 4x24");
    assert_failed(EXIT_REQUEST, "--shapes 4x24: fp8_rms_norm_backward needs a multiple of 16 columns");
    run("%s", "profile rms_norm_rope --shape 4x3");
    assert_failed(EXIT_REQUEST, "rms_norm_rope needs an even number of columns, not 3");
}

/* A panel for each operation, a line for each dtype, a point for each shape. xmllint, where installed, checks the XML. */
static void test_bench_svg(void **state) {
    (void)state;
    run("%s",
        "bench gelu rms_norm_gated --shapes 8x64,4x64,2x64 --dtypes f32,bf16 --runs 1 --seconds 0 --svg b.svg --unfused");
    assert_done();
    assert_narrow();
    static char text[MOST_TEXT];
    read_text("b.svg", text);
    assert_int_equal(count_of(text, "<polyline class=\"series\""), 4);
    assert_int_equal(count_of(text, "<polyline class=\"unfused\""), 2); /* gelu fuses nothing */
    assert_int_equal(count_of(text, "<path class=\"copy\""), 4);
    assert_int_equal(count_of(text, "<circle "), 18);
    assert_int_equal(count_of(text, ">gelu</text>"), 1);
    assert_int_equal(count_of(text, ">4x64</text>"), 2);
    assert_int_equal(count_of(text, ">bf16</text>"), 1);
    assert_int_equal(count_of(text, ">copy of as many bytes</text>"), 1);
    assert_int_equal(count_of(text, ">in separate calls</text>"), 1);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    assert_int_equal(system("command -v xmllint >/dev/null || exit 0; xmllint --noout b.svg"), 0);
    run("%s", "bench group_norm --shapes 2x16x4x4/4,2x16x4x4/8,2x16x16 --dtypes f32 --runs 1 --seconds 0 --svg b.svg");
    assert_done();
    assert_says("2x16x16/4 ");
    assert_says("2x16x16/8 ");
    assert_says("2x16x16 ");
    read_text("b.svg", text);
    assert_int_equal(count_of(text, "<circle "), 3);
    assert_int_equal(count_of(text, ">2x16x16/4</text>"), 1);
    assert_int_equal(count_of(text, ">2x16x16</text>"), 1);
    run("%s", "bench gelu --shapes 8x64 --svg no/folder/b.svg");
    assert_failed(EXIT_REQUEST, "no/folder/b.svg");
    run("%s", "bench gelu --shapes 8x64 --svg -");
    assert_failed(EXIT_REQUEST, "--svg -");
}

/* A list of widths with a fixed number of bytes, and its plot: a line for each dtype, a point for each width. */
static void test_bench_sweep(void **state) {
    (void)state;
    run("%s", "bench gelu softmax --sweep 64,100 --bytes 4K --dtypes f32,bf16 --runs 1 --seconds 0 --svg s.svg");
    assert_done();
    assert_narrow();
    assert_says("gelu                    16x64       f32");
    assert_says("gelu                    32x64       bf16");
    assert_says("softmax                 20x100      bf16");
    static char text[MOST_TEXT];
    read_text("s.svg", text);
    assert_int_equal(count_of(text, "<polyline class=\"series\""), 4);
    assert_int_equal(count_of(text, "<circle "), 8);
    assert_int_equal(count_of(text, ">softmax</text>"), 1);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    run("%s", "bench group_norm gelu --sweep 12 --bytes 100K --dtypes bf16 --runs 1 --seconds 0");
    assert_done();
    assert_says("group_norm              4x12x1024   bf16"); /* images of 1024 positions, as many as fit */
    assert_says("gelu                    4266x12     bf16");
    static const struct refused_words wrong[] = {
        {"--sweep 64,", "--sweep 64,"},
        {"--sweep 0", "--sweep 0"},
        {"--sweep grid --shapes 4x4", "expected no --shapes"},
        {"--sweep grid --host", "expected no --host"},
        {"--sweep 64 --bytes 1,2", "--bytes 1,2"},
        {"--sweep 64 --unfused --svg s.svg", "--unfused: expected no --sweep with --svg"},
        {"--bytes 64M", "expected --sweep"},
        {"--enqueues -1", "--enqueues -1: expected 1 or more"},
        {"--packed 0", "--packed 0: expected 1 or more"},
        {"--weight-rows 0", "--weight-rows 0: expected 1 or more"},
        {"--weight-repeat -1", "--weight-repeat -1: expected 1 or more"}};
    assert_each_refused("bench gelu", wrong, sizeof wrong / sizeof *wrong);
}

static void test_bench_host(void **state) {
    (void)state;
    static const char *const keys[] = {"enqueue_us", "bare_us", "plan_cold_us", "plan_disk_us", "plan_memory_us", NULL};
    run_in("env -u CLNORM_CACHE", "%s", "bench --host rms_norm_gated_backward --shapes 4x64 --enqueues 2000 --json -");
    assert_done();
    json_t *const object = json_of(result.out);
    assert_has_keys(object, keys);
    for (int i = 0; keys[i]; i++)
        assert_true(json_number_value(json_object_get(object, keys[i])) > 0);
    assert_int_equal(json_integer_value(json_object_get(object, "enqueues")), 2000);
    assert_true(json_is_integer(json_object_get(object, "memory_before")));
    assert_true(json_is_integer(json_object_get(object, "memory_after")));
    json_decref(object);
    run("%s", "bench gelu --shapes 1000000x1000000 --dtypes f32");
    assert_failed(EXIT_FAILED, "x: clCreateBuffer of 4000000000000 bytes failed with CL_");
    run("%s", "bench --enqueues 2000");
    assert_failed(EXIT_REQUEST, "--enqueues 2000: expected --host too");
    run("%s", "bench --host layer_norm rms_norm");
    assert_failed(EXIT_REQUEST, "--host");
    static const char *const unused[] = {"runs=30", "warm-up=3", "median", "unfused", "packed=4", "svg=b.svg"};
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) {
        char part[64];
        (void)snprintf(part, sizeof part, "--%.*s: expected no --host", (int)strcspn(unused[i], "="), unused[i]);
        run("bench rms_norm --host --%s", unused[i]);
        assert_failed(EXIT_REQUEST, part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench),
        cmocka_unit_test(test_bench_unfused),
        cmocka_unit_test(test_bench_layouts),
        cmocka_unit_test(test_bench_in_place),
        cmocka_unit_test(test_bench_refuses),
        cmocka_unit_test(test_bench_refuses_repeated_values),
        cmocka_unit_test(test_bench_refuses_before_it_writes),
        cmocka_unit_test(test_bench_skips_widths),
        cmocka_unit_test(test_bench_of_odd_requests),
        cmocka_unit_test(test_bench_leaves_out_dtypes),
        cmocka_unit_test(test_bench_host),
        cmocka_unit_test(test_bench_svg),
        cmocka_unit_test(test_bench_sweep),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
