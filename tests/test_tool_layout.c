/* `clnorm run` with outer dimensions of tensors and several rows of weights: --outer and --weight-repeat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensor_write.h"
#include "tool_process.h"

/* Weight and bias have shape [R, cols], and so have their gradients. */
static void test_run_shares_weights(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 24, 10);
    put_tensor("dy.npy", "dy", "F32", 2, 24, 10);
    put_tensor("weight.npy", "weight", "F32", 2, 4, 10);
    put_tensor("bias.npy", "bias", "F32", 2, 4, 10);
    put_tensor("three.npy", "three", "F32", 2, 3, 10);
    put_tensor("one.npy", "one", "F32", 1, 10, 0);
    run("%s", "run layer_norm --in x.npy --in weight.npy --in bias.npy --verify --repeat 1");
    assert_done();
    assert_says("weight   F32 [4, 10]");
    run("%s", "run rms_norm_backward --in x.npy --in dy.npy --in bias.npy --weight-repeat 3 --verify --repeat 1");
    assert_done();
    assert_says("verify   dbias ");
    assert_says("dbias    F32 [4, 10]");
    run("%s", "run layer_norm_backward --in x.npy --in dy.npy --in weight.npy --in bias.npy --weight-repeat 6 --verify "
              "--repeat 1 --reduction locked --out dweight.safetensors");
    assert_done();
    assert_says("dweight  F32 [4, 10]");
    run("%s", "run l2_norm --in x.npy --in weight.npy --weight-repeat 2 --verify --repeat 1");
    assert_done();
    run("%s", "run l2_norm_backward --in x.npy --in dy.npy --in weight.npy --weight-repeat 3 --verify --repeat 1");
    assert_done();
    assert_says("dweight  F32 [4, 10]");
    static const struct refused_words requests[] = {
        {"rms_norm --in x.npy --in weight.npy --weight-repeat 5",
         "tensor 'weight': shape [4, 10] with --weight-repeat 5; expected a product that divides x's 24 rows"},
        {"rms_norm --in x.npy --in weight.npy --weight-repeat 0", "--weight-repeat 0: expected 1 or more"},
        {"rms_norm --in x.npy --in weight.npy --in three.npy bias=three",
         "tensor 'three' (bias): shape [3, 10]; expected [4, 10]"},
        {"rms_norm --in x.npy --in weight.npy --in one.npy bias=one", "tensor 'one' (bias): shape [10]; expected [4, 10]"},
        {"rms_norm --in x.npy --in one.npy weight=one --weight-repeat 2",
         "--weight-repeat 2: expected a weight or bias of shape [R, 10] too"},
        {"l2_norm --in x.npy --in weight.npy --weight-repeat 4",
         "tensor 'weight': shape [4, 10] with --weight-repeat 4; expected a product that divides x's 24 rows"},
        {"group_norm --groups 2 --in x.npy --in weight.npy", "tensor 'weight' (weight): shape [4, 10]; expected [10]"},
        {"gelu --in x.npy --weight-repeat 2", "--weight-repeat: gelu has no such option"},
    };
    assert_each_refused("run", requests, sizeof requests / sizeof *requests);
}

/* The results do not depend on the layout of rows on the device. */
static void test_run_lays_rows_out(void **state) {
    (void)state;
    static const char *const layouts[] = {"", "--outer 'x=4:20000,16:384;y=64:500'", "--outer 'y=16:384,4:6144;x=64:385'"};
    char first[MOST_TEXT] = "";
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        run("run layer_norm --in \"$CLNORM_SAMPLE\" --verify --repeat 1 --config vec=1 %s --json", layouts[i]);
        assert_done();
        json_t *const object = json_of(result.out);
        char *const outputs = json_dumps(json_object_get(object, "outputs"), JSON_SORT_KEYS);
        assert_non_null(outputs);
        if (i)
            assert_string_equal(outputs, first);
        (void)snprintf(first, sizeof first, "%s", outputs);
        free(outputs);
        json_decref(object);
    }
    static const struct {
        const char *words, *says;
    } bad[] = {
        {"layer_norm --outer 'x=64:0'", "--outer x: row 0 of tensor 'x' shares memory with a later row"},
        {"layer_norm --outer 'x=5:10'", "--outer x: sizes of 5 rows; expected x's 64"},
        {"layer_norm --outer 'weight=4:16'", "expected ROLE=… of a tensor of x's shape that layer_norm has"},
        {"layer_norm --outer 'y=64:100'", "desc.y.outer[0].stride is 100: expected at least 384"},
        {"layer_norm --outer 'x=64:1:384'", "whose normalised dimension is not the last must be copied first"},
        {"layer_norm --outer 'x=1:1,1:1,1:1,64:384'", "up to three sizes"},
        {"layer_norm --outer 'x=2:9,32:400;y=64:400;x=64:400'",
         "--outer 'x=64:400': x is given twice; expected each role once"},
        {"layer_norm --outer 'x=64:9223372036854775807'", "--outer x: strides of 2^63 bytes or more"},
        {"group_norm --groups 4 --outer 'x=4:9000'", "--outer: group_norm has no such option"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        run("run %s --in \"$CLNORM_SAMPLE\"", bad[i].words);
        assert_failed(EXIT_REQUEST, bad[i].says);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_shares_weights),
        cmocka_unit_test(test_run_lays_rows_out),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
