/* Group and instance norm, forward, with forced configs: vectors, lanes, segments, chunks, slices and streaming stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "group_norm_case.h"
#include "group_norm_verify.h"

enum { F32 = CLNORM_F32, F16 = CLNORM_F16, BF16 = CLNORM_BF16, F64 = CLNORM_F64 };
enum { FIRST = CLNORM_LAYOUT_FIRST, LAST = CLNORM_LAYOUT_LAST };
enum { NORMAL = INPUT_NORMAL, FAR = INPUT_FAR, SPIKES = INPUT_SPIKES };
enum { GELU = CLNORM_ACTIVATION_GELU, SILU = CLNORM_ACTIVATION_SILU };

/* Each runs with both layouts, or with the one layout that it names. */
static const struct group_case cases[] = {
    {6, 48, 1, 3, 0, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=1,keep=reread,unroll=2"},
    {3, 16, 64, 4, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=4,lanes=16,segments=2"},
    {3, 16, 64, 4, FIRST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=2,chunks=12"},
    {3, 16, 64, 4, FIRST, F32, F32, F32, 0, SILU, FAR, 0, 0, "vec=8,lanes=64,segments=1,chunks=2,iterations=3"},
    {3, 16, 50, 4, FIRST, BF16, BF16, F32, 0, 0, NORMAL, 0, 0, "vec=16,lanes=1,chunks=20"},
    {2, 8, 9, 2, FIRST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=4,lanes=1,chunks=20"},
    {2, 8, 1001, 2, FIRST, F32, F32, F32, 0, 0, FAR, 0, 0, "vec=1,lanes=32,segments=2"},
    {2, 16, 1001, 2, FIRST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=2,chunks=24"},
    {2, 16, 1001, 2, FIRST, F32, F32, F32, F32, SILU, FAR, 4, 0, "stores=streaming,vec=4,lanes=8,segments=2,chunks=24"},
    {2, 16, 1001, 2, FIRST, BF16, BF16, F32, 0, 0, FAR, 8, 0, "vec=8,lanes=32,segments=1,chunks=8,iterations=3"},
    {3, 16, 13, 2, FIRST, F16, F32, F32, 0, SILU, SPIKES, 0, 0, "vec=8,lanes=4,segments=2,chunks=17"},
    {3, 16, 3, 2, FIRST, BF16, BF16, F32, 0, 0, NORMAL, 0, 1, "vec=8,lanes=8,segments=2,chunks=2"},
    {3, 48, 100, 4, LAST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=4,chunks=7"},
    {3, 48, 100, 4, LAST, BF16, BF16, F32, 0, 0, FAR, 0, 0, "vec=8,lanes=4,segments=1,chunks=1"},
    {3, 50, 100, 5, LAST, F32, F32, F32, 0, 0, SPIKES, 0, 0, "vec=16,lanes=1,chunks=33,iterations=2"},
    {2, 48, 9, 4, LAST, BF16, BF16, F32, 0, SILU, FAR, 0, 0, "vec=8,lanes=4,segments=8,chunks=2"},
    {2, 80, 150, 8, LAST, F32, F32, F32, F32, SILU, FAR, 0, 0, "vec=4,lanes=4,segments=4,chunks=7,iterations=3"},
    {2, 96, 60, 2, LAST, BF16, BF16, F32, 0, 0, SPIKES, 0, 0, "vec=8,lanes=2,segments=4,chunks=3"},
    {2, 60, 250, 60, LAST, F32, F32, F32, 0, 0, FAR, 0, 0, "vec=4,lanes=4,segments=8,chunks=5"},
    {3, 48, 400, 4, LAST, BF16, BF16, F32, 0, SILU, SPIKES, 0, 0, "vec=1,lanes=8,segments=2,chunks=150,iterations=2"},
    {2, 64, 1000, 4, FIRST, F32, F32, F32, 0, GELU, FAR, 0, 0, "vec=8,lanes=32,segments=2"},
    {2, 32, 49, 4, FIRST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=8,lanes=4,segments=2"},
    {2, 64, 1, 4, FIRST, BF16, BF16, F32, 0, 0, NORMAL, 16, 8, "vec=8,lanes=2,segments=2"},
    {3, 32, 147, 2, FIRST, F16, F16, F32, 0, SILU, FAR, 0, 0, "vec=16,lanes=2,segments=1"},
    {2, 64, 1000, 4, FIRST, BF16, BF16, F32, BF16, 0, NORMAL, 0, 0, "vec=8,lanes=1024,segments=1"},
    {2, 64, 1000, 4, FIRST, F16, F16, F32, 0, SILU, SPIKES, 0, 0, "vec=8,lanes=256,segments=1"},
    {3, 48, 100, 4, 0, F32, F32, F32, 0, 0, NORMAL, 0, 0, "stores=streaming,vec=4,lanes=4"},
    {40, 3, 64, 3, LAST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=1,lanes=32,segments=1,chunks=1"},
    {5, 6, 99, 2, LAST, BF16, BF16, F32, 0, 0, FAR, 1, 1, "vec=2,lanes=64,segments=1,chunks=1,iterations=2"},
    {3, 2, 4, 1, LAST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=2,lanes=16,segments=1,chunks=1"},
    {3, 96, 9, 8, LAST, F16, F32, F16, F16, SILU, FAR, 0, 0, "vec=8,lanes=64,segments=2,chunks=1"},
    {9, 8, 3, 2, LAST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=4,chunks=1"},
    {5, 128, 2, 16, LAST, BF16, BF16, F32, 0, 0, FAR, 0, 1, "vec=4,lanes=32,segments=2,chunks=1,iterations=2"},
    {11, 3, 5, 3, LAST, F32, F32, F32, 0, GELU, NORMAL, 0, 0, "vec=1,lanes=4,segments=8,chunks=1"},
    {2, 3, 36, 3, LAST, F16, F32, F32, 0, SILU, NORMAL, 4, 0, "vec=1,lanes=32,segments=2,chunks=1"},
    {5, 60, 27, 6, LAST, BF16, BF16, 0, 0, 0, FAR, 0, 0, "vec=2,lanes=32,segments=4,chunks=1"},
    {9, 100, 26, 5, LAST, F32, F32, F32, 0, 0, NORMAL, 0, 1, "vec=4,lanes=64,segments=2,chunks=1,iterations=3"},
    {2, 6, 640, 2, LAST, F32, F32, F32, F32, SILU, NORMAL, 0, 0, "vec=4,lanes=8,segments=4,chunks=7"},
    {2, 15, 320, 5, LAST, BF16, BF16, F32, 0, 0, FAR, 0, 0, "vec=8,lanes=4,segments=2,chunks=3,iterations=3"},
    {2, 3, 350, 1, LAST, F32, F32, F32, 0, SILU, FAR, 0, 0, "vec=2,lanes=16,segments=1,chunks=4"},
    {2, 15, 320, 3, LAST, F32, F32, F32, 0, SILU, NORMAL, 0, 0, "vec=4,lanes=1,chunks=3"},
    {2, 5, 1369, 5, LAST, F32, F32, F32, 0, 0, FAR, 0, 0, "vec=2,lanes=1,chunks=33"},
    {2, 3, 480, 3, LAST, F32, F32, F32, F32, 0, NORMAL, 0, 0, "stores=streaming,vec=8,lanes=1"},
    {3, 64, 49, 4, LAST, F32, F32, F32, F32, SILU, FAR, 0, 0, "vec=4,lanes=64,chunks=1"},
    {2, 160, 40, 16, LAST, BF16, BF16, F32, BF16, GELU, SPIKES, 0, 0, "vec=8,lanes=128,chunks=1,iterations=2"},
    {2, 160, 40, 16, LAST, BF16, F16, F32, 0, 0, NORMAL, 0, 0, "vec=4,lanes=64,chunks=1"},
    {2, 64, 30, 64, LAST, F32, F32, F32, 0, 0, FAR, 3, 1, "vec=1,lanes=128,chunks=1"},
    {2, 64, 1, 2, LAST, F32, F32, F32, 0, 0, NORMAL, 0, 0, "vec=8,lanes=32,chunks=1"},
    {3, 32, 20, 4, LAST, F64, F64, F64, F64, SILU, NORMAL, 0, 0, "vec=2,lanes=32,chunks=1"},
    {6, 32, 4, 8, FIRST, F32, F32, F32, F32, GELU, NORMAL, 0, 1, "keep=registers,vec=8,lanes=2,segments=2"},
    {3, 48, 12, 3, FIRST, F32, BF16, F16, 0, SILU, SPIKES, 0, 0, "keep=reread,vec=16,lanes=1,unroll=2"},
};

static void results_are_right(void **state) {
    const struct fixture *fixture = *state;
    /* A defect of PoCL 6 excludes most of them. */
    const unsigned least = fixture_is_quick() ? 2 : fixture_is_slow(fixture) ? 4 : 10;
    const unsigned ran = group_forward_check_cases(fixture, cases, sizeof cases / sizeof *cases);
    assert_true(ran >= least);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_are_right)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
