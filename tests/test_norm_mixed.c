/* Weights in f64 with an x of another dtype, and in f32 with an x of f64: forward and backward on each kind of kernel, and
 * dtypes that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/driver_defects.h"
#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"
#include "norm_case.h"
#include "operation/operations.h"
#include "refusal.h"

static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16, CLNORM_F64};

static const struct {
    uint64_t rows, cols, group_size, weight_rows;
} shapes[] = {{5, 67, 0, 0}, {24, 192, 48, 3}, {3, 1040, 208, 0}, {7, 1, 0, 0}, {4, 33, 11, 2}};

/* One for each kind of kernel. */
enum { CONFIGS = 5 };
static const struct cln_config forward_configs[CONFIGS] = {
    {0},
    {.vec = 4, .lanes = 16, .segments = 1, .keep = CLN_KEEP_REGISTERS, .weights = CLN_WEIGHTS_EARLY},
    {.vec = 2, .lanes = 4, .segments = 2, .keep = CLN_KEEP_REREAD, .iterations = 2},
    {.vec = 1, .lanes = 4, .segments = 1, .keep = CLN_KEEP_REREAD, .chunks = 3},
    {.vec = 8, .lanes = 4, .segments = 1, .keep = CLN_KEEP_LOCAL, .local_vectors = 1},
};

static const struct cln_config backward_configs[CONFIGS] = {
    {0},
    {.vec = 2, .lanes = 8, .segments = 1, .accumulator = CLN_ACCUMULATOR_REGISTERS},
    {.vec = 1, .accumulator = CLN_ACCUMULATOR_COLUMNS},
    {.vec = 4, .lanes = 4, .accumulator = CLN_ACCUMULATOR_LOCAL},
    {.vec = 4, .lanes = 8, .accumulator = CLN_ACCUMULATOR_MEMORY},
};

/* f64 for an x of another dtype, and f32 for one of f64. */
static clnorm_dtype other_than(clnorm_dtype x) {
    return x == CLNORM_F64 ? CLNORM_F32 : CLNORM_F64;
}

/* A quick test has three shapes with each config, among them an x of f64 and others. */
static bool takes(size_t shape, size_t config) {
    return !fixture_is_quick() || (shape + config) % 5 < 3;
}

static void set_shape(clnorm_norm_desc *desc, size_t i) {
    desc->rows = shapes[i].rows;
    desc->cols = shapes[i].cols;
    desc->group_size = shapes[i].group_size;
    desc->weight_rows = shapes[i].weight_rows;
}

/* The config, without vectors that the shape does not allow; the automatic one where that is not enough. */
static clnorm_config settled(const struct fixture *fixture, clnorm_norm_desc desc, struct cln_config config) {
    desc.config = forced(config);
    norm_settle(fixture, &desc);
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_norm_forward_plan_create(fixture->context, &desc, &plan);
    clnorm_plan_destroy(plan);
    const clnorm_config chosen = CLNORM_CONFIG_AUTOMATIC;
    return status == CLNORM_INVALID_VALUE ? chosen : desc.config;
}

static bool is_forced(const clnorm_config *config) {
    return KNOB(*config, vec) > 0;
}

/* A shape may refuse a config, but not all of them, except where lanes may not share a segment. */
static void assert_each_was_obeyed(const struct fixture *fixture, const unsigned obeyed[CONFIGS]) {
    for (size_t i = 1; i < CONFIGS; i++)
        if (!obeyed[i] && !cln_driver_defect(&fixture->device, CLN_DEFECT_SHARED_SEGMENTS))
            fail_msg("config %zu is refused for every shape", i);
}

static void forward(void **state) {
    const struct fixture *fixture = *state;
    if (!fixture->device.fp64)
        skip();
    unsigned failed = 0, seed = 0, obeyed[CONFIGS] = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t j = 0; j < CONFIGS; j++) {
            seed++;
            if (!takes(i, j))
                continue;
            struct norm_case c = {.desc = norm_desc_of(seed % 2 ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM, 1, 1)};
            clnorm_norm_desc *const desc = &c.desc;
            set_shape(desc, i);
            desc->x.dtype = dtypes[seed % 4];
            desc->weight.dtype = other_than(desc->x.dtype);
            desc->bias.dtype = seed % 3 ? desc->weight.dtype : desc->x.dtype;
            desc->weight_offset = seed % 5 == 0;
            desc->gate = seed % 4 == 1 ? CLNORM_GATE_SILU : CLNORM_GATE_NONE;
            desc->activation = (clnorm_activation)(seed % 4);
            desc->save_rstd = true;
            desc->x.stride = desc->cols + (seed % 2 ? 0 : 3);
            c.shift.weight = seed % 3;
            c.shift.bias = seed % 2;
            c.seed = seed;
            desc->config = settled(fixture, *desc, forward_configs[j]);
            obeyed[j] += is_forced(&desc->config);
            failed += !norm_case_passes(fixture, &c);
        }
    assert_int_equal(failed, 0);
    assert_each_was_obeyed(fixture, obeyed);
}

static void backward(void **state) {
    const struct fixture *fixture = *state;
    if (!fixture->device.fp64)
        skip();
    unsigned failed = 0, seed = 0, obeyed[CONFIGS] = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t j = 0; j < CONFIGS; j++) {
            seed++;
            if (!takes(i, j))
                continue;
            const clnorm_dtype x = dtypes[seed % 4];
            struct norm_backward_case c = {.desc = norm_backward_full_desc(seed % 2 ? CLNORM_LAYER_NORM : CLNORM_RMS_NORM,
                                                                           shapes[i].rows, shapes[i].cols, x)};
            clnorm_norm_backward_desc *const desc = &c.desc;
            desc->group_size = shapes[i].group_size;
            desc->weight_rows = shapes[i].weight_rows;
            desc->weight.dtype = desc->dweight.dtype = other_than(x);
            desc->bias.dtype = seed % 3 ? other_than(x) : x;
            desc->dbias.dtype = seed % 5 ? other_than(x) : x;
            desc->accumulate = seed % 2;
            desc->reduction =
                seed % 3 == 1 && norm_backward_locks(fixture) ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
            c.shift.weight = c.shift.dweight = seed % 3;
            c.seed = seed;
            desc->config = forced(backward_configs[j]);
            norm_backward_settle(fixture, desc);
            clnorm_plan *plan = NULL;
            if (clnorm_norm_backward_plan_create(fixture->context, desc, &plan) == CLNORM_INVALID_VALUE)
                desc->config = (clnorm_config){{0}};
            clnorm_plan_destroy(plan);
            obeyed[j] += is_forced(&desc->config);
            failed += !norm_backward_case_passes(fixture, &c);
        }
    assert_int_equal(failed, 0);
    assert_each_was_obeyed(fixture, obeyed);
}

/* Adding a sum of 0 keeps every bit of an f64 dweight, also those that f32 lacks. */
static void accumulation_keeps_double(void **state) {
    const struct fixture *fixture = *state;
    if (!fixture->device.fp64)
        skip();
    enum { ROWS = 6, COLS = 40 };
    const double there = 1 + 0x1p-40;
    for (size_t j = 0; j < CONFIGS; j++) {
        struct norm_backward_case c = {.desc = norm_backward_full_desc(CLNORM_RMS_NORM, ROWS, COLS, CLNORM_F32)};
        c.desc.dweight.dtype = CLNORM_F64;
        c.desc.accumulate = true;
        c.desc.config = forced(backward_configs[j]);
        norm_backward_settle(fixture, &c.desc);
        struct norm_backward_run run = norm_backward_run_make(&c);
        clnorm_plan *plan = NULL;
        if (clnorm_norm_backward_plan_create(fixture->context, &c.desc, &plan) != CLNORM_SUCCESS)
            fail_msg("%s", clnorm_error_detail());
        norm_backward_run_prepare(plan, &run);
        memset(tensor_elements(&run.dy), 0, sizeof(float) * ROWS * COLS);
        for (size_t i = 0; i < COLS; i++)
            memcpy((double *)tensor_elements(&run.dweight) + i, &there, sizeof there);
        norm_backward_run_upload(fixture, &run);
        const clnorm_args args = norm_backward_run_args(&run);
        assert_int_equal(clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL), CLNORM_SUCCESS);
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
        assert_true(norm_backward_run_receive(fixture, &run));
        for (size_t i = 0; i < COLS; i++)
            assert_memory_equal((double *)tensor_elements(&run.dweight) + i, &there, sizeof there);
        clnorm_plan_destroy(plan);
        norm_backward_run_free(&run);
    }
}

/* An x of 8 bits allows weights in f64. */
static void codes(void **state) {
    const struct fixture *fixture = *state;
    if (!fixture->device.fp64)
        skip();
    const clnorm_tensor by_row = {.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_ROW};
    const clnorm_tensor by_group = {.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_GROUP, .scale_group = 32};
    const clnorm_tensor whole = {.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_TENSOR}, halves = {.dtype = CLNORM_F16};
    for (int i = 0; i < 3; i++) {
        struct norm_case c = {.desc = norm_desc_of(CLNORM_RMS_NORM, 6, 96), .seed = 3};
        c.desc.x = i == 2 ? by_group : by_row;
        c.desc.y = i ? whole : halves;
        c.desc.weight.dtype = CLNORM_F64;
        assert_true(norm_case_passes(fixture, &c));
    }
}

static void check_refused(const struct fixture *fixture, const clnorm_norm_desc *desc, const char *said) {
    assert_int_equal(clnorm_norm_forward_validate(fixture->context, desc, NULL), CLNORM_UNSUPPORTED);
    assert_detail(said);
}

/* A y of f64 needs an x of f64; weights of 16 bits need an x that is not f64. */
static void lossy_dtypes_are_refused(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_desc desc = norm_desc_of(CLNORM_RMS_NORM, 4, 64);
    desc.y.dtype = CLNORM_F64;
    check_refused(fixture, &desc, "desc.y.dtype is f64, desc.x.dtype is f32: expected f64 for all tensors or for none");
    desc = norm_desc_of(CLNORM_RMS_NORM, 4, 64);
    desc.x.dtype = CLNORM_F64;
    desc.weight.dtype = CLNORM_BF16;
    check_refused(fixture, &desc, "desc.weight.dtype is bf16, desc.x.dtype is f64: expected f64, f32 or none");
    clnorm_device_info plain = {.name = "plain"};
    desc = norm_desc_of(CLNORM_RMS_NORM, 4, 64);
    desc.weight.dtype = CLNORM_F64;
    assert_int_equal(cln_operation_complete_tensors(&cln_norm_forward, &plain, &desc), CLNORM_UNSUPPORTED);
    assert_non_null(strstr(clnorm_error_detail(), "desc.weight.dtype is f64: the device plain has no double precision"));
    clnorm_l2_norm_desc l2 = CLNORM_L2_NORM_DESC_INIT;
    l2.rows = 4;
    l2.cols = 64;
    l2.weight.dtype = CLNORM_F64;
    assert_int_equal(clnorm_l2_norm_validate(fixture->context, &l2, NULL), CLNORM_UNSUPPORTED);
    assert_non_null(strstr(clnorm_error_detail(), "desc.weight.dtype is f64"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward),
        cmocka_unit_test(backward),
        cmocka_unit_test(accumulation_keeps_double),
        cmocka_unit_test(codes),
        cmocka_unit_test(lossy_dtypes_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
