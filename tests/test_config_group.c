/* Group norm's configs on devices that no test machine has, by their published limits. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arithmetic.h"
#include "clnorm/clnorm.h"
#include "config/config.h"
#include "config/group_registers.h"
#include "knob.h"
#include "made_up_devices.h"
#include "refusal.h"

/* Group norm of channels first, with a shape and with elements of so many bytes. */
static struct cln_workload group_workload_of(uint64_t groups, uint64_t channels_of_group, uint64_t spatial, uint64_t size) {
    return (struct cln_workload){.users = CLN_KNOBS_GROUP,
                                 .rows = 3,
                                 .groups = groups,
                                 .group_size = channels_of_group * spatial,
                                 .channels = groups * channels_of_group,
                                 .channels_of_group = channels_of_group,
                                 .spatial = spatial,
                                 .alignment = cln_lowest_bit(groups * channels_of_group * spatial),
                                 .x_size = size,
                                 .held_size = size,
                                 .norm = CLNORM_LAYER_NORM,
                                 .real_size = cln_larger(size, sizeof(float))};
}

static struct cln_config chosen_for_h200(const struct cln_workload *work) {
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200);
    const struct cln_config automatic = {0};
    struct cln_config config;
    assert_int_equal(cln_config_choose_group(&h200, work, &automatic, &config), CLNORM_SUCCESS);
    return config;
}

/* Group norm in double, channels last, keeps the phases of a work-group in local memory. With little of it and wide
 * forced vectors, the choice has fewer phases; too many forced ones are refused. */
static void phases_fit_into_local_memory(void **state) {
    (void)state;
    struct clnorm_device_info device = made_up_device(MADE_UP_H200);
    device.local_memory = 18 << 10;
    struct cln_workload work = group_workload_of(4, 64, 1000, sizeof(double));
    work.channels_last = true;
    work.alignment = 256;
    struct cln_config config = {0}, forced = {.vec = 16, .lanes = 16};
    assert_int_equal(cln_config_choose_group(&device, &work, &forced, &config), CLNORM_SUCCESS);
    assert_int_equal(config.segments, 2); /* 2 · 16 lanes · 2 segments · 17 doubles are 8.5 KiB */
    forced.segments = 4;
    assert_int_equal(cln_config_choose_group(&device, &work, &forced, &config), CLNORM_INVALID_VALUE);
    assert_detail("desc.config.segments is 4: expected fewer");
    forced = (struct cln_config){0};
    device = made_up_device(MADE_UP_H200);
    assert_int_equal(cln_config_choose_group(&device, &work, &forced, &config), CLNORM_SUCCESS);
    assert_int_equal(config.lanes * config.segments, 128);
}

/* Group norm of few positions and of groups of few channels, on every device. The chosen config may be forced. */
static void small_images_have_a_config(void **state) {
    (void)state;
    enum { SPATIAL = 25, CHANNELS = 20 };
    const struct cln_config automatic = {0};
    for (unsigned i = 0; i < MADE_UP_DEVICES * SPATIAL * CHANNELS * 8; i++) {
        const clnorm_device_info device = made_up_device(i / 8 / SPATIAL / CHANNELS);
        const uint64_t spatial = 1 + i / 8 / CHANNELS % SPATIAL, channels = 1 + i / 8 % CHANNELS, size = i & 1 ? 2 : 4;
        struct cln_workload work = group_workload_of(3, channels, spatial, size);
        work.channels_last = i & 2;
        work.channel_sums = i & 4;
        struct cln_config config, again;
        if (cln_config_choose_group(&device, &work, &automatic, &config) != CLNORM_SUCCESS ||
            cln_config_choose_group(&device, &work, &config, &again) != CLNORM_SUCCESS)
            fail_msg("%s, %" PRIu64 " channels of %" PRIu64 ", %u: %s", device.name, channels, spatial, i % 8,
                     clnorm_error_detail());
        assert_memory_equal(&config, &again, sizeof config);
    }
}

/* Group norm with channels first, of bf16: where no wide vector divides a large image's channels, chunks begin anywhere
 * within one, if it divides the stride of the samples. A small image's channels have too few vectors for that. Registers
 * hold a segment that fits, unless many vectors of a forward would have to tell channels apart, which vectors of four that
 * divide a channel need not. */
static void odd_images_have_wide_vectors(void **state) {
    (void)state;
    static const struct {
        uint64_t spatial, alignment;
        struct {
            uint64_t vec;
            bool in_chunks;
        } choice[2]; /* forward, backward */
    } images[] = {
        {49, 8, {{8, false}, {1, false}}},    {225, 8, {{8, false}, {1, false}}},  {196, 8, {{4, false}, {4, false}}},
        {1540, 8, {{4, false}, {4, false}}},  {2046, 8, {{8, true}, {2, false}}},  {961, 8, {{8, false}, {1, false}}},
        {2025, 8, {{8, true}, {8, true}}},    {2025, 2, {{2, false}, {1, false}}}, {2048, 64, {{8, false}, {8, false}}},
        {3136, 64, {{8, false}, {8, false}}}, {4096, 64, {{8, false}, {8, true}}}};
    const clnorm_device_info device = made_up_device(MADE_UP_H200);
    const struct cln_config automatic = {0};
    for (size_t i = 0; i < 2 * sizeof images / sizeof *images; i++) {
        struct cln_workload work = group_workload_of(32, 8, images[i / 2].spatial, sizeof(cl_half));
        work.channel_sums = i % 2;
        work.alignment = images[i / 2].alignment;
        struct cln_config config;
        assert_int_equal(cln_config_choose_group(&device, &work, &automatic, &config), CLNORM_SUCCESS);
        assert_int_equal(config.vec, images[i / 2].choice[i % 2].vec);
        assert_true(config.lanes > 1);
        assert_int_equal(config.chunks > 1, images[i / 2].choice[i % 2].in_chunks);
        assert_int_equal(cln_channel_piece(&work, &config).lanes > 0, i % 2 && config.chunks == 1);
    }
}

/* An H200's work-groups exchange sums in one launch where its L2 cache has inputs of several groups, but not of all: with
 * channels first, where a group is too large for registers. Neither chunks nor lanes depend on it, nor on the samples. */
static void large_images_are_read_once(void **state) {
    (void)state;
    static const struct {
        uint64_t rows, channels_of_group, spatial, size;
        bool exchange[2]; /* forward, backward */
    } images[] = {
        {16, 10, 16384, 2, {true, true}},   {16, 10, 16384, 4, {true, true}}, {1, 10, 16384, 2, {false, false}},
        {32, 10, 4096, 2, {false, true}},   {4, 4, 262144, 2, {true, true}},  {1, 16, 262144, 4, {false, false}},
        {16, 10, 16384, 8, {false, false}}, {64, 3, 5467, 2, {false, false}}, {16, 4, 90000, 2, {true, false}},
        {2, 10, 16384, 2, {false, false}},
    };
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200), t4 = made_up_device(MADE_UP_T4);
    const struct cln_config automatic = {0};
    for (size_t i = 0; i < 2 * sizeof images / sizeof *images; i++) {
        struct cln_workload work =
            group_workload_of(32, images[i / 2].channels_of_group, images[i / 2].spatial, images[i / 2].size);
        work.channel_sums = i % 2;
        work.held_size *= i % 2 ? 2 : 1;
        struct cln_config config, of_one, of_t4;
        assert_int_equal(cln_config_choose_group(&t4, &work, &automatic, &of_t4), CLNORM_SUCCESS);
        assert_int_equal(of_t4.row_split, CLN_ROW_SPLIT_TWO_PASSES);
        work.rows = 1;
        assert_int_equal(cln_config_choose_group(&h200, &work, &automatic, &of_one), CLNORM_SUCCESS);
        work.rows = images[i / 2].rows;
        assert_int_equal(cln_config_choose_group(&h200, &work, &automatic, &config), CLNORM_SUCCESS);
        assert_int_equal(cln_exchanges(&config), images[i / 2].exchange[i % 2]);
        struct cln_config iterated;
        assert_int_equal(cln_config_choose_group(&h200, &work, &(struct cln_config){.iterations = 2}, &iterated),
                         CLNORM_SUCCESS);
        assert_int_equal(iterated.row_split, CLN_ROW_SPLIT_TWO_PASSES);
        config.row_split = of_one.row_split;
        assert_memory_equal(&config, &of_one, sizeof config);
    }
}

/* A forced knob never makes the choice refuse one that it has chosen itself. */
static void forced_knobs_of_odd_images_fit(void **state) {
    (void)state;
    const clnorm_device_info device = made_up_device(MADE_UP_H200);
    static const struct cln_config forced[] = {{.chunks = 200}, {.chunks = 2, .lanes = 1}};
    const struct cln_workload work = group_workload_of(64, 1, 257, sizeof(float));
    for (size_t i = 0; i < sizeof forced / sizeof *forced; i++) {
        struct cln_config config;
        assert_int_equal(cln_config_choose_group(&device, &work, &forced[i], &config), CLNORM_SUCCESS);
    }
    struct cln_workload single = group_workload_of(8, 1, 1, sizeof(float)); /* groups of one element */
    single.channel_sums = true;
    struct cln_config config;
    assert_int_equal(cln_config_choose_group(&device, &single, &(struct cln_config){.lanes = 1}, &config), CLNORM_SUCCESS);
    assert_int_equal(config.chunks, 1);
}

/* Channels last: a few channels of several positions fill vectors, where a number of positions divides the image. */
static void few_channels_fill_vectors(void **state) {
    (void)state;
    static const struct {
        uint64_t channels, spatial;
        uint64_t positions[2]; /* with aligned vectors, with any */
        uint64_t vec;          /* of bf16 on an H200 */
    } images[] = {
        {3, 50176, {16, 16}, 4}, {3, 1225, {7, 7}, 1}, {3, 1369, {1, 37}, 1}, {3, 36, {4, 4}, 4},  {3, 257, {1, 1}, 1},
        {3, 51529, {1, 227}, 1}, {2, 1024, {8, 8}, 4}, {4, 1024, {1, 4}, 4},  {6, 100, {4, 4}, 4}, {8, 1024, {1, 2}, 4},
        {8, 225, {1, 5}, 4},     {12, 64, {1, 4}, 4},  {15, 64, {8, 8}, 4},   {16, 64, {1, 1}, 4}, {17, 64, {1, 1}, 1},
    };
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200);
    const struct cln_config chunked = {.chunks = 2};
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        struct cln_workload work = group_workload_of(images[i].channels, 1, images[i].spatial, sizeof(cl_half));
        assert_int_equal(cln_config_row_positions(&work, &chunked), 1); /* channels first */
        work.channels_last = true;
        struct cln_config config;
        assert_int_equal(cln_config_choose_group(&h200, &work, &chunked, &config), CLNORM_SUCCESS);
        assert_int_equal(config.vec, images[i].vec);
        for (int any = 0; any < 2; any++) {
            work.any_address = any;
            assert_int_equal(cln_config_row_positions(&work, &chunked), images[i].positions[any]);
        }
    }
}

/* A GPU's work-group holds all channels of a sample with channels last, if they are few and its registers have room.
 * Vectors then have channels of one position alone. */
static void small_samples_are_held(void **state) {
    (void)state;
    static const struct {
        uint64_t channels, spatial, size, vec;
        bool held[2]; /* forward, backward */
    } samples[] = {
        {3, 36, 4, 1, {true, true}},      {3, 10000, 4, 1, {true, false}},  {3, 50176, 4, 1, {false, false}},
        {2, 1024, 2, 2, {true, true}},    {16, 1024, 4, 4, {true, true}},   {20, 900, 2, 4, {true, true}},
        {9, 729, 2, 1, {true, true}},     {4, 4096, 4, 4, {true, true}},    {3, 6000, 8, 1, {true, false}},
        {3, 10000, 8, 1, {false, false}}, {18, 3136, 4, 2, {false, false}},
    };
    for (size_t i = 0; i < 2 * sizeof samples / sizeof *samples; i++) {
        struct cln_workload work =
            group_workload_of(samples[i / 2].channels, 1, samples[i / 2].spatial, samples[i / 2].size);
        work.channels_last = true;
        work.channel_sums = i % 2;
        const struct cln_config config = chosen_for_h200(&work);
        const bool held = samples[i / 2].held[i % 2];
        assert_int_equal(cln_config_slice_groups(&work, &config), held ? samples[i / 2].channels : 0);
        assert_int_equal(config.chunks == 1, held);
        if (held) {
            assert_int_equal(config.vec, samples[i / 2].vec);
            assert_int_equal(cln_config_row_positions(&work, &config), 1);
        }
    }
}

/* A slice of a sample has groups with rows of 128 bytes where lanes then hold little, of 64 where they hold more, and of 32
 * where registers have room for nothing else. */
static void large_slices_are_narrow(void **state) {
    (void)state;
    static const struct {
        uint64_t groups, channels_of_group, spatial, size, span[2], lanes[2]; /* forward, backward; 0: in chunks */
    } samples[] = {
        {32, 8, 49, 2, {8, 8}, {64, 128}},    {24, 4, 196, 4, {8, 8}, {128, 256}},
        {32, 30, 196, 4, {2, 2}, {256, 256}}, {32, 30, 196, 2, {4, 4}, {256, 256}},
        {32, 8, 784, 4, {2, 2}, {256, 256}},  {32, 8, 3136, 2, {0, 0}, {0, 0}},
        {32, 16, 961, 2, {2, 1}, {256, 256}}, {32, 16, 1600, 2, {1, 1}, {256, 256}},
        {32, 20, 1024, 4, {2, 0}, {256, 0}},  {32, 20, 1024, 2, {0, 0}, {0, 0}},
        {32, 40, 576, 2, {0, 0}, {0, 0}},     {1280, 1, 1024, 2, {32, 16}, {256, 256}},
        {257, 1, 81, 2, {257, 0}, {1024, 0}}, {32, 16, 2624, 2, {1, 0}, {256, 0}},
    };
    for (size_t i = 0; i < 2 * sizeof samples / sizeof *samples; i++) {
        struct cln_workload work = group_workload_of(samples[i / 2].groups, samples[i / 2].channels_of_group,
                                                     samples[i / 2].spatial, samples[i / 2].size);
        work.channels_last = true;
        work.channel_sums = i % 2;
        const struct cln_config config = chosen_for_h200(&work);
        const uint64_t span = samples[i / 2].span[i % 2];
        assert_int_equal(cln_config_slice_groups(&work, &config), span);
        assert_int_equal(config.chunks == 1, span > 0);
        if (span)
            assert_int_equal(config.lanes, samples[i / 2].lanes[i % 2]);
    }
}

/* Small slices share a work-group, whose lanes are mostly busy, as far as local memory suffices. Without ptx, whose
 * registers are not known, they have wide rows alone. */
static void small_slices_share_work_groups(void **state) {
    (void)state;
    static const struct {
        uint64_t groups, channels_of_group, spatial, lanes;
    } samples[] = {{2, 2, 3, 2},     {13, 1, 3, 16},   {3, 2, 4, 4},   {32, 16, 3, 16},
                   {16, 10, 16, 32}, {32, 16, 49, 64}, {32, 8, 49, 64}};
    const struct cln_config automatic = {0};
    for (size_t i = 0; i < MADE_UP_DEVICES * sizeof samples / sizeof *samples * 2; i++) {
        const clnorm_device_info device = made_up_device((unsigned)(i / 2 % MADE_UP_DEVICES));
        const size_t sample = i / 2 / MADE_UP_DEVICES;
        struct cln_workload work = group_workload_of(samples[sample].groups, samples[sample].channels_of_group,
                                                     samples[sample].spatial, sizeof(cl_half));
        work.channels_last = true;
        work.channel_sums = i % 2;
        struct cln_config config;
        assert_int_equal(cln_config_choose_group(&device, &work, &automatic, &config), CLNORM_SUCCESS);
        if (!cln_config_slice_groups(&work, &config)) {
            assert_int_not_equal(i / 2 % MADE_UP_DEVICES, MADE_UP_H200);
            continue;
        }
        assert_in_range(config.segments * config.lanes, 1, device.max_work_group_size);
        assert_in_range(cln_slice_bytes(&work, &config), 1, device.local_memory);
        if (config.isa != CLN_ISA_PTX)
            assert_int_equal(cln_config_slice_groups(&work, &config), cln_slice_span(&work, config.vec));
        if (i / 2 % MADE_UP_DEVICES == MADE_UP_H200 && !work.channel_sums)
            assert_int_equal(config.lanes, samples[sample].lanes);
        if (i / 2 % MADE_UP_DEVICES == MADE_UP_H200)
            assert_int_equal(config.lanes * config.segments, 128);
    }
}

/* A forced number of segments that leaves the lanes of slices too few registers has chunks. */
static void forced_segments_fit(void **state) {
    (void)state;
    const clnorm_device_info h200 = made_up_device(MADE_UP_H200);
    for (uint32_t segments = 1; segments <= 32; segments *= 2)
        for (int backward = 0; backward < 2; backward++) {
            struct cln_workload work = group_workload_of(32, 10, 256, sizeof(cl_half));
            work.channels_last = true;
            work.channel_sums = backward;
            const struct cln_config forced = {.segments = segments};
            struct cln_config config;
            assert_int_equal(cln_config_choose_group(&h200, &work, &forced, &config), CLNORM_SUCCESS);
            assert_int_equal(config.segments, segments);
            assert_int_equal(cln_config_slice_groups(&work, &config) > 0, segments == 1);
        }
}

/* Channels last: where vectors are narrow, or channels few, a chunk has more rows, of which each phase has equally many if
 * the image allows it. */
static void narrow_rows_make_large_chunks(void **state) {
    (void)state;
    static const struct {
        uint64_t channels, spatial, chunks[2]; /* forward, backward, as below */
        bool even[2];                          /* each phase has equally many rows */
    } images[] = {{3, 51529, {51, 51}, {false, false}},  {18, 6272, {16, 49}, {true, true}},
                  {130, 961, {8, 8}, {false, false}},    {257, 1155, {10, 10}, {false, false}},
                  {36, 3200, {25, 50}, {true, true}},    {66, 2496, {8, 13}, {true, true}},
                  {512, 16384, {256, 128}, {true, true}}};
    for (size_t i = 0; i < 2 * sizeof images / sizeof *images; i++) {
        struct cln_workload work = group_workload_of(images[i / 2].channels, 1, images[i / 2].spatial, sizeof(cl_half));
        work.channels_last = true;
        work.channel_sums = i % 2;
        const struct cln_config config = chosen_for_h200(&work);
        assert_int_equal(config.chunks, images[i / 2].chunks[i % 2]);
        const uint64_t rows = images[i / 2].spatial / cln_config_row_positions(&work, &config);
        assert_int_equal(rows % ((uint64_t)config.chunks * config.segments) == 0, images[i / 2].even[i % 2]);
    }
}

/* Channels first: fewer lanes with more registers each hold a segment for which many have too few. Registers hold single
 * elements for which CLN_HOLDERS lanes suffice, and so many lanes at most hold narrow vectors. */
static void large_segments_are_held(void **state) {
    (void)state;
    static const struct {
        uint64_t groups, channels, spatial, size, inputs, lanes; /* lanes 0: in chunks */
    } segments[] = {
        {4, 1, 40960, 4, 1, 1024}, {4, 1, 50176, 4, 1, 256}, {4, 1, 51204, 4, 1, 0},   {4, 1, 50176, 2, 1, 256},
        {4, 1, 65536, 2, 1, 512},  {4, 1, 81928, 2, 1, 0},   {4, 1, 24576, 4, 2, 256}, {4, 1, 24580, 4, 2, 0},
        {4, 1, 24576, 8, 1, 256},  {4, 1, 24578, 8, 1, 0},   {1, 99, 81, 4, 1, 256},   {1, 257, 81, 4, 1, 0},
        {1, 21, 1023, 4, 1, 0},    {1, 22, 1023, 4, 1, 256}, {1, 44, 441, 4, 1, 512},  {1, 5, 961, 4, 1, 128},
    };
    for (size_t i = 0; i < sizeof segments / sizeof *segments; i++) {
        struct cln_workload work =
            group_workload_of(segments[i].groups, segments[i].channels, segments[i].spatial, segments[i].size);
        work.held_size *= segments[i].inputs;
        const struct cln_config config = chosen_for_h200(&work);
        assert_int_equal(config.chunks > 1 ? 0 : config.lanes, segments[i].lanes);
    }
}

/* Backward, channels first: few lanes hold a small group. Each channel has several. */
static void small_groups_have_few_lanes(void **state) {
    (void)state;
    static const struct {
        uint64_t channels, spatial, lanes;
    } groups[] = {{2, 36, 8}, {2, 25, 8}, {1, 49, 8}, {2, 49, 16}, {4, 36, 16}, {8, 25, 32}, {16, 21, 64}};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        struct cln_workload work = group_workload_of(32, groups[i].channels, groups[i].spatial, sizeof(cl_half));
        work.channel_sums = true;
        const struct cln_config config = chosen_for_h200(&work);
        assert_int_equal(config.chunks > 1 ? 0 : config.lanes, groups[i].lanes);
    }
}

static enum cln_stores stores_chosen(const clnorm_device_info *device, const struct cln_workload *work) {
    const struct cln_config automatic = {0};
    struct cln_config config;
    assert_int_equal(cln_config_choose_group(device, work, &automatic, &config), CLNORM_SUCCESS);
    return (enum cln_stores)config.stores;
}

/* Group norm streams with channels last, with the vectors of few samples. */
static void large_images_are_streamed(void **state) {
    (void)state;
    const struct cln_config automatic = {0};
    const clnorm_device_info cpu = made_up_device(MADE_UP_POCL);
    struct cln_workload work = group_workload_of(32, 10, 4096, 4);
    work.any_address = true;
    work.rows = 64;
    assert_int_equal(stores_chosen(&cpu, &work), CLN_STORES_CACHED);
    work.channels_last = true;
    assert_int_equal(stores_chosen(&cpu, &work), CLN_STORES_STREAMING);
    struct cln_config many, few;
    assert_int_equal(cln_config_choose_group(&cpu, &work, &automatic, &many), CLNORM_SUCCESS);
    work.rows = 1;
    assert_int_equal(cln_config_choose_group(&cpu, &work, &automatic, &few), CLNORM_SUCCESS);
    assert_int_equal(few.stores, CLN_STORES_CACHED);
    few.stores = many.stores;
    assert_memory_equal(&few, &many, sizeof few);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_fit_into_local_memory),   cmocka_unit_test(small_images_have_a_config),
        cmocka_unit_test(odd_images_have_wide_vectors),   cmocka_unit_test(large_images_are_read_once),
        cmocka_unit_test(forced_knobs_of_odd_images_fit), cmocka_unit_test(few_channels_fill_vectors),
        cmocka_unit_test(small_samples_are_held),         cmocka_unit_test(large_slices_are_narrow),
        cmocka_unit_test(small_slices_share_work_groups), cmocka_unit_test(forced_segments_fit),
        cmocka_unit_test(narrow_rows_make_large_chunks),  cmocka_unit_test(large_segments_are_held),
        cmocka_unit_test(small_groups_have_few_lanes),    cmocka_unit_test(large_images_are_streamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
