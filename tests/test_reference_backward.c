/* The reference of the gradients against values worked out by hand, and against differences of the forward's reference. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "reference/reference.h"

static void assert_near(const char *name, int i, double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance * fmax(1, fabs(expected))))
        fail_msg("%s[%d] is %.17g, not %.17g", name, i, value, expected);
}

/* ---------------------------------------------------------------------------------------------------------- by hand */

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
    assert_near("c1", 0, gradients.c1, -0.25, 1e-15);
    assert_near("c2", 0, gradients.c2, 0.25, 1e-15);
    for (int i = 0; i < 4; i++)
        assert_near("dx", i, gradients.dx[i], dx[i], 1e-15);
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
    assert_near("c1", 0, gradients.c1, 5, 1e-15);
    assert_near("c2", 0, gradients.c2, 0, 0);
    for (int i = 0; i < 4; i++)
        assert_near("dx", i, gradients.dx[i], dx[i], 1e-15);
    ref_gradients_free(&gradients);
}

/* Rows 2 and 3 of four take the second row of the weight: with the first one, wdn is dy. */
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
            assert_near("dx", i, gradients.dx[i], row < 2 ? dx[i] : 3 * dx[i], 1e-15);
        assert_near("dn", 0, gradients.dn[0], 1, 1e-15);
        assert_near("xhat", 0, gradients.xhat[0], -1, 1e-15);
    }
    ref_gradients_free(&gradients);
}

/* A dy of {1, 0, 0, 0} through row_scale 2 and dropout 0.5: ds as above, times 4 where x was kept. dresidual_out is added
 * to ds before that. */
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
        assert_near("ds", i, gradients.ds[i], ds[i], 1e-15);
        assert_near("dx", i, gradients.dx[i], 4 * ds[i], 1e-15);
    }
    norm.s_given = true;
    norm.forward.x.elements = four;
    norm.forward.mask = some;
    ref_norm_backward_segment(&norm, 0, 0, &gradients);
    for (int i = 0; i < 4; i++)
        assert_near("dx of s", i, gradients.dx[i], i == 1 ? 0 : 4 * ds[i], 1e-15);
    ref_gradients_free(&gradients);
}

/* A gate of sigmoid(ln 3) = 3/4, of slope 3/16, after an n of {-1, -0.5, 0, 1.5}. dn is dy · 3/4 · activation′(n), which is
 * 1/2 at n = 0: c1 = 0 and c2 = 3/32 for a dy of {0, 0, 1, 0}. */
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
        assert_near("dn", i, gradients.dn[i], i == 2 ? 0.375 : 0, 1e-15);
        assert_near("dx", i, gradients.dx[i], 0.5 * (gradients.dn[i] - 0.09375), 1e-15);
        assert_near("dz", i, gradients.dz[i], 0, 1e-15);
    }
    norm.forward.activation = CLNORM_ACTIVATION_NONE;
    norm.dy.elements = (const double[4]){1, 0, 0, 2};
    ref_norm_backward_segment(&norm, 0, 0, &gradients);
    assert_near("dz", 0, gradients.dz[0], -0.1875, 1e-15);
    assert_near("dz", 3, gradients.dz[3], 2 * 1.5 * 0.1875, 1e-15);
    ref_gradients_free(&gradients);
}

/* y = x̂ · w + b with w = {1, 2, −1, 0.5} and b = 3: x̂ of {-1, -0.5, 0, 1.5} comes back, and dx is that of x. */
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
        assert_near("xhat", i, gradients.xhat[i], xhat[i], 1e-15);
        assert_near("dx", i, gradients.dx[i], dx[i], 1e-15);
    }
    ref_gradients_free(&gradients);
}

/* mean and rstd that are given are taken as they are. */
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
        assert_near("xhat", i, gradients.xhat[i], (four[i] - 2) / 4, 1e-15);
    assert_near("c1", 0, gradients.c1, -0.0625, 1e-15);
    assert_near("dx", 3, gradients.dx[3], 0.25 * (1 * 0.0625 - 0.25), 1e-15);
    ref_gradients_free(&gradients);
}

/* ------------------------------------------------------------------------------------------------------ differences */

enum { ROWS = 3, COLS = 10, GROUP = 5, STRIDE = 12, ELEMENTS = ROWS * STRIDE };

/* Three rows of two groups, in double. */
struct scene {
    double x[ELEMENTS], z[ELEMENTS], dy[ELEMENTS], weight[COLS], bias[COLS];
    double residual[ELEMENTS], dresidual_out[ELEMENTS], row_scale[ROWS];
    struct ref_norm_backward norm;
};

static void fill(double *values, size_t count, struct random *random) {
    for (size_t i = 0; i < count; i++)
        values[i] = random_normal(random);
}

/* gate: 0 none; 1 and 3 after the norm, 2 and 4 before it. */
static void scene_make(struct scene *scene, clnorm_norm kind, unsigned gate, bool affine) {
    struct random random = {gate * 2 + affine};
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.norm = kind;
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.group_size = GROUP;
    desc.x.stride = desc.z.stride = desc.dy.stride = STRIDE;
    desc.x.dtype = desc.weight.dtype = desc.bias.dtype = CLNORM_F64;
    desc.gate = (clnorm_gate)((gate + 1) / 2);
    desc.gate_first = gate == 2 || gate == 4;
    desc.weight_offset = affine ? 0.5 : 0;
    desc.eps = 0.01;
    fill(scene->x, ELEMENTS, &random);
    fill(scene->z, ELEMENTS, &random);
    fill(scene->dy, ELEMENTS, &random);
    fill(scene->weight, COLS, &random);
    fill(scene->bias, COLS, &random);
    scene->norm = ref_norm_backward_of(&desc);
    struct ref_norm *const forward = &scene->norm.forward;
    forward->x.elements = scene->x;
    forward->weight.elements = affine ? scene->weight : NULL;
    forward->bias.elements = affine ? scene->bias : NULL;
    forward->z.elements = scene->z;
    scene->norm.dy.elements = scene->dy;
}

/* Adds a residual that continues after the norm, and what is done to x before the sum. */
static void scene_fuse(struct scene *scene, clnorm_activation activation, unsigned sum) {
    struct random random = {99};
    struct ref_norm *const forward = &scene->norm.forward;
    forward->activation = activation;
    if (forward->gate_first)
        return;
    fill(scene->residual, ELEMENTS, &random);
    fill(scene->dresidual_out, ELEMENTS, &random);
    fill(scene->row_scale, ROWS, &random);
    forward->residual = ref_doubles(sum & 1 ? scene->residual : NULL, STRIDE);
    scene->norm.dresidual_out = ref_doubles(scene->dresidual_out, STRIDE);
    forward->dropout = sum & 2 ? 0.4 : 0;
    forward->row_scale = ref_doubles(sum & 4 ? scene->row_scale : NULL, ROWS);
    forward->seed = (clnorm_seed){sum, 1};
}

/* L = Σ dy · y + Σ dresidual_out · s, of which every gradient is one. */
static double loss(const struct scene *scene) {
    const struct ref_norm_backward *norm = &scene->norm;
    const struct ref_norm forward = ref_norm_forward(norm);
    struct ref_segment segment = ref_segment_make(GROUP);
    double sum = 0;
    for (uint64_t row = 0; row < ROWS; row++) {
        for (uint64_t group = 0; group < COLS / GROUP; group++) {
            ref_norm_segment(&forward, row, group, &segment);
            for (uint64_t i = 0; i < GROUP; i++)
                sum += scene->dy[row * STRIDE + group * GROUP + i] * segment.y[i] +
                       (norm->dresidual_out.elements ? scene->dresidual_out[row * STRIDE + group * GROUP + i] * segment.s[i]
                                                     : 0);
        }
    }
    ref_segment_free(&segment);
    return sum;
}

/* ∂L / ∂value, to an error of step². */
static double difference(const struct scene *scene, double *value) {
    const double step = 1e-5;
    const double kept = *value;
    *value = kept + step;
    const double above = loss(scene);
    *value = kept - step;
    const double below = loss(scene);
    *value = kept;
    return (above - below) / (2 * step);
}

/* Every gradient of one descriptor. */
static void check_scene(struct scene *scene) {
    struct ref_gradients gradients = ref_gradients_make(GROUP);
    double dweight[COLS] = {0};
    double dbias[COLS] = {0};
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLS; column++) {
            const int i = column % GROUP;
            const int at = row * STRIDE + column;
            if (i == 0)
                ref_norm_backward_segment(&scene->norm, (uint64_t)row, (uint64_t)(column / GROUP), &gradients);
            assert_near("dx", at, gradients.dx[i], difference(scene, &scene->x[at]), 1e-8);
            if (scene->norm.forward.residual.elements)
                assert_near("dresidual", at, gradients.ds[i], difference(scene, &scene->residual[at]), 1e-8);
            if (scene->norm.forward.gate)
                assert_near("dz", at, gradients.dz[i], difference(scene, &scene->z[at]), 1e-8);
            dweight[column] += gradients.dn[i] * gradients.xhat[i];
            dbias[column] += gradients.dn[i];
        }
    }
    for (int column = 0; scene->norm.forward.weight.elements != NULL && column < COLS; column++) {
        assert_near("dweight", column, dweight[column], difference(scene, &scene->weight[column]), 1e-8);
        assert_near("dbias", column, dbias[column], difference(scene, &scene->bias[column]), 1e-8);
    }
    ref_gradients_free(&gradients);
}

static void gradients_are_differences(void **state) {
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct scene scene;
        scene_make(&scene, i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, i / 4, i / 2 % 2);
        check_scene(&scene);
    }
}

static void fused_gradients_are_differences(void **state) {
    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        struct scene scene;
        scene_make(&scene, i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, i % 5, i / 2 % 2);
        scene_fuse(&scene, (clnorm_activation)(i % 4), i % 8);
        check_scene(&scene);
    }
}

/* Where x is s, dx is what comes of the same ds. */
static void rotated_gradients_are_differences(void **state) {
    (void)state;
    static const double angles[4] = {0.3, -1.1, 2.5, 0.7};
    double cosines[4], sines[4];
    for (int i = 0; i < 4; i++) {
        cosines[i] = cos(angles[i]);
        sines[i] = sin(angles[i]);
    }
    for (unsigned i = 0; i < 8; i++) {
        struct scene scene;
        scene_make(&scene, i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 0, i / 4);
        scene.norm.forward.rope = (struct ref_rope){.form = i / 2 % 2 ? CLNORM_ROPE_NEOX : CLNORM_ROPE_INTERLEAVED,
                                                    .dims = 4,
                                                    .positions = 2,
                                                    .repeat = 2,
                                                    .cos = ref_doubles(cosines, 2),
                                                    .sin = ref_doubles(sines, 2)};
        check_scene(&scene);
    }
}

static void given_s_has_the_same_gradients(void **state) {
    (void)state;
    struct scene scene;
    scene_make(&scene, CLNORM_LAYER_NORM, 1, true);
    scene_fuse(&scene, CLNORM_ACTIVATION_GELU, 7);
    struct ref_gradients gradients = ref_gradients_make(GROUP);
    struct ref_gradients given = ref_gradients_make(GROUP);
    ref_norm_backward_segment(&scene.norm, 1, 1, &gradients);
    double s[ELEMENTS];
    memcpy(s + STRIDE + GROUP, gradients.forward.s, GROUP * sizeof *s);
    scene.norm.forward.x.elements = s;
    scene.norm.forward.residual.elements = NULL;
    scene.norm.s_given = true;
    ref_norm_backward_segment(&scene.norm, 1, 1, &given);
    for (int i = 0; i < GROUP; i++) {
        assert_near("dx", i, given.dx[i], gradients.dx[i], 1e-15);
        assert_near("dresidual", i, given.ds[i], gradients.ds[i], 1e-15);
        assert_near("y", i, given.forward.y[i], gradients.forward.y[i], 1e-15);
    }
    ref_gradients_free(&gradients);
    ref_gradients_free(&given);
}

/* y is the forward's. */
static void y_is_the_forwards(void **state) {
    (void)state;
    for (unsigned gate = 0; gate < 5; gate++) {
        struct scene scene;
        scene_make(&scene, CLNORM_LAYER_NORM, gate, true);
        const struct ref_norm forward = ref_norm_forward(&scene.norm);
        struct ref_gradients gradients = ref_gradients_make(GROUP);
        struct ref_segment segment = ref_segment_make(GROUP);
        ref_norm_backward_segment(&scene.norm, 2, 1, &gradients);
        ref_norm_segment(&forward, 2, 1, &segment);
        for (int i = 0; i < GROUP; i++)
            assert_near("y", i, gradients.forward.y[i], segment.y[i], 1e-15);
        ref_segment_free(&segment);
        ref_gradients_free(&gradients);
    }
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
        cmocka_unit_test(layer_norm_by_hand),
        cmocka_unit_test(rms_norm_by_hand),
        cmocka_unit_test(weight_map_by_hand),
        cmocka_unit_test(residual_by_hand),
        cmocka_unit_test(gate_and_activation_by_hand),
        cmocka_unit_test(given_y_by_hand),
        cmocka_unit_test(given_statistics_by_hand),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(fused_gradients_are_differences),
        cmocka_unit_test(rotated_gradients_are_differences),
        cmocka_unit_test(given_s_has_the_same_gradients),
        cmocka_unit_test(y_is_the_forwards),
        cmocka_unit_test(defaults_are_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
