/* Group norm in one launch, whose work-groups exchange the sums of chunks: the results have the bits of two launches, also
 * where every part counts as missing, and where outputs lie over inputs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/facts.h"
#include "group_norm_case.h"
#include "group_norm_verify.h"
#include "knob.h"
#include "reference/format.h"
#include "refusal.h"

enum { F32 = CLNORM_F32, F16 = CLNORM_F16, BF16 = CLNORM_BF16, E4M3 = CLNORM_F8_E4M3 };
enum { FIRST = CLNORM_LAYOUT_FIRST };
enum { NORMAL = INPUT_NORMAL, FAR = INPUT_FAR, SPIKES = INPUT_SPIKES };
enum { GELU = CLNORM_ACTIVATION_GELU, SILU = CLNORM_ACTIVATION_SILU };

struct exchange_case {
    struct group_case c;
    struct group_more more;
};

/* The fourth has chunks without positions. */
static const struct exchange_case forwards[] = {
    {{3, 16, 64, 4, FIRST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=4,lanes=4,segments=2,chunks=12"}, {0}},
    {{9, 12, 300, 3, FIRST, BF16, BF16, F32, 0, 0, FAR, 0, 0, "vec=4,lanes=16,segments=4,chunks=8"}, {0}},
    {{5, 16, 1001, 2, FIRST, F32, F32, F32, F32, SILU, FAR, 4, 0, "vec=4,lanes=32,segments=1,chunks=24"}, {0}},
    {{2, 4, 40, 2, FIRST, F32, F32, 0, 0, 0, NORMAL, 0, 0, "vec=1,lanes=8,segments=2,chunks=26"}, {0}},
    {{4, 6, 77, 2, FIRST, F16, F32, F32, 0, GELU, SPIKES, 1, 3, "vec=1,lanes=8,segments=4,chunks=6"}, {0}},
    {{3, 8, 256, 2, FIRST, E4M3, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=16,segments=2,chunks=8"},
     {.x_scaling = CLNORM_SCALING_ROW, .x_scale = F32, .y = E4M3, .y_scaling = CLNORM_SCALING_TENSOR, .y_given = 0.125}},
};

/* The third adds up the sums of its samples in batches. */
static const struct exchange_case gradients[] = {
    {{9, 8, 300, 4, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=2,chunks=4"}, {0}},
    {{3, 6, 1001, 2, FIRST, BF16, BF16, F32, 0, GELU, FAR, 2, 8, "vec=8,lanes=32,segments=1,chunks=9"},
     {.dresidual_out = F32, .dresidual = F32, .accumulate = true}},
    {{8200, 2, 64, 1, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=4,lanes=8,segments=2,chunks=4"}, {0}},
    {{4, 6, 205, 3, FIRST, F16, F32, F32, 0, 0, SPIKES, 1, 0, "vec=1,lanes=8,segments=4,chunks=4"}, {0}},
};

static bool have_equal_statistics(const struct group_case *c, const struct group_run *a, const struct group_run *b) {
    const size_t bytes = (size_t)(c->rows * c->groups) * clnorm_dtype_size(a->mean.dtype);
    return memcmp(tensor_elements(&a->mean), tensor_elements(&b->mean), bytes) == 0 &&
           memcmp(tensor_elements(&a->rstd), tensor_elements(&b->rstd), bytes) == 0;
}

static void assert_has_kernel(clnorm_plan *plan, const char *name) {
    clnorm_kernel_info info = CLNORM_KERNEL_INFO_INIT;
    unsigned i = 0;
    do
        assert_int_equal(clnorm_plan_kernel(plan, i++, &info), CLNORM_SUCCESS);
    while (strcmp(info.name, name) != 0);
    clnorm_plan_destroy(plan);
}

/* A forward with a row split has the bits of the one in two passes. in_place: its y lies over x. */
static void compare_forward(const struct fixture *fixture, size_t i, const char *row_split, bool in_place) {
    char config[2][128];
    const struct exchange_case own = forwards[i];
    const struct group_case two = group_case_with_row_split(&own.c, "two_passes", config[0], sizeof config[0]);
    const struct group_case one = group_case_with_row_split(&own.c, row_split, config[1], sizeof config[1]);
    struct group_run expected = group_run_make_more(&two, &own.more), run = group_run_make_more(&one, &own.more);
    const clnorm_group_norm_desc desc = group_forward_desc(&run);
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_group_norm_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
    assert_has_kernel(plan, "group_norm_exchange");
    if (!group_forward_execute(fixture, &expected, false) || !group_forward_execute(fixture, &run, in_place) ||
        !group_forward_is_right(&expected) || !group_samples_equal(&one, in_place ? &run.x : &run.y, &expected.y) ||
        !group_samples_equal(&one, &run.residual_out, &expected.residual_out) ||
        !have_equal_statistics(&one, &run, &expected))
        group_case_fail(fixture, &one, i);
    group_run_free(&run);
    group_run_free(&expected);
}

/* In place dx lies over dy, and dresidual over dresidual_out: every result has the bits that it has apart. */
static bool is_equal_in_place(const struct fixture *fixture, const struct group_run *run, bool given) {
    struct group_run apart = group_run_make_more(run->c, &run->more);
    group_statistics_fill(&apart);
    const bool equal = group_backward_execute(fixture, &apart, given, false) &&
                       group_samples_equal(run->c, &run->dy, &apart.dx) && tensor_equals(&run->dweight, &apart.dweight) &&
                       tensor_equals(&run->dbias, &apart.dbias) &&
                       (!run->dresidual.dtype || group_samples_equal(run->c, &run->dresidual_out, &apart.dresidual));
    group_run_free(&apart);
    return equal;
}

/* The same of a backward and its dx, which in place lies over dy. */
static void compare_backward(const struct fixture *fixture, size_t i, const char *row_split, bool in_place) {
    char config[2][128];
    const bool given = i % 2;
    const struct exchange_case own = gradients[i];
    const struct group_case two = group_case_with_row_split(&own.c, "two_passes", config[0], sizeof config[0]);
    const struct group_case one = group_case_with_row_split(&own.c, row_split, config[1], sizeof config[1]);
    struct group_run expected = group_run_make_more(&two, &own.more), run = group_run_make_more(&one, &own.more);
    const clnorm_group_norm_backward_desc desc = group_backward_desc(&run, given);
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_group_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
    assert_has_kernel(plan, "group_norm_backward_exchange");
    group_statistics_fill(&expected);
    group_statistics_fill(&run);
    if (!group_backward_execute(fixture, &expected, given, false) ||
        !group_backward_execute(fixture, &run, given, in_place) ||
        !group_samples_equal(&one, in_place ? &run.dy : &run.dx, &expected.dx) ||
        !(in_place ? is_equal_in_place(fixture, &run, given) : group_backward_is_right(&run, given)))
        group_case_fail(fixture, &one, i);
    group_run_free(&run);
    group_run_free(&expected);
}

/* The first case takes both ways, the others one in turn. Slow devices take the first case alone. */
static size_t count_of(const struct fixture *fixture, size_t cases) {
    return fixture_is_slow(fixture) ? 1 : cases;
}

static bool takes(size_t i, const char *row_split) {
    return i == 0 || strcmp(row_split, i % 2 ? "no_wait" : "exchange") == 0;
}

static void y_has_the_same_bits(void **state) {
    static const char *const row_splits[] = {"exchange", "no_wait"};
    for (size_t i = 0; i < 2 * count_of(*state, sizeof forwards / sizeof *forwards); i++) {
        const struct exchange_case own = forwards[i / 2];
        if (!takes(i / 2, row_splits[i % 2]))
            continue;
        compare_forward(*state, i / 2, row_splits[i % 2], false);
        if (own.c.x == own.c.out)
            compare_forward(*state, i / 2, row_splits[i % 2], true);
    }
}

static void dx_has_the_same_bits(void **state) {
    static const char *const row_splits[] = {"exchange", "no_wait"};
    for (size_t i = 0; i < 2 * count_of(*state, sizeof gradients / sizeof *gradients); i++)
        if (takes(i / 2, row_splits[i % 2])) {
            compare_backward(*state, i / 2, row_splits[i % 2], false);
            compare_backward(*state, i / 2, row_splits[i % 2], true);
        }
}

/* A NaN makes every result of its group NaN, and of no other group; its message is one. */
static void a_nan_takes_its_group(void **state) {
    const struct fixture *fixture = *state;
    const struct group_case c = {2,   8, 64, 2,      FIRST, F32, F32,
                                 F32, 0, 0,  NORMAL, 0,     0,   "vec=4,lanes=8,segments=2,chunks=8,row_split=exchange"};
    struct group_run run = group_run_make(&c);
    ref_store(run.x.dtype, tensor_elements(&run.x), 300, NAN); /* sample 0, group 1 */
    assert_true(group_forward_execute(fixture, &run, false));
    for (uint64_t place = 0; place < c.rows * c.cols * c.spatial; place++)
        assert_int_equal(isnan(ref_load(run.y.dtype, tensor_elements(&run.y), place)) != 0, place / 256 == 1);
    group_run_free(&run);
}

/* On a GPU whose cache is known, samples whose sums are exchanged as chosen, of f32 by pieces; elsewhere small ones, whose
 * exchange is forced. */
static struct group_case large_case(const struct fixture *fixture, bool bf16) {
    static const struct group_case large[] = {{3, 640, 4096, 32, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, ""},
                                              {3, 320, 16384, 32, FIRST, BF16, BF16, F32, 0, SILU, NORMAL, 0, 0, ""}};
    static const char config[] = "vec=4,lanes=8,segments=2,chunks=4,row_split=exchange";
    static const struct group_case small[] = {{30, 8, 64, 2, FIRST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, config},
                                              {30, 8, 64, 2, FIRST, BF16, BF16, F32, 0, SILU, NORMAL, 0, 0, config}};
    return cln_facts_of(&fixture->device).l2 ? large[bf16] : small[bf16];
}

/* The last sample of many has the bits that it has alone, with parts in two passes. */
static void large_samples_are_alike(void **state) {
    const struct fixture *fixture = *state;
    for (size_t i = 0; i < 2; i++) {
        const struct group_case many = large_case(fixture, i);
        struct group_case one = many;
        one.rows = 1;
        if (*one.config)
            one.config = "vec=4,lanes=8,segments=2,chunks=4,row_split=two_passes";
        struct group_run a = group_run_make(&one), b = group_run_make(&many);
        const size_t bytes = clnorm_dtype_size(a.x.dtype) * (size_t)(one.cols * one.spatial);
        const size_t last = (size_t)(many.rows - 1) * bytes;
        memcpy((char *)tensor_elements(&b.x) + last, tensor_elements(&a.x), bytes);
        memcpy((char *)tensor_elements(&b.dy) + last, tensor_elements(&a.dy), bytes);
        assert_true(group_forward_execute(fixture, &a, false) && group_forward_execute(fixture, &b, false));
        assert_memory_equal(tensor_elements(&a.y), (char *)tensor_elements(&b.y) + last, bytes);
        assert_true(group_backward_execute(fixture, &a, true, false) && group_backward_execute(fixture, &b, true, false));
        assert_memory_equal(tensor_elements(&a.dx), (char *)tensor_elements(&b.dx) + last, bytes);
        const clnorm_group_norm_desc desc = group_forward_desc(&b);
        clnorm_plan *plan = NULL;
        assert_int_equal(clnorm_group_norm_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
        assert_has_kernel(plan, i == 0 && !*many.config ? "group_norm_pieces" : "group_norm_exchange");
        group_run_free(&a);
        group_run_free(&b);
    }
}

static void refuse(const struct fixture *fixture, const clnorm_group_norm_desc *desc, const char *detail) {
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_group_norm_plan_create(fixture->context, desc, &plan), CLNORM_INVALID_VALUE);
    assert_null(plan);
    assert_detail(detail);
}

/* Where a group is not in chunks, or has too many, where its scales are measured, in double, and with channels last. */
static void other_work_is_refused(void **state) {
    const struct fixture *fixture = *state;
    static const char expected[] =
        "desc.config.row_split is exchange: expected two_passes, unless a group with channels first";
    clnorm_group_norm_desc desc = CLNORM_GROUP_NORM_DESC_INIT;
    desc.rows = 2;
    desc.cols = 8;
    desc.groups = 2;
    desc.spatial = 320;
    desc.x.dtype = desc.y.dtype = CLNORM_F32;
    assert_int_equal(clnorm_config_parse("vec=4,lanes=2,chunks=1,row_split=exchange", &desc.config), CLNORM_SUCCESS);
    refuse(fixture, &desc, expected);
    assert_int_equal(clnorm_config_parse("vec=4,lanes=2,chunks=36,row_split=exchange", &desc.config), CLNORM_SUCCESS);
    refuse(fixture, &desc, expected);
    assert_int_equal(clnorm_config_parse("vec=4,lanes=2,chunks=8,iterations=2,row_split=exchange", &desc.config),
                     CLNORM_SUCCESS);
    refuse(fixture, &desc, "desc.config.iterations is 2: expected 1 where work-groups exchange sums");
    assert_int_equal(clnorm_config_parse("vec=4,lanes=2,chunks=8,row_split=exchange", &desc.config), CLNORM_SUCCESS);
    clnorm_group_norm_desc last = desc, measured = desc;
    last.layout = CLNORM_LAYOUT_LAST;
    refuse(fixture, &last, expected);
    measured.y = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_TENSOR, .scale_dtype = CLNORM_F32};
    refuse(fixture, &measured, expected);
    if (fixture->device.fp64) {
        desc.x.dtype = desc.y.dtype = CLNORM_F64;
        refuse(fixture, &desc, expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(y_has_the_same_bits),   cmocka_unit_test(dx_has_the_same_bits),
        cmocka_unit_test(a_nan_takes_its_group), cmocka_unit_test(large_samples_are_alike),
        cmocka_unit_test(other_work_is_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
