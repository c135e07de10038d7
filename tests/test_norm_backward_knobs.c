/* Backward normalisation with every knob of a config forced, and both reductions. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "knob_values.h"
#include "norm_backward_case.h"
#include "pairwise.h"

/* tile and accumulator are one factor, LAYOUT. */
static const struct knob knobs[] = {
    {"vec", offsetof(struct cln_config, vec), {1, 2, 8, 16}},
    {"lanes", offsetof(struct cln_config, lanes), {1, 8, 64, 256}},
    {"segments", offsetof(struct cln_config, segments), {1, 2, 8}},
    {"run_length", offsetof(struct cln_config, run_length), {1, 3}},
    {"keep", offsetof(struct cln_config, keep), {CLN_KEEP_REGISTERS, CLN_KEEP_REREAD}},
    {"unroll", offsetof(struct cln_config, unroll), {1, 3}},
    {"reduce", offsetof(struct cln_config, reduce), {CLN_REDUCE_TREE, CLN_REDUCE_SHUFFLE, CLN_REDUCE_SUBGROUP}},
    {"stores", offsetof(struct cln_config, stores), {CLN_STORES_CACHED, CLN_STORES_STREAMING}},
    {"weights", offsetof(struct cln_config, weights), {CLN_WEIGHTS_LATE, CLN_WEIGHTS_EARLY}},
    {"isa", offsetof(struct cln_config, isa), {CLN_ISA_PORTABLE, CLN_ISA_PTX}},
    {"pipeline", offsetof(struct cln_config, pipeline), {1, 2, 3}},
    {"chunks", offsetof(struct cln_config, chunks), {1, 3}},
    {"row_split",
     offsetof(struct cln_config, row_split),
     {CLN_ROW_SPLIT_TWO_PASSES, CLN_ROW_SPLIT_EXCHANGE, CLN_ROW_SPLIT_NO_WAIT}},
    {"groups_per_cu", offsetof(struct cln_config, groups_per_cu), {1, 4}},
    {"prefetch", offsetof(struct cln_config, prefetch), {CLN_PREFETCH_NONE, CLN_PREFETCH_NEXT}},
};

/* The factors are the knobs, then these. */
enum {
    KNOBS = sizeof knobs / sizeof *knobs,
    LAYOUT = KNOBS,
    SHAPE,
    DTYPE,
    SHIFT,
    NORM,
    GATE,
    STATISTICS,
    REDUCTION,
    SLOTS,
    FACTORS
};

_Static_assert(KNOBS + 3 == offsetof(struct cln_config, local_vectors) / sizeof(uint32_t),
               "every knob of the backward is a factor");

/* The accumulator of dweight and dbias, over the columns of whole segments or of tiles. */
enum { TILE_COLS = 16 };

static const struct layout {
    enum cln_accumulator accumulator;
    bool tiles;
} layouts[] = {{CLN_ACCUMULATOR_REGISTERS, false}, {CLN_ACCUMULATOR_LOCAL, false},    {CLN_ACCUMULATOR_MEMORY, false},
               {CLN_ACCUMULATOR_SPLIT, false},     {CLN_ACCUMULATOR_REGISTERS, true}, {CLN_ACCUMULATOR_LOCAL, true},
               {CLN_ACCUMULATOR_MEMORY, true},     {CLN_ACCUMULATOR_SPLIT, true},     {CLN_ACCUMULATOR_COLUMNS, false}};

enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* Every segment has more columns than a tile. */
static const struct { uint64_t rows, cols, group_size, gap; } shapes[] = {{9, 37, 0, 3}, {140, 64, 32, 16}, {3, 256, 0, 0}};
static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_BF16, CLNORM_F64};
static const uint64_t shifts[] = {0, 1, 8};

static const uint32_t slots[] = {1, 3, 128};

/* Whether the device supports a value, whatever the shape. NVIDIA alone has values that PoCL compiles for long. */
static bool device_has(const struct fixture *fixture, const struct knob *knob, uint32_t value) {
    const clnorm_device_info *device = &fixture->device;
    const bool nvidia = device->family == CLNORM_PLATFORM_NVIDIA;
    switch (knob->offset) {
    case offsetof(struct cln_config, lanes):
        return value <= device->max_work_group_size && (value <= 8 || nvidia || (value <= 64 && !fixture_is_slow(fixture)));
    case offsetof(struct cln_config, vec):
        return value != 8 || nvidia;
    case offsetof(struct cln_config, reduce):
        return value == CLN_REDUCE_TREE || (value == CLN_REDUCE_SHUFFLE ? nvidia : device->subgroups);
    case offsetof(struct cln_config, row_split): /* elsewhere test_norm_backward_teams.c has them */
        return value == CLN_ROW_SPLIT_TWO_PASSES || nvidia;
    case offsetof(struct cln_config, pipeline): /* likewise */
        return value != 3 || nvidia;
    case offsetof(struct cln_config, isa):
        return value == CLN_ISA_PORTABLE || (nvidia && device->compute_capability >= 80);
    default:
        return true;
    }
}

static void set_knobs(const struct fixture *fixture, const unsigned *level, clnorm_norm_backward_desc *desc) {
    for (int i = 0; i < KNOBS; i++) {
        uint32_t values[MOST_VALUES];
        (void)knob_values(fixture, &knobs[i], device_has, values);
        *knob_setting(&desc->config, &knobs[i]) = values[level[i]];
    }
    const uint64_t segment = desc->group_size ? desc->group_size : desc->cols;
    const struct layout *layout = &layouts[level[LAYOUT]];
    KNOB(desc->config, accumulator) = layout->accumulator;
    KNOB(desc->config, tile) = layout->tiles ? TILE_COLS : (uint32_t)segment;
}

static struct norm_backward_case case_of(const struct fixture *fixture, const unsigned *level, uint64_t seed) {
    const clnorm_dtype dtype = dtypes[level[DTYPE]];
    const uint64_t shift = shifts[level[SHIFT]];
    const bool layer = level[NORM] == 0;
    struct norm_backward_case backward_case = {
        .desc = norm_backward_full_desc(layer ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM, shapes[level[SHAPE]].rows,
                                        shapes[level[SHAPE]].cols, dtype),
        .shift = {.x = shift, .dy = shift, .weight = shift, .dx = shift, .dweight = shift},
        .input = (enum input)(seed % INPUTS),
        .seed = seed,
    };
    clnorm_norm_backward_desc *desc = &backward_case.desc;
    desc->group_size = shapes[level[SHAPE]].group_size;
    desc->x.stride = desc->dy.stride = desc->cols + shapes[level[SHAPE]].gap;
    desc->gate = level[GATE] >= 2 ? CLNORM_GATE_SILU : CLNORM_GATE_NONE; /* two levels of four: gates take long to build */
    desc->gate_first = level[GATE] == 3;
    desc->dz.dtype = desc->gate ? dtype : CLNORM_DTYPE_NONE;
    desc->dweight.dtype = desc->dbias.dtype = dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    desc->rstd_given = level[STATISTICS] > 0;
    desc->mean_given = desc->rstd_given && layer;
    desc->eps = backward_case.input == INPUT_CONSTANT ? 0.5 : 1e-5;
    desc->reduction = level[REDUCTION] ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
    desc->slots = slots[level[SLOTS]];
    set_knobs(fixture, level, desc);
    return backward_case;
}

/* Part of an error message, the knob that is changed after it, and the new value; 0: half of the old one. */
static const struct way {
    const char *says;
    size_t offset;
    uint32_t to;
} ways[] = {
    {"desc.config.vec", offsetof(struct cln_config, vec), 0},
    {"64 columns", offsetof(struct cln_config, tile), TILE_COLS},
    {"desc.config.keep", offsetof(struct cln_config, keep), CLN_KEEP_REREAD},
    {"desc.config.accumulator", offsetof(struct cln_config, accumulator), CLN_ACCUMULATOR_LOCAL},
    {"desc.config.pipeline", offsetof(struct cln_config, pipeline), 1},
    {"desc.config.prefetch", offsetof(struct cln_config, prefetch), CLN_PREFETCH_NONE},
    {"desc.config.row_split", offsetof(struct cln_config, row_split), CLN_ROW_SPLIT_TWO_PASSES},
    {"desc.config.chunks", offsetof(struct cln_config, chunks), 1},
    {"desc.config.reduce", offsetof(struct cln_config, segments), 1},
    {"desc.config.reduce", offsetof(struct cln_config, reduce), CLN_REDUCE_TREE},
    {"desc.config.segments", offsetof(struct cln_config, segments), 1},
    {"desc.config.lanes", offsetof(struct cln_config, segments), 0},
    {"local memory", offsetof(struct cln_config, tile), TILE_COLS},
    {"desc.config.weights", offsetof(struct cln_config, weights), CLN_WEIGHTS_LATE},
    {"desc.config.lanes", offsetof(struct cln_config, lanes), 0},
};

/* Changes the knob that the last error message names; false: none can be changed further. */
static bool give_way(clnorm_config *config) {
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        uint32_t *setting = &config->words[ways[i].offset / sizeof(uint32_t)];
        const uint32_t to = ways[i].to ? ways[i].to : *setting / 2;
        if (strstr(clnorm_error_detail(), ways[i].says) == NULL || *setting == to || to == 0)
            continue;
        *setting = to;
        return true;
    }
    return false;
}

/* Finds the config nearest to the requested one that device and shape allow; the plan must then have exactly that. */
static bool settle(const struct fixture *fixture, clnorm_norm_backward_desc *desc) {
    clnorm_plan *plan = NULL;
    clnorm_status status = CLNORM_SUCCESS;
    do {
        status = clnorm_norm_backward_plan_create(fixture->context, desc, &plan);
    } while (status != CLNORM_SUCCESS && give_way(&desc->config));
    if (status != CLNORM_SUCCESS) {
        print_error("%s: %s\n", clnorm_status_text(status), clnorm_error_detail());
        return false;
    }
    clnorm_config config;
    clnorm_plan_config(plan, &config);
    clnorm_plan_destroy(plan);
    return memcmp(&config, &desc->config, sizeof config) == 0;
}

/* How often each value of each knob has run, and each layout with each reduction. */
struct tally {
    unsigned runs[KNOBS][MOST_VALUES];
    unsigned layouts[LAYOUTS][2];
    unsigned cases;
};

static void count_case(struct tally *tally, clnorm_norm_backward_desc desc) {
    const bool tiles = KNOB(desc.config, tile) < (desc.group_size ? desc.group_size : desc.cols);
    tally->cases++;
    knob_count_values(knobs, KNOBS, tally->runs, desc.config);
    for (int i = 0; i < LAYOUTS; i++)
        tally->layouts[i][desc.reduction == CLNORM_REDUCTION_LOCKED] +=
            layouts[i].accumulator == KNOB(desc.config, accumulator) && layouts[i].tiles == tiles;
}

/* The number of values of knobs that the device supports and that have not run, and of layouts that have not run with each
 * reduction that they allow. says: their names are printed. */
static unsigned left_of(const struct fixture *fixture, const struct tally *tally, bool locks, bool says) {
    unsigned left = knob_values_left(fixture, knobs, KNOBS, device_has, tally->runs, says);
    for (int i = 0; i < LAYOUTS; i++) {
        const unsigned *const ran = tally->layouts[i];
        const bool refused =
            !locks || layouts[i].accumulator == CLN_ACCUMULATOR_MEMORY || layouts[i].accumulator == CLN_ACCUMULATOR_COLUMNS;
        if (ran[0] > 0 && (ran[1] > 0 || refused))
            continue;
        left++;
        if (says)
            print_error("accumulator %d in %s ran %u times partial, %u locked\n", layouts[i].accumulator,
                        layouts[i].tiles ? "tiles" : "whole segments", ran[0], ran[1]);
    }
    return left;
}

/* Whether a case asks for something that has not run. */
static bool asks_for_more(const struct fixture *fixture, const struct tally *tally, bool locks,
                          const clnorm_norm_backward_desc *desc) {
    struct tally more = *tally;
    count_case(&more, *desc);
    return left_of(fixture, &more, locks, false) < left_of(fixture, tally, locks, false);
}

/* Limits for simulators. */
enum { SLOW_ROWS = 5, SLOW_COLS = 64 };

/* Runs cases in which every two levels of factors meet, unless the library refuses them. Quick tests go on with cases of
 * the same seed for what gave way: the driver's cache has their kernels, not those of another seed. Returns how many
 * failed. */
static unsigned run_cases(const struct fixture *fixture, struct tally *tally, bool locks, uint64_t seed) {
    unsigned levels[FACTORS] = {
        [LAYOUT] = LAYOUTS,
        [SHAPE] = sizeof shapes / sizeof *shapes,
        [DTYPE] = fixture->device.fp64 ? 3 : 2,
        [SHIFT] = sizeof shifts / sizeof *shifts,
        [NORM] = 2,
        [GATE] = 4,
        [STATISTICS] = 3,
        [REDUCTION] = locks ? 2 : 1,
        [SLOTS] = sizeof slots / sizeof *slots,
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
        struct norm_backward_case backward_case = case_of(fixture, level, tally->cases);
        if (fixture_is_quick() && !is_new && !asks_for_more(fixture, tally, locks, &backward_case.desc))
            continue;
        if (fixture_is_slow(fixture) && backward_case.desc.cols > SLOW_COLS)
            continue;
        if (fixture_is_slow(fixture) && backward_case.desc.rows > SLOW_ROWS)
            backward_case.desc.rows = SLOW_ROWS;
        if (!settle(fixture, &backward_case.desc)) {
            norm_backward_case_print(&backward_case);
            failed++;
            continue;
        }
        failed += !norm_backward_case_passes(fixture, &backward_case);
        count_case(tally, backward_case.desc);
    }
    pairwise_free(pairwise);
    return failed;
}

/* Everything has run. What gives way in all of a round's cases has others. */
static void forced_knobs_are_obeyed(void **state) {
    enum { FIRST_SEED = 2, ROUNDS = 8 };
    const struct fixture *fixture = *state;
    const bool locks = norm_backward_locks(fixture);
    struct tally tally = {0};
    for (uint64_t i = 0; i < ROUNDS && left_of(fixture, &tally, locks, false); i++)
        assert_int_equal(run_cases(fixture, &tally, locks, FIRST_SEED + i), 0);
    print_message("%u configs\n", tally.cases);
    assert_int_equal(left_of(fixture, &tally, locks, true), 0);
}

/* A value that is impossible on every device is refused with the knob's name and value. */
static void impossible_knobs_are_refused(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        struct cln_config config;
        const char *says[2];
    } impossible[] = {
        {{.vec = 3}, {"config.vec", "3"}},
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
        {{.tile = 65537}, {"config.tile", "65537"}},
        {{.tile = 8, .vec = 16}, {"config.tile", "8"}},
        {{.accumulator = 6}, {"config.accumulator", "6"}},
        {{.pipeline = 4}, {"config.pipeline", "4"}},
        {{.prefetch = 3}, {"config.prefetch", "3"}},
        {{.prefetch = CLN_PREFETCH_NEXT, .accumulator = CLN_ACCUMULATOR_MEMORY, .keep = CLN_KEEP_REREAD},
         {"config.prefetch", "next"}},
        {{.pipeline = 2, .keep = CLN_KEEP_REREAD}, {"config.pipeline", "2"}},
        {{.chunks = 2, .tile = 65536}, {"config.chunks", "2"}},
        {{.row_split = 4}, {"config.row_split", "4"}},
        {{.row_split = CLN_ROW_SPLIT_EXCHANGE, .tile = 512}, {"config.row_split", "exchange"}},
        {{.chunks = UINT32_MAX, .tile = 16}, {"config.chunks", "4294967295"}},
        {{.accumulator = CLN_ACCUMULATOR_MEMORY, .segments = 2}, {"config.", "2"}},
        {{.accumulator = CLN_ACCUMULATOR_REGISTERS, .lanes = 1, .tile = 65536}, {"config.accumulator", "64 columns"}},
    };
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        clnorm_norm_backward_desc desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 4, 65536, CLNORM_F32);
        desc.config = forced(impossible[i].config);
        clnorm_plan *plan = NULL;
        const clnorm_status status = clnorm_norm_backward_plan_create(fixture->context, &desc, &plan);
        if (status != CLNORM_INVALID_VALUE || plan != NULL)
            fail_msg("%s %s gave \"%s\"", impossible[i].says[0], impossible[i].says[1], clnorm_status_text(status));
        for (int word = 0; word < 2; word++)
            if (strstr(clnorm_error_detail(), impossible[i].says[word]) == NULL)
                fail_msg("\"%s\" does not name %s", clnorm_error_detail(), impossible[i].says[word]);
    }
}

/* A chosen config can be forced, and gives the same bits. */
static void chosen_config_can_be_forced(void **state) {
    const struct fixture *fixture = *state;
    struct norm_backward_case backward_case = {.desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 5, 96, CLNORM_F32)};
    struct norm_backward_run chosen = norm_backward_run_make(&backward_case);
    assert_int_equal(norm_backward_run_go(fixture, &chosen), CLNORM_SUCCESS);
    assert_true(norm_backward_run_receive(fixture, &chosen) && norm_backward_run_check(&chosen));
    backward_case.desc.config = forced(chosen.config);
    struct norm_backward_run forced = norm_backward_run_make(&backward_case);
    if (norm_backward_run_go(fixture, &forced) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    assert_true(norm_backward_run_receive(fixture, &forced));
    assert_memory_equal(&forced.config, &chosen.config, sizeof forced.config);
    assert_memory_equal(forced.dx.host, chosen.dx.host, forced.dx.size);
    assert_memory_equal(forced.dweight.host, chosen.dweight.host, forced.dweight.size);
    norm_backward_run_free(&chosen);
    norm_backward_run_free(&forced);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forced_knobs_are_obeyed),
        cmocka_unit_test(impossible_knobs_are_refused),
        cmocka_unit_test(chosen_config_can_be_forced),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
