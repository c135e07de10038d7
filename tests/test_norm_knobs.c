/* Forward normalisation with every knob of a config forced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "norm_case.h"
#include "pairwise.h"

enum factor {
    SHAPE,
    VEC,
    LANES,
    SEGMENTS,
    ROUNDS,
    KEEP,
    UNROLL,
    REDUCE,
    STORES,
    WEIGHTS,
    ISA,
    DTYPE,
    SHIFT,
    NORM,
    INPUT,
    FACTORS
};

static const struct {
    uint64_t rows, cols, group_size, gap;
} shapes[] = {
    {5, 1, 0, 0},    {33, 7, 0, 1},    {7, 64, 0, 0},   {3, 192, 3, 0},   {9, 257, 0, 3},
    {4, 1000, 0, 8}, {2, 4096, 64, 0}, {3, 5003, 0, 0}, {5, 2048, 0, 16}, {1, 65537, 0, 0},
};
static const uint32_t vec_levels[] = {1, 2, 4, 8, 16};
static const uint32_t lanes_levels[] = {1, 2, 32, 64, 256, 1024};
static const uint32_t segments_levels[] = {1, 2, 8};
static const uint32_t rounds_levels[] = {1, 2, 4};
static const uint32_t unroll_levels[] = {1, 3, 16};
static const clnorm_dtype dtype_levels[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16, CLNORM_F64};
static const uint64_t shift_levels[] = {0, 1, 8};

static struct norm_case case_of(const unsigned *level, uint64_t seed) {
    const clnorm_dtype dtype = dtype_levels[level[DTYPE]];
    const uint64_t shift = shift_levels[level[SHIFT]];
    struct norm_case norm_case = {
        .desc = norm_desc_of(level[NORM] ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, shapes[level[SHAPE]].rows,
                             shapes[level[SHAPE]].cols),
        .shift = {.x = shift, .y = shift, .weight = shift, .mean = shift},
        .input = (enum input)level[INPUT],
        .seed = seed,
    };
    clnorm_norm_desc *desc = &norm_case.desc;
    desc->group_size = shapes[level[SHAPE]].group_size;
    desc->x_stride = desc->cols + shapes[level[SHAPE]].gap;
    desc->x_dtype = dtype;
    desc->weight_dtype = dtype == CLNORM_BF16 ? CLNORM_F32 : dtype;
    desc->bias_dtype = level[NORM] ? CLNORM_DTYPE_NONE : dtype;
    desc->save_mean = desc->norm == CLNORM_LAYER_NORM;
    desc->save_rstd = true;
    desc->eps = norm_case.input == INPUT_CONSTANT ? 0.5 : 1e-5;
    desc->config = (clnorm_config){.vec = vec_levels[level[VEC]],
                                   .lanes = lanes_levels[level[LANES]],
                                   .segments = segments_levels[level[SEGMENTS]],
                                   .rounds = rounds_levels[level[ROUNDS]],
                                   .keep = CLNORM_KEEP_REGISTERS + level[KEEP],
                                   .unroll = unroll_levels[level[UNROLL]],
                                   .reduce = CLNORM_REDUCE_TREE + level[REDUCE],
                                   .stores = CLNORM_STORES_CACHED + level[STORES],
                                   .weights = CLNORM_WEIGHTS_LATE + level[WEIGHTS],
                                   .isa = CLNORM_ISA_PORTABLE + level[ISA]};
    return norm_case;
}

/* Whether a config has every value that was wished for; a wish of 0 leaves the choice. */
static bool wishes_met(const clnorm_config *wish, const clnorm_config *config) {
    enum { KNOBS = sizeof(clnorm_config) / sizeof(uint32_t) };
    uint32_t wished[KNOBS];
    uint32_t had[KNOBS];
    memcpy(wished, wish, sizeof wished);
    memcpy(had, config, sizeof had);
    for (int knob = 0; knob < KNOBS; knob++) {
        if (wished[knob] != 0 && had[knob] != wished[knob]) {
            print_error("knob %d is %u, not %u\n", knob, had[knob], wished[knob]);
            return false;
        }
    }
    return true;
}

/* What the library says to a case before it is run: 1 it takes it, 0 it refuses the config and says which knob, −1 it does
 * neither properly. */
static int wish_granted(const struct fixture *fixture, const struct norm_case *norm_case) {
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_norm_forward_plan_create(fixture->context, &norm_case->desc, &plan);
    if (status == CLNORM_INVALID_VALUE && plan == NULL && strstr(clnorm_error_detail(), "desc.config.") != NULL) {
        return 0;
    }
    if (status != CLNORM_SUCCESS) {
        print_error("%s: %s\n", clnorm_status_text(status), clnorm_error_detail());
        return -1;
    }
    clnorm_config config;
    clnorm_plan_config(plan, &config);
    clnorm_plan_destroy(plan);
    return wishes_met(&norm_case->desc.config, &config) ? 1 : -1;
}

/* Cases of one seed; counts the runs that each level had. */
static unsigned run_cases(const struct fixture *fixture, const unsigned *levels, uint64_t seed,
                          unsigned runs[FACTORS][PAIRWISE_FACTORS]) {
    struct pairwise *pairwise = pairwise_make(levels, FACTORS, seed);
    unsigned level[PAIRWISE_FACTORS];
    unsigned cases = 0;
    unsigned failed = 0;
    while (failed < 10 && pairwise_next(pairwise, level)) {
        const struct norm_case norm_case = case_of(level, seed + cases++);
        if (shapes[level[SHAPE]].rows * shapes[level[SHAPE]].cols > fixture_element_limit(fixture)) {
            continue;
        }
        const int granted = wish_granted(fixture, &norm_case);
        if (granted < 0) {
            norm_case_print(&norm_case);
        }
        failed += granted < 0 || (granted > 0 && !norm_case_passes(fixture, &norm_case));
        for (int factor = 0; granted > 0 && factor < FACTORS; factor++) {
            runs[factor][level[factor]]++;
        }
    }
    pairwise_free(pairwise);
    return failed;
}

/* Every level of every knob must have run, but for what the device lacks. */
static void forced_knobs_are_obeyed(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_device_info *device = &fixture->device;
    const bool nvidia = device->family == CLNORM_PLATFORM_NVIDIA;
    const unsigned levels[FACTORS] = {
        [SHAPE] = sizeof shapes / sizeof *shapes,
        [VEC] = sizeof vec_levels / sizeof *vec_levels,
        [LANES] = sizeof lanes_levels / sizeof *lanes_levels,
        [SEGMENTS] = sizeof segments_levels / sizeof *segments_levels,
        [ROUNDS] = sizeof rounds_levels / sizeof *rounds_levels,
        [KEEP] = 3,
        [UNROLL] = sizeof unroll_levels / sizeof *unroll_levels,
        [REDUCE] = device->subgroups ? 3
                   : nvidia          ? 2
                                     : 1,
        [STORES] = 2,
        [WEIGHTS] = 2,
        [ISA] = nvidia && device->compute_capability >= 80 ? 2 : 1,
        [DTYPE] = device->fp64 ? 4 : 3,
        [SHIFT] = sizeof shift_levels / sizeof *shift_levels,
        [NORM] = 2,
        [INPUT] = INPUTS,
    };
    unsigned runs[FACTORS][PAIRWISE_FACTORS] = {{0}};
    assert_int_equal(run_cases(fixture, levels, 1, runs), 0);
    unsigned total = 0;
    for (unsigned shape = 0; shape < levels[SHAPE]; shape++) {
        total += runs[SHAPE][shape];
    }
    print_message("%u configs ran\n", total);
    for (unsigned factor = VEC; factor < FACTORS; factor++) {
        for (unsigned level = 0; level < levels[factor]; level++) {
            const bool possible = factor != LANES || lanes_levels[level] <= device->max_work_group_size;
            const bool lacking = factor == REDUCE && level == 1 && !nvidia;
            if (possible && !lacking && runs[factor][level] == 0) {
                fail_msg("level %u of factor %u never ran", level, factor);
            }
        }
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
        {{.vec = 32}, {"config.vec", "32"}},
        {{.lanes = 12}, {"config.lanes", "12"}},
        {{.lanes = 1U << 31}, {"config.lanes", "2147483648"}},
        {{.segments = 7}, {"config.segments", "7"}},
        {{.lanes = 1024, .segments = 1024}, {"config.lanes x segments", "1024 x 1024"}},
        {{.unroll = 17}, {"config.unroll", "17"}},
        {{.keep = 3}, {"config.keep", "3"}},
        {{.reduce = 4}, {"config.reduce", "4"}},
        {{.stores = 3}, {"config.stores", "3"}},
        {{.weights = 3}, {"config.weights", "3"}},
        {{.isa = 3}, {"config.isa", "3"}},
        {{.lanes = 1, .keep = CLNORM_KEEP_REGISTERS}, {"config.keep", "1"}},
    };
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        clnorm_norm_desc desc = norm_desc_of(CLNORM_LAYER_NORM, 4, 65536);
        desc.config = wishes[i].config;
        clnorm_plan *plan = NULL;
        assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE);
        assert_null(plan);
        for (int word = 0; word < 2; word++) {
            if (strstr(clnorm_error_detail(), wishes[i].says[word]) == NULL) {
                fail_msg("\"%s\" does not name %s", clnorm_error_detail(), wishes[i].says[word]);
            }
        }
    }
}

/* A config that was chosen can be forced, and gives the same bits. */
static void chosen_config_can_be_forced(void **state) {
    const struct fixture *fixture = *state;
    struct norm_case norm_case = {.desc = norm_desc_of(CLNORM_LAYER_NORM, 5, 1000), .input = INPUT_NORMAL};
    struct norm_run chosen = norm_run_make(&norm_case);
    assert_int_equal(norm_run_go(fixture, &chosen), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, &chosen));
    norm_case.desc.config = chosen.config;
    struct norm_run forced = norm_run_make(&norm_case);
    assert_int_equal(norm_run_go(fixture, &forced), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, &forced));
    assert_memory_equal(&forced.config, &chosen.config, sizeof forced.config);
    assert_memory_equal(forced.y.host, chosen.y.host, forced.y.size);
    norm_run_free(&chosen);
    norm_run_free(&forced);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forced_knobs_are_obeyed),
        cmocka_unit_test(impossible_knobs_are_refused),
        cmocka_unit_test(chosen_config_can_be_forced),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
