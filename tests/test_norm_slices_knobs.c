/* Norms of slices of the columns with forced knobs: lanes, chunks, and each accumulator of the backward. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "norm_slices_case.h"

enum { F32 = CLNORM_F32, F16 = CLNORM_F16, BF16 = CLNORM_BF16 };
enum { LAYER = CLNORM_LAYER_NORM, RMS = CLNORM_RMS_NORM, NORMAL = INPUT_NORMAL, FAR = INPUT_FAR };

static const char segments[] = "vec=2,lanes=8,segments=4,iterations=2,unroll=2",
                  chunks[] = "chunks=5,lanes=4,vec=4,iterations=3";
static const char in_registers[] = "accumulator=registers,keep=registers,vec=2,lanes=8,segments=2";
static const char tiles_in_registers[] = "tile=64,accumulator=registers,keep=registers,pipeline=2";
static const char leading[] = "stores=streaming,vec=8,lanes=1,accumulator=registers,tile=37,run_length=1";
static const char tiles_in_memory[] = "tile=64,accumulator=memory,keep=reread";

static const struct slices_case cases[] = {
    {5, 2, {128, 64}, 0, LAYER, F32, F32, F32, FAR, 0, 0, 0, false, "vec=4,lanes=16,segments=2", "vec=4,lanes=16"},
    {5, 1, {120, 64}, 0, LAYER, F32, F32, F32, FAR, 0, 0, 0, false, "vec=4,lanes=16,segments=2", "vec=4,lanes=16"},
    {5, 2, {128, 64}, 0, RMS, F16, F32, F16, NORMAL, 0, 0, 0, false, segments, in_registers},
    {3, 1, {640, 320}, 0, LAYER, F32, F32, F32, FAR, 0, 0, 0, false, "chunks=3", "accumulator=memory,keep=reread"},
    {3, 2, {641, 320}, 0, LAYER, F32, F32, F32, NORMAL, 1, 1, 0, false, "chunks=7,vec=1", "accumulator=local"},
    {3, 1, {640, 320}, 0, RMS, BF16, F32, BF16, NORMAL, 0, 0, 0, false, chunks, tiles_in_registers},
    {70, 1, {640, 320}, 0, LAYER, F32, F32, F32, NORMAL, 0, 0, 0, false, "unroll=8,stores=streaming", tiles_in_memory},
    /* slices that begin anywhere within a vector */
    {9, 1, {301, 130}, 0, LAYER, F32, F32, F32, FAR, 0, 0, 0, false, "stores=streaming,vec=4,lanes=8,segments=2", ""},
    {9, 1, {37}, 0, RMS, BF16, BF16, BF16, NORMAL, 16, 0, 0, false, "stores=streaming,vec=8,lanes=4", leading},
    {2, 1, {1001}, 0, LAYER, F32, F32, F32, FAR, 0, 0, 0, false, "stores=streaming,vec=4,lanes=4,segments=1,chunks=3", ""},
    {6, 2, {128, 64}, 0, LAYER, F32, F32, F32, NORMAL, 0, 0, 0, false, "weights=kept", "accumulator=columns"},
    {70, 2, {128, 64}, 0, LAYER, BF16, F32, F32, NORMAL, 0, 0, 0, false, "", "accumulator=split,keep=registers,lanes=8"},
};

static void forced_knobs_give_right_results(void **state) {
    assert_true(slices_cases_are_right(*state, cases, sizeof cases / sizeof *cases) >= 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(forced_knobs_give_right_results)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
