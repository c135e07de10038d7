/* `clnorm run` of gradients, as scripts see it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool_process.h"

/* Checks the gradients of the loss Σ dy · y with dy = y, which are computed here, within one unit in the last place of bf16
 * and the error of f32 sums. */
static void assert_gradients(const struct tensor_file *in, const struct tensor_file *y, const struct tensor_file *out) {
    const struct tensor *const x = find(in, "x", CLNORM_BF16, 3);
    const struct tensor *const weight = find(in, "weight", CLNORM_F32, 1);
    const struct tensor *const dy = find(y, "y", CLNORM_BF16, 3);
    const struct tensor *const mean = find(y, "mean", CLNORM_F32, 2);
    const struct tensor *const rstd = find(y, "rstd", CLNORM_F32, 2);
    const struct tensor *const dx = find(out, "dx", CLNORM_BF16, 3);
    const struct tensor *const dweight = find(out, "dweight", CLNORM_F32, 1);
    const struct tensor *const dbias = find(out, "dbias", CLNORM_F32, 1);
    const uint64_t cols = weight->count;
    double *const sums = calloc(2 * cols, sizeof *sums);
    assert_non_null(sums);
    for (uint64_t row = 0; row < x->count / cols; row++) {
        double c1 = 0, c2 = 0;
        for (uint64_t i = 0, k = row * cols; i < cols; i++, k++) {
            const double hat = (at(x, k) - at(mean, row)) * at(rstd, row);
            c1 += hat * at(weight, i) * at(dy, k) / (double)cols;
            c2 += at(weight, i) * at(dy, k) / (double)cols;
            sums[i] += hat * at(dy, k);
            sums[cols + i] += at(dy, k);
        }
        for (uint64_t i = 0, k = row * cols; i < cols; i++, k++) {
            const double hat = (at(x, k) - at(mean, row)) * at(rstd, row);
            const double expected = at(rstd, row) * (at(weight, i) * at(dy, k) - hat * c1 - c2);
            assert_true(fabs(at(dx, k) - expected) <= fabs(expected) * 0x1p-8 + 1e-5);
        }
    }
    for (uint64_t i = 0; i < cols; i++) {
        assert_true(fabs(at(dweight, i) - sums[i]) < 1e-3);
        assert_true(fabs(at(dbias, i) - sums[cols + i]) < 1e-3);
    }
    free(sums);
}

static void test_run_goes_backward(void **state) {
    (void)state;
    run("%s", "run layer_norm --in \"$CLNORM_SAMPLE\" --out y.safetensors --repeat 1");
    assert_done();
    run("%s", "run layer_norm_backward --in \"$CLNORM_SAMPLE\" --in y.safetensors dy=y --out dx.safetensors --verify "
              "--repeat 2");
    assert_done();
    assert_says("rstd     F32 [1, 64]");
    assert_says("verify   dx ");
    assert_says("verify   dweight ");
    assert_says("verify   dbias ");
    struct tensor_file in;
    struct tensor_file y;
    struct tensor_file out;
    open_file(&in, getenv("CLNORM_SAMPLE"));
    open_file(&y, "y.safetensors");
    open_file(&out, "dx.safetensors");
    assert_int_equal(out.count, 3);
    assert_gradients(&in, &y, &out);
    tensor_file_close(&in);
    tensor_file_close(&y);
    tensor_file_close(&out);
    run("%s", "run layer_norm_backward --in \"$CLNORM_SAMPLE\" --in y.safetensors y=y dy=x --verify --repeat 1");
    assert_done();
    assert_says("y        BF16 [4, 16, 384]");
    assert_says("verify   dweight ");
    run("%s", "run layer_norm_backward --in \"$CLNORM_SAMPLE\" --in y.safetensors y=y dy=x weight=bias bias=weight");
    assert_failed(EXIT_FAILED, "run: args.fault is 3"); /* of 384 columns more than 300 have a bias above the bound */
}

static void test_run_backward_options(void **state) {
    (void)state;
    static const struct {
        const char *words;
        const char *outputs[4]; /* in the order of their names, ended by NULL */
    } runs[] = {
        {"rms_norm_backward dy=x z=x bias= --gate silu --weight-offset 1 --group-size 48 --eps 0.1",
         {"dweight", "dx", "dz"}},
        {"rms_norm_backward dy=x z=x weight= bias= --gate sigmoid --gate-first --recompute-output", {"dx", "dz", "y"}},
        {"rms_norm_backward dy=x weight= bias= --outputs dweight,dbias --reduction partial", {"dbias", "dweight"}},
        {"layer_norm_backward dy=x --outputs y", {"y"}},
        {"layer_norm_backward dy=x --reduction locked --slots 2 --dtype f32", {"dbias", "dweight", "dx"}},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        run("run %s --in \"$CLNORM_SAMPLE\" --out dx.safetensors --verify --repeat 1", runs[i].words);
        assert_done();
        struct tensor_file out;
        open_file(&out, "dx.safetensors");
        size_t count = 0;
        for (; count < 4 && runs[i].outputs[count]; count++)
            assert_string_equal(out.tensors[count].name, runs[i].outputs[count]);
        assert_int_equal(out.count, count);
        tensor_file_close(&out);
    }
    assert_says("dx F32 [4, 16, 384]");
    put_tensor("x.npy", "x", "F64", 1, 10, 0);
    put_tensor("dy.npy", "dy", "F64", 1, 10, 0);
    run("%s", "run layer_norm_backward --in x.npy --in dy.npy --verify --outputs dx,dweight --repeat 1 --out dx.npy");
    assert_done();
    assert_says("dx F64 [10]");
    put_tensor("weight.npy", "weight", "F32", 1, 10, 0);
    run("%s", "run layer_norm_backward --in x.npy --in dy.npy --in weight.npy --verify --repeat 1 --out dx.npy");
    assert_done();
    put_tensor("x.npy", "x", "F32", 2, 0, 10);
    put_tensor("dy.npy", "dy", "F16", 2, 0, 10);
    run("%s", "run layer_norm_backward --in x.npy --in dy.npy --verify --outputs dweight,dx --repeat 1 --out dx.npy");
    assert_done();
}

static void test_run_backward_refuses(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 10);
    put_tensor("dy.npy", "dy", "F32", 2, 6, 11);
    put_tensor("mean.npy", "mean", "F32", 2, 1, 6);
    put_tensor("rstd.npy", "rstd", "F32", 2, 2, 6);
    put_tensor("half.npy", "half", "F16", 2, 1, 6);
    put_tensor("double.npy", "double", "F64", 2, 6, 10);
    static const struct refused_words requests[] = {
        {"layer_norm_backward --in x.npy", "tensor 'dy' (dy) is not in x.npy"},
        {"layer_norm_backward --in x.npy --in dy.npy", "tensor 'dy' (dy): shape [6, 11]; expected [6, 10]"},
        {"layer_norm_backward --in x.npy --in double.npy dy=double", "tensor 'double' (dy): dtype F64"},
        {"layer_norm_backward --in x.npy --in mean.npy dy=x", "rstd: expected this tensor too, since mean is given"},
        {"layer_norm_backward --in x.npy --in mean.npy dy=x mean= rstd=mean", "mean: expected this tensor too"},
        {"rms_norm_backward --in x.npy --in rstd.npy dy=x", "tensor 'rstd' (rstd): shape [2, 6]; expected [1, 6]"},
        {"rms_norm_backward --in x.npy --in half.npy dy=x rstd=half", "tensor 'half' (rstd): dtype F16; expected F32"},
        {"rms_norm_backward --in x.npy dy=x mean=x",
         "has no input of that role; expected one of x, x_scale, dy, weight, bias, z, rstd"},
        {"rms_norm_backward --in x.npy dy=x --reduction slowly", "--reduction 'slowly': expected partial or locked"},
        {"rms_norm_backward --in x.npy dy=x --reduction locked --slots 0", "--slots 0"},
        {"rms_norm_backward --in x.npy dy=x --outputs dx,dw", "--outputs 'dw'"},
        {"rms_norm_backward --in x.npy dy=x --outputs x",
         "--outputs 'x': rms_norm_backward has no such output; expected one of dx"},
        {"rms_norm_backward --in x.npy dy=x --outputs dz", "--outputs dz: expected a --gate too"},
        {"rms_norm_backward --in x.npy dy=x --gate silu", "z: --gate needs"},
        {"rms_norm_backward --in x.npy dy=x --outputs ''", "--outputs"},
        {"rms_norm_backward --in x.npy dy=x y=x", "tensor 'rstd' (rstd) is not in x.npy"},
        {"rms_norm_backward_from_y --in x.npy dy=x y=x y=x", "y is given twice"},
        {"rms_norm_backward --in x.npy dy=x y=x --gate silu", "rstd"},
        {"rms_norm --in x.npy --reduction locked", "--reduction: rms_norm has no such option"},
        {"rms_norm --in x.npy --recompute-output", "--recompute-output: rms_norm has no such option"},
    };
    assert_each_refused("run", requests, sizeof requests / sizeof *requests);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_goes_backward),
        cmocka_unit_test(test_run_backward_options),
        cmocka_unit_test(test_run_backward_refuses),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
