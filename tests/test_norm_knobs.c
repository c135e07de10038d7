/* Forward normalisation with every knob of a config forced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/driver_defects.h"
#include "knob_values.h"
#include "norm_case.h"
#include "pairwise.h"

static const struct knob knobs[] = {
    {"vec", offsetof(struct cln_config, vec), {1, 2, 4, 8, 16}},
    {"lanes", offsetof(struct cln_config, lanes), {1, 2, 32, 64, 256}},
    {"segments", offsetof(struct cln_config, segments), {1, 2, 8}},
    {"iterations", offsetof(struct cln_config, iterations), {1, 2, 4}},
    {"keep", offsetof(struct cln_config, keep), {CLN_KEEP_REGISTERS, CLN_KEEP_REREAD, CLN_KEEP_LOCAL}},
    {"unroll", offsetof(struct cln_config, unroll), {1, 3, 16}},
    {"reduce", offsetof(struct cln_config, reduce), {CLN_REDUCE_TREE, CLN_REDUCE_SHUFFLE, CLN_REDUCE_SUBGROUP}},
    {"stores", offsetof(struct cln_config, stores), {CLN_STORES_CACHED, CLN_STORES_STREAMING}},
    {"weights", offsetof(struct cln_config, weights), {CLN_WEIGHTS_LATE, CLN_WEIGHTS_EARLY, CLN_WEIGHTS_KEPT}},
    {"isa", offsetof(struct cln_config, isa), {CLN_ISA_PORTABLE, CLN_ISA_PTX}},
    {"chunks", offsetof(struct cln_config, chunks), {1, 3}},
    {"local_vectors", offsetof(struct cln_config, local_vectors), {1, 3}},
};

/* The factors are the knobs, then these. */
enum { KNOBS = sizeof knobs / sizeof *knobs, SHAPE = KNOBS, DTYPE, SHIFT, NORM, FACTORS };

_Static_assert(KNOBS == offsetof(struct cln_config, tile) / sizeof(uint32_t) + 2, "every knob of the forward is a factor");

static const struct {
    uint64_t rows, cols, group_size, gap;
} shapes[] = {
    {5, 1, 0, 0}, {300, 7, 0, 1}, {3, 192, 3, 0}, {9, 257, 0, 3}, {4, 1000, 0, 8}, {5, 512, 64, 16}, {1, 65537, 0, 0},
};
static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16, CLNORM_F64};
static const uint64_t shifts[] = {0, 1, 8};

/* Whether the device supports a value, whatever the shape. */
static bool device_has(const struct fixture *fixture, const struct knob *knob, uint32_t value) {
    const clnorm_device_info *device = &fixture->device;
    const bool nvidia = device->family == CLNORM_PLATFORM_NVIDIA;
    const bool slow = fixture_is_slow(fixture); /* runs fewer values */
    switch (knob->offset) {
    case offsetof(struct cln_config, vec):
        return !slow || value == 1 || value == 4 || (value == 16 && device->family != CLNORM_PLATFORM_MESA);
    case offsetof(struct cln_config, unroll):
        return !slow || value <= 3;
    case offsetof(struct cln_config, local_vectors):
        return !slow || value == 1;
    case offsetof(struct cln_config, lanes):
        return value <= device->max_work_group_size && (!slow || value <= 64) &&
               (value == 1 || !cln_driver_defect(device, CLN_DEFECT_SHARED_SEGMENTS));
    case offsetof(struct cln_config, reduce):
        return value == CLN_REDUCE_TREE ||
               (value == CLN_REDUCE_SHUFFLE ? nvidia
                                            : device->subgroups && !cln_driver_defect(device, CLN_DEFECT_SHARED_SEGMENTS));
    case offsetof(struct cln_config, isa):
        return value == CLN_ISA_PORTABLE || (nvidia && device->compute_capability >= 80);
    default:
        return true;
    }
}

static struct norm_case case_of(const struct fixture *fixture, const unsigned *level, uint64_t seed) {
    const clnorm_dtype dtype = dtypes[level[DTYPE]];
    const uint64_t shift = shifts[level[SHIFT]];
    struct norm_case norm_case = {
        .desc = norm_desc_of(level[NORM] ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, shapes[level[SHAPE]].rows,
                             shapes[level[SHAPE]].cols),
        .shift = {.x = shift, .y = shift, .weight = shift, .mean = shift},
        .input = (enum input)(seed % INPUTS),
        .seed = seed,
    };
    clnorm_norm_desc *desc = &norm_case.desc;
    desc->group_size = shapes[level[SHAPE]].group_size;
    desc->x.stride = desc->cols + shapes[level[SHAPE]].gap;
    desc->x.dtype = dtype;
    desc->weight.dtype = dtype == CLNORM_BF16 ? CLNORM_F32 : dtype;
    desc->bias.dtype = level[NORM] ? CLNORM_DTYPE_NONE : dtype;
    desc->save_mean = desc->norm == CLNORM_LAYER_NORM;
    desc->save_rstd = true;
    desc->eps = norm_case.input == INPUT_CONSTANT ? 0.5 : 1e-5;
    for (int i = 0; i < KNOBS; i++) {
        uint32_t values[MOST_VALUES];
        (void)knob_values(fixture, &knobs[i], device_has, values);
        *knob_setting(&desc->config, &knobs[i]) = values[level[i]];
    }
    return norm_case;
}

/* Changes the knob that the last error message names; false: none can be changed further. */
static bool give_way(clnorm_config *given) {
    struct cln_config less = knobs_of(given), *const config = &less;
    const char *detail = clnorm_error_detail();
    if (strstr(detail, "desc.config.vec") != NULL && config->vec > 1)
        config->vec /= 2;
    else if (strstr(detail, "desc.config.keep") != NULL && config->keep != CLN_KEEP_REREAD &&
             (config->keep != CLN_KEEP_LOCAL || config->segments == 1))
        config->keep = CLN_KEEP_REREAD;
    else if (config->segments > 1 && (config->keep == CLN_KEEP_LOCAL ? strstr(detail, "desc.config.keep") != NULL
                                                                     : strstr(detail, "desc.config.chunks") != NULL ||
                                                                           strstr(detail, "desc.config.reduce") != NULL))
        config->segments = 1;
    else if (strstr(detail, "desc.config.chunks") != NULL && config->chunks > 1)
        config->chunks = 1;
    else if (strstr(detail, "desc.config.local_vectors") != NULL)
        config->local_vectors = 0;
    else if (strstr(detail, "desc.config.reduce") != NULL && config->reduce != CLN_REDUCE_TREE)
        config->reduce = CLN_REDUCE_TREE;
    else if (strstr(detail, "desc.config.lanes") != NULL && config->segments > 1)
        config->segments /= 2;
    else if (strstr(detail, "desc.config.lanes") != NULL && config->lanes > 1)
        config->lanes /= 2;
    else
        return false;
    *given = forced(less);
    return true;
}

/* Finds the config nearest to the requested one that device and shape allow; the plan must then have exactly that. */
static bool settle(const struct fixture *fixture, clnorm_norm_desc *desc) {
    clnorm_plan *plan = NULL;
    clnorm_status status = CLNORM_SUCCESS;
    do {
        status = clnorm_norm_forward_plan_create(fixture->context, desc, &plan);
    } while (status == CLNORM_INVALID_VALUE && give_way(&desc->config));
    if (status != CLNORM_SUCCESS) {
        print_error("%s: %s\n", clnorm_status_text(status), clnorm_error_detail());
        return false;
    }
    clnorm_config config;
    clnorm_plan_config(plan, &config);
    clnorm_plan_destroy(plan);
    return memcmp(&config, &desc->config, sizeof config) == 0;
}

/* How often each value of each knob has run. */
struct tally {
    unsigned runs[KNOBS][MOST_VALUES];
    unsigned cases;
};

static void count_case(struct tally *tally, clnorm_config config) {
    tally->cases++;
    knob_count_values(knobs, KNOBS, tally->runs, config);
}

/* The number of values that the device supports and that have not run; prints them if asked. */
static unsigned values_left(const struct fixture *fixture, const struct tally *tally, bool print) {
    return knob_values_left(fixture, knobs, KNOBS, device_has, tally->runs, print);
}

/* Whether a config asks for a value that has not run. */
static bool asks_for_more(const struct fixture *fixture, const struct tally *tally, clnorm_config config) {
    struct tally more = *tally;
    count_case(&more, config);
    return values_left(fixture, &more, false) < values_left(fixture, tally, false);
}

/* Runs cases in which every two levels of factors meet, unless the library refuses them. Quick tests go on with cases of
 * the same seed for what gave way: the driver's cache has their kernels, not those of another seed. Returns how many
 * failed. */
static unsigned run_cases(const struct fixture *fixture, struct tally *tally, uint64_t seed) {
    unsigned levels[FACTORS] = {
        [SHAPE] = sizeof shapes / sizeof *shapes,
        [DTYPE] = fixture->device.fp64 ? 4 : 3,
        [SHIFT] = sizeof shifts / sizeof *shifts,
        [NORM] = 2,
    };
    for (int i = 0; i < KNOBS; i++) {
        uint32_t values[MOST_VALUES];
        levels[i] = knob_values(fixture, &knobs[i], device_has, values);
    }
    struct pairwise *pairwise = pairwise_make(levels, FACTORS, seed);
    unsigned level[PAIRWISE_FACTORS];
    unsigned failed = 0;
    bool is_new;
    while (failed < 10 && pairwise_next_of_all(pairwise, level, &is_new)) {
        struct norm_case norm_case = case_of(fixture, level, tally->cases);
        if (fixture_is_quick() && !is_new && !asks_for_more(fixture, tally, norm_case.desc.config))
            continue;
        if (norm_case.desc.rows * norm_case.desc.cols > fixture_element_limit(fixture))
            continue;
        if (!settle(fixture, &norm_case.desc)) {
            norm_case_print(&norm_case);
            failed++;
            continue;
        }
        failed += !norm_case_passes(fixture, &norm_case);
        count_case(tally, norm_case.desc.config);
    }
    pairwise_free(pairwise);
    return failed;
}

/* Every value of a knob that the device supports must have run. One that gives way in all of a round's cases has others. */
static void forced_knobs_are_obeyed(void **state) {
    enum { ROUNDS = 4 };
    const struct fixture *fixture = *state;
    struct tally tally = {0};
    for (uint64_t seed = 1; seed <= ROUNDS && values_left(fixture, &tally, false); seed++)
        assert_int_equal(run_cases(fixture, &tally, seed), 0);
    print_message("%u configs\n", tally.cases);
    assert_int_equal(values_left(fixture, &tally, true), 0);
}

/* A value that is impossible on every device is refused with the knob's name and value. */
static void impossible_knobs_are_refused(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        struct cln_config config;
        const char *says[2];
    } impossible[] = {
        {{.vec = 3}, {"config.vec", "3"}},
        {{.vec = 32}, {"config.vec", "32"}},
        {{.lanes = 12}, {"config.lanes", "12"}},
        {{.lanes = 1U << 31}, {"config.lanes", "2147483648"}},
        {{.segments = 7}, {"config.segments", "7"}},
        {{.lanes = 1024, .segments = 1024}, {"config.lanes x segments", "1024 x 1024"}},
        {{.unroll = 17}, {"config.unroll", "17"}},
        {{.keep = 4}, {"config.keep", "4"}},
        {{.reduce = 4}, {"config.reduce", "4"}},
        {{.stores = 3}, {"config.stores", "3"}},
        {{.weights = 4}, {"config.weights", "4"}},
        {{.isa = 3}, {"config.isa", "3"}},
        {{.lanes = 1, .keep = CLN_KEEP_REGISTERS}, {"config.keep", "registers"}},
        {{.prefetch = CLN_PREFETCH_NEXT}, {"config.prefetch", "next"}},
    };
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        clnorm_norm_desc desc = norm_desc_of(CLNORM_LAYER_NORM, 4, 65536);
        desc.config = forced(impossible[i].config);
        clnorm_plan *plan = NULL;
        assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE);
        assert_null(plan);
        for (int word = 0; word < 2; word++)
            if (strstr(clnorm_error_detail(), impossible[i].says[word]) == NULL)
                fail_msg("\"%s\" does not name %s", clnorm_error_detail(), impossible[i].says[word]);
    }
}

/* A chosen config can be forced, and gives the same bits. */
static void chosen_config_can_be_forced(void **state) {
    const struct fixture *fixture = *state;
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_LAYER_NORM, 5, 1000), .input = INPUT_NORMAL};
    struct norm_run chosen = norm_run_make(&norm_case);
    assert_int_equal(norm_run_go(fixture, &chosen), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, &chosen));
    norm_case.desc.config = forced(chosen.config);
    struct norm_run forced = norm_run_make(&norm_case);
    assert_int_equal(norm_run_go(fixture, &forced), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, &forced));
    assert_memory_equal(&forced.config, &chosen.config, sizeof forced.config);
    assert_memory_equal(forced.y.host, chosen.y.host, forced.y.size);
    norm_run_free(&chosen);
    norm_run_free(&forced);
}

/* Most lanes have no vector, one has a part of one, and nothing is written after y. */
static void lanes_without_vectors_write_nothing(void **state) {
    const struct fixture *fixture = *state;
    const struct cln_config config = {.vec = 4, .lanes = 64, .segments = 1, .keep = CLN_KEEP_REGISTERS};
    const uint64_t cols[] = {5, 51};
    if (cln_driver_defect(&fixture->device, CLN_DEFECT_SHARED_SEGMENTS))
        skip(); /* test_drivers sees them refused */
    for (size_t i = 0; i < 4; i++) {
        struct norm_case norm_case = {.desc = norm_desc_of(i / 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 3, cols[i % 2])};
        norm_case.desc.x.stride = norm_case.desc.y.stride = 64;
        norm_case.desc.config = forced(config);
        clnorm_plan *plan = NULL;
        if (clnorm_norm_forward_plan_create(fixture->context, &norm_case.desc, &plan) == CLNORM_INVALID_VALUE) {
            assert_int_not_equal(fixture->device.kind, CLNORM_DEVICE_CPU); /* vectors are whole on a GPU */
            assert_non_null(strstr(clnorm_error_detail(), "desc.config.vec"));
            norm_case.desc.cols += 4 - norm_case.desc.cols % 4;
        }
        clnorm_plan_destroy(plan);
        assert_true(norm_case_passes(fixture, &norm_case));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forced_knobs_are_obeyed),
        cmocka_unit_test(impossible_knobs_are_refused),
        cmocka_unit_test(chosen_config_can_be_forced),
        cmocka_unit_test(lanes_without_vectors_write_nothing),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
