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
static const size_t count = sizeof cases / sizeof *cases;

/* The case, if it runs on the device. */
static bool take(const struct fixture *fixture, size_t i, struct group_case *c) {
    *c = cases[i];
    return group_case_takes(fixture, c, c->layout, i);
}

static void leave_out(struct tensor *output) {
    tensor_free(output);
    *output = (struct tensor){.dtype = CLNORM_DTYPE_NONE};
}

static bool same_bits(const struct tensor *a, const struct tensor *b) {
    return a->size == b->size && memcmp(a->host, b->host, a->size) == 0;
}

/* The elements of an output over an input, whose surroundings differ. */
static bool same_elements(const struct group_case *c, const struct tensor *a, const struct tensor *b) {
    const size_t bytes = clnorm_dtype_size(a->dtype) * (size_t)(c->rows * c->cols * c->spatial);
    return memcmp(tensor_elements(a), tensor_elements(b), bytes) == 0;
}

/* y, and the statistics that are saved, have the bits that they have with both. */
static void statistics_may_be_left_out(void **state) {
    const struct fixture *fixture = *state;
    unsigned ran = 0;
    for (size_t i = 0; i < 3 * count; i++) {
        struct group_case c;
        if (!take(fixture, i / 3, &c))
            continue;
        struct group_run all = group_run_make(&c), run = group_run_make(&c);
        if (i % 3 != 1)
            leave_out(&run.mean);
        if (i % 3 != 2)
            leave_out(&run.rstd);
        if (!group_forward_execute(fixture, &all, false) || !group_forward_is_right(&all) ||
            !group_forward_execute(fixture, &run, false) || !same_bits(&run.y, &all.y) ||
            !same_bits(&run.residual_out, &all.residual_out) || (run.mean.host && !same_bits(&run.mean, &all.mean)) ||
            (run.rstd.host && !same_bits(&run.rstd, &all.rstd)))
            group_case_fail(fixture, &c, i);
        group_run_free(&run);
        group_run_free(&all);
        ran++;
    }
    assert_true(ran >= 3);
}

static void residual_out_may_lie_over_residual(void **state) {
    const struct fixture *fixture = *state;
    const struct group_more more = {.residual_in_place = true};
    unsigned ran = 0;
    for (size_t i = 0; i < 2 * count; i++) {
        struct group_case c;
        if (!take(fixture, i / 2, &c))
            continue;
        const bool over_x = i % 2; /* y over x too */
        struct group_run apart = group_run_make(&c), run = group_run_make_more(&c, &more);
        if (!group_forward_execute(fixture, &apart, false) || !group_forward_is_right(&apart) ||
            !group_forward_execute(fixture, &run, over_x) || !same_elements(&c, over_x ? &run.x : &run.y, &apart.y) ||
            !same_elements(&c, &run.residual, &apart.residual_out) || !same_bits(&run.mean, &apart.mean) ||
            !same_bits(&run.rstd, &apart.rstd))
            group_case_fail(fixture, &c, i);
        group_run_free(&run);
        group_run_free(&apart);
        ran++;
    }
    assert_true(ran >= 2);
}

/* One of dweight and dbias, or neither. The reference tells, as other sums may be added up by other kernels. */
static void sums_may_be_left_out(void **state) {
    const struct fixture *fixture = *state;
    unsigned ran = 0;
    for (size_t i = 0; i < 3 * count; i++) {
        struct group_case c;
        if (!take(fixture, i / 3, &c))
            continue;
        const bool given = i % 2;
        struct group_run run = group_run_make(&c);
        if (i % 3 != 1)
            leave_out(&run.dweight);
        if (i % 3 != 2)
            leave_out(&run.dbias);
        if (given)
            group_statistics_fill(&run);
        if (!group_backward_execute(fixture, &run, given, false) || !group_backward_is_right(&run, given))
            group_case_fail(fixture, &c, i);
        group_run_free(&run);
        ran++;
    }
    assert_true(ran >= 3);
}

static void dx_may_lie_over_x(void **state) {
    const struct fixture *fixture = *state;
    const struct group_more more = {.dx_over_x = true};
    unsigned ran = 0;
    for (size_t i = 0; i < 2 * count; i++) {
        struct group_case c;
        if (!take(fixture, i / 2, &c))
            continue;
        const bool given = i % 2;
        struct group_run apart = group_run_make(&c), run = group_run_make_more(&c, &more);
        if (given) {
            group_statistics_fill(&apart);
            group_statistics_fill(&run);
        }
        if (!group_backward_execute(fixture, &apart, given, false) || !group_backward_is_right(&apart, given) ||
            !group_backward_execute(fixture, &run, given, false) || !same_elements(&c, &run.x, &apart.dx) ||
            !same_bits(&run.dweight, &apart.dweight) || !same_bits(&run.dbias, &apart.dbias))
            group_case_fail(fixture, &c, i);
        group_run_free(&run);
        group_run_free(&apart);
        ran++;
    }
    assert_true(ran >= 2);
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
