/* Backward normalisation with every knob of a config forced, and both reductions. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "norm_backward_case.h"
#include "pairwise.h"

enum { MOST_VALUES = 4 };

/* A knob and what it is set to; 0 ends the values. tile and gather are a factor of their own. */
static const struct knob {
    const char *name;
    size_t offset;
    uint32_t values[MOST_VALUES + 1];
} knobs[] = {
    {"vec", offsetof(clnorm_config, vec), {1, 2, 8, 16}},
    {"lanes", offsetof(clnorm_config, lanes), {1, 8, 64, 256}},
    {"segments", offsetof(clnorm_config, segments), {1, 2, 8}},
    {"rounds", offsetof(clnorm_config, rounds), {1, 3}},
    {"keep", offsetof(clnorm_config, keep), {CLNORM_KEEP_REGISTERS, CLNORM_KEEP_REREAD}},
    {"unroll", offsetof(clnorm_config, unroll), {1, 3}},
    {"reduce", offsetof(clnorm_config, reduce), {CLNORM_REDUCE_TREE, CLNORM_REDUCE_SHUFFLE, CLNORM_REDUCE_SUBGROUP}},
    {"stores", offsetof(clnorm_config, stores), {CLNORM_STORES_CACHED, CLNORM_STORES_STREAMING}},
    {"weights", offsetof(clnorm_config, weights), {CLNORM_WEIGHTS_LATE, CLNORM_WEIGHTS_EARLY}},
    {"isa", offsetof(clnorm_config, isa), {CLNORM_ISA_PORTABLE, CLNORM_ISA_PTX}},
    {"fetch", offsetof(clnorm_config, fetch), {CLNORM_FETCH_IN_TURN, CLNORM_FETCH_AHEAD, CLNORM_FETCH_FAR}},
    {"chunks", offsetof(clnorm_config, chunks), {1, 3}},
    {"sums", offsetof(clnorm_config, sums), {CLNORM_SUMS_BEFORE, CLNORM_SUMS_EXCHANGED}},
    {"walkers", offsetof(clnorm_config, walkers), {1, 4}},
    {"prefetch", offsetof(clnorm_config, prefetch), {CLNORM_PREFETCH_NONE, CLNORM_PREFETCH_NEXT}},
};

/* What else varies, behind the knobs among the factors. */
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

_Static_assert(KNOBS + 2 == offsetof(clnorm_config, registers) / sizeof(uint32_t), "every knob of the backward is turned");

/* Where sums are gathered, for the columns of whole segments or of tiles. */
enum { TILE_COLS = 16 };

static const struct layout {
    clnorm_gather gather;
    bool tiles;
} layouts[] = {{CLNORM_GATHER_REGISTERS, false}, {CLNORM_GATHER_LOCAL, false},    {CLNORM_GATHER_MEMORY, false},
               {CLNORM_GATHER_SPLIT, false},     {CLNORM_GATHER_REGISTERS, true}, {CLNORM_GATHER_LOCAL, true},
               {CLNORM_GATHER_MEMORY, true},     {CLNORM_GATHER_SPLIT, true},     {CLNORM_GATHER_COLUMNS, false}};

enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* All have more columns in a segment than a tile. */
static const struct { uint64_t rows, cols, group_size, gap; } shapes[] = {{9, 37, 0, 3}, {140, 64, 32, 16}, {3, 256, 0, 0}};
static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_BF16, CLNORM_F64};
static const uint64_t shifts[] = {0, 1, 8};

static const uint32_t slots[] = {1, 3, 128};

static uint32_t *setting_of(clnorm_config *config, const struct knob *knob) {
    return (uint32_t *)(void *)((char *)config + knob->offset);
}

/* Whether a value is within what the device can do, whatever the shape. */
static bool device_has(const struct fixture *fixture, const struct knob *knob, uint32_t value) {
    const clnorm_device_info *device = &fixture->device;
    const bool nvidia = device->family == CLNORM_PLATFORM_NVIDIA;
    switch (knob->offset) {
    case offsetof(clnorm_config, lanes):
        return value <= device->max_work_group_size && (value <= 8 || nvidia || (value <= 64 && !fixture_is_slow(fixture)));
    case offsetof(clnorm_config, vec):
        return value != 8 || nvidia;
    case offsetof(clnorm_config, reduce):
        return value == CLNORM_REDUCE_TREE || (value == CLNORM_REDUCE_SHUFFLE ? nvidia : device->subgroups);
    case offsetof(clnorm_config, sums): /* elsewhere: test_norm_backward_teams.c */
        return value == CLNORM_SUMS_BEFORE || nvidia;
    case offsetof(clnorm_config, fetch): /* likewise: three rows at once take PoCL long to compile */
        return value != CLNORM_FETCH_FAR || nvidia;
    case offsetof(clnorm_config, isa):
        return value == CLNORM_ISA_PORTABLE || (nvidia && device->compute_capability >= 80);
    default:
        return true;
    }
}

/* The values of a knob that the device has. */
static unsigned values_of(const struct fixture *fixture, const struct knob *knob, uint32_t values[MOST_VALUES]) {
    unsigned count = 0;
    for (unsigned i = 0; knob->values[i] != 0; i++)
        if (device_has(fixture, knob, knob->values[i]))
            values[count++] = knob->values[i];
    return count;
}

static void set_knobs(const struct fixture *fixture, const unsigned *level, clnorm_norm_backward_desc *desc) {
    for (int i = 0; i < KNOBS; i++) {
        uint32_t values[MOST_VALUES];
        (void)values_of(fixture, &knobs[i], values);
        *setting_of(&desc->config, &knobs[i]) = values[level[i]];
    }
    const uint64_t segment = desc->group_size ? desc->group_size : desc->cols;
    const struct layout *layout = &layouts[level[LAYOUT]];
    desc->config.gather = layout->gather;
    desc->config.tile = layout->tiles ? TILE_COLS : (uint32_t)segment;
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
    desc->x_stride = desc->dy_stride = desc->cols + shapes[level[SHAPE]].gap;
    desc->gate = level[GATE] >= 2 ? CLNORM_GATE_SILU : CLNORM_GATE_NONE; /* which takes long to build */
    desc->gate_first = level[GATE] == 3;
    desc->dz_dtype = desc->gate ? dtype : CLNORM_DTYPE_NONE;
    desc->dweight_dtype = desc->dbias_dtype = dtype == CLNORM_F64 ? CLNORM_F64 : CLNORM_F32;
    desc->rstd_given = level[STATISTICS] > 0;
    desc->mean_given = desc->rstd_given && layer;
    desc->eps = backward_case.input == INPUT_CONSTANT ? 0.5 : 1e-5;
    desc->reduction = level[REDUCTION] ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
    desc->slots = slots[level[SLOTS]];
    set_knobs(fixture, level, desc);
    if (desc->reduction == CLNORM_REDUCTION_LOCKED && !fixture->device.device_fences)
        desc->config.isa = CLNORM_ISA_PTX; /* which has fences of its own */
    return backward_case;
}

/* What a refusal's sentence says, the knob that then gives way, and what it is set to; 0: half. */
static const struct way {
    const char *says;
    size_t offset;
    uint32_t to;
} ways[] = {
    {"desc.config.vec", offsetof(clnorm_config, vec), 0},
    {"64 columns", offsetof(clnorm_config, tile), TILE_COLS},
    {"desc.config.keep", offsetof(clnorm_config, keep), CLNORM_KEEP_REREAD},
    {"desc.config.gather", offsetof(clnorm_config, gather), CLNORM_GATHER_LOCAL},
    {"desc.config.fetch", offsetof(clnorm_config, fetch), CLNORM_FETCH_IN_TURN},
    {"desc.config.prefetch", offsetof(clnorm_config, prefetch), CLNORM_PREFETCH_NONE},
    {"desc.config.sums", offsetof(clnorm_config, sums), CLNORM_SUMS_BEFORE},
    {"desc.config.chunks", offsetof(clnorm_config, chunks), 1},
    {"desc.config.reduce", offsetof(clnorm_config, segments), 1},
    {"desc.config.reduce", offsetof(clnorm_config, reduce), CLNORM_REDUCE_TREE},
    {"desc.config.segments", offsetof(clnorm_config, segments), 1},
    {"desc.config.lanes", offsetof(clnorm_config, segments), 0},
    {"memory fences", offsetof(clnorm_config, isa), CLNORM_ISA_PTX},
    {"local memory", offsetof(clnorm_config, tile), TILE_COLS},
    {"desc.config.lanes", offsetof(clnorm_config, lanes), 0},
};

/* Gives way in what the library refuses; false: there is no way left. */
static bool give_way(clnorm_config *config) {
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        uint32_t *setting = (uint32_t *)(void *)((char *)config + ways[i].offset);
        const uint32_t to = ways[i].to ? ways[i].to : *setting / 2;
        if (strstr(clnorm_error_detail(), ways[i].says) == NULL || *setting == to || to == 0)
            continue;
        *setting = to;
        return true;
    }
    return false;
}

/* Finds a config near the one wished for that device and shape allow, and which is then obeyed to the letter. */
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
    const bool tiles = desc.config.tile < (desc.group_size ? desc.group_size : desc.cols);
    tally->cases++;
    for (int i = 0; i < KNOBS; i++)
        for (unsigned j = 0; knobs[i].values[j] != 0; j++)
            tally->runs[i][j] += knobs[i].values[j] == *setting_of(&desc.config, &knobs[i]);
    for (int i = 0; i < LAYOUTS; i++)
        tally->layouts[i][desc.reduction == CLNORM_REDUCTION_LOCKED] +=
            layouts[i].gather == desc.config.gather && layouts[i].tiles == tiles;
}

/* What a simulator is spared. */
enum { SLOW_ROWS = 5, SLOW_COLS = 64 };

/* Cases in which every two levels of factors meet, but where the library refuses that. Returns how many failed. */
static unsigned run_cases(const struct fixture *fixture, struct tally *tally, bool locks) {
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
        levels[i] = values_of(fixture, &knobs[i], values);
    }
    struct pairwise *pairwise = pairwise_make(levels, FACTORS, 2);
    unsigned level[PAIRWISE_FACTORS];
    unsigned failed = 0;
    while (failed < 10 && pairwise_next(pairwise, level)) {
        struct norm_backward_case backward_case = case_of(fixture, level, tally->cases);
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

/* Every value of every knob must have run that the device has, and every reduction in every layout that there is. */
static void forced_knobs_are_obeyed(void **state) {
    const struct fixture *fixture = *state;
    const bool locks = norm_backward_locks(fixture);
    struct tally tally = {0};
    assert_int_equal(run_cases(fixture, &tally, locks), 0);
    print_message("%u configs\n", tally.cases);
    for (int i = 0; i < KNOBS; i++) {
        for (unsigned j = 0; knobs[i].values[j] != 0; j++)
            if (tally.runs[i][j] == 0 && device_has(fixture, &knobs[i], knobs[i].values[j]))
                fail_msg("%s %u never ran", knobs[i].name, knobs[i].values[j]);
    }
    for (int i = 0; i < LAYOUTS; i++) {
        const bool refused =
            !locks || layouts[i].gather == CLNORM_GATHER_MEMORY || layouts[i].gather == CLNORM_GATHER_COLUMNS;
        if (tally.layouts[i][0] == 0 || (tally.layouts[i][1] == 0 && !refused))
            fail_msg("gather %d in %s ran %u times partial, %u locked", layouts[i].gather,
                     layouts[i].tiles ? "tiles" : "whole segments", tally.layouts[i][0], tally.layouts[i][1]);
    }
}

/* What no device and no shape can honour is refused with the knob's name and value. */
static void impossible_knobs_are_refused(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        clnorm_config config;
        const char *says[2];
    } wishes[] = {
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
        {{.gather = 6}, {"config.gather", "6"}},
        {{.fetch = 4}, {"config.fetch", "4"}},
        {{.prefetch = 3}, {"config.prefetch", "3"}},
        {{.prefetch = CLNORM_PREFETCH_NEXT, .asked = 1}, {"config.asked", "1"}},
        {{.prefetch = CLNORM_PREFETCH_NEXT, .gather = CLNORM_GATHER_MEMORY, .keep = CLNORM_KEEP_REREAD},
         {"config.prefetch", "2"}},
        {{.fetch = CLNORM_FETCH_AHEAD, .keep = CLNORM_KEEP_REREAD}, {"config.fetch", "2"}},
        {{.chunks = 2, .tile = 65536}, {"config.chunks", "2"}},
        {{.sums = 3}, {"config.sums", "3"}},
        {{.sums = CLNORM_SUMS_EXCHANGED, .tile = 1024}, {"config.sums", "2"}},
        {{.chunks = UINT32_MAX, .tile = 16}, {"config.chunks", "4294967295"}},
        {{.gather = CLNORM_GATHER_MEMORY, .segments = 2}, {"config.", "2"}},
        {{.gather = CLNORM_GATHER_REGISTERS, .lanes = 1, .tile = 65536}, {"config.gather", "64 columns"}},
    };
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        clnorm_norm_backward_desc desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 4, 65536, CLNORM_F32);
        desc.config = wishes[i].config;
        clnorm_plan *plan = NULL;
        const clnorm_status status = clnorm_norm_backward_plan_create(fixture->context, &desc, &plan);
        if (status != CLNORM_INVALID_VALUE || plan != NULL)
            fail_msg("%s %s gave \"%s\"", wishes[i].says[0], wishes[i].says[1], clnorm_status_text(status));
        for (int word = 0; word < 2; word++)
            if (strstr(clnorm_error_detail(), wishes[i].says[word]) == NULL)
                fail_msg("\"%s\" does not name %s", clnorm_error_detail(), wishes[i].says[word]);
    }
}

/* A config that was chosen can be forced, and gives the same bits. */
static void chosen_config_can_be_forced(void **state) {
    const struct fixture *fixture = *state;
    struct norm_backward_case backward_case = {.desc = norm_backward_full_desc(CLNORM_LAYER_NORM, 5, 96, CLNORM_F32)};
    struct norm_backward_run chosen = norm_backward_run_make(&backward_case);
    assert_int_equal(norm_backward_run_go(fixture, &chosen), CLNORM_SUCCESS);
    assert_true(norm_backward_run_receive(fixture, &chosen) && norm_backward_run_check(&chosen));
    backward_case.desc.config = chosen.config;
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
