/* `clnorm run` of norms with --rope. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tensor_write.h"
#include "tool_process.h"

/* A file of count positions: zeros, and last as the last one. */
static void put_positions(const char *path, const char *name, const char *element, uint64_t count, int64_t last) {
    struct tensor tensor = {.name = name, .element = element_by_name(element), .rank = 1, .shape = {count}};
    assert_true(tensor_measure(&tensor));
    unsigned char *const bytes = calloc(1, tensor.size);
    assert_non_null(bytes);
    const int32_t narrow = (int32_t)last;
    if (tensor.element->bits == 64)
        memcpy(bytes + (count - 1) * sizeof last, &last, sizeof last);
    else
        memcpy(bytes + (count - 1) * sizeof narrow, &narrow, sizeof narrow);
    tensor.data = bytes;
    const struct tensor *const tensors[] = {&tensor};
    struct fault fault = {0};
    assert_true(tensor_write(path, tensors, 1, &fault));
    free(bytes);
}

/* QK-norm: heads as groups, and as rows. */
static void test_run_rotates(void **state) {
    (void)state;
    put_tensor("x.npy", "x", "F32", 2, 6, 24);
    put_tensor("dy.npy", "dy", "F32", 2, 6, 24);
    put_tensor("rope_cos.npy", "rope_cos", "F32", 2, 8, 4);
    put_tensor("rope_sin.npy", "rope_sin", "F32", 2, 8, 4);
    put_tensor("three.npy", "three", "F32", 2, 8, 3);
    put_tensor("two.npy", "two", "F16", 2, 2, 4);
    put_positions("position.npy", "position", "I64", 6, 7);
    put_positions("tokens.npy", "tokens", "I32", 3, 5);
    put_positions("wild.npy", "wild", "I32", 6, -1);
    put_positions("far.npy", "far", "I64", 6, INT64_C(1) << 40);
    const char *const tables = "--in rope_cos.npy --in rope_sin.npy --verify --repeat 1";
    run("run rms_norm --in x.npy --group-size 8 --rope neox --in position.npy %s", tables);
    assert_done();
    assert_says("position I32 [6]");
    run("run layer_norm --in x.npy --group-size 12 --rope interleaved %s", tables);
    assert_done();
    run("run layer_norm_backward --in x.npy --in dy.npy --rope neox --rope-dims 8 --rope-heads 2 --in tokens.npy "
        "position=tokens %s",
        tables);
    assert_done();
    assert_says("verify   dx ");
    /* q of 2 heads, packed with k and v, with a weight for each head; the heads are y's outermost dimension */
    put_tensor("heads.npy", "heads", "F32", 2, 2, 24);
    run("run rms_norm --in x.npy --in heads.npy weight=heads --rope neox --rope-dims 8 --rope-heads 2 --in tokens.npy "
        "position=tokens --outer 'x=3:144,2:24;y=3:24,2:72' %s",
        tables);
    assert_done();
    static const struct {
        const char *words;
        const char *part;
    } requests[] = {
        {"--rope half", "--rope 'half': expected neox or interleaved"},
        {"--group-size 8", "tensor 'rope_cos' (rope_cos): it is read only with --rope"},
        {"--rope-dims 4", "--rope-dims 4: expected a --rope too"},
        {"--rope-heads 2", "--rope-heads 2: expected a --rope too"},
        {"--rope neox rope_sin=", "rope_sin: --rope needs this tensor, of shape [positions, rope_dims / 2]"},
        {"--rope neox --in three.npy rope_sin=three", "tensor 'three' (rope_sin): shape [8, 3]; expected [8, 4]"},
        {"--rope neox --rope-dims 6", "tensor 'rope_cos' (rope_cos): shape [8, 4]; expected [8, 3]"},
        {"--rope neox --rope-dims 5", "--rope-dims 5 (twice the columns of rope_cos): expected an even number"},
        {"--rope neox --group-size 4", "--rope-dims 8 (twice the columns of rope_cos): expected an even number, at most "
                                       "the 4 columns of a group"},
        {"--rope neox --in two.npy rope_cos=two rope_sin=two",
         "tensor 'two' (rope_cos): shape [2, 4]; expected at least 6 positions, or a tensor position"},
        {"--rope neox --in tokens.npy position=tokens", "tensor 'tokens' (position): shape [3]; expected 6 elements"},
        {"--rope neox position=x", "tensor 'x' (position): dtype F32; expected I32 or I64"},
        {"--rope neox --in wild.npy position=wild",
         "tensor 'wild' (position): [5] is -1; expected 0 to 7, a row of rope_cos"},
        {"--rope neox --in far.npy position=far", "tensor 'far' (position): [5] is 1099511627776; expected 0 to 7"},
        {"--rope neox --activation silu", "desc.activation is set: expected none with desc.rope"},
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        run("run rms_norm --in x.npy %s %s", tables, requests[i].words);
        assert_failed(i + 1 < sizeof requests / sizeof *requests ? EXIT_REQUEST : EXIT_FAILED, requests[i].part);
    }
    run("%s", "run gelu --in x.npy --rope neox");
    assert_failed(EXIT_REQUEST, "--rope: gelu has no such option");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_run_rotates)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
