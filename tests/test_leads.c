/* Segments that begin anywhere within an aligned vector (cl/common/lead.h): norms and softmax, forward and backward, with
 * vectors that divide no row stride. CPUs take them with streaming stores only, as they otherwise access any address. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"
#include "norm_case.h"
#include "pairwise.h"
#include "rows_case.h"

/* 37: less than a vector of each lane. 16, with a gap of 5: only the stride is odd. 9: the tail and the lead can be of one
 * vector. */
static const struct shape {
    uint64_t rows, cols, group_size, gap;
} shapes[] = {{21, 37, 0, 0}, {19, 9, 0, 0}, {13, 16, 0, 5}, {35, 129, 43, 0}, {11, 301, 0, 2}};

/* Slow devices run the first few of each: they compile kernels with wide vectors for seconds. */
enum { SHAPES = sizeof shapes / sizeof *shapes, SLOW_SHAPES = 3, VECS = 4, SLOW_VECS = 2 };

static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_BF16, CLNORM_F16};
static const uint32_t vecs[] = {4, 8, 2, 16}, lanes[] = {1, 8, 32}, segments[] = {1, 4};
static const struct {
    uint32_t keep, chunks;
} keeps_and_chunks[] = {{CLN_KEEP_REGISTERS, 1}, {CLN_KEEP_REREAD, 1}, {CLN_KEEP_REREAD, 3}};
static const uint32_t accumulators[] = {CLN_ACCUMULATOR_REGISTERS, CLN_ACCUMULATOR_SPLIT, CLN_ACCUMULATOR_LOCAL};

static bool is_cpu(const struct fixture *fixture) {
    return fixture->device.kind == CLNORM_DEVICE_CPU;
}

static uint32_t stores_of(const struct fixture *fixture) {
    return is_cpu(fixture) && fixture->device.family != CLNORM_PLATFORM_MESA ? CLN_STORES_STREAMING : CLN_STORES_CACHED;
}

/* Whether the driver miscompiles the lanes of the last config, which is refused by name. */
static bool lanes_are_refused(void) {
    return strstr(clnorm_error_detail(), "config.lanes") != NULL;
}

/* Whether a lane has more of a segment than registers or local memory hold, or a chunk no vector. */
static bool is_too_much(clnorm_status status) {
    const char *const detail = clnorm_error_detail();
    const bool refused =
        status == CLNORM_INVALID_VALUE && (strstr(detail, "desc.config.keep") || strstr(detail, "desc.config.chunks"));
    if (!refused)
        print_error("%s\n", detail);
    return refused;
}

/* -------------------------------------------------------------------------------------------------------------- forward */

/* The inputs of a forward besides x. With IN_PLACE y lies over x, where they have one dtype. */
enum inputs { IN_PLACE, GATED, ADDED, DROPPED, DROPPED_AND_ADDED, FORWARD_INPUTS };

enum forward_factor { SHAPE, DTYPE, OTHER_DTYPE, VEC, LANES, SEGMENTS, KEEP, NORM, INPUTS_OF, SHIFT, FORWARD_FACTORS };

static struct norm_case forward_case(const struct fixture *fixture, const unsigned *level, uint64_t seed) {
    const struct shape shape = shapes[level[SHAPE]];
    const clnorm_dtype dtype = dtypes[level[DTYPE]], other = dtypes[level[OTHER_DTYPE]];
    const uint64_t shift = level[SHIFT]; /* 1: the kernel for any offsets, with the same leads */
    struct norm_case norm_case = {
        .desc = norm_desc_of(level[NORM] ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM, shape.rows, shape.cols),
        .shift = {.x = shift, .y = shift, .weight = 3 * shift},
        .in_place = level[INPUTS_OF] == IN_PLACE && dtype == other,
        .seed = seed,
    };
    clnorm_norm_desc *const desc = &norm_case.desc;
    desc->group_size = shape.group_size;
    desc->x.dtype = dtype;
    desc->y.dtype = norm_case.in_place ? dtype : other;
    desc->weight.dtype = other;
    desc->bias.dtype = level[NORM] ? dtype : CLNORM_DTYPE_NONE;
    desc->save_rstd = true;
    desc->save_mean = level[NORM];
    if (level[INPUTS_OF] == GATED) {
        desc->gate = CLNORM_GATE_SILU;
        desc->z.dtype = other;
    }
    if (level[INPUTS_OF] == ADDED || level[INPUTS_OF] == DROPPED_AND_ADDED) {
        desc->residual.dtype = other;
        desc->residual_out.dtype = CLNORM_F32;
    }
    if (level[INPUTS_OF] >= DROPPED) {
        desc->dropout = 0.25;
        desc->save_mask = true;
    }
    desc->x.stride = desc->y.stride = shape.cols + shape.gap;
    desc->z.stride = desc->z.dtype ? shape.cols + shape.gap + 16 : 0; /* alike within each of the vectors */
    desc->residual.stride = desc->residual.dtype ? shape.cols + shape.gap : 0;
    desc->residual_out.stride = desc->residual_out.dtype ? shape.cols + shape.gap : 0;
    KNOB(desc->config, stores) = stores_of(fixture);
    KNOB(desc->config, vec) = vecs[level[VEC]];
    KNOB(desc->config, lanes) = lanes[level[LANES]];
    KNOB(desc->config, keep) = keeps_and_chunks[level[KEEP]].keep;
    KNOB(desc->config, chunks) = keeps_and_chunks[level[KEEP]].chunks;
    KNOB(desc->config, segments) = keeps_and_chunks[level[KEEP]].chunks > 1 ? 1 : segments[level[SEGMENTS]];
    return norm_case;
}

static void norms_agree_with_the_reference(void **state) {
    const struct fixture *fixture = *state;
    const unsigned levels[FORWARD_FACTORS] = {[SHAPE] = fixture_is_slow(fixture) ? SLOW_SHAPES : SHAPES,
                                              [DTYPE] = 3,
                                              [OTHER_DTYPE] = 3,
                                              [VEC] = fixture_is_slow(fixture) ? SLOW_VECS : VECS,
                                              [LANES] = 3,
                                              [SEGMENTS] = 2,
                                              [KEEP] = 3,
                                              [NORM] = 2,
                                              [INPUTS_OF] = FORWARD_INPUTS,
                                              [SHIFT] = 2};
    struct pairwise *pairwise = pairwise_make(levels, FORWARD_FACTORS, 2);
    unsigned level[PAIRWISE_FACTORS], failed = 0, cases = 0, refused = 0;
    while (failed < 5 && pairwise_next(pairwise, level)) {
        struct norm_case norm_case = forward_case(fixture, level, cases);
        clnorm_plan *plan = NULL;
        clnorm_status status = clnorm_norm_forward_plan_create(fixture->context, &norm_case.desc, &plan);
        if (status && lanes_are_refused()) {
            KNOB(norm_case.desc.config, lanes) = 1;
            status = clnorm_norm_forward_plan_create(fixture->context, &norm_case.desc, &plan);
        }
        if (status) {
            failed += !is_too_much(status);
            refused++;
            continue;
        }
        clnorm_plan_destroy(plan);
        failed += !norm_case_passes(fixture, &norm_case);
        cases++;
    }
    pairwise_free(pairwise);
    print_message("%u cases, %u refused\n", cases, refused);
    assert_int_equal(failed, 0);
    assert_true(cases > 3 * refused);
}

/* ------------------------------------------------------------------------------------------------------------- backward */

enum backward_inputs { B_PLAIN, B_GATED, B_DROPPED, BACKWARD_INPUTS };

enum backward_factor {
    B_SHAPE,
    B_DTYPE,
    B_WEIGHT,
    B_VEC,
    B_LANES,
    B_SEGMENTS,
    B_KEEP,
    B_ACCUMULATOR,
    B_NORM,
    B_INPUTS_OF,
    B_SHIFT,
    B_LOCKED,
    B_PIPELINE,
    BACKWARD_FACTORS
};

static struct norm_backward_case backward_case(const struct fixture *fixture, const unsigned *level, uint64_t seed) {
    const struct shape shape = shapes[level[B_SHAPE]];
    const clnorm_dtype dtype = dtypes[level[B_DTYPE]];
    const uint64_t shift = level[B_SHIFT];
    struct norm_backward_case backward_case = {
        .desc = norm_backward_full_desc(level[B_NORM] ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM, shape.rows, shape.cols, dtype),
        .shift = {.x = shift, .dy = shift, .weight = shift, .dx = shift, .dweight = shift},
        .seed = seed,
    };
    clnorm_norm_backward_desc *const desc = &backward_case.desc;
    desc->group_size = shape.group_size;
    desc->weight.dtype = dtypes[level[B_WEIGHT]];
    desc->x.stride = desc->dy.stride = shape.cols + shape.gap;
    desc->dx.stride = shape.cols + shape.gap + 32;
    desc->y.dtype = CLNORM_DTYPE_NONE;
    desc->dropout = level[B_INPUTS_OF] == B_DROPPED ? 0.25 : 0;
    desc->gate = level[B_INPUTS_OF] == B_GATED ? CLNORM_GATE_SILU : CLNORM_GATE_NONE;
    desc->z.dtype = desc->dz.dtype = desc->gate ? dtype : CLNORM_DTYPE_NONE;
    desc->z.stride = desc->z.dtype ? shape.cols + shape.gap : 0;
    desc->dz.stride = desc->dz.dtype ? shape.cols + shape.gap : 0;
    desc->dweight.dtype = desc->dbias.dtype = CLNORM_F32;
    if (level[B_LOCKED] && norm_backward_locks(fixture)) {
        desc->reduction = CLNORM_REDUCTION_LOCKED;
        desc->slots = 3;
    }
    KNOB(desc->config, stores) = stores_of(fixture);
    KNOB(desc->config, vec) = vecs[level[B_VEC]];
    KNOB(desc->config, lanes) = is_cpu(fixture) ? 1 : lanes[level[B_LANES]];
    KNOB(desc->config, segments) = segments[level[B_SEGMENTS]];
    KNOB(desc->config, keep) = keeps_and_chunks[level[B_KEEP]].keep;
    KNOB(desc->config, accumulator) = accumulators[level[B_ACCUMULATOR]];
    KNOB(desc->config, tile) = (uint32_t)(shape.group_size ? shape.group_size : shape.cols);
    KNOB(desc->config, pipeline) = level[B_PIPELINE] && level[B_KEEP] == 0 ? 2 : 1;
    return backward_case;
}

/* Whether the last refusal is one that these factors cause: too many columns in a lane's registers, too little local
 * memory, or neither a row nor sums in registers. */
static bool expected_refusal(const struct norm_backward_case *own) {
    const char *const detail = clnorm_error_detail();
    if (strstr(detail, "config.vec"))
        return KNOB(own->desc.config, keep) == CLN_KEEP_REREAD &&
               KNOB(own->desc.config, accumulator) == CLN_ACCUMULATOR_LOCAL;
    return strstr(detail, "64 columns") || strstr(detail, "local memory") || strstr(detail, "neither a row nor sums");
}

static void gradients_agree_with_the_reference(void **state) {
    const struct fixture *fixture = *state;
    const unsigned levels[BACKWARD_FACTORS] = {[B_SHAPE] = fixture_is_slow(fixture) ? SLOW_SHAPES : SHAPES,
                                               [B_DTYPE] = 3,
                                               [B_WEIGHT] = 3,
                                               [B_VEC] = fixture_is_slow(fixture) ? SLOW_VECS : VECS,
                                               [B_LANES] = 3,
                                               [B_SEGMENTS] = 2,
                                               [B_KEEP] = 2,
                                               [B_ACCUMULATOR] = 3,
                                               [B_NORM] = 2,
                                               [B_INPUTS_OF] = BACKWARD_INPUTS,
                                               [B_SHIFT] = 2,
                                               [B_LOCKED] = 2,
                                               [B_PIPELINE] = 2};
    struct pairwise *pairwise = pairwise_make(levels, BACKWARD_FACTORS, 2);
    unsigned level[PAIRWISE_FACTORS], failed = 0, cases = 0, refused = 0;
    while (failed < 5 && pairwise_next(pairwise, level)) {
        const struct norm_backward_case own = backward_case(fixture, level, cases);
        clnorm_plan *plan = NULL;
        if (clnorm_norm_backward_plan_create(fixture->context, &own.desc, &plan)) {
            if (!expected_refusal(&own)) {
                print_error("%s\n", clnorm_error_detail());
                failed++;
            }
            refused++;
            continue;
        }
        clnorm_plan_destroy(plan);
        failed += !norm_backward_case_passes(fixture, &own);
        cases++;
    }
    pairwise_free(pairwise);
    print_message("%u cases, %u refused\n", cases, refused);
    assert_int_equal(failed, 0);
    assert_true(cases > refused);
}

/* -------------------------------------------------------------------------------------------------------------- softmax */

static void softmax_agrees_with_the_reference(void **state) {
    const struct fixture *fixture = *state;
    static const enum rows_operation operations[] = {ROWS_SOFTMAX, ROWS_SOFTMAX_BACKWARD};
    const bool slow = fixture_is_slow(fixture);
    const unsigned levels[] = {2, slow ? SLOW_SHAPES : SHAPES, 3, slow ? SLOW_VECS : VECS, 3, 2, 3, 2};
    struct pairwise *pairwise = pairwise_make(levels, sizeof levels / sizeof *levels, 2);
    unsigned level[PAIRWISE_FACTORS], failed = 0, cases = 0, refused = 0;
    while (failed < 5 && pairwise_next(pairwise, level)) {
        const struct shape shape = shapes[level[1]];
        struct rows_case own = rows_case_of(operations[level[0]], shape.rows, shape.cols);
        own.dtype[ROWS_FIRST] = dtypes[level[2]];
        own.gap[ROWS_FIRST] = own.gap[ROWS_DY] = own.gap[ROWS_OUT] = shape.gap;
        own.shift[ROWS_FIRST] = own.shift[ROWS_OUT] = level[7];
        own.masked = level[0] == 0 && level[6] != 1;
        own.seed = cases;
        own.config = (struct cln_config){.stores = stores_of(fixture),
                                         .vec = vecs[level[3]],
                                         .lanes = lanes[level[4]],
                                         .segments = keeps_and_chunks[level[6]].chunks > 1 ? 1 : segments[level[5]],
                                         .keep = keeps_and_chunks[level[6]].keep,
                                         .chunks = keeps_and_chunks[level[6]].chunks};
        clnorm_plan *plan = NULL;
        clnorm_status status = rows_case_plan(fixture->context, &own, &plan);
        if (status && lanes_are_refused()) {
            own.config.lanes = 1;
            status = rows_case_plan(fixture->context, &own, &plan);
        }
        if (status) {
            failed += !is_too_much(status);
            refused++;
            continue;
        }
        clnorm_plan_destroy(plan);
        failed += !rows_case_passes(fixture, &own);
        cases++;
    }
    pairwise_free(pairwise);
    assert_int_equal(failed, 0);
    assert_true(cases > 3 * refused);
}

/* ---------------------------------------------------------------------------------------------------------- few rows */

/* Fewer rows than begin differently within a vector. */
static void few_rows_are_enough(void **state) {
    const struct fixture *fixture = *state;
    static const uint64_t rows[] = {3, 0, 6, 9};
    const size_t count = fixture_is_slow(fixture) ? 1 : sizeof rows / sizeof *rows;
    for (size_t i = 0; i < count; i++) {
        struct norm_backward_case own = {.desc = norm_backward_full_desc(CLNORM_LAYER_NORM, rows[i], 37, CLNORM_F32)};
        KNOB(own.desc.config, stores) = stores_of(fixture);
        KNOB(own.desc.config, vec) = 8;
        KNOB(own.desc.config, lanes) = is_cpu(fixture) ? 1 : 8;
        KNOB(own.desc.config, segments) = 1;
        KNOB(own.desc.config, tile) = 37;
        KNOB(own.desc.config, keep) = CLN_KEEP_REGISTERS;
        KNOB(own.desc.config, accumulator) = CLN_ACCUMULATOR_REGISTERS;
        KNOB(own.desc.config, pipeline) = 2;
        assert_true(norm_backward_case_passes(fixture, &own));
    }
}

/* ------------------------------------------------------------------------------------------------------------- refusals */

static void assert_vec_is_refused(const struct fixture *fixture, clnorm_norm_desc desc) {
    KNOB(desc.config, stores) = stores_of(fixture);
    KNOB(desc.config, vec) = 4;
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, &plan), CLNORM_INVALID_VALUE);
    assert_null(plan);
    assert_non_null(strstr(clnorm_error_detail(), "desc.config.vec is 4"));
}

/* Rows whose bits may not depend on their place, tensors whose rows begin at other places within a vector, and a weight for
 * each row. */
static void other_rows_need_dividing_vectors(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_norm_desc plain = norm_desc_of(CLNORM_RMS_NORM, 5, 37);
    clnorm_norm_desc desc = plain;
    desc.batch_invariant = true;
    assert_vec_is_refused(fixture, desc);
    desc = plain;
    desc.y.stride = 38;
    assert_vec_is_refused(fixture, desc);
    desc = plain;
    desc.weight = (clnorm_tensor){.dtype = CLNORM_F32};
    desc.weight_rows = 5;
    assert_vec_is_refused(fixture, desc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_agree_with_the_reference),    cmocka_unit_test(gradients_agree_with_the_reference),
        cmocka_unit_test(softmax_agrees_with_the_reference), cmocka_unit_test(few_rows_are_enough),
        cmocka_unit_test(other_rows_need_dividing_vectors),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
