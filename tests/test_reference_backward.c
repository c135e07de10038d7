/* The reference of the gradients against values worked out by hand, and against differences of the forward's reference. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "reference_backward.h"

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
    desc.x_dtype = desc.weight_dtype = CLNORM_F64;
    desc.eps = eps;
    return (struct ref_norm_backward){.desc = ref_norm_backward_complete(&desc), .x = four};
}

static void layer_norm_by_hand(void **state) {
    (void)state;
    static const double dy[4] = {1, 0, 0, 0};
    static const double dx[4] = {0.25, -0.1875, -0.125, 0.0625};
    struct ref_norm_backward norm = small_norm(CLNORM_LAYER_NORM, 0.5);
    norm.dy = dy;
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
    norm.weight = weight;
    norm.desc.weight_offset = 1;
    norm.dy = dy;
    struct ref_gradients gradients = ref_gradients_make(4);
    ref_norm_backward_segment(&norm, 0, 0, &gradients);
    assert_near("c1", 0, gradients.c1, 5, 1e-15);
    assert_near("c2", 0, gradients.c2, 0, 0);
    for (int i = 0; i < 4; i++)
        assert_near("dx", i, gradients.dx[i], dx[i], 1e-15);
    ref_gradients_free(&gradients);
}

/* mean and rstd that are given are taken as they are. */
static void given_statistics_by_hand(void **state) {
    (void)state;
    static const double dy[4] = {1, 0, 0, 0};
    static const double mean = 2;
    static const double rstd = 0.25;
    struct ref_norm_backward norm = small_norm(CLNORM_LAYER_NORM, 0.5);
    norm.dy = dy;
    norm.mean = &mean;
    norm.rstd = &rstd;
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
    desc.x_stride = desc.z_stride = desc.dy_stride = STRIDE;
    desc.x_dtype = desc.weight_dtype = desc.bias_dtype = CLNORM_F64;
    desc.gate = (clnorm_gate)((gate + 1) / 2);
    desc.gate_first = gate == 2 || gate == 4;
    desc.weight_offset = affine ? 0.5 : 0;
    desc.eps = 0.01;
    fill(scene->x, ELEMENTS, &random);
    fill(scene->z, ELEMENTS, &random);
    fill(scene->dy, ELEMENTS, &random);
    fill(scene->weight, COLS, &random);
    fill(scene->bias, COLS, &random);
    scene->norm = (struct ref_norm_backward){.desc = ref_norm_backward_complete(&desc),
                                             .x = scene->x,
                                             .weight = affine ? scene->weight : NULL,
                                             .bias = affine ? scene->bias : NULL,
                                             .z = scene->z,
                                             .dy = scene->dy};
}

/* With a residual that goes on behind the norm, and what is done to x before it is added to it. */
static void scene_fuse(struct scene *scene, clnorm_activation activation, unsigned sum) {
    struct random random = {99};
    struct ref_norm_backward *norm = &scene->norm;
    norm->desc.activation = activation;
    if (norm->desc.gate_first)
        return;
    fill(scene->residual, ELEMENTS, &random);
    fill(scene->dresidual_out, ELEMENTS, &random);
    fill(scene->row_scale, ROWS, &random);
    norm->desc.residual_stride = norm->desc.dresidual_out_stride = STRIDE;
    norm->desc.residual_dtype = sum & 1 ? CLNORM_F64 : CLNORM_DTYPE_NONE;
    norm->residual = sum & 1 ? scene->residual : NULL;
    norm->desc.dresidual_out_dtype = CLNORM_F64;
    norm->dresidual_out = scene->dresidual_out;
    norm->desc.dropout = sum & 2 ? 0.4 : 0;
    norm->desc.row_scale = sum & 4;
    norm->row_scale = sum & 4 ? scene->row_scale : NULL;
    norm->seed = (clnorm_seed){sum, 1};
}

/* L = Σ dy · y + Σ dresidual_out · s, of which every gradient is one. */
static double loss(const struct scene *scene) {
    const struct ref_norm_backward *norm = &scene->norm;
    const struct ref_norm forward = ref_forward_operands(norm);
    struct ref_segment segment = ref_segment_make(GROUP);
    double sum = 0;
    for (uint64_t row = 0; row < ROWS; row++) {
        for (uint64_t group = 0; group < COLS / GROUP; group++) {
            ref_norm_segment(&forward, row, group, &segment);
            for (uint64_t i = 0; i < GROUP; i++)
                sum += scene->dy[row * STRIDE + group * GROUP + i] * segment.y[i] +
                       (norm->dresidual_out ? scene->dresidual_out[row * STRIDE + group * GROUP + i] * segment.s[i] : 0);
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
            if (scene->norm.residual)
                assert_near("dresidual", at, gradients.ds[i], difference(scene, &scene->residual[at]), 1e-8);
            if (scene->norm.desc.gate)
                assert_near("dz", at, gradients.dz[i], difference(scene, &scene->z[at]), 1e-8);
            dweight[column] += gradients.dn[i] * gradients.xhat[i];
            dbias[column] += gradients.dn[i];
        }
    }
    for (int column = 0; scene->norm.weight != NULL && column < COLS; column++) {
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
    scene.norm.x = s;
    scene.norm.residual = NULL;
    scene.norm.desc.residual_dtype = CLNORM_DTYPE_NONE;
    scene.norm.desc.s_given = true;
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
        const struct ref_norm forward = ref_forward_operands(&scene.norm);
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
    desc.dx_stride = 13;
    desc.x_dtype = CLNORM_BF16;
    desc.reduction = (clnorm_reduction)0;
    const clnorm_norm_backward_desc complete = ref_norm_backward_complete(&desc);
    assert_int_equal(complete.group_size, 12);
    assert_int_equal(complete.x_stride, 12);
    assert_int_equal(complete.dx_stride, 13);
    assert_int_equal(complete.dy_dtype, CLNORM_BF16);
    assert_int_equal(complete.dx_dtype, CLNORM_DTYPE_NONE);
    assert_int_equal(complete.reduction, CLNORM_REDUCTION_PARTIAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_norm_by_hand),
        cmocka_unit_test(rms_norm_by_hand),
        cmocka_unit_test(given_statistics_by_hand),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(fused_gradients_are_differences),
        cmocka_unit_test(given_s_has_the_same_gradients),
        cmocka_unit_test(y_is_the_forwards),
        cmocka_unit_test(defaults_are_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
