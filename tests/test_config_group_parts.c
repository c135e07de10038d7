/* Where the kernel of group norm's outputs makes statistics of the parts of chunks itself: if they are few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arithmetic.h"
#include "clnorm/clnorm.h"
#include "config/config.h"
#include "config/group_parts.h"

/* 512 channels of f32 in 32 groups. */
static struct cln_workload workload_of(uint64_t spatial, bool last) {
    return (struct cln_workload){.users = CLN_KNOBS_GROUP,
                                 .rows = 2,
                                 .groups = 32,
                                 .group_size = 16 * spatial,
                                 .channels = 512,
                                 .channels_of_group = 16,
                                 .spatial = spatial,
                                 .channels_last = last,
                                 .alignment = cln_lowest_bit(512 * spatial),
                                 .x_size = sizeof(float),
                                 .held_size = sizeof(float),
                                 .norm = CLNORM_LAYER_NORM,
                                 .real_size = sizeof(float)};
}

/* Channels last: a work-group of 128 work-items takes 128 channels of a chunk. They are of 10 groups at most, each with a
 * part of every chunk: six parts for each work-item may be merged. */
static void a_block_has_six_parts_for_each_work_item(void **state) {
    (void)state;
    const struct cln_workload large = workload_of(65536, true);
    struct cln_config config = {.vec = 4, .lanes = 32, .segments = 4, .chunks = 76};
    assert_true(cln_group_merges(&large, &config));
    config.chunks = 77;
    assert_false(cln_group_merges(&large, &config));
}

/* It has eight elements at least for each part: of chunks of 40 positions 5120 for up to 640. */
static void a_block_has_eight_elements_for_each_part(void **state) {
    (void)state;
    const struct cln_config config = {.vec = 4, .lanes = 32, .segments = 4, .chunks = 64};
    const struct cln_workload enough = workload_of((uint64_t)64 * 40, true), few = workload_of((uint64_t)64 * 39, true);
    assert_true(cln_group_merges(&enough, &config));
    assert_false(cln_group_merges(&few, &config));
}

/* Channels first: four parts of a group for each lane, of which every channel has as many as it has chunks. */
static void a_lane_has_four_parts(void **state) {
    (void)state;
    const struct cln_workload work = workload_of(65536, false);
    struct cln_config config = {.vec = 4, .lanes = 32, .segments = 4, .chunks = 8 * 16};
    assert_true(cln_group_merges(&work, &config));
    config.chunks = 9 * 16;
    assert_false(cln_group_merges(&work, &config));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_has_six_parts_for_each_work_item),
        cmocka_unit_test(a_block_has_eight_elements_for_each_part),
        cmocka_unit_test(a_lane_has_four_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
