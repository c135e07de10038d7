/* The model's choice on devices that no test machine has, by their published limits. It is never refused, and its
 * registers and local memory fit. Forced knobs that an operation lacks are refused. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arithmetic.h"
#include "clnorm/clnorm.h"
#include "config/check.h"
#include "config/cost.h"
#include "config/resources.h"
#include "fixture.h"
#include "knob.h"
#include "made_up_devices.h"
#include "refusal.h"

static const uint64_t rows[] = {1, 64, 1000000};
static const uint64_t cols[] = {1,    2,     3,     7,     31,    64,    96,    100,   128,   257,    512,
                                768,  1000,  1001,  1024,  1280,  1536,  2048,  3000,  4096,  5120,   7168,
                                8192, 10001, 12288, 16384, 20000, 28672, 32769, 65535, 65536, 131072, 1048576};

static struct cln_workload workload_of(uint64_t x_size) {
    return (struct cln_workload){.groups = 1,
                                 .x_size = x_size,
                                 .held_size = x_size,
                                 .local_size = x_size,
                                 .norm = CLNORM_LAYER_NORM,
                                 .users = CLN_KNOBS_FORWARD,
                                 .real_size = sizeof(float)};
}

static void set_columns(struct cln_workload *work, uint64_t columns) {
    work->group_size = columns;
    work->alignment = columns & -columns;
    if (work->rope) /* three quarters of the columns, or all but an odd one */
        work->rope_dims = columns % 8 ? columns - columns % 2 : columns / 4 * 3;
}

/* Whether work-items, registers and local memory are within the device's limits. A backward counts with its least
 * registers: a compiler takes more only where it may. `clnorm check --spills` says what a device's compiler makes of
 * them. */
static bool fits(const clnorm_device_info *device, const struct cln_workload *work, const struct cln_config *c) {
    const struct cln_facts facts = cln_facts_of(device);
    const bool backward = work->users == CLN_KNOBS_BACKWARD;
    const uint64_t items = (uint64_t)c->lanes * c->segments;
    const uint64_t registers = backward ? cln_backward_least_registers(work, c) : cln_forward_registers(work, c);
    const uint64_t local =
        backward ? cln_backward_local_bytes(work, c, cln_config_span(device, work, c)) : cln_scratch_bytes(work, c);
    return items <= device->max_work_group_size && local <= device->local_memory &&
           (facts.alone || cln_registers_fit(&facts, items, registers));
}

/* Tries every device and shape with a workload whose other fields are set. In quick tests a device has every fifth width,
 * and another one of them first for each number of rows. */
static void choose_everywhere(struct cln_workload work) {
    const struct cln_config automatic = {0};
    const size_t step = fixture_is_quick() ? 5 : 1;
    for (size_t d = 0; d < MADE_UP_DEVICES; d++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t j = (d + i) % step; j < sizeof cols / sizeof *cols; j += step) {
                const clnorm_device_info device = made_up_device(d);
                struct cln_config config;
                work.rows = rows[i];
                work.any_address = cln_config_element_aligned(&device, &automatic);
                set_columns(&work, cols[j]);
                if (work.rope && !work.rope_dims)
                    continue;
                if (cln_config_choose(&device, &work, &automatic, &config) != CLNORM_SUCCESS)
                    fail_msg("%s, %" PRIu64 "x%" PRIu64 ", %" PRIu64 " bytes: %s", device.name, rows[i], cols[j],
                             work.x_size, clnorm_error_detail());
                if (!fits(&device, &work, &config)) {
                    const clnorm_config words = cln_config_close(&config);
                    char text[400];
                    clnorm_config_text(&words, text, sizeof text);
                    fail_msg("%s, %" PRIu64 "x%" PRIu64 ", %" PRIu64 " bytes: %s does not fit", device.name, rows[i],
                             cols[j], work.x_size, text);
                }
            }
}

static void forward_choices_fit(void **state) {
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (int of = CLN_KIND_NORM; of <= CLN_KIND_SOFTMAX_BACKWARD; of++)
            for (unsigned options = 0; options < 8; options++) {
                struct cln_workload work = workload_of(x_size);
                work.kind = (enum cln_kind)of;
                work.users = of < CLN_KIND_SOFTMAX ? CLN_KNOBS_FORWARD : CLN_KNOBS_SOFTMAX;
                work.norm = options & 1 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM;
                work.groups = options & 2 ? 2 : 1;
                work.y_scaled = of == CLN_KIND_QUANTIZED;
                work.lead_vec = options & 4 && !work.y_scaled ? 16 : 0;
                choose_everywhere(work);
            }
}

static void backward_choices_fit(void **state) {
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (unsigned options = 0; options < 16; options++) {
            struct cln_workload work = workload_of(x_size);
            work.users = CLN_KNOBS_BACKWARD;
            work.lead_vec = options & 8 ? 16 : 0;
            work.norm = options & 4 ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM;
            work.locked = options & 1;
            work.slots = 128;
            work.gated = options & 2;
            work.more_inputs = work.gated;
            work.both_sums = work.sums_rows = options & 4;
            choose_everywhere(work);
        }
}

static void rotated_choices_fit(void **state) {
    (void)state;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (unsigned options = 0; options < 8; options++) {
            struct cln_workload work = workload_of(x_size);
            work.rope = options & 1 ? CLNORM_ROPE_NEOX : CLNORM_ROPE_INTERLEAVED;
            work.users = options & 2 ? CLN_KNOBS_BACKWARD : CLN_KNOBS_FORWARD;
            work.groups = options & 4 ? 32 : 1;
            work.both_sums = work.sums_rows = options & 2;
            choose_everywhere(work);
        }
}

static void element_choices_are_accepted(void **state) {
    (void)state;
    const struct cln_config automatic = {0};
    for (size_t d = 0; d < MADE_UP_DEVICES; d++)
        for (size_t j = 0; j < sizeof cols / sizeof *cols; j++) {
            const clnorm_device_info device = made_up_device(d);
            struct cln_workload work = workload_of(2);
            struct cln_config config;
            work.users = CLN_KNOBS_ELEMENTS;
            work.rows = 64;
            set_columns(&work, cols[j]);
            assert_int_equal(cln_config_choose(&device, &work, &automatic, &config), CLNORM_SUCCESS);
            assert_true(config.lanes <= device.max_work_group_size);
        }
}

/* Ranked configs differ from each other, and the first one is the choice. */
static void ranking_begins_with_the_choice(void **state) {
    (void)state;
    const struct cln_config automatic = {0};
    for (size_t d = 0; d < MADE_UP_DEVICES; d++)
        for (size_t j = 0; j < sizeof cols / sizeof *cols; j++)
            for (int backward = 0; backward < 2; backward++) {
                const clnorm_device_info device = made_up_device(d);
                struct cln_workload work = workload_of(2);
                struct cln_config choice, ranked[CLN_MOST_RANKED];
                work.users = backward ? CLN_KNOBS_BACKWARD : CLN_KNOBS_FORWARD;
                work.both_sums = work.sums_rows = backward;
                work.rows = 8192;
                set_columns(&work, cols[j]);
                const size_t count = cln_config_rank(&device, &work, ranked, CLN_MOST_RANKED);
                assert_in_range(count, 1, CLN_MOST_RANKED);
                assert_int_equal(cln_config_choose(&device, &work, &automatic, &choice), CLNORM_SUCCESS);
                assert_memory_equal(&ranked[0], &choice, sizeof choice);
                for (size_t i = 0; i < count; i++)
                    for (size_t k = 0; k < i; k++)
                        assert_memory_not_equal(&ranked[i], &ranked[k], sizeof *ranked);
            }
}

/* Whether a config that holds a row of f32 in the registers of 256 lanes is among the best. */
static bool few_lanes_hold(enum cln_kind kind, uint64_t columns, bool y_scaled) {
    const clnorm_device_info device = made_up_device(MADE_UP_H200);
    struct cln_workload work = workload_of(4);
    struct cln_config ranked[CLN_MOST_RANKED];
    work.norm = CLNORM_RMS_NORM;
    work.kind = kind;
    work.rows = 419;
    work.y_scaled = y_scaled;
    set_columns(&work, columns);
    const size_t count = cln_config_rank(&device, &work, ranked, CLN_MOST_RANKED);
    for (size_t i = 0; i < count; i++)
        if (ranked[i].keep == CLN_KEEP_REGISTERS && ranked[i].lanes == 256)
            return true;
    return false;
}

/* 192 of a lane's 255 registers may hold a row of a norm. What needs further registers may not have that many. */
static void wide_rows_fill_registers(void **state) {
    (void)state;
    assert_true(few_lanes_hold(CLN_KIND_NORM, 49152, false));
    assert_true(few_lanes_hold(CLN_KIND_GATED, 49152, false));
    assert_true(few_lanes_hold(CLN_KIND_ADD, 49152, false));
    assert_false(few_lanes_hold(CLN_KIND_NORM, 50176, false));
    assert_false(few_lanes_hold(CLN_KIND_ADD, 40960, true));
    assert_false(few_lanes_hold(CLN_KIND_SOFTMAX, 40960, false));
    assert_true(few_lanes_hold(CLN_KIND_SOFTMAX, 16384, false));
}

/* A forced knob that the operation lacks is refused by name, with any value. */
static void foreign_knobs_are_refused(void **state) {
    (void)state;
    static const struct {
        enum cln_knob_users users;
        const char *knobs[16];
    } operations[] = {
        {CLN_KNOBS_FORWARD,
         {"tile=64", "accumulator=local", "pipeline=1", "row_split=two_passes", "groups_per_cu=1", "run_length=1",
          "prefetch=none"}},
        {CLN_KNOBS_SOFTMAX, {"weights=early", "prefetch=next", "local_vectors=1"}},
        {CLN_KNOBS_QUANTIZE, {"weights=early", "chunks=2", "prefetch=next", "tile=64"}},
        {CLN_KNOBS_BACKWARD, {"local_vectors=1", "iterations=2"}},
        {CLN_KNOBS_ELEMENTS,
         {"segments=1", "keep=reread", "reduce=tree", "weights=late", "tile=64", "accumulator=local", "pipeline=1",
          "chunks=1", "row_split=two_passes", "groups_per_cu=1", "prefetch=none", "local_vectors=1"}},
    };
    const clnorm_device_info device = made_up_device(MADE_UP_H200);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        struct cln_workload work = workload_of(4);
        work.rows = 4096;
        set_columns(&work, 1024);
        work.users = operations[i].users;
        for (const char *const *knob = operations[i].knobs; *knob; knob++) {
            struct cln_config forced, config;
            char says[64];
            (void)snprintf(says, sizeof says, "desc.config.%.*s is", (int)strcspn(*knob, "="), *knob);
            assert_int_equal(cln_config_parse(*knob, &forced), CLNORM_SUCCESS);
            assert_int_equal(cln_config_choose(&device, &work, &forced, &config), CLNORM_INVALID_VALUE);
            if (!strstr(clnorm_error_detail(), says))
                fail_msg("%s: \"%s\"", *knob, clnorm_error_detail());
        }
    }
}

/* Where local memory is small, a forced accumulator of columns takes as many lanes as fit. */
static void columns_fit_into_local_memory(void **state) {
    (void)state;
    const clnorm_device_info device = made_up_device(MADE_UP_T4);
    const struct cln_config forced = {.accumulator = CLN_ACCUMULATOR_COLUMNS};
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            struct cln_workload work = workload_of(x_size);
            struct cln_config config;
            work.rows = 64;
            work.users = CLN_KNOBS_BACKWARD;
            set_columns(&work, cols[i]);
            work.sums_rows = true;
            if (cln_config_choose(&device, &work, &forced, &config) != CLNORM_SUCCESS)
                fail_msg("%" PRIu64 " columns, %" PRIu64 " bytes: %s", cols[i], x_size, clnorm_error_detail());
        }
}

/* Long runs may be best for many rows. Few rows have runs of 1, which keep most work-groups busy. */
static void few_rows_have_short_runs(void **state) {
    (void)state;
    const clnorm_device_info device = made_up_device(MADE_UP_H200);
    const struct cln_config automatic = {0};
    unsigned whole = 0;
    for (uint64_t x_size = 2; x_size <= 4; x_size += 2)
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            struct cln_workload work = workload_of(x_size);
            struct cln_config config;
            work.users = CLN_KNOBS_BACKWARD;
            set_columns(&work, cols[i]);
            for (work.rows = 1; work.rows <= device.compute_units; work.rows++) {
                assert_int_equal(cln_config_choose(&device, &work, &automatic, &config), CLNORM_SUCCESS);
                if (config.tile != cols[i]) /* tiles take more work-groups than the device has room for */
                    continue;
                assert_int_equal(config.run_length, 1);
                whole++;
            }
        }
    assert_true(whole > 0);
}

static enum cln_stores stores_chosen(const clnorm_device_info *device, const struct cln_workload *work,
                                     struct cln_config forced) {
    struct cln_config config;
    assert_int_equal(cln_config_choose(device, work, &forced, &config), CLNORM_SUCCESS);
    return (enum cln_stores)config.stores;
}

/* A CPU streams outputs of tensors that its cache does not hold, in whole lines. */
static void large_outputs_are_streamed(void **state) {
    (void)state;
    clnorm_device_info cpu = made_up_device(MADE_UP_POCL);
    const clnorm_device_info gpu = made_up_device(MADE_UP_H200);
    const struct cln_config automatic = {0};
    struct cln_workload work = workload_of(4);
    work.any_address = true;
    work.rows = 4096; /* 4096 rows of 1024 floats, in and out, are 32 MiB */
    set_columns(&work, 1024);
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_CACHED);
    work.kind = CLN_KIND_ADD;
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_STREAMING);
    work.kind = CLN_KIND_CHAIN; /* reads residual_out again */
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_CACHED);
    work.kind = CLN_KIND_NORM;
    work.rows++;
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_STREAMING);
    assert_int_equal(stores_chosen(&gpu, &work, automatic), CLN_STORES_CACHED);
    work.y_scaled = true;
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_CACHED);
    work.y_scaled = false;
    set_columns(&work, 1032);
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_CACHED);
    work.lead_vec = 16; /* rows begin anywhere within a vector */
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_STREAMING);
    work.users = CLN_KNOBS_SOFTMAX;
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_CACHED);
    work.users = CLN_KNOBS_FORWARD;
    work.rows *= 5;
    set_columns(&work, 520);
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_STREAMING);
    work.rows /= 2; /* x fits the cache, which is enough for rows of less than 4 KiB without other inputs */
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_CACHED);
    work.kind = CLN_KIND_GATED;
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_STREAMING);
    work.kind = CLN_KIND_NORM;
    work.rows = 20485;
    set_columns(&work, 504); /* ends of rows are a large part of them */
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_CACHED);
    set_columns(&work, 1032);
    work.rows = 1; /* in chunks */
    set_columns(&work, (1 << 24) + 8);
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_CACHED);
    work.rows = 4097;
    set_columns(&work, 1032);
    work.lead_vec = 8; /* a residual's rows begin elsewhere within one */
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_CACHED);
    work.lead_vec = 0;
    work.x_size = 2;
    set_columns(&work, 4096);
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_CACHED);
    work.x_size = 4;
    set_columns(&work, 1000); /* in f64 a row is 125 lines, and no whole number of vectors of 16 */
    work.x_size = work.real_size = 8;
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_STREAMING);
    assert_int_equal(stores_chosen(&cpu, &work, (struct cln_config){.vec = 16}), CLN_STORES_CACHED);
    work.x_size = work.real_size = 4;
    cpu.cache_size = 0; /* unknown */
    set_columns(&work, 1024);
    assert_int_equal(stores_chosen(&cpu, &work, automatic), CLN_STORES_CACHED);
}

/* A CPU takes a narrow row as one vector, which it reads once, and holds the sums of up to four vectors of columns in
 * registers. */
static void narrow_rows_are_one_vector(void **state) {
    (void)state;
    const clnorm_device_info cpu = made_up_device(MADE_UP_POCL);
    const struct cln_config automatic = {0};
    struct cln_workload work = workload_of(2);
    struct cln_config norm, gradient;
    work.any_address = true;
    work.rows = 100000;
    for (uint64_t columns = 1; columns <= 100; columns++) {
        set_columns(&work, columns);
        work.users = CLN_KNOBS_FORWARD;
        assert_int_equal(cln_config_choose(&cpu, &work, &automatic, &norm), CLNORM_SUCCESS);
        work.users = CLN_KNOBS_BACKWARD;
        assert_int_equal(cln_config_choose(&cpu, &work, &automatic, &gradient), CLNORM_SUCCESS);
        assert_true(norm.vec == gradient.vec && norm.lanes == 1 && gradient.lanes == 1);
        assert_true(columns <= 16 ? norm.vec >= columns && norm.vec < 2 * columns : norm.vec == 16);
        assert_int_equal(norm.keep, columns <= 16 ? CLN_KEEP_REGISTERS : CLN_KEEP_REREAD);
        assert_int_equal(gradient.accumulator, columns <= 64 ? CLN_ACCUMULATOR_REGISTERS : CLN_ACCUMULATOR_MEMORY);
    }
    work.groups = 2; /* memory holds the sums of whole rows */
    set_columns(&work, 32);
    assert_int_equal(cln_config_choose(&cpu, &work, &automatic, &gradient), CLNORM_SUCCESS);
    assert_int_equal(gradient.accumulator, CLN_ACCUMULATOR_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_choices_fit),
        cmocka_unit_test(backward_choices_fit),
        cmocka_unit_test(rotated_choices_fit),
        cmocka_unit_test(element_choices_are_accepted),
        cmocka_unit_test(ranking_begins_with_the_choice),
        cmocka_unit_test(wide_rows_fill_registers),
        cmocka_unit_test(foreign_knobs_are_refused),
        cmocka_unit_test(columns_fit_into_local_memory),
        cmocka_unit_test(few_rows_have_short_runs),
        cmocka_unit_test(large_outputs_are_streamed),
        cmocka_unit_test(narrow_rows_are_one_vector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
