/* `clnorm run` as scripts see it: the tensors that it reads and writes, and requests that it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor_write.h"
#include "tool_process.h"

/* Checks that y is the layer norm of x, which is computed here, within one unit in the last place of bf16. */
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
    assert_narrow();
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
        "run rms_norm --in \"$CLNORM_SAMPLE\" --eps 1e-3 --weight-offset 1 bias= --group-size 48 --dtype f16",
        "run layer_norm --in \"$CLNORM_SAMPLE\" --gate silu z=x --config vec=4,lanes=1,segments=2,keep=reread",
        "run layer_norm --in \"$CLNORM_SAMPLE\" --gate sigmoid --gate-first z=x weight= bias=weight --dtype f32",
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        run("%s --verify --repeat 1", options[i]);
        assert_done();
        assert_says("good");
    }
    run("%s --repeat 1 --out y.npy", options[0]);
    assert_done();
    struct tensor_file out;
    open_file(&out, "y.npy");
    assert_int_equal(find(&out, "y", CLNORM_F16, 3)->shape[2], 384);
    tensor_file_close(&out);
    run("%s --repeat 1 --out y.safetensors", options[0]);
    open_file(&out, "y.safetensors");
    assert_int_equal(out.count, 2);
    assert_int_equal(find(&out, "rstd", CLNORM_F32, 2)->shape[0], 8);
    tensor_file_close(&out);
    run("%s --repeat 1", options[1]);
    assert_says("vec=4,lanes=1,segments=2,");
}

/* ---------------------------------------------------------------------------------------------------------- output */

static const json_t *member(const json_t *object, const char *key) {
    const json_t *const value = json_object_get(object, key);
    if (!value)
        fail_msg("no key %s", key);
    return value;
}

static double number(const json_t *object, const char *key) {
    return json_number_value(member(object, key));
}

/* min, mean and max are those of finite numbers. In JSON other numbers are null. */
static void test_run_prints_values(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 17, 1); /* 0 to 16 */
    run("%s", "run softmax --in x.npy --repeat 1");
    assert_done();
    assert_says("y        F32 [17, 1]: min 1, mean 1, max 1; first 1, 1, 1, 1, 1, ...\n");
    struct tensor q = {.name = "q", .element = element_by_name("F8_E4M3"), .rank = 2, .shape = {2, 2}};
    struct tensor scale = {.name = "scale", .element = element_by_name("F32"), .rank = 1, .shape = {1}};
    const unsigned char codes[] = {0x38, 0xc0, 0x7f, 0x00}; /* 1, -2, NaN, 0 */
    const float half = 0.5F;
    q.data = codes;
    scale.data = (const unsigned char *)&half;
    assert_true(tensor_measure(&q) && tensor_measure(&scale));
    const struct tensor *const tensors[] = {&q, &scale};
    struct fault fault = {0};
    assert_true(tensor_write("q.safetensors", tensors, 2, &fault));
    run("%s", "run dequantize --in q.safetensors --repeat 2 --verify --out d.npy");
    assert_done();
    assert_says("x        F32 [2, 2]: min -1, mean -0.1667, max 0.5, 1 not finite; first 0.5, -1,\n         nan, 0\n");

    run("%s", "run dequantize --in q.safetensors --repeat 2 --verify --out d.npy --json");
    assert_done();
    json_t *const json = json_of(result.out);
    assert_string_equal(json_string_value(member(json, "op")), "dequantize");
    assert_string_equal(json_string_value(member(json, "out")), "d.npy");
    assert_true(number(json, "rows") == 2 && number(json, "cols") == 2 && number(json, "runs") == 2);
    assert_true(number(json, "us") > 0);
    assert_true(json_is_object(member(json, "config")) && json_is_string(member(json, "device")));
    assert_int_equal(json_array_size(member(json, "inputs")), 2);
    const json_t *const input = json_array_get(member(json, "inputs"), 0);
    assert_string_equal(json_string_value(member(input, "role")), "q");
    assert_string_equal(json_string_value(member(input, "dtype")), "F8_E4M3");
    assert_int_equal(json_array_size(member(json, "outputs")), 1);
    const json_t *const output = json_array_get(member(json, "outputs"), 0);
    assert_true(number(output, "min") == -1 && number(output, "max") == 0.5 && number(output, "not_finite") == 1);
    assert_true(fabs(number(output, "mean") + 0.5 / 3) < 1e-9);
    assert_true(json_real_value(json_array_get(member(output, "first"), 1)) == -1);
    assert_true(json_is_null(json_array_get(member(output, "first"), 2)));
    assert_true(number(member(output, "verify"), "checked") == 4 && number(member(output, "verify"), "wrong") == 0);
    json_decref(json);
}

/* The output says which row of a tuning file was used, or why the file was not. */
static void test_run_names_the_tuning_file(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 10);
    run("%s", "select --json");
    json_t *const device = json_of(result.out);
    FILE *const stream = fopen("tuned", "w");
    assert_non_null(stream);
    fprintf(stream, "clnorm tuning 1\ndevice %s\ndriver %s\nsoftmax f32 10: vec=2\n",
            json_string_value(member(device, "name")), json_string_value(member(device, "driver")));
    assert_int_equal(fclose(stream), 0);
    json_decref(device);
    run_in("env CLNORM_TUNING=tuned", "%s", "run softmax --in x.npy --repeat 1");
    assert_done();
    assert_says("         tuned by line 4 of tuned\n");
    run_in("env CLNORM_TUNING=tuned", "%s", "run softmax --in x.npy --repeat 1 --json");
    assert_says("\"config_note\": \"tuned by line 4 of tuned\"");
    run_in("env CLNORM_TUNING=.", "%s", "run softmax --in x.npy --repeat 1");
    assert_says("         . is not used: it is not a regular file\n");
    run("%s", "run softmax --in x.npy --repeat 1");
    assert_null(strstr(result.out, "tuned"));
}

/* '-' stands for '_'. The only tensor of the only file is x, whatever its name, and has no other role. */
static void test_run_accepts_other_names(void **state) {
    (void)state;
    put_tensor("weight.npy", "weight", "F32", 2, 6, 10);
    run("%s", "run layer-norm --in weight.npy --repeat 1");
    assert_done();
    assert_says("x        F32 [6, 10], from weight\n");
    assert_null(strstr(result.out, "weight   "));
    run("%s", "run layer_norm-backward --in weight.npy x=weight dy=weight weight= --repeat 1");
    assert_done();
    put_tensor("s.npy", "s", "F32", 1, 6, 0);
    run("%s", "run rms_norm --in weight.npy --in s.npy x=weight weight= row-scale=s --repeat 1");
    assert_done();
    assert_says("row_scale F32 [6], from s\n");
}

static void test_run_takes_arrays_of_any_rank(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 10);
    put_tensor("weight.npy", "weight", "F16", 1, 10, 0);
    run("%s", "run layer_norm --in x.npy --in weight.npy --verify --out y.npy --repeat 1");
    assert_done();
    assert_says("y F32 [6, 10]");
    run("%s", "run layer_norm --in y.npy --in weight.npy x=y --verify --repeat 1");
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

static const struct refused_words refused[] = {
    {"", "expected an operation"},
    {"batch_norm --in x.npy", "'batch_norm' is not an operation; expected one of layer_norm, rms_norm"},
    {"rmsnorm --in x.npy", "'rmsnorm' is not an operation; did you mean rms_norm?"},
    {"add-rms-norm --in x.npy", "'add-rms-norm' is not an operation; did you mean rms_norm?"},
    {"layer_norm --in x.npy wieght=x", "layer_norm has no input of that role; did you mean weight?"},
    {"layer_norm --in x.npy --outputs rsdt", "--outputs 'rsdt'"},
    {"layer_norm", "--in FILE"},
    {"layer_norm --in none.npy", "none.npy: No such file"},
    {"layer_norm --in /dev/null", "/dev/null: expected a file name that ends in"},
    {"layer_norm --in x.npy x=other", "tensor 'other' (x) is not in x.npy, which has 'x'"},
    {"layer_norm --in empty.safetensors", "tensor 'x' (x) is not in empty.safetensors, which has no tensors"},
    {"layer_norm --in weight.npy --in scalar.npy", "tensor 'x' (x) is not in weight.npy nor in the other files"},
    {"layer_norm --in weight.npy --in scalar.npy --in x.npy weight=wiegth", "which have 'weight', 'scalar', 'x'; name"},
    {"layer_norm --in x.npy --in x.safetensors", "tensor 'x' is in two files, x.npy and x.safetensors"},
    {"layer_norm --in x.npy bias=none", "tensor 'none' (bias)"},
    {"layer_norm --in x.npy y=x", "has no input of that role; expected one of x, x_scale, weight, bias, z"},
    {"layer_norm --in x.npy x=x x=x", "given twice"},
    {"layer_norm --in x.npy words", "expected ROLE=TENSOR"},
    {"layer_norm --in x.npy --in weight.npy", "tensor 'weight' (weight): shape [9]; expected [10]"},
    {"layer_norm --in x.npy --in z.npy --gate silu", "tensor 'z' (z): shape [6, 11]; expected [6, 10]"},
    {"layer_norm --in x.npy --gate silu", "z: --gate needs"},
    {"layer_norm --in x.npy z=x --gate relu", "--gate 'relu': expected silu or sigmoid"},
    {"layer_norm --in x.npy --activation relu", "--activation 'relu': expected none, gelu, gelu_tanh or silu"},
    {"layer_norm --in x.npy z=x", "tensor 'x' (z): it is read only with --gate"},
    {"layer_norm --in x.npy --gate tanh z=x", "--gate 'tanh'"},
    {"layer_norm --in x.npy --gate-first", "--gate-first"},
    {"layer_norm --in int.npy x=int", "tensor 'int' (x): dtype I32"},
    {"layer_norm --json --in x.npy --out y\xe9.npy", "--json: the name 'y\xe9.npy' is not valid UTF-8"},
    {"layer_norm --json --in x\xe9.npy", "--json: the name 'x\xe9' is not valid UTF-8"},
    {"quantize --in x.npy --mode group --group-size 4294967312", "--group-size 4294967312: expected at most 4294967295"},
    {"layer_norm --in fp8.safetensors", "x_scale: tensor 'x' (x) of dtype F8_E4M3 needs this tensor"},
    {"layer_norm --in scalar.npy x=scalar", "tensor 'scalar' (x): shape []"},
    {"layer_norm --in narrow.npy x=narrow", "tensor 'narrow' (x): shape [3, 0]"},
    {"instance_norm --layout last --in x.npy --in double.npy weight=double",
     "tensor 'double' (weight): dtype F64; expected F32, F16 or BF16"},
    {"layer_norm --in x.npy --dtype f64", "--dtype f64"},
    {"layer_norm --in x.npy --eps -1", "eps"},
    {"layer_norm --in x.npy --eps nan", "eps"},
    {"layer_norm --in x.npy --eps much", "--eps 'much': expected a number"},
    {"layer_norm --in x.npy --eps ''", "--eps '': expected a number"},
    {"layer_norm --in x.npy --eps=", "--eps '': expected a number"},
    {"layer_norm --in x.npy --eps 1e999", "--eps 1e999: expected a number in the range of double"},
    {"layer_norm --in x.npy --eps 1e39", "desc.eps is 1e+39: expected 0 to 3.40282e+38"},
    {"layer_norm --in x.npy --weight-offset ''", "--weight-offset '': expected a number"},
    {"layer_norm --in x.npy weight=bias --in bias.npy --weight-offset -1e39", "desc.weight_offset is -1e+39"},
    {"layer_norm --in x.npy --group-size ''", "--group-size '': expected a whole number"},
    {"layer_norm --in x.npy --dropout ''", "--dropout '': expected a number"},
    {"layer_norm --in x.npy --repeat ''", "--repeat '': expected a whole number"},
    {"layer_norm --in x.npy --slots=''", "--slots '': expected a whole number"},
    {"layer_norm --in x.npy --quantize row --quantize-scale ''", "--quantize-scale '': expected a number"},
    {"layer_norm --in x.npy --quantize row --quantize-group ''", "--quantize-group '': expected a whole number"},
    {"layer_norm --in x.npy --dropout 0.5", "--dropout 0.5: expected a --seed too"},
    {"layer_norm --in x.npy --dropout 0.5 --seed ''", "--seed '': expected a whole number from 0 to 1844674407370955161"},
    {"layer_norm --in x.npy --seed 5", "--seed 5: expected a --dropout above 0 too"},
    {"layer_norm --in x.npy x=", "'x=': expected the name of a tensor, which layer_norm needs"},
    {"layer_norm --in ''", "--in '': expected the name of a file"},
    {"layer_norm --in x.npy --out ''", "--out '': expected the name of a file"},
    {"layer_norm --in x.npy --seed -1", "--seed '-1': expected"},
    {"layer_norm --in x.npy --seed +1", "--seed '+1': expected"},
    {"layer_norm --in x.npy --seed 1e3", "--seed '1e3': expected"},
    {"layer_norm --in x.npy --seed 18446744073709551616", "--seed '18446744073709551616': expected"},
    {"quantize --in x.npy --stochastic -1", "--stochastic '-1': expected"},
    {"quantize --in x.npy --stochastic ''", "--stochastic '': expected"},
    {"layer_norm --in x.npy --quantize row --quantize-group 4", "--quantize-group 4: expected none with --quantize row"},
    {"layer_norm --in x.npy --quantize group --quantize-group 4", "--quantize-group 4: expected 16, 32, 64 or 128 with"},
    {"layer_norm --in x.npy --group-size 3", "--group-size 3"},
    {"layer_norm --in x.npy --group-size -5", "--group-size -5"},
    {"layer_norm --in x.npy --weight-offset 1", "weight_offset"},
    {"layer_norm --in x.npy --dtype f8", "--dtype 'f8': expected f32, f16, bf16 or f64"},
    {"layer_norm --in x.npy --dtype bf16 --out y.npy", "npy has no BF16"},
    {"layer_norm --in x.npy --out y.txt", "y.txt: expected a file name that ends in"},
    {"layer_norm --in x.npy --repeat 0", "--repeat 0"},
    {"layer_norm --in x.npy --device 'flavour=mint'", "flavour=mint"},
    {"layer_norm --in x.npy --config vec=3", "vec"},
    {"layer_norm --in x.npy --config vec", "--config 'vec'"},
    {"layer_norm --in x.npy --config vec=4,keep=forever", "--config keep=forever"},
    {"layer_norm --in x.npy --config vec=4,,lanes=1", "--config '': expected KNOB=VALUE"},
    {"layer_norm --in x.npy --config ve=4", "--config 've=4'"},
};

/* A safetensors file whose header has no tensors. */
static void put_empty_file(const char *path) {
    static const unsigned char bytes[] = {2, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    FILE *const stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, stream), sizeof bytes);
    assert_int_equal(fclose(stream), 0);
}

static void test_run_refuses(void **state) {
    (void)state;
    put_empty_file("empty.safetensors");
    put_tensor("x.npy", "x", "F32", 2, 6, 10);
    put_tensor("x\xe9.npy", "x", "F32", 2, 6, 10);
    put_tensor("x.safetensors", "x", "F32", 2, 6, 10);
    put_tensor("weight.npy", "weight", "F32", 1, 9, 0);
    put_tensor("z.npy", "z", "F32", 2, 6, 11);
    put_tensor("int.npy", "int", "I32", 2, 6, 10);
    put_tensor("fp8.safetensors", "x", "F8_E4M3", 2, 6, 10);
    put_tensor("scalar.npy", "scalar", "F32", 0, 0, 0);
    put_tensor("narrow.npy", "narrow", "F32", 2, 3, 0);
    put_tensor("double.npy", "double", "F64", 1, 10, 0);
    put_tensor("bias.npy", "bias", "F32", 1, 10, 0);
    assert_each_refused("run", refused, sizeof refused / sizeof *refused);
    run("%s", "run layer_norm --in x.npy --out no/folder/y.npy --repeat 1");
    assert_failed(EXIT_REQUEST, "no/folder/y.npy");
}

/* The largest seeds; an eps beyond the range of f32; more columns than memory holds, without rows. */
static void test_run_takes_extremes(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 10);
    put_tensor("double.npy", "double", "F64", 2, 6, 10);
    put_tensor("none.npy", "none", "F32", 2, 0, UINT64_C(1) << 40);
    static const char *const runs[] = {
        "layer_norm --in x.npy --dropout 0.5 --seed 18446744073709551615",
        "layer_norm --in x.npy --dropout 0.5 --seed 9223372036854775808",
        "quantize --in x.npy --stochastic 18446744073709551615",
        "rms_norm --in double.npy x=double --eps 1e39",
        "layer_norm --in none.npy x=none",
        "softmax --in none.npy x=none",
        "rms_norm_backward --in none.npy x=none dy=none",
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        run("run %s --verify --repeat 1", runs[i]);
        assert_done();
    }
}

/* An input, under any of its names, is replaced only with --force, and keeps its permissions. */
static void test_run_keeps_its_inputs(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 10);
    assert_int_equal(chmod("x.npy", 0600), 0);
    assert_int_equal(symlink("x.npy", "symlink.npy"), 0);
    assert_int_equal(link("x.npy", "hard.npy"), 0);
    static const char *const names[] = {"x.npy", "./x.npy", "symlink.npy", "hard.npy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        run("run layer_norm --in x.npy --out %s --repeat 1", names[i]);
        assert_failed(EXIT_REQUEST, "this is the input x.npy; --force replaces it");
    }
    assert_int_equal(unlink("hard.npy"), 0);
    struct tensor_file file;
    open_file(&file, "x.npy");
    assert_true(at(find(&file, "x", CLNORM_F32, 2), 1) == 1);
    tensor_file_close(&file);

    run("%s", "run layer_norm --in x.npy --out symlink.npy --force --repeat 1");
    assert_done();
    struct stat facts;
    assert_true(!lstat("symlink.npy", &facts) && S_ISLNK(facts.st_mode));
    assert_true(!lstat("x.npy", &facts) && (facts.st_mode & 07777) == 0600);
    open_file(&file, "x.npy");
    assert_true(at(find(&file, "x", CLNORM_F32, 2), 0) < -1);
    tensor_file_close(&file);
    assert_int_equal(mkfifo("fifo.npy", 0600), 0);
    run("%s", "run layer_norm --in x.npy --out fifo.npy --force");
    assert_failed(EXIT_REQUEST, "fifo.npy: not a regular file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_normalises_the_sample),
        cmocka_unit_test(test_run_options),
        cmocka_unit_test(test_run_prints_values),
        cmocka_unit_test(test_run_names_the_tuning_file),
        cmocka_unit_test(test_run_takes_arrays_of_any_rank),
        cmocka_unit_test(test_run_accepts_other_names),
        cmocka_unit_test(test_run_refuses),
        cmocka_unit_test(test_run_takes_extremes),
        cmocka_unit_test(test_run_keeps_its_inputs),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
