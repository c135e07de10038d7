/* The gradients of group and instance norm against the reference in double: shapes, layouts, dtypes, activations, knobs,
 * chunks; refused descriptors; and the detection of wrong results. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "group_norm_case.h"
#include "group_norm_verify.h"
#include "plan/plan.h"
#include "reference/group_norm.h"
#include "refusal.h"

enum { F32 = CLNORM_F32, F16 = CLNORM_F16, BF16 = CLNORM_BF16, F64 = CLNORM_F64 };
enum { FIRST = CLNORM_LAYOUT_FIRST, LAST = CLNORM_LAYOUT_LAST };
enum { NORMAL = INPUT_NORMAL, FAR = INPUT_FAR, SPIKES = INPUT_SPIKES, WIDE = INPUT_WIDE };
enum { GELU = CLNORM_ACTIVATION_GELU, TANH = CLNORM_ACTIVATION_GELU_TANH, SILU = CLNORM_ACTIVATION_SILU };

/* Each runs with both layouts, or with the one layout that it names; each time with given statistics and without. */
static const struct group_case cases[] = {
    {2, 64, 49, 8, 0, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""},
    {1, 1, 1, 1, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {3, 3, 7, 3, 0, F32, F32, 0, 0, 0, NORMAL, 0, 0, ""},
    {2, 3, 7, 1, 0, F32, F32, F32, 0, GELU, NORMAL, 0, 0, ""},
    {2, 320, 64, 32, 0, BF16, BF16, F32, 0, SILU, NORMAL, 0, 0, ""},
    {40, 8, 5, 2, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {2, 96, 100, 32, 0, F16, F16, F16, 0, SILU, NORMAL, 0, 0, ""},
    {2, 40, 257, 4, 0, F32, BF16, BF16, 0, TANH, NORMAL, 0, 0, ""},
    {2, 32, 81, 4, 0, F64, F64, F64, 0, GELU, NORMAL, 0, 0, ""},
    {2, 64, 128, 8, 0, F32, F32, F32, 0, 0, FAR, 5, 1, ""},
    {1, 4, 70000, 2, 0, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""},
    {1, 2048, 3, 1, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {0, 8, 4, 2, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {37, 96, 1, 6, 0, F32, F32, F32, 0, SILU, FAR, 0, 1, ""},
    {5, 45, 1, 5, 0, BF16, BF16, F32, 0, GELU, NORMAL, 0, 0, ""},
    {6, 64, 1, 1, 0, F16, F16, F16, 0, 0, SPIKES, 0, 3, ""},
    {6, 48, 1, 3, 0, F64, F64, F64, 0, TANH, NORMAL, 0, 0, ""},
    {6, 48, 1, 3, 0, F32, F32, 0, 0, 0, NORMAL, 5, 0, ""},
    {0, 48, 1, 3, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {6, 48, 1, 3, 0, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=1,keep=reread,unroll=4"},
    {3, 16, 64, 4, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=4,lanes=16,segments=2"},
    {3, 7, 64, 7, FIRST, F32, F32, F32, 0, SILU, FAR, 0, 0, "vec=4,lanes=8,segments=2,chunks=1"},
    {3, 16, 88, 16, FIRST, BF16, BF16, F32, 0, 0, NORMAL, 8, 1, "vec=8,lanes=4,segments=2,chunks=1,iterations=3"},
    {3, 16, 88, 4, FIRST, BF16, BF16, F32, 0, SILU, NORMAL, 8, 1, "vec=8,lanes=16,segments=2,chunks=1,iterations=3"},
    {3, 12, 56, 4, FIRST, F32, F32, F32, 0, GELU, FAR, 0, 0, "vec=4,lanes=16,segments=1,chunks=1"},
    {5, 10, 9, 2, FIRST, BF16, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=1,lanes=32,segments=2,chunks=1"},
    {2, 9, 16, 1, FIRST, F16, F16, F16, 0, 0, NORMAL, 0, 0, "vec=8,lanes=32,segments=1,chunks=1"},
    {3, 16, 64, 4, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=2,chunks=12"},
    {3, 16, 64, 4, FIRST, F32, F32, F32, 0, SILU, SPIKES, 0, 0, "vec=8,lanes=64,segments=1,chunks=2,iterations=3"},
    {3, 8, 500, 4, FIRST, F32, F32, F32, 0, SILU, WIDE, 3, 1, "vec=4,lanes=8,segments=4,chunks=4,iterations=2"},
    {40, 4, 256, 2, FIRST, BF16, BF16, F32, 0, GELU, NORMAL, 0, 0, "vec=8,lanes=4,segments=2,chunks=4"},
    {2, 16, 1001, 2, FIRST, F32, F32, F32, 0, SILU, WIDE, 0, 0, "vec=4,lanes=8,segments=2,chunks=24"},
    {2, 16, 1001, 2, FIRST, F32, F32, F32, 0, SILU, FAR, 4, 0, "stores=streaming,vec=4,lanes=8,segments=2,chunks=24"},
    {2, 16, 1001, 2, FIRST, BF16, BF16, F32, 0, 0, FAR, 8, 0, "vec=8,lanes=32,segments=1,chunks=8,iterations=3"},
    {3, 16, 13, 2, FIRST, F16, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=8,lanes=4,segments=2,chunks=17"},
    {3, 16, 3, 2, FIRST, BF16, BF16, F32, 0, 0, NORMAL, 0, 1, "vec=8,lanes=8,segments=2,chunks=2"},
    {2, 8, 9, 2, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=4,lanes=1,chunks=20"},
    {600, 2, 5, 2, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=1,lanes=1,chunks=2"},
    {3, 48, 100, 4, LAST, F32, F32, F32, 0, SILU, WIDE, 0, 0, "vec=4,lanes=8,segments=4,chunks=7"},
    {3, 50, 100, 5, LAST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=16,lanes=1,chunks=33,iterations=2"},
    {2, 3, 4800, 3, LAST, F32, F32, F32, 0, 0, FAR, 0, 0, ""}, /* few channels: a row has several positions */
    {3, 3, 480, 1, LAST, BF16, F16, F16, 0, SILU, NORMAL, 0, 1, ""},
    {2, 5, 1369, 5, LAST, F16, F16, F32, 0, GELU, NORMAL, 3, 0, ""},
    {2, 12, 300, 4, LAST, F64, F64, F64, 0, 0, FAR, 0, 0, ""},
    {2, 6, 640, 2, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=4,chunks=7"},
    {2, 15, 320, 5, LAST, BF16, BF16, F32, 0, 0, FAR, 0, 0, "vec=8,lanes=4,segments=2,chunks=3,iterations=3"},
    {2, 15, 320, 3, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=1,chunks=3"},
    {2, 5, 1369, 5, LAST, F32, F32, F32, 0, 0, FAR, 0, 0, "vec=2,lanes=1,chunks=33"},
    {40, 3, 256, 3, LAST, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {17000, 3, 17, 1, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""}, /* sums over batches of samples */
    {1100, 3, 256, 3, LAST, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
    {33001, 4, 3, 2, LAST, BF16, F32, F32, 0, 0, NORMAL, 0, 0, "vec=4,lanes=4,segments=2,chunks=1"},
    {2, 2, 8192, 2, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=2,lanes=1,chunks=8192"},
    {4097, 2, 8, 2, LAST, BF16, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=2,lanes=1,chunks=4"},
    {10000, 2, 6, 2, FIRST, F16, F16, F32, 0, 0, NORMAL, 1, 0, "vec=1,lanes=2,segments=2,chunks=2"},
    {2, 64, 50, 4, LAST, BF16, BF16, F32, 0, SILU, NORMAL, 0, 1, "vec=4,lanes=256,segments=1,chunks=1"},
    {3, 96, 9, 8, LAST, F16, F32, F16, 0, 0, FAR, 0, 0, "vec=8,lanes=64,segments=1,chunks=1,iterations=2"},
    {2, 32, 33, 2, LAST, F32, F32, 0, 0, TANH, NORMAL, 0, 0, "vec=4,lanes=64,segments=1,chunks=1"},
    {3, 96, 9, 8, LAST, F16, F32, F16, 0, 0, FAR, 0, 0, "vec=8,lanes=64,segments=2,chunks=1"},
    {9, 8, 3, 2, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=4,chunks=1"},
    {5, 128, 2, 16, LAST, BF16, BF16, F32, 0, SILU, NORMAL, 0, 1, "vec=4,lanes=32,segments=2,chunks=1,iterations=2"},
    {11, 3, 5, 3, LAST, F32, F32, F32, 0, GELU, NORMAL, 0, 0, "vec=1,lanes=4,segments=8,chunks=1"},
    {2, 32, 20, 2, LAST, F64, F64, F64, 0, GELU, NORMAL, 0, 0, "vec=2,lanes=64,segments=1,chunks=1"},
    {2, 48, 5, 4, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=4,segments=8,chunks=2"},
    {40, 3, 64, 3, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=1,lanes=32,segments=1,chunks=1"},
    {5, 6, 99, 2, LAST, BF16, BF16, F32, 0, 0, FAR, 1, 1, "vec=2,lanes=64,segments=1,chunks=1,iterations=2"},
    {3, 2, 4, 1, LAST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=2,lanes=16,segments=1,chunks=1"},
    {40, 24, 9, 4, FIRST, BF16, BF16, BF16, 0, SILU, NORMAL, 0, 0, ""}, /* small images, which are rows */
    {50, 32, 4, 8, FIRST, F32, F32, F32, 0, GELU, FAR, 0, 0,
     "keep=registers,vec=8,lanes=2,segments=4,accumulator=registers"},
    {9, 12, 15, 12, FIRST, F16, F32, F16, 0, 0, NORMAL, 0, 0, ""},
    {8, 10, 2, 1, FIRST, F64, F64, F64, 0, TANH, NORMAL, 0, 3, ""},
    {7, 48, 12, 3, FIRST, F32, BF16, F16, 0, SILU, NORMAL, 0, 0, "keep=reread,vec=16,lanes=1,accumulator=memory"},
};

static void results_are_right(void **state) {
    const struct fixture *fixture = *state;
    unsigned ran = 0;
    for (size_t i = 0; i < 4 * sizeof cases / sizeof *cases; i++) {
        struct group_case c = cases[i / 4];
        const bool given = i / 2 % 2;
        if (!group_case_takes_gradient(fixture, &c, i % 2 ? LAST : FIRST, i / 4, given))
            continue;
        struct group_run run = group_run_make(&c);
        if (given)
            group_statistics_fill(&run);
        if (!group_backward_execute(fixture, &run, given, false) || !group_backward_is_right(&run, given))
            group_case_fail(fixture, &c, i / 4);
        group_run_free(&run);
        ran++;
    }
    assert_true(ran >= (fixture_is_slow(fixture) || fixture_is_quick() ? 8 : 20));
}

/* The gradient of residual_out is added to dx and dresidual. With accumulation, dweight and dbias are added to their old
 * values. Both have whole segments, and chunks of both layouts. */
static void residuals_and_sums_are_added(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        struct group_case c;
        struct group_more more;
    } added[] = {
        {{2, 64, 49, 8, 0, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""},
         {.dresidual_out = F32, .dresidual = F32, .accumulate = true}},
        {{7, 40, 1, 5, 0, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""},
         {.dresidual_out = F32, .dresidual = F32, .accumulate = true}},
        {{7, 40, 1, 5, 0, BF16, BF16, F32, 0, 0, NORMAL, 0, 0, ""}, {.dresidual_out = F32, .dresidual = BF16}},
        {{7, 40, 1, 5, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""}, {.dresidual_out = F32, .accumulate = true}},
        {{3, 20, 33, 4, 0, BF16, BF16, BF16, 0, 0, NORMAL, 3, 1, ""}, {.dresidual_out = F32, .dresidual = F16}},
        {{2, 40, 100, 4, 0, F32, BF16, F16, 0, TANH, NORMAL, 0, 0, ""}, {.dresidual_out = BF16, .accumulate = true}},
        {{2, 8, 100, 4, 0, F16, F32, F32, 0, 0, NORMAL, 0, 0, ""}, {.dresidual = BF16}},
        {{2, 32, 81, 4, 0, F64, F64, F64, 0, GELU, NORMAL, 0, 0, ""},
         {.dresidual_out = F64, .dresidual = F64, .accumulate = true}},
        {{2, 3, 480, 3, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""},
         {.dresidual_out = F32, .dresidual = F32, .accumulate = true}},
        {{0, 8, 4, 2, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""},
         {.dresidual_out = F32, .dresidual = F32, .accumulate = true}},
        {{17000, 2, 17, 1, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, ""}, {.accumulate = true}},
        {{3, 16, 64, 4, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=4,lanes=16,segments=2"},
         {.dresidual_out = F32, .dresidual = F32, .accumulate = true}},
        {{3, 7, 56, 7, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=2,chunks=1"},
         {.dresidual_out = F32, .dresidual = BF16, .accumulate = true}},
        {{3, 16, 64, 4, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=2,chunks=12"},
         {.dresidual_out = BF16, .dresidual = F32, .accumulate = true}},
        {{3, 8, 500, 4, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=4,chunks=4"},
         {.dresidual_out = BF16, .dresidual = F32, .accumulate = true}},
        {{3, 48, 100, 4, LAST, F32, F32, F32, 0, SILU, WIDE, 0, 0, "vec=4,lanes=8,segments=4,chunks=7"},
         {.dresidual_out = F32, .dresidual = BF16}},
        {{3, 20, 56, 4, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=32,segments=2,chunks=1"},
         {.dresidual_out = F32, .dresidual = BF16, .accumulate = true}},
        {{2, 64, 20, 4, LAST, BF16, BF16, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=128,segments=1,chunks=1"},
         {.dresidual_out = F32, .dresidual = F16, .accumulate = true}},
        {{9, 40, 9, 5, FIRST, BF16, BF16, F32, 0, SILU, NORMAL, 0, 0, ""},
         {.dresidual_out = F32, .dresidual = BF16, .accumulate = true}},
    };
    unsigned ran = 0;
    for (size_t i = 0; i < 2 * sizeof added / sizeof *added; i++) {
        struct group_case c = added[i / 2].c;
        if (!group_case_takes(fixture, &c, i % 2 ? LAST : FIRST, i / 2))
            continue;
        struct group_run run = group_run_make_more(&c, &added[i / 2].more);
        const bool given = i % 4 != 1;
        if (given)
            group_statistics_fill(&run);
        if (!group_backward_execute(fixture, &run, given, false) || !group_backward_is_right(&run, given))
            group_case_fail(fixture, &c, i / 2);
        group_run_free(&run);
        ran++;
    }
    assert_true(ran >= 4);
}

static bool has_kernel_of_rows(const struct fixture *fixture, const clnorm_group_norm_backward_desc *desc,
                               clnorm_config *chosen) {
    clnorm_plan *plan = NULL;
    if (clnorm_group_norm_backward_plan_create(fixture->context, desc, &plan))
        fail_msg("%s", clnorm_error_detail());
    const bool rows = strcmp(plan->stage[0].name, "norm_backward") == 0;
    clnorm_plan_config(plan, chosen);
    clnorm_plan_destroy(plan);
    return rows;
}

/* Small images have the kernel of rows, also in the config that was chosen for them. */
static void small_images_are_rows(void **state) {
    clnorm_group_norm_backward_desc desc = CLNORM_GROUP_NORM_BACKWARD_DESC_INIT;
    desc.rows = 40;
    desc.cols = 32;
    desc.groups = 8;
    desc.spatial = 15;
    desc.statistics_given = 1;
    clnorm_config chosen;
    assert_true(has_kernel_of_rows(*state, &desc, &chosen));
    desc.config = chosen;
    assert_true(has_kernel_of_rows(*state, &desc, &chosen));
    desc.config = (clnorm_config){{0}};
    desc.spatial = 16;
    assert_false(has_kernel_of_rows(*state, &desc, &chosen));
}

/* An error of little more than the tolerance is detected in each output. */
static void damage_is_seen(void **state) {
    const struct fixture *fixture = *state;
    const struct group_case c = {3, 16, 64, 4, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""};
    const struct group_more more = {.dresidual_out = F32, .dresidual = F32, .accumulate = true};
    struct group_run run = group_run_make_more(&c, &more);
    assert_true(group_backward_execute(fixture, &run, false, false) && group_backward_is_right(&run, false));
    struct tensor *const outputs[] = {&run.dx, &run.dweight, &run.dbias, &run.dresidual};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        float *const element = tensor_elements(outputs[i]);
        const float kept = element[3];
        element[3] = kept + fabsf(kept) * 0x1p-9F + 0x1p-9F;
        assert_false(group_backward_is_right(&run, false));
        element[3] = kept;
    }
    assert_true(group_backward_is_right(&run, false));
    group_run_free(&run);
}

/* dx over dy and dresidual over dresidual_out, with whole segments and chunks, and with rows that no vectors fill. */
static void in_place(void **state) {
    const struct fixture *fixture = *state;
    unsigned ran = 0;
    for (size_t i = 0; i < GROUP_CASES_IN_PLACE; i++) {
        struct group_case c;
        if (!group_case_in_place(fixture, i, "vec=4,lanes=32,segments=8,chunks=1", &c))
            continue;
        const size_t bytes = sizeof(float) * (size_t)(c.rows * c.cols * c.spatial);
        const struct group_more more = {.dresidual_out = F32, .dresidual = F32};
        struct group_run run = group_run_make_more(&c, &more), apart = group_run_make_more(&c, &more);
        assert_true(group_backward_execute(fixture, &run, false, true) &&
                    group_backward_execute(fixture, &apart, false, false));
        assert_memory_equal(tensor_elements(&run.dy), tensor_elements(&apart.dx), bytes);
        assert_memory_equal(tensor_elements(&run.dresidual_out), tensor_elements(&apart.dresidual), bytes);
        assert_true(tensor_equals(&run.dweight, &apart.dweight) && tensor_equals(&run.dbias, &apart.dbias));
        group_run_free(&apart);
        group_run_free(&run);
        ran++;
    }
    assert_true(ran >= 2);
}

/* dx of a sample has the same bits in a batch of one and in a batch of nine. */
static void samples_are_alike(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        uint64_t cols, spatial, groups;
        const char *config;
    } samples[] = {{64, 16, 4, ""},
                   {64, 16, 4, "vec=4,lanes=32,segments=1,chunks=1"},
                   {3, 640, 3, ""},
                   {3, 64, 3, "vec=1,lanes=128,segments=1,chunks=1"}};
    unsigned ran = 0;
    for (size_t i = 0; i < 2 * sizeof samples / sizeof *samples; i++) {
        const uint64_t cols = samples[i / 2].cols, spatial = samples[i / 2].spatial;
        const size_t bytes = sizeof(float) * cols * spatial;
        struct group_case one = {1,      cols, spatial, samples[i / 2].groups, i % 2 ? LAST : FIRST, F32, F32, F32, 0, SILU,
                                 NORMAL, 0,    0,       samples[i / 2].config};
        if (!group_case_takes(fixture, &one, one.layout, i))
            continue;
        struct group_case many = one;
        many.rows = 9;
        struct group_run a = group_run_make(&one), b = group_run_make(&many);
        memcpy((char *)tensor_elements(&b.x) + 8 * bytes, tensor_elements(&a.x), bytes);
        memcpy((char *)tensor_elements(&b.dy) + 8 * bytes, tensor_elements(&a.dy), bytes);
        assert_true(group_backward_execute(fixture, &a, false, false) && group_backward_execute(fixture, &b, false, false));
        assert_memory_equal(tensor_elements(&a.dx), (char *)tensor_elements(&b.dx) + 8 * bytes, bytes);
        group_run_free(&a);
        group_run_free(&b);
        ran++;
    }
    assert_true(ran >= (fixture_is_quick() ? 1 : 2));
}

/* x of 1 and 3 in one group: x̂ = ∓1 with an eps of 0. With dy = (1, 2), the weights 2: Σ(w · dy) / 2 = 3 and
 * Σ(w · dy · x̂) / 2 = 1, so that dx = 2 − 3 + 1 and 4 − 3 − 1. */
static void reference_is_right_by_hand(void **state) {
    (void)state;
    static const float x[] = {1, 3}, dy[] = {1, 2}, weight[] = {2, 2};
    const struct ref_arithmetic arithmetic = ref_arithmetic_of(CLNORM_F32);
    const struct ref_group_norm norm = {.rows = 1,
                                        .cols = 2,
                                        .spatial = 1,
                                        .groups = 1,
                                        .layout = CLNORM_LAYOUT_LAST,
                                        .x = {.elements = x, .dtype = CLNORM_F32, .stride = 2},
                                        .dy = {.elements = dy, .dtype = CLNORM_F32, .stride = 2},
                                        .weight = {.elements = weight, .dtype = CLNORM_F32, .stride = 2}};
    struct ref_gathered gathered = ref_gathered_make(&norm);
    struct ref_row_sum sums[4] = {{{0, 0}, {0, 0}, {0, 0}}};
    ref_group_norm_gradients(&norm, &arithmetic, 0, 0, &gathered);
    ref_group_norm_add(&norm, 0, &gathered, sums, sums + 2);
    assert_true(gathered.gradients.dx[0] == 0 && gathered.gradients.dx[1] == 0);
    assert_true(ref_sum_value(&sums[0].sum) == -1 && ref_sum_value(&sums[1].sum) == 2);
    assert_true(ref_sum_value(&sums[2].sum) == 1 && ref_sum_value(&sums[3].sum) == 2);
    ref_gathered_free(&gathered);
}

static void bad_descriptors_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_group_norm_backward_desc desc;
    clnorm_plan *plan = NULL;
    clnorm_group_norm_backward_desc_init(&desc);
    desc.rows = 4;
    desc.cols = 64;
    desc.spatial = 49;
    desc.groups = 5;
    assert_int_equal(clnorm_group_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_SHAPE);
    assert_detail("desc.groups is 5: expected a divisor of cols, 64");
    desc.groups = 8;
    desc.statistics_given = 2;
    assert_int_equal(clnorm_group_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE);
    assert_detail("desc.statistics_given is 2: expected 0 or 1");
    desc.statistics_given = 0;
    desc.accumulate = 1;
    assert_int_equal(clnorm_group_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE);
    assert_detail("desc.accumulate is 1: expected 0 without a dweight and a dbias");
    desc.accumulate = 0;
    desc.dx.stride = 1;
    assert_int_equal(clnorm_group_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_SHAPE);
    assert_detail("desc.dx.stride is 1: expected at least cols x spatial, 3136");
    desc.dx.stride = 0;
    desc.spatial = 4; /* rows, whose sums by columns would be those of positions */
    desc.groups = 1;
    assert_int_equal(clnorm_config_parse("keep=reread,accumulator=columns", &desc.config), CLNORM_SUCCESS);
    assert_int_equal(clnorm_group_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE);
    assert_detail("desc.config.accumulator is columns: expected another value where channels have several positions");
    assert_null(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right),
        cmocka_unit_test(residuals_and_sums_are_added),
        cmocka_unit_test(small_images_are_rows),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(in_place),
        cmocka_unit_test(samples_are_alike),
        cmocka_unit_test(reference_is_right_by_hand),
        cmocka_unit_test(bad_descriptors_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
