/* The reference of the gradients agrees with values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/reference.h"

static void assert_near(const char *name, int i, double value, double expected) {
    if (!(fabs(value - expected) <= 1e-15 * fmax(1, fabs(expected))))
        fail_msg("%s[%d] is %.17g, not %.17g", name, i, value, expected);
}

/* {1, 2, 3, 6} has mean 3 and variance 3.5; with eps 0.5 its x̂ is {-1, -0.5, 0, 1.5}. */
static const double four[4] = {1, 2, 3, 6};

static struct ref_norm_backward small_norm(clnorm_norm kind, double eps) {
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.norm = kind;
    desc.rows = 1;
    desc.cols = 4;
    desc.x.dtype = desc.weight.dtype = CLNORM_F64;
    desc.eps = eps;
    struct ref_norm_backward norm = ref_norm_backward_of(&desc);
    norm.forward.x.elements = four;
    return norm;
}

static void layer_norm_by_hand(void **state) {
    (void)state;
    static const double dy[4] = {1, 0, 0, 0};
    static const double dx[4] = {0.25, -0.1875, -0.125, 0.0625};
    struct ref_norm_backward norm = small_norm(CLNORM_LAYER_NORM, 0.5);
    norm.dy.elements = dy;
    struct ref_gradients gradients = ref_gradients_make(4);
    ref_norm_backward_segment(&norm, 0, 0, &gradients);
    assert_near("c1", 0, gradients.c1, -0.25);
    assert_near("c2", 0, gradients.c2, 0.25);
    for (int i = 0; i < 4; i++)
        assert_near("dx", i, gradients.dx[i], dx[i]);
    ref_gradients_free(&gradients);
}

/* The mean square is 12.5: with eps 3.5, rstd is 1/4. */
static void rms_norm_by_hand(void **state) {
    (void)state;
    static const double weight[4] = {1, 2, -1, 0.5};
    static const double dy[4] = {4, 0, -4, 8};
    /* wdn is {8, 0, 0, 12} with an offset of 1, x̂ is x / 4, c1 = (2 + 18) / 4 */
    static const double dx[4] = {0.25 * (8 - 1.25), 0.25 * -2.5, 0.25 * -3.75, 0.25 * (12 - 7.5)};
    struct ref_norm_backward norm = small_norm(CLNORM_RMS_NORM, 3.5);
    norm.forward.weight.elements = weight;
    norm.forward.weight_offset = 1;
    norm.dy.elements = dy;
    struct ref_gradients gradients = ref_gradients_make(4);
    ref_norm_backward_segment(&norm, 0, 0, &gradients);
    assert_near("c1", 0, gradients.c1, 5);
    assert_true(gradients.c2 == 0);
    for (int i = 0; i < 4; i++)
        assert_near("dx", i, gradients.dx[i], dx[i]);
    ref_gradients_free(&gradients);
}

/* Rows 0 and 1 of four have the first row of the weight, with which wdn is dy; rows 2 and 3 have the second. */
static void weight_map_by_hand(void **state) {
    (void)state;
    static const double weight[8] = {1, 1, 1, 1, 3, 0, 0, 0}, dy[4] = {1, 0, 0, 0};
    static const double dx[4] = {0.25, -0.1875, -0.125, 0.0625}; /* as above, for a wdn of {1, 0, 0, 0} */
    struct ref_norm_backward norm = small_norm(CLNORM_LAYER_NORM, 0.5);
    norm.forward.x = ref_doubles(four, 0); /* of every row */
    norm.dy = ref_doubles(dy, 0);
    norm.forward.weight = ref_doubles(weight, 4);
    norm.forward.weight_rows = 2;
    norm.forward.weight_repeat = 2;
    struct ref_gradients gradients = ref_gradients_make(4);
    for (uint64_t row = 0; row < 4; row++) {
        ref_norm_backward_segment(&norm, row, 0, &gradients);
        for (int i = 0; i < 4; i++)
            assert_near("dx", i, gradients.dx[i], row < 2 ? dx[i] : 3 * dx[i]);
        assert_near("dn", 0, gradients.dn[0], 1);
        assert_near("xhat", 0, gradients.xhat[0], -1);
    }
    ref_gradients_free(&gradients);
}

/* With row_scale 2 and dropout 0.5, dx is 4 ds where x was kept. ds is that of layer_norm_by_hand and dresidual_out. */
static void residual_by_hand(void **state) {
    (void)state;
    static const double dy[4] = {1, 0, 0, 0}, row_scale = 2, dresidual_out[4] = {0, 1, 0, 1};
    static const double x[4] = {0.25, 0.5, 0.75, 1.5}; /* x · 4 is {1, 2, 3, 6} */
    static const unsigned char mask[4] = {1, 1, 1, 1}, some[4] = {1, 0, 1, 1};
    static const double ds[4] = {0.25, 1 - 0.1875, -0.125, 1.0625};
    struct ref_norm_backward norm = small_norm(CLNORM_LAYER_NORM, 0.5);
    norm.dy.elements = dy;
    norm.dresidual_out = ref_doubles(dresidual_out, 4);
    norm.forward.x.elements = x;
    norm.forward.row_scale = ref_doubles(&row_scale, 1);
    norm.forward.dropout = 0.5;
    norm.forward.mask = mask;
    struct ref_gradients gradients = ref_gradients_make(4);
    ref_norm_backward_segment(&norm, 0, 0, &gradients);
    for (int i = 0; i < 4; i++) {
        assert_near("ds", i, gradients.ds[i], ds[i]);
        assert_near("dx", i, gradients.dx[i], 4 * ds[i]);
    }
    norm.s_given = true;
    norm.forward.x.elements = four;
    norm.forward.mask = some;
    ref_norm_backward_segment(&norm, 0, 0, &gradients);
    for (int i = 0; i < 4; i++)
        assert_near("dx of s", i, gradients.dx[i], i == 1 ? 0 : 4 * ds[i]);
    ref_gradients_free(&gradients);
}

/* A gate of sigmoid(ln 3) = 3/4, with slope 3/16, and n = {-1, -0.5, 0, 1.5}. dn is dy · 3/4 · activation′(n), and
 * activation′(0) is 1/2. With dy = {0, 0, 1, 0}, c1 = 0 and c2 = 3/32. */
static void gate_and_activation_by_hand(void **state) {
    (void)state;
    static const double dy[4] = {0, 0, 1, 0};
    const double z[4] = {log(3), log(3), log(3), log(3)};
    struct ref_norm_backward norm = small_norm(CLNORM_LAYER_NORM, 0.5);
    norm.dy.elements = dy;
    norm.forward.z = ref_doubles(z, 4);
    norm.forward.gate = CLNORM_GATE_SIGMOID;
    norm.forward.activation = CLNORM_ACTIVATION_SILU;
    struct ref_gradients gradients = ref_gradients_make(4);
    ref_norm_backward_segment(&norm, 0, 0, &gradients);
    for (int i = 0; i < 4; i++) {
        assert_near("dn", i, gradients.dn[i], i == 2 ? 0.375 : 0);
        assert_near("dx", i, gradients.dx[i], 0.5 * (gradients.dn[i] - 0.09375));
        assert_near("dz", i, gradients.dz[i], 0);
    }
    norm.forward.activation = CLNORM_ACTIVATION_NONE;
    norm.dy.elements = (const double[4]){1, 0, 0, 2};
    ref_norm_backward_segment(&norm, 0, 0, &gradients);
    assert_near("dz", 0, gradients.dz[0], -0.1875);
    assert_near("dz", 3, gradients.dz[3], 2 * 1.5 * 0.1875);
    ref_gradients_free(&gradients);
}

/* y = x̂ · w + b with w = {1, 2, −1, 0.5} and b = 3: x̂ = {-1, -0.5, 0, 1.5} is recovered. */
static void given_y_by_hand(void **state) {
    (void)state;
    static const double weight[4] = {1, 2, -1, 0.5}, bias[4] = {3, 3, 3, 3}, y[4] = {2, 2, 3, 3.75};
    static const double dy[4] = {1, 0, 0, 0}, rstd = 0.5;
    static const double dx[4] = {0.25, -0.1875, -0.125, 0.0625};
    struct ref_norm_backward norm = small_norm(CLNORM_LAYER_NORM, 0.5);
    norm.forward.x.elements = y;
    norm.forward.weight.elements = weight;
    norm.forward.bias = ref_doubles(bias, 4);
    norm.dy.elements = dy;
    norm.rstd.elements = &rstd;
    norm.y_given = true;
    struct ref_gradients gradients = ref_gradients_make(4);
    ref_norm_backward_segment(&norm, 0, 0, &gradients);
    const double xhat[4] = {-1, -0.5, 0, 1.5};
    for (int i = 0; i < 4; i++) {
        assert_near("xhat", i, gradients.xhat[i], xhat[i]);
        assert_near("dx", i, gradients.dx[i], dx[i]);
    }
    ref_gradients_free(&gradients);
}

/* Given mean and rstd are used, not those of x. */
static void given_statistics_by_hand(void **state) {
    (void)state;
    static const double dy[4] = {1, 0, 0, 0};
    static const double mean = 2;
    static const double rstd = 0.25;
    struct ref_norm_backward norm = small_norm(CLNORM_LAYER_NORM, 0.5);
    norm.dy.elements = dy;
    norm.mean.elements = &mean;
    norm.rstd.elements = &rstd;
    struct ref_gradients gradients = ref_gradients_make(4);
    ref_norm_backward_segment(&norm, 0, 0, &gradients);
    for (int i = 0; i < 4; i++)
        assert_near("xhat", i, gradients.xhat[i], (four[i] - 2) / 4);
    assert_near("c1", 0, gradients.c1, -0.0625);
    assert_near("dx", 3, gradients.dx[3], 0.25 * (1 * 0.0625 - 0.25));
    ref_gradients_free(&gradients);
}

static void defaults_are_completed(void **state) {
    (void)state;
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.cols = 12;
    desc.dx.stride = 13;
    desc.x.dtype = CLNORM_BF16;
    desc.reduction = (clnorm_reduction)0;
    const clnorm_norm_backward_desc complete = ref_norm_backward_complete(&desc);
    assert_int_equal(complete.group_size, 12);
    assert_int_equal(complete.x.stride, 12);
    assert_int_equal(complete.dx.stride, 13);
    assert_int_equal(complete.dy.dtype, CLNORM_BF16);
    assert_int_equal(complete.dx.dtype, CLNORM_DTYPE_NONE);
    assert_int_equal(complete.reduction, CLNORM_REDUCTION_PARTIAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_norm_by_hand),          cmocka_unit_test(rms_norm_by_hand),
        cmocka_unit_test(weight_map_by_hand),          cmocka_unit_test(residual_by_hand),
        cmocka_unit_test(gate_and_activation_by_hand), cmocka_unit_test(given_y_by_hand),
        cmocka_unit_test(given_statistics_by_hand),    cmocka_unit_test(defaults_are_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
