/* Outputs of group norm that are left out, and outputs over inputs: the others have the bits, or the numbers, that they
 * have with all of them apart. Each by every kind of kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "group_norm_case.h"
#include "group_norm_verify.h"

enum { F32 = CLNORM_F32, BF16 = CLNORM_BF16, SILU = CLNORM_ACTIVATION_SILU };
enum { FIRST = CLNORM_LAYOUT_FIRST, LAST = CLNORM_LAYOUT_LAST };

static const struct group_case cases[] = {
    {3, 16, 64, 4, FIRST, F32, F32, F32, F32, SILU, INPUT_NORMAL, 0, 0, ""},
    {3, 16, 64, 4, FIRST, F32, F32, F32, F32, SILU, INPUT_NORMAL, 0, 0, "vec=4,lanes=16,segments=2,chunks=1"},
    {3, 16, 64, 4, FIRST, F32, F32, F32, F32, SILU, INPUT_NORMAL, 0, 0, "vec=4,lanes=8,segments=2,chunks=12"},
    {3, 16, 64, 4, FIRST, BF16, BF16, F32, BF16, SILU, INPUT_NORMAL, 0, 0,
     "vec=4,lanes=8,segments=2,chunks=4,row_split=exchange"},
    {3, 12, 4, 3, FIRST, F32, F32, F32, F32, 0, INPUT_NORMAL, 0, 0, ""}, /* rows */
    {7, 40, 1, 5, FIRST, BF16, BF16, F32, BF16, SILU, INPUT_NORMAL, 0, 0, ""},
    {2, 64, 50, 4, LAST, BF16, BF16, F32, BF16, SILU, INPUT_NORMAL, 0, 0, ""},
    {2, 48, 100, 4, LAST, F32, F32, F32, F32, 0, INPUT_NORMAL, 0, 0, "vec=4,lanes=8,segments=4,chunks=7"},
    {2, 3, 480, 1, LAST, F32, F32, F32, F32, SILU, INPUT_NORMAL, 0, 0, ""},
};

/* Whether the case passes; i tells ways to run it apart. */
typedef bool (*way_fn)(const struct fixture *fixture, const struct group_case *c, size_t i);

/* Runs the cases of this device, each in so many ways. */
static void each_case(const struct fixture *fixture, size_t ways, way_fn passes) {
    size_t ran = 0;
    for (size_t i = 0; i < ways * (sizeof cases / sizeof *cases); i++) {
        struct group_case c = cases[i / ways];
        if (!group_case_takes(fixture, &c, c.layout, i / ways))
            continue;
        if (!passes(fixture, &c, i))
            group_case_fail(fixture, &c, i);
        ran++;
    }
    assert_true(ran >= ways);
}

static void leave_out(struct tensor *output) {
    tensor_free(output);
    *output = (struct tensor){.dtype = CLNORM_DTYPE_NONE};
}

/* The elements of an output over an input, whose surroundings differ. */
static bool same_elements(const struct group_case *c, const struct tensor *a, const struct tensor *b) {
    const size_t bytes = clnorm_dtype_size(a->dtype) * (size_t)(c->rows * c->cols * c->spatial);
    return memcmp(tensor_elements(a), tensor_elements(b), bytes) == 0;
}

/* y, and the statistics that are saved, have the bits that they have with both. */
static bool forward_without_statistics(const struct fixture *fixture, const struct group_case *c, size_t i) {
    struct group_run all = group_run_make(c), run = group_run_make(c);
    if (i % 3 != 1)
        leave_out(&run.mean);
    if (i % 3 != 2)
        leave_out(&run.rstd);
    const bool passes = group_forward_execute(fixture, &all, false) && group_forward_is_right(&all) &&
                        group_forward_execute(fixture, &run, false) && tensor_equals(&run.y, &all.y) &&
                        tensor_equals(&run.residual_out, &all.residual_out) &&
                        (!run.mean.host || tensor_equals(&run.mean, &all.mean)) &&
                        (!run.rstd.host || tensor_equals(&run.rstd, &all.rstd));
    group_run_free(&run);
    group_run_free(&all);
    return passes;
}

static bool residual_out_over_residual(const struct fixture *fixture, const struct group_case *c, size_t i) {
    const struct group_more more = {.residual_in_place = true};
    const bool over_x = i % 2; /* y over x too */
    struct group_run apart = group_run_make(c), run = group_run_make_more(c, &more);
    const bool passes = group_forward_execute(fixture, &apart, false) && group_forward_is_right(&apart) &&
                        group_forward_execute(fixture, &run, over_x) &&
                        same_elements(c, over_x ? &run.x : &run.y, &apart.y) &&
                        same_elements(c, &run.residual, &apart.residual_out) && tensor_equals(&run.mean, &apart.mean) &&
                        tensor_equals(&run.rstd, &apart.rstd);
    group_run_free(&run);
    group_run_free(&apart);
    return passes;
}

/* One of dweight and dbias, or neither. The reference tells, as other sums may be added up by other kernels. */
static bool backward_without_sums(const struct fixture *fixture, const struct group_case *c, size_t i) {
    const bool given = i % 2;
    struct group_run run = group_run_make(c);
    if (i % 3 != 1)
        leave_out(&run.dweight);
    if (i % 3 != 2)
        leave_out(&run.dbias);
    if (given)
        group_statistics_fill(&run);
    const bool passes = group_backward_execute(fixture, &run, given, false) && group_backward_is_right(&run, given);
    group_run_free(&run);
    return passes;
}

static bool dx_over_x(const struct fixture *fixture, const struct group_case *c, size_t i) {
    const struct group_more more = {.dx_over_x = true};
    const bool given = i % 2;
    struct group_run apart = group_run_make(c), run = group_run_make_more(c, &more);
    if (given) {
        group_statistics_fill(&apart);
        group_statistics_fill(&run);
    }
    const bool passes = group_backward_execute(fixture, &apart, given, false) && group_backward_is_right(&apart, given) &&
                        group_backward_execute(fixture, &run, given, false) && same_elements(c, &run.x, &apart.dx) &&
                        tensor_equals(&run.dweight, &apart.dweight) && tensor_equals(&run.dbias, &apart.dbias);
    group_run_free(&run);
    group_run_free(&apart);
    return passes;
}

static void statistics_may_be_left_out(void **state) {
    each_case(*state, 3, forward_without_statistics);
}

static void residual_out_may_lie_over_residual(void **state) {
    each_case(*state, 2, residual_out_over_residual);
}

static void sums_may_be_left_out(void **state) {
    each_case(*state, 3, backward_without_sums);
}

static void dx_may_lie_over_x(void **state) {
    each_case(*state, 2, dx_over_x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_may_be_left_out),
        cmocka_unit_test(residual_out_may_lie_over_residual),
        cmocka_unit_test(sums_may_be_left_out),
        cmocka_unit_test(dx_may_lie_over_x),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
