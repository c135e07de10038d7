/* `clnorm run` of each kind of operation: by rows, slices, channels, quantisation, scales. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor_write.h"
#include "tool_process.h"

/* The scales of an x of rank 3 have one dimension for all rows, or x's leading dimensions. */
static void test_run_takes_scales_of_either_shape(void **state) {
    (void)state;
    run("%s", "run quantize --in \"$CLNORM_SAMPLE\" --mode group --group-size 16 --repeat 1 --out q.safetensors");
    assert_done();
    assert_says("scale F32 [64, 24]");
    run("%s", "run fp8_rms_norm --in q.safetensors x=q x_scale=scale --verify --repeat 1 --out flat.safetensors");
    assert_done();
    struct tensor_file file;
    open_file(&file, "q.safetensors");
    struct tensor scale = *find(&file, "scale", CLNORM_F32, 2);
    const struct tensor *const tensors[] = {&scale};
    struct fault fault = {0};
    scale.rank = 3;
    scale.shape[0] = 4;
    scale.shape[1] = 16;
    scale.shape[2] = 24;
    scale.name = "scale3";
    assert_true(tensor_write("scale3.safetensors", tensors, 1, &fault));
    scale.shape[0] = 16;
    scale.shape[1] = 4;
    scale.name = "scale4";
    assert_true(tensor_write("scale4.safetensors", tensors, 1, &fault));
    tensor_file_close(&file);
    run("%s", "run fp8_rms_norm --in q.safetensors --in scale3.safetensors x=q x_scale=scale3 --verify --repeat 1 "
              "--out full.safetensors");
    assert_done();
    assert_int_equal(system("cmp flat.safetensors full.safetensors"), 0);
    run("%s",
        "run dequantize --in q.safetensors --in scale3.safetensors scale=scale3 --mode group --group-size 16 --verify "
        "--repeat 1");
    assert_done();
    run("%s", "run fp8_rms_norm --in q.safetensors --in scale4.safetensors x=q x_scale=scale4");
    assert_failed(EXIT_REQUEST, "tensor 'scale4' (x_scale): shape [16, 4, 24]; expected [4, 16, 24] or [64, 24]");
    run("%s", "run quantize --in \"$CLNORM_SAMPLE\" --mode row --repeat 1 --out q.safetensors");
    assert_done();
    run("%s", "run dequantize --in q.safetensors scale=q --mode row");
    assert_failed(EXIT_REQUEST, "dtype F8_E4M3");
    run("%s", "run dequantize --in q.safetensors --in scale3.safetensors scale=scale3 --mode row");
    assert_failed(EXIT_REQUEST, "shape [4, 16, 24]; expected [64] or [4, 16]");
}

/* The four operations on slices, each with the output of the one before. The slice is a whole row. */
static void test_run_slices(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 10);
    put_tensor("dy.npy", "dy", "F16", 2, 6, 10);
    put_tensor("w.npy", "w", "F32", 1, 10, 0);
    static const char *const norms[] = {"--norm layer", "--norm rms --group-size 5"};
    static const char *const runs[] = {
        "norm_statistics --in x.npy --out m.safetensors",
        "norm_apply --in x.npy --in w.npy --in m.safetensors weight=w bias=w --dtype bf16 --out y.safetensors",
        "norm_backward_statistics --in x.npy --in dy.npy --in w.npy --in m.safetensors weight=w --out s.safetensors",
        ("norm_backward_apply --in x.npy --in dy.npy --in w.npy --in m.safetensors --in s.safetensors weight=w "
         "--outputs dx,dweight,dbias --out dx.safetensors"),
    };
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
            run("run %s %s --verify --repeat 1", runs[k], norms[i]);
            assert_done();
        }
    run("%s", "run norm_apply --in x.npy --in m.safetensors");
    assert_failed(EXIT_REQUEST, "tensor 'moments' (moments): shape [2, 6, 3]; expected [1, 6, 3]");
    run("%s", "run norm_apply --in x.npy");
    assert_failed(EXIT_REQUEST, "tensor 'moments' (moments) is not in x.npy");
    run("%s", "run norm_statistics --in x.npy --norm l2");
    assert_failed(EXIT_REQUEST, "--norm 'l2': expected layer or rms");
}

static void test_run_rows(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 10);
    put_tensor("dy.npy", "dy", "F16", 2, 6, 10);
    put_tensor("wide.npy", "wide", "F64", 2, 6, 10);
    put_tensor("w.npy", "w", "F32", 1, 10, 0);
    static const char *const runs[] = {
        "softmax --in x.npy --dtype f16 --out y.npy",
        "softmax_backward --in x.npy --in dy.npy y=x --out dx.npy",
        "gelu --in x.npy --approximate none --out y.npy",
        "gelu --in wide.npy x=wide --approximate tanh --out y.npy",
        "gelu_backward --in x.npy --in dy.npy --dtype bf16 --config vec=4 --out dx.safetensors",
        "l2_norm --in x.npy --eps-mode floor --eps 2 --group-size 5 --out y.safetensors",
        "l2_norm_backward --in x.npy --in dy.npy --in w.npy weight=w --out dx.safetensors",
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        run("run %s --verify --repeat 1", runs[i]);
        assert_done();
    }
    static const struct refused_words requests[] = {
        {"softmax --in x.npy --gate silu", "--gate: softmax has no such option"},
        {"gelu --in x.npy --batch-invariant", "--batch-invariant: gelu has no such option"},
        {"gelu --in x.npy --group-size 5", "--group-size: gelu has no such option"},
        {"softmax --in x.npy --approximate tanh", "--approximate: softmax has no such option"},
        {"layer_norm --in x.npy --approximate tanh", "--approximate: layer_norm has no such option"},
        {"gelu --in x.npy --approximate erf", "--approximate 'erf': expected none or tanh"},
        {"softmax --in x.npy --eps 1e-5", "--eps: softmax has no such option"},
        {"softmax --in x.npy --weight-offset 0", "--weight-offset: softmax has no such option"},
        {"softmax --in x.npy --dropout 0", "--dropout: softmax has no such option"},
        {"softmax --in x.npy --slots 128", "--slots: softmax has no such option"},
        {"softmax --in x.npy --quantize-scale 0", "--quantize-scale: softmax has no such option"},
        {"rms_norm --in x.npy --quantize-scale 0", "--quantize-scale 0: expected --quantize tensor too"},
        {"rms_norm --in x.npy --quantize tensor --quantize-scale 0", "--quantize-scale 0: expected a positive normal f32"},
        {"l2_norm --in x.npy --eps -1", "desc.eps is -1"},
        {"l2_norm --in x.npy --eps-mode top", "--eps-mode 'top': expected add or floor"},
        {"l2_norm --in x.npy --group-size 3", "--group-size 3: expected a divisor of x's 10 columns"},
        {"softmax_backward --in x.npy --in wide.npy y=x dy=wide",
         "tensor 'wide' (dy): dtype F64; expected F32, F16 or BF16"},
        {"gelu --in x.npy --dtype f64", "--dtype f64"},
        {"gelu_backward --in x.npy", "dy"},
        {"gelu --in x.npy --config keep=reread", "desc.config.keep"},
    };
    assert_each_refused("run", requests, sizeof requests / sizeof *requests);
}

static void test_run_channels(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 12);
    put_tensor("dy.npy", "dy", "F16", 2, 6, 12);
    put_tensor("w.npy", "w", "F32", 1, 12, 0);
    run("%s", "run group_norm --in x.npy --in w.npy weight=w --groups 3 --activation silu --verify --repeat 1 "
              "--out y.safetensors");
    assert_done();
    assert_says("y F32 [6, 12], mean F32 [6, 3], rstd F32 [6, 3]");
    static const char *const runs[] = {
        "instance_norm --in x.npy --layout last --dtype bf16 --out y.safetensors",
        "group_norm --in x.npy residual=x --groups 1 --layout last --out y.safetensors",
        "group_norm_backward --in x.npy --in dy.npy --in w.npy weight=w --groups 4 --out dx.safetensors",
        "instance_norm_backward --in x.npy --in dy.npy --layout first --out dx.safetensors",
        "group_norm --in x.npy residual=x --groups 3 --quantize row --dtype f8e5m2 --out q.safetensors",
        "group_norm --in q.safetensors x=y x_scale=y_scale --groups 4 --quantize tensor --quantize-scale 0.02 --out y.safetensors",
        "instance_norm --in x.npy --quantize tensor --out q1.safetensors",
        "group_norm_backward --in q.safetensors x=y x_scale=y_scale --in dy.npy dresidual_out=dy mean= rstd= --groups 3 --out dx.safetensors",
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        run("run %s --verify --repeat 1 --force", runs[i]);
        assert_done();
    }
    static const struct refused_words requests[] = {
        {"group_norm --in x.npy", "--groups: group_norm needs it, a divisor of x's 12 channels"},
        {"group_norm --in x.npy --groups 5", "--groups 5: expected a divisor of x's 12 channels"},
        {"group_norm --in x.npy --groups 3 --layout middle", "--layout 'middle': expected first or last"},
        {"group_norm --in w.npy x=w --groups 3", "tensor 'w' (x): shape [12]; expected rank 2 or more"},
        {"group_norm --in x.npy --groups 3 --quantize group", "--quantize group: expected tensor or row"},
        {"group_norm --in x.npy --groups 3 --quantize-scale 2", "--quantize-scale 2: expected --quantize tensor too"},
        {"group_norm --in x.npy --groups 3 --quantize-group 16", "--quantize-group: group_norm has no such option"},
        {"group_norm --in x.npy --groups 3 --outputs y,y_scale", "--outputs y_scale: expected --quantize too"},
        {"group_norm --in q.safetensors x=y x_scale=mean --groups 3", "(x_scale): shape [6, 3]; expected [1] or [6]"},
        {"group_norm_backward --in x.npy --in dy.npy --groups 3 --quantize row",
         "--quantize: group_norm_backward has no such"},
        {"instance_norm --in x.npy --groups 3", "--groups: instance_norm has no such option"},
        {"layer_norm --in x.npy --layout first", "--layout: layer_norm has no such option"},
    };
    assert_each_refused("run", requests, sizeof requests / sizeof *requests);
}

/* A single wide row is cut into chunks, except with --batch-invariant. */
static void test_run_is_batch_invariant(void **state) {
    (void)state;
    static const char *const operations[] = {"layer_norm", "rms_norm_backward dy=row", "softmax", "l2_norm"};
    put_tensor("row.npy", "x", "F32", 2, 1, 524288);
    run("run %s --in row.npy x=row --repeat 1", operations[0]);
    assert_done();
    if (strstr(result.out, "chunks=1,"))
        fail_msg("%s", result.out);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        run("run %s --in row.npy x=row --batch-invariant --verify --repeat 1", operations[i]);
        assert_done();
        assert_says("good");
        if (!strcmp(operations[i], "layer_norm"))
            assert_says("chunks=1");
        if (!strcmp(operations[i], "softmax") && !strstr(result.out, "row_split=exchange")) /* whose bits are alike */
            assert_says("chunks=1");
    }
}

static void test_run_quantises(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 160);
    run("%s", "run quantize --in x.npy --mode group --group-size 16 --scale-dtype bf16 --transpose --verify --repeat 1 "
              "--out q.safetensors");
    assert_done();
    assert_says("q.safetensors: q F8_E4M3 [6, 160], scale BF16 [6, 10], q_t F8_E4M3");
    run("%s", "run dequantize --in q.safetensors --mode group --group-size 16 --verify --repeat 1 --out back.npy");
    assert_done();
    assert_says("x F32 [6, 160]");
    run("%s", "run fp8_rms_norm --in q.safetensors x=q x_scale=scale --accuracy compatible --verify --repeat 1 "
              "--out y.safetensors");
    assert_done();
    assert_says("y.safetensors: y F8_E4M3 [6, 160], y_scale BF16 [1], y_t F8_E4M3\n");
    assert_says("         [160, 6], row_scale BF16 [6], rstd F32 [1, 6]\n");
    run("%s",
        "run fp8_rms_norm_backward --in q.safetensors --in y.safetensors --in x.npy x=q x_scale=scale dy=x --dtype bf16 "
        "--outputs dweight --verify --repeat 1 --out dx.safetensors");
    assert_done();
    assert_says("dx BF16 [6, 160], dweight F32 [160]");
    run("%s", "run quantize --in x.npy --dtype f8e5m2 --stochastic 3 --outputs amax --verify --repeat 1");
    assert_done();
    static const struct refused_words requests[] = {
        {"quantize --in x.npy --dtype bf16", "--dtype 'bf16': expected f8e4m3 or f8e5m2"},
        {"quantize --in x.npy --mode column", "--mode 'column': expected tensor, row or group"},
        {"quantize --in x.npy --mode group", "--mode group: expected a --group-size too"},
        {"quantize --in x.npy --mode group --group-size -5", "--group-size -5: expected 1 or more"},
        {"quantize --in x.npy --mode row --group-size 5", "--group-size 5: expected none with --mode row"},
        {"quantize --in x.npy --group-size -5", "--group-size -5: expected 1 or more"},
        {"quantize --in x.npy --scale-dtype f16", "--scale-dtype 'f16': expected f32 or bf16"},
        {"quantize --in q.safetensors x=q", "tensor 'q' (x): dtype F8_E4M3; expected F32, F16 or BF16"},
        {"dequantize --in q.safetensors", "tensor 'scale' (scale): shape [6, 10]; expected [1]"},
        {"dequantize --in q.safetensors --transpose", "--transpose: dequantize has no such option"},
        {"quantize --in x.npy --eps 1e-3", "--eps: quantize has no such option"},
        {"dequantize --in x.npy q=x scale=x", "tensor 'x' (q): dtype F32; expected F8_E4M3"},
        {"fp8_rms_norm --in q.safetensors x=q x_scale=q_t", "tensor 'q_t' (x_scale): last size 6; expected a divisor"},
        {"fp8_rms_norm --in q.safetensors x=q x_scale=scale --group-size 32", "--group-size 32: expected 16"},
        {"fp8_rms_norm --in q.safetensors x=q x_scale=scale --accuracy high",
         "--accuracy 'high': expected fused or compatible"},
    };
    assert_each_refused("run", requests, sizeof requests / sizeof *requests);
}

static void test_run_norms_quantise(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 160);
    run("%s", "run rms_norm --in x.npy --quantize row --verify --repeat 1 --out y.safetensors");
    assert_done();
    assert_says("y F8_E4M3 [6, 160], rstd F32 [1, 6], y_scale F32 [6]");
    run("%s",
        "run layer_norm --in x.npy --quantize group --quantize-group 64 --dtype f8e5m2 --outputs y --verify --repeat 1 "
        "--out y.safetensors");
    assert_done();
    assert_says("y F8_E5M2 [6, 160], y_scale F32 [6, 3]");
    run("%s", "run layer_norm --in x.npy --quantize tensor --outputs y_t,mean --verify --repeat 1 --out y.safetensors");
    assert_done();
    assert_says("y F8_E4M3 [6, 160], mean F32 [1, 6], y_scale F32 [1]");
    assert_says("y_t F8_E4M3 [160,");
    static const struct refused_words requests[] = {
        {"--quantize column", "--quantize 'column': expected tensor, row or group"},
        {"--quantize row --dtype bf16", "--dtype 'bf16': expected f8e4m3 or f8e5m2"},
        {"--quantize row --quantize-group 16", "--quantize-group 16"},
        {"--quantize row --quantize-scale 1", "--quantize-scale 1"},
        {"--quantize row --group-size 80", "--quantize row: expected no --group-size"},
        {"--quantize group", "--quantize group: expected a --quantize-group of 16, 32, 64 or 128 too"},
        {"--quantize group --quantize-group 32 --group-size 80", "expected a divisor of --group-size 80"},
        {"--quantize tensor --quantize-scale nan", "--quantize-scale nan"},
        {"--dtype f8e4m3", "--dtype f8e4m3: expected --quantize"},
        {"--quantize-group 16", "expected --quantize group"},
        {"--quantize-scale 1", "expected --quantize tensor"},
        {"--outputs y_scale", "--outputs y_scale: expected --quantize too"},
        {"--outputs y_scale --quantize tensor --quantize-scale 2", "without --quantize-scale"},
        {"--outputs y_t", "--outputs y_t: expected --quantize tensor, row or group too"},
    };
    assert_each_refused("run rms_norm --in x.npy", requests, sizeof requests / sizeof *requests);
}

/* A whole tensor without rows has the scale of zeros. */
static void test_run_quantises_no_rows(void **state) {
    (void)state;
    static const char *const words[] = {"quantize", "rms_norm --quantize tensor"};
    put_tensor("x.npy", "x", "F32", 2, 0, 64);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        run("run %s --in x.npy --verify --repeat 1 --out y.safetensors", words[i]);
        assert_done();
        assert_says("F32 [1]: min 2.232e-13, mean 2.232e-13, max 2.232e-13");
    }
    run("%s", "run quantize --in x.npy --outputs amax --verify --repeat 1");
    assert_done();
    assert_says("amax     F32 [1]: min 0, mean 0, max 0");
}

/* An 8-bit x of rank 3 with scales of the tensor, of rows and of groups. */
static void test_run_norms_read_scales(void **state) {
    (void)state;
    static const char *const modes[] = {"tensor", "row", "group --group-size 32"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        run("run quantize --in \"$CLNORM_SAMPLE\" --mode %s --repeat 1 --out q.safetensors --force", modes[i]);
        assert_done();
        run("%s", "run rms_norm --in q.safetensors x=q x_scale=scale --verify --repeat 1 --out y.safetensors --force");
        assert_done();
        assert_says("y F32 [4, 16, 384], rstd F32 [1, 64]");
        run("%s",
            "run layer_norm_backward --in q.safetensors --in \"$CLNORM_SAMPLE\" x=q x_scale=scale dy=x z=x --gate silu "
            "--outputs dx,dz,dweight,dbias,y --verify --repeat 1 --out dx.safetensors --force");
        assert_done();
        assert_says("dx BF16 [4, 16, 384], dweight");
        assert_says("verify   dz ");
        run("%s",
            "run rms_norm_backward --in q.safetensors --in \"$CLNORM_SAMPLE\" x=q x_scale=scale dy=x residual=x "
            "--dropout 0.25 --seed 1 --outputs dx,dresidual --dtype f32 --verify --repeat 1 --out dx.safetensors --force");
        assert_done();
        assert_says("dx F32 [4, 16, 384], dresidual BF16");
    }
    run("%s",
        "run layer_norm --in q.safetensors --in \"$CLNORM_SAMPLE\" x=q x_scale=scale z=x --gate silu --quantize row --verify --repeat 1 "
        "--out y.safetensors --force");
    assert_done();
    assert_says("y F8_E4M3 [4, 16, 384]");
    static const struct {
        const char *words;
        const char *part;
    } requests[] = {
        {"--in q.safetensors x=q", "x_scale: tensor 'q' (x) of dtype F8_E4M3 needs this tensor"},
        {"--in q.safetensors --in \"$CLNORM_SAMPLE\" x=x x_scale=scale",
         "expected F8_E4M3 or F8_E5M2, as there is an x_scale"},
        {"--in q.safetensors x=q x_scale=q", "tensor 'q' (x_scale): last size 384; expected a scale for 16, 32, 64 or 128"},
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        run("run rms_norm %s", requests[i].words);
        assert_failed(EXIT_REQUEST, requests[i].part);
        run("run rms_norm_backward dy=q %s", requests[i].words);
        assert_failed(EXIT_REQUEST, requests[i].part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_takes_scales_of_either_shape),
        cmocka_unit_test(test_run_slices),
        cmocka_unit_test(test_run_rows),
        cmocka_unit_test(test_run_channels),
        cmocka_unit_test(test_run_is_batch_invariant),
        cmocka_unit_test(test_run_quantises),
        cmocka_unit_test(test_run_norms_quantise),
        cmocka_unit_test(test_run_quantises_no_rows),
        cmocka_unit_test(test_run_norms_read_scales),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
