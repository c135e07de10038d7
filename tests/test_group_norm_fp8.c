/* Group and instance norm with tensors of 8 bits: y with a given or measured scale, x with its own scales, forward and
 * backward; refused descriptors; and the detection of wrong results. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "group_norm_case.h"
#include "group_norm_verify.h"
#include "reference/format.h"
#include "refusal.h"

enum { F32 = CLNORM_F32, F16 = CLNORM_F16, BF16 = CLNORM_BF16, F64 = CLNORM_F64 };
enum { E4M3 = CLNORM_F8_E4M3, E5M2 = CLNORM_F8_E5M2 };
enum { FIRST = CLNORM_LAYOUT_FIRST, LAST = CLNORM_LAYOUT_LAST };
enum { NORMAL = INPUT_NORMAL, FAR = INPUT_FAR, SPIKES = INPUT_SPIKES };
enum { GELU = CLNORM_ACTIVATION_GELU, SILU = CLNORM_ACTIVATION_SILU };
enum { TENSOR = CLNORM_SCALING_TENSOR, ROW = CLNORM_SCALING_ROW };

#define Y(dtype, shares, scales) \
    { .y = (dtype), .y_scaling = (shares), .y_scale = (scales) }
#define Y_GIVEN(dtype, scale) \
    { .y = (dtype), .y_scaling = TENSOR, .y_given = (scale) }
#define X(shares, scales) \
    { .x_scaling = (shares), .x_scale = (scales) }
#define BOTH(of_x, dtype, of_y) \
    { .x_scaling = (of_x), .x_scale = F32, .y = (dtype), .y_scaling = (of_y), .y_scale = F32 }

/* Each forward runs with the layout that it names, or with one of both in turn, as 8 bits take long to compile. Each
 * gradient runs with that layout, or with both. */
static const struct fp8_case {
    struct group_case c;
    struct group_more more;
} cases[] = {
    {{2, 64, 49, 8, 0, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""}, Y(E4M3, TENSOR, F32)},
    {{3, 17, 33, 17, 0, BF16, F32, F32, 0, 0, FAR, 5, 1, ""}, Y(E5M2, ROW, BF16)},
    {{2, 96, 100, 32, 0, F16, F16, F16, F16, SILU, NORMAL, 0, 0, ""}, Y(E4M3, ROW, F32)},
    {{2, 40, 257, 4, 0, F32, BF16, BF16, F32, GELU, SPIKES, 0, 0, ""}, Y_GIVEN(E4M3, 0.03)},
    {{1, 1, 1, 1, 0, F32, F32, 0, 0, 0, NORMAL, 0, 0, ""}, Y(E4M3, TENSOR, F32)},
    {{2, 3, 7, 1, 0, BF16, F32, F32, 0, 0, NORMAL, 0, 0, ""}, Y_GIVEN(E5M2, 1)},
    {{1, 4, 70000, 2, 0, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""}, Y(E4M3, TENSOR, BF16)},
    {{0, 8, 4, 2, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""}, Y(E4M3, ROW, F32)},
    {{2, 64, 49, 8, 0, E4M3, F32, F32, 0, SILU, NORMAL, 0, 0, ""}, X(TENSOR, F32)},
    {{3, 20, 33, 4, 0, E5M2, BF16, F32, BF16, 0, NORMAL, 3, 1, ""}, X(ROW, BF16)},
    {{2, 96, 100, 32, 0, E4M3, F32, F32, 0, GELU, NORMAL, 0, 0, ""}, BOTH(ROW, E5M2, TENSOR)},
    {{2, 16, 1000, 2, 0, E5M2, F32, 0, F32, 0, NORMAL, 0, 0, ""}, BOTH(TENSOR, E4M3, ROW)},
    {{3, 16, 64, 4, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=4,lanes=16,segments=2"}, Y(E4M3, ROW, F32)},
    {{3, 16, 64, 4, FIRST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=2,chunks=12"},
     Y(E4M3, TENSOR, F32)},
    {{3, 16, 64, 4, FIRST, E4M3, F32, F32, 0, SILU, FAR, 0, 0, "vec=8,lanes=64,segments=1,chunks=2,iterations=3"},
     BOTH(ROW, E4M3, ROW)},
    {{2, 8, 9, 2, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=4,lanes=1,chunks=20"}, Y(E5M2, ROW, F32)},
    {{2, 16, 1001, 2, FIRST, E4M3, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=16,lanes=8,segments=2,chunks=8"},
     BOTH(ROW, E4M3, ROW)},
    {{2, 16, 1001, 2, FIRST, F32, F32, F32, F32, 0, FAR, 0, 0, "stores=streaming,vec=16,lanes=4,segments=1,chunks=24"},
     Y(E5M2, TENSOR, F32)},
    {{2, 64, 1000, 4, FIRST, F32, F32, F32, 0, GELU, FAR, 0, 0, "vec=8,lanes=32,segments=2"}, Y(E4M3, TENSOR, F32)},
    {{2, 64, 1000, 4, FIRST, E4M3, F32, F32, BF16, 0, NORMAL, 0, 0, "vec=8,lanes=1024,segments=1"}, X(ROW, F32)},
    {{3, 48, 100, 4, LAST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=4,chunks=7"}, Y(E4M3, ROW, F32)},
    {{3, 50, 100, 5, LAST, F32, F32, F32, 0, 0, SPIKES, 0, 0, "vec=16,lanes=1,chunks=33,iterations=2"},
     Y(E4M3, TENSOR, F32)},
    {{2, 48, 9, 4, LAST, E5M2, BF16, F32, 0, SILU, NORMAL, 0, 0, "vec=8,lanes=4,segments=8,chunks=2"},
     BOTH(TENSOR, E5M2, TENSOR)},
    {{3, 48, 100, 4, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, "stores=streaming,vec=4,lanes=4"}, Y(E4M3, ROW, F32)},
    {{3, 64, 49, 4, LAST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=4,lanes=64,chunks=1"}, Y(E4M3, ROW, F32)},
    {{3, 3, 480, 3, LAST, E4M3, F32, F32, 0, SILU, NORMAL, 0, 0, ""}, BOTH(ROW, E4M3, ROW)},
    {{3, 5, 49, 5, LAST, E4M3, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=1,lanes=64,segments=1,chunks=1"},
     BOTH(ROW, E4M3, ROW)},
    {{2, 6, 640, 2, LAST, F32, F32, F32, 0, 0, FAR, 0, 0, "vec=4,lanes=8,segments=4,chunks=7"}, Y(E5M2, TENSOR, F32)},
    {{2, 256, 20, 4, LAST, E4M3, F32, F32, 0, 0, FAR, 0, 0, "vec=8,lanes=128,chunks=1"}, BOTH(ROW, E4M3, TENSOR)},
    {{9, 8, 3, 2, LAST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=4,chunks=1"}, Y(E4M3, ROW, F32)},
    {{5, 256, 2, 16, LAST, E4M3, F32, F32, 0, 0, FAR, 0, 0, "vec=4,lanes=32,segments=2,chunks=1"}, BOTH(ROW, E4M3, TENSOR)},
    {{3, 16, 64, 4, FIRST, E4M3, F32, F32, 0, GELU, FAR, 0, 0, "vec=8,lanes=16,segments=1,chunks=1"}, X(ROW, F32)},
};

/* The layout with which the i-th case runs. */
static int layout_of(size_t i) {
    return cases[i].c.layout ? cases[i].c.layout : i % 2 ? LAST : FIRST;
}

static void results_are_right(void **state) {
    const struct fixture *fixture = *state;
    unsigned ran = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct group_case c = cases[i].c;
        if (!group_case_takes(fixture, &c, layout_of(i), i))
            continue;
        struct group_run run = group_run_make_more(&c, &cases[i].more);
        if (!group_forward_execute(fixture, &run, false) || !group_forward_is_right(&run))
            group_case_fail(fixture, &c, i);
        group_run_free(&run);
        ran++;
    }
    assert_true(ran >= (fixture_is_slow(fixture) || fixture_is_quick() ? 3 : 20));
}

/* The gradients of an 8-bit x, with given statistics and without. */
static void gradients_are_right(void **state) {
    const struct fixture *fixture = *state;
    unsigned ran = 0;
    for (size_t i = 0; i < 4 * sizeof cases / sizeof *cases; i++) {
        struct group_case c = cases[i / 4].c;
        const struct group_more more = {.x_scaling = cases[i / 4].more.x_scaling, .x_scale = cases[i / 4].more.x_scale};
        const bool given = i / 2 % 2;
        if (!more.x_scaling || !group_case_takes_gradient(fixture, &c, i % 2 ? LAST : FIRST, i / 4, given))
            continue;
        c.residual = 0;
        struct group_run run = group_run_make_more(&c, &more);
        if (given)
            group_statistics_fill(&run);
        if (!group_backward_execute(fixture, &run, given, false) || !group_backward_is_right(&run, given))
            group_case_fail(fixture, &c, i / 4);
        group_run_free(&run);
        ran++;
    }
    assert_true(ran >= (fixture_is_quick() ? 1 : 4));
}

/* A code that is off by one and a scale that is off by 0.1% are detected. */
static void damage_is_seen(void **state) {
    const struct fixture *fixture = *state;
    const struct group_case c = {3, 16, 64, 4, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""};
    for (int scaling = TENSOR; scaling <= ROW; scaling++) {
        const struct group_more more = Y(E4M3, scaling, F32);
        struct group_run run = group_run_make_more(&c, &more);
        assert_true(group_forward_execute(fixture, &run, false) && group_forward_is_right(&run));
        unsigned char *const code = (unsigned char *)tensor_elements(&run.y) + 5;
        float *const scale = (float *)tensor_elements(&run.y_scale) + (scaling == ROW ? 2 : 0);
        *code ^= 1;
        assert_false(group_forward_is_right(&run));
        *code ^= 1;
        *scale *= 1.001F;
        assert_false(group_forward_is_right(&run));
        group_run_free(&run);
    }
}

/* NaNs do not count for the scale, and become codes 0x7f. Every two of layout, scaling and chunks are together. */
static void nans_do_not_count(void **state) {
    const struct fixture *fixture = *state;
    for (int i = 0; i < 4; i++) {
        const bool in_chunks = i == 1 || i == 2;
        const struct group_case c = {2, 16,     40, 4, i % 2 ? LAST : FIRST,       F32, F32, F32, 0,
                                     0, NORMAL, 0,  0, in_chunks ? "chunks=4" : ""};
        const struct group_more more = Y(E4M3, i & 2 ? ROW : TENSOR, F32);
        struct group_run run = group_run_make_more(&c, &more);
        ref_store(run.x.dtype, tensor_elements(&run.x), 0, NAN);
        assert_true(group_forward_execute(fixture, &run, false) && group_forward_is_right(&run));
        assert_int_equal(*(unsigned char *)tensor_elements(&run.y), 0x7f);
        group_run_free(&run);
    }
}

/* y over an x of its size, also where a pass before it measures the scale. */
static void in_place(void **state) {
    const struct fixture *fixture = *state;
    static const char *const configs[] = {"", "chunks=8"};
    for (int i = 0; i < 4; i++) {
        const struct group_case c = {2, 16,     64, 4, i % 2 ? LAST : FIRST, E4M3, F32, F32, 0,
                                     0, NORMAL, 0,  0, configs[i / 2]};
        const struct group_more more = BOTH(ROW, E4M3, TENSOR);
        struct group_run run = group_run_make_more(&c, &more), apart = group_run_make_more(&c, &more);
        assert_true(group_forward_execute(fixture, &run, true) && group_forward_execute(fixture, &apart, false));
        assert_memory_equal(tensor_elements(&run.x), tensor_elements(&apart.y), (size_t)2 * 16 * 64);
        group_run_free(&apart);
        group_run_free(&run);
    }
}

static void bad_scales_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_group_norm_desc good = CLNORM_GROUP_NORM_DESC_INIT;
    good.rows = 2;
    good.cols = 64;
    good.spatial = 16;
    good.groups = 4;
    good.y = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_GROUP, .scale_group = 64};
    assert_group_norm_refused(fixture, &good, CLNORM_UNSUPPORTED,
                              "desc.y.scaling is 3, CLNORM_SCALING_GROUP: expected a scale for the tensor");
    clnorm_group_norm_desc desc = good;
    desc.y = (clnorm_tensor){.dtype = CLNORM_F32};
    desc.x = good.y;
    assert_group_norm_refused(fixture, &desc, CLNORM_UNSUPPORTED,
                              "desc.x.scaling is 3, CLNORM_SCALING_GROUP: expected a scale for the tensor");
    desc.x.scaling = CLNORM_SCALING_NONE;
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_ENUM,
                              "desc.x.scaling is 0: expected a clnorm_scaling with a dtype of f8e4m3");
    desc.x = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_TENSOR};
    desc.y.dtype = CLNORM_DTYPE_NONE;
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_ENUM,
                              "desc.y.dtype is 0: expected f32, f16, bf16, f64, f8e4m3 or f8e5m2");
    desc = good;
    desc.y = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_ROW, .scale = 2};
    assert_group_norm_refused(fixture, &desc, CLNORM_INVALID_VALUE,
                              "desc.y.scale is 2: expected 0 without CLNORM_SCALING_TENSOR");
    clnorm_group_norm_backward_desc backward = CLNORM_GROUP_NORM_BACKWARD_DESC_INIT;
    clnorm_plan *plan = NULL;
    backward.rows = backward.cols = 4;
    backward.x = good.y;
    backward.dy.dtype = backward.dx.dtype = CLNORM_F32;
    assert_int_equal(clnorm_group_norm_backward_plan_create(fixture->context, &backward, &plan), CLNORM_UNSUPPORTED);
    assert_detail("desc.x.scaling is ");
    backward.x = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_TENSOR};
    backward.dx.dtype = CLNORM_DTYPE_NONE;
    assert_int_equal(clnorm_group_norm_backward_plan_create(fixture->context, &backward, &plan), CLNORM_INVALID_ENUM);
    assert_detail("desc.dx.dtype is 0: expected f32, f16, bf16 or f64");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right), cmocka_unit_test(gradients_are_right),
        cmocka_unit_test(damage_is_seen),    cmocka_unit_test(nans_do_not_count),
        cmocka_unit_test(in_place),          cmocka_unit_test(bad_scales_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
