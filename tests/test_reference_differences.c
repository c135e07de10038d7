/* The reference's gradients agree with finite differences of its forward. */
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

/* Adds an activation, dresidual_out, and by the bits of sum a residual, dropout and row_scale. */
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

/* L = Σ dy · y + Σ dresidual_out · s: every gradient is one of L. */
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

/* With s given in place of x, ds and dx are the same. */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(fused_gradients_are_differences),
        cmocka_unit_test(rotated_gradients_are_differences),
        cmocka_unit_test(given_s_has_the_same_gradients),
        cmocka_unit_test(y_is_the_forwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
