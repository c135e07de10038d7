/* Group and instance norm, forward, against the reference in double: shapes, layouts, dtypes, activations; and the
 * detection of wrong results. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "group_norm_case.h"
#include "group_norm_verify.h"
#include "plan/plan.h"
#include "reference/format.h"
#include "reference/group_norm.h"

enum { F32 = CLNORM_F32, F16 = CLNORM_F16, BF16 = CLNORM_BF16, F64 = CLNORM_F64 };
enum { FIRST = CLNORM_LAYOUT_FIRST, LAST = CLNORM_LAYOUT_LAST };
enum { NORMAL = INPUT_NORMAL, FAR = INPUT_FAR, SPIKES = INPUT_SPIKES, WIDE = INPUT_WIDE, CONSTANT = INPUT_CONSTANT };
enum { GELU = CLNORM_ACTIVATION_GELU, TANH = CLNORM_ACTIVATION_GELU_TANH, SILU = CLNORM_ACTIVATION_SILU };

/* Each runs with both layouts, or with the one layout that it names. */
static const struct group_case cases[] = {
    {2, 64, 49, 8, 0, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""},
    {1, 1, 1, 1, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {3, 3, 1, 3, 0, F32, F32, 0, 0, 0, NORMAL, 0, 0, ""},
    {2, 3, 7, 1, 0, F32, F32, F32, 0, GELU, NORMAL, 0, 0, ""},
    {2, 320, 64, 32, 0, BF16, BF16, F32, 0, SILU, NORMAL, 0, 0, ""},
    {2, 96, 100, 32, 0, F16, F16, F16, F16, SILU, NORMAL, 0, 0, ""},
    {2, 40, 257, 4, 0, F32, BF16, BF16, F32, TANH, NORMAL, 0, 0, ""},
    {3, 17, 33, 17, 0, BF16, F32, F32, 0, 0, FAR, 0, 0, ""},
    {2, 32, 81, 4, 0, F64, F64, F64, F64, GELU, NORMAL, 0, 0, ""},
    {2, 64, 128, 8, 0, F32, F32, F32, 0, 0, FAR, 5, 1, ""},
    {2, 64, 128, 8, 0, F32, F32, F32, 0, 0, SPIKES, 0, 0, ""},
    {2, 24, 500, 3, 0, F32, F32, F32, 0, 0, WIDE, 0, 3, ""},
    {2, 24, 130, 3, 0, F32, F32, F32, 0, 0, CONSTANT, 0, 0, ""},
    {1, 4, 70000, 2, 0, F32, F32, F32, 0, SILU, FAR, 0, 0, ""},
    {1, 2048, 3, 1, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {1, 6, 300001, 1, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {0, 8, 4, 2, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {37, 96, 1, 6, 0, F32, F32, F32, F32, SILU, FAR, 0, 1, ""},
    {5, 45, 1, 5, 0, BF16, BF16, F32, BF16, GELU, NORMAL, 0, 0, ""},
    {6, 64, 1, 1, 0, F16, F32, F16, 0, 0, SPIKES, 0, 3, ""},
    {6, 48, 1, 3, 0, F64, F64, F64, F64, TANH, NORMAL, 0, 0, ""},
    {6, 48, 1, 3, 0, F32, F32, F32, 0, 0, NORMAL, 5, 0, ""},
    {0, 48, 1, 3, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {2, 1, 50176, 1, FIRST, F32, F32, F32, 0, SILU, FAR, 0, 0, ""},
    {2, 3, 4800, 3, LAST, F32, F32, F32, 0, 0, FAR, 0, 0, ""}, /* few channels: a row has several positions */
    {3, 3, 480, 1, LAST, BF16, F16, F16, BF16, SILU, NORMAL, 0, 1, ""},
    {2, 4, 1000, 2, LAST, F16, F16, F32, 0, 0, SPIKES, 0, 0, ""},
    {2, 5, 1369, 5, LAST, F32, F32, 0, 0, GELU, WIDE, 3, 0, ""},
    {2, 3, 36, 3, LAST, F64, F64, F64, F64, SILU, NORMAL, 0, 0, ""},
    {2, 12, 300, 4, LAST, BF16, BF16, BF16, 0, 0, FAR, 0, 0, ""},
    {7, 24, 9, 4, FIRST, BF16, BF16, BF16, BF16, SILU, FAR, 0, 0, ""}, /* small images, which are rows */
    {5, 12, 31, 12, FIRST, F16, F32, F16, 0, 0, NORMAL, 0, 0, ""},
    {4, 10, 2, 1, FIRST, F64, F64, F64, F64, TANH, NORMAL, 0, 3, ""},
};

static void results_are_right(void **state) {
    const struct fixture *fixture = *state;
    const unsigned ran = group_forward_check_cases(fixture, cases, sizeof cases / sizeof *cases);
    assert_true(ran >= (fixture_is_slow(fixture) ? 4 : 10));
}

static void assert_kernel(const struct fixture *fixture, const clnorm_group_norm_desc *desc, const char *name,
                          clnorm_config *chosen) {
    clnorm_plan *plan = NULL;
    if (clnorm_group_norm_plan_create(fixture->context, desc, &plan))
        fail_msg("%s", clnorm_error_detail());
    assert_string_equal(plan->stage[0].name, name);
    clnorm_plan_config(plan, chosen);
    clnorm_plan_destroy(plan);
}

/* Small images have the kernel of rows, also in the config that was chosen for them, but not in one of images. */
static void small_images_are_rows(void **state) {
    clnorm_group_norm_desc desc = CLNORM_GROUP_NORM_DESC_INIT;
    clnorm_config chosen;
    desc.rows = 40;
    desc.cols = 32;
    desc.spatial = 4;
    desc.groups = 8;
    assert_kernel(*state, &desc, "norm_forward", &chosen);
    desc.config = chosen;
    assert_kernel(*state, &desc, "norm_forward", &chosen);
    assert_int_equal(clnorm_config_parse("lanes=1", &desc.config), CLNORM_SUCCESS);
    assert_kernel(*state, &desc, "group_norm", &chosen);
    desc.config = chosen;
    assert_kernel(*state, &desc, "group_norm", &chosen);
    desc.config = (clnorm_config){{0}};
    static const struct {
        uint64_t spatial, groups;
        const char *kernel;
    } limits[] = {{32, 8, "norm_forward"},   {127, 8, "norm_forward"}, {129, 8, "group_norm"},
                  {511, 32, "norm_forward"}, {513, 32, "group_norm"},  {40, 16, "group_norm"}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        desc.spatial = limits[i].spatial;
        desc.groups = limits[i].groups;
        assert_kernel(*state, &desc, limits[i].kernel, &chosen);
    }
}

/* An error of little more than the tolerance is detected in each output. */
static void damage_is_seen(void **state) {
    const struct fixture *fixture = *state;
    const struct group_case c = {3, 16, 64, 4, FIRST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, ""};
    struct group_run run = group_run_make(&c);
    assert_true(group_forward_execute(fixture, &run, false) && group_forward_is_right(&run));
    struct tensor *const outputs[] = {&run.y, &run.mean, &run.rstd, &run.residual_out};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        float *const element = tensor_elements(outputs[i]);
        const float kept = element[3];
        element[3] = kept + fabsf(kept) * 0x1p-10F + 0x1p-13F;
        assert_false(group_forward_is_right(&run));
        element[3] = kept;
    }
    assert_true(group_forward_is_right(&run));
    group_run_free(&run);
}

/* y over x, with whole segments, chunks and slices, and with rows that no vectors fill: channels, or positions. */
static void in_place(void **state) {
    const struct fixture *fixture = *state;
    unsigned ran = 0;
    for (size_t i = 0; i < GROUP_CASES_IN_PLACE; i++) {
        struct group_case c;
        if (!group_case_in_place(fixture, i, "vec=4,lanes=32,segments=8,chunks=1", &c))
            continue;
        const size_t bytes = sizeof(float) * (size_t)(c.rows * c.cols * c.spatial);
        struct group_run run = group_run_make(&c), apart = group_run_make(&c);
        assert_true(group_forward_execute(fixture, &run, true) && group_forward_execute(fixture, &apart, false));
        assert_memory_equal(tensor_elements(&run.x), tensor_elements(&apart.y), bytes);
        group_run_free(&apart);
        group_run_free(&run);
        ran++;
    }
    assert_true(ran >= 2);
}

/* A sample's bits do not depend on the number of samples. Slow devices have two small ones. */
static void samples_are_alike(void **state) {
    const struct fixture *fixture = *state;
    const bool slow = fixture_is_slow(fixture);
    static const struct {
        uint64_t cols, spatial, groups, rows;
        const char *last; /* config of channels last */
    } samples[] = {{8, 5000, 2, 9, ""},
                   {3, 640, 3, 9, ""},
                   {320, 1, 32, 300, ""},
                   {45, 1, 5, 40, ""},
                   {64, 6, 4, 9, "vec=4,lanes=16,segments=4,chunks=1"}};
    for (size_t i = 0; i < 2 * sizeof samples / sizeof *samples; i++) {
        const uint64_t cols = samples[i / 2].cols, rows = slow ? 2 : samples[i / 2].rows;
        const uint64_t spatial = slow && samples[i / 2].spatial > 640 ? 500 : samples[i / 2].spatial;
        const int layout = i % 2 ? LAST : FIRST;
        const struct group_case one = {
            1,      cols, spatial, samples[i / 2].groups,           layout, F32, F32, F32, 0, SILU,
            NORMAL, 0,    0,       i % 2 ? samples[i / 2].last : ""};
        const size_t bytes = sizeof(float) * cols * spatial;
        struct group_case many = one;
        many.rows = rows;
        struct group_run a = group_run_make(&one), b = group_run_make(&many);
        memcpy((char *)tensor_elements(&b.x) + (rows - 1) * bytes, tensor_elements(&a.x), bytes);
        assert_true(group_forward_execute(fixture, &a, false) && group_forward_execute(fixture, &b, false));
        assert_memory_equal(tensor_elements(&a.y), (char *)tensor_elements(&b.y) + (rows - 1) * bytes, bytes);
        group_run_free(&a);
        group_run_free(&b);
    }
}

/* A single channel lies alike in both layouts, and has the same bits. */
static void one_channel_has_no_layout(void **state) {
    const struct fixture *fixture = *state;
    const struct group_case first = {3, 1, 5001, 1, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""};
    struct group_case last = first;
    last.layout = LAST;
    struct group_run a = group_run_make(&first), b = group_run_make(&last);
    assert_true(group_forward_execute(fixture, &a, false) && group_forward_execute(fixture, &b, false));
    assert_true(group_forward_is_right(&b));
    assert_memory_equal(tensor_elements(&a.y), tensor_elements(&b.y), sizeof(float) * 3 * 5001);
    group_run_free(&a);
    group_run_free(&b);
}

/* A NaN makes every result of its group NaN, and of no other group. */
static void a_nan_takes_its_group(void **state) {
    const struct fixture *fixture = *state;
    for (int layout = FIRST; layout <= LAST; layout++) {
        const struct group_case c = {2, 8, 10, 2, layout, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""};
        struct group_run run = group_run_make(&c);
        ref_store(run.x.dtype, tensor_elements(&run.x), layout == FIRST ? 45 : 6, NAN); /* sample 0, group 1 */
        assert_true(group_forward_execute(fixture, &run, false) && group_forward_is_right(&run));
        assert_true(isnan(ref_load(run.y.dtype, tensor_elements(&run.y), 79)));
        assert_true(!isnan(ref_load(run.y.dtype, tensor_elements(&run.y), 0)));
        assert_true(!isnan(ref_load(run.y.dtype, tensor_elements(&run.y), 159)));
        group_run_free(&run);
    }
}

/* So it does where several positions of few channels share vectors. */
static void a_nan_takes_its_channel(void **state) {
    const struct fixture *fixture = *state;
    const struct group_case c = {2, 3, 64, 3, LAST, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""};
    struct group_run run = group_run_make(&c);
    ref_store(run.x.dtype, tensor_elements(&run.x), 31, NAN); /* sample 0, channel 1 */
    assert_true(group_forward_execute(fixture, &run, false) && group_forward_is_right(&run));
    for (uint64_t place = 0; place < c.rows * c.cols * c.spatial; place++)
        assert_int_equal(isnan(ref_load(run.y.dtype, tensor_elements(&run.y), place)) != 0, place < 192 && place % 3 == 1);
    group_run_free(&run);
}

/* The squared distance of a part without elements from a mean beyond 1.8e19 is infinite, and 0 times that is NaN: chunks of
 * 5 and 4 positions have 8 rows of lanes. */
static void huge_equal_elements_have_no_variance(void **state) {
    const struct fixture *fixture = *state;
    const struct group_case c = {2, 48, 9, 4, LAST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=4,lanes=4,segments=8,chunks=2"};
    struct group_run run = group_run_make(&c);
    for (uint64_t place = 0; place < c.rows * c.cols * c.spatial; place++)
        ref_store(run.x.dtype, tensor_elements(&run.x), place, 1e25);
    assert_true(group_forward_execute(fixture, &run, false));
    for (uint64_t place = 0; place < c.rows * c.cols * c.spatial; place++)
        assert_true(!isnan(ref_load(run.y.dtype, tensor_elements(&run.y), place)));
    group_run_free(&run);
}

/* Channels 0 and 1 of two positions each are 1, 3 and 5, 7: together mean 4 and variance 5. */
static void reference_is_right_by_hand(void **state) {
    (void)state;
    static const float first[] = {1, 3, 5, 7}, last[] = {1, 5, 3, 7}, weight[] = {1, 2}, bias[] = {0, 10};
    static const double expected[] = {-3, -1, 2 * 1 + 10 * 2, 2 * 3 + 10 * 2}; /* twice y: eps −1 makes rstd 1 / 2 */
    for (int layout = FIRST; layout <= LAST; layout++) {
        const struct ref_group_norm norm = {
            .rows = 1,
            .cols = 2,
            .spatial = 2,
            .groups = 1,
            .layout = (clnorm_layout)layout,
            .x = {.elements = layout == FIRST ? first : last, .dtype = CLNORM_F32, .stride = 4},
            .weight = {.elements = weight, .dtype = CLNORM_F32, .stride = 2},
            .bias = {.elements = bias, .dtype = CLNORM_F32, .stride = 2},
            .eps = -1};
        struct ref_gathered gathered = ref_gathered_make(&norm);
        ref_group_norm_segment(&norm, 0, 0, &gathered);
        const struct ref_segment *const s = &gathered.gradients.forward;
        assert_true(s->mean == 4 && s->rstd == 0.5);
        for (uint64_t i = 0; i < 4; i++)
            assert_true(s->y[i] * 2 == expected[i]);
        assert_int_equal(ref_group_norm_at(&norm, 0, 1), layout == FIRST ? 1 : 2);
        assert_int_equal(ref_group_norm_channel(&norm, 0, 2), 1);
        ref_gathered_free(&gathered);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right),
        cmocka_unit_test(small_images_are_rows),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(in_place),
        cmocka_unit_test(samples_are_alike),
        cmocka_unit_test(one_channel_has_no_layout),
        cmocka_unit_test(a_nan_takes_its_group),
        cmocka_unit_test(a_nan_takes_its_channel),
        cmocka_unit_test(huge_equal_elements_have_no_variance),
        cmocka_unit_test(reference_is_right_by_hand),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
