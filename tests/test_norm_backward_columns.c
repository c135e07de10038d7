/* Backward normalisation of few rows: some work-groups have rows, others have columns of all rows. The latter read inputs
 * that the former may overwrite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"

/* A line has several lanes, or one; or its segments are cut into tiles. */
static const struct cln_config side_by_side = {
    .vec = 4, .lanes = 8, .segments = 4, .unroll = 2, .keep = CLN_KEEP_REGISTERS, .accumulator = CLN_ACCUMULATOR_COLUMNS};
static const struct cln_config alone = {
    .lanes = 1, .segments = 1, .keep = CLN_KEEP_REREAD, .accumulator = CLN_ACCUMULATOR_COLUMNS};

static const struct cln_config in_tiles = {.vec = 4,
                                           .lanes = 8,
                                           .segments = 1,
                                           .tile = 32,
                                           .chunks = 2,
                                           .keep = CLN_KEEP_REREAD,
                                           .accumulator = CLN_ACCUMULATOR_COLUMNS};

/* More work-items than a work-group's columns have sums. */
static const struct cln_config many = {.vec = 2,
                                       .lanes = 16,
                                       .segments = 1,
                                       .unroll = 1,
                                       .stores = CLN_STORES_STREAMING,
                                       .accumulator = CLN_ACCUMULATOR_COLUMNS};

/* The last tile is half as wide, tiles have fewer vectors than lanes, and the last rows do not fill a work-group. */
static const struct cln_config in_small_tiles = {.vec = 4,
                                                 .lanes = 8,
                                                 .segments = 8,
                                                 .tile = 16,
                                                 .keep = CLN_KEEP_REGISTERS,
                                                 .weights = CLN_WEIGHTS_LATE,
                                                 .accumulator = CLN_ACCUMULATOR_COLUMNS};

/* With few compute units, a single row has one line of all lanes, and six rows four lines, some lanes of which are beyond
 * the last of 257 vectors. */
static const struct cln_config wide_lines = {
    .vec = 4, .lanes = 64, .segments = 1, .unroll = 2, .keep = CLN_KEEP_REGISTERS, .accumulator = CLN_ACCUMULATOR_COLUMNS};

static struct norm_backward_case case_of(clnorm_norm norm, uint64_t rows, uint64_t cols, clnorm_dtype dtype,
                                         const struct cln_config *config) {
    struct norm_backward_case c = {.desc = norm_backward_full_desc(norm, rows, cols, dtype), .seed = rows};
    c.desc.rstd_given = true;
    c.desc.mean_given = norm == CLNORM_LAYER_NORM;
    c.desc.y.dtype = CLNORM_DTYPE_NONE;
    c.desc.config = forced(*config);
    return c;
}

/* Sums that have a dtype of their own and accumulate; dweight or dbias alone; lanes beyond the last column. */
static void every_output_is_right(void **state) {
    struct norm_backward_case cases[] = {
        case_of(CLNORM_LAYER_NORM, 67, 96, CLNORM_F32, &side_by_side),
        case_of(CLNORM_LAYER_NORM, 1, 96, CLNORM_F32, &side_by_side),
        case_of(CLNORM_RMS_NORM, 5, 37, CLNORM_F16, &alone),
        case_of(CLNORM_LAYER_NORM, 5, 72, CLNORM_BF16, &in_tiles),
        case_of(CLNORM_RMS_NORM, 0, 96, CLNORM_F32, &side_by_side),
        case_of(CLNORM_LAYER_NORM, 3, 8, CLNORM_F32, &many),
        case_of(CLNORM_RMS_NORM, 0, 512, CLNORM_F16, &many),
        case_of(CLNORM_LAYER_NORM, 33, 200, CLNORM_F16, &in_small_tiles),
        case_of(CLNORM_LAYER_NORM, 1, 1028, CLNORM_F32, &wide_lines),
        case_of(CLNORM_RMS_NORM, 6, 1028, CLNORM_BF16, &wide_lines),
    };
    for (int i = 0; i < 2; i++) {
        cases[i].desc.group_size = 32;
        cases[i].desc.accumulate = true;
        cases[i].desc.dweight.dtype = CLNORM_F16;
        cases[i].desc.dbias.dtype = CLNORM_BF16;
        cases[i].shift.dbias = cases[i].shift.x = 1;
    }
    cases[2].desc.dbias.dtype = CLNORM_DTYPE_NONE;
    cases[3].desc.dweight.dtype = CLNORM_DTYPE_NONE;
    cases[5].desc.dx.dtype = CLNORM_DTYPE_NONE;
    cases[6].desc.dweight.dtype = CLNORM_BF16;
    cases[6].desc.dbias.dtype = CLNORM_F32;
    cases[7].desc.weight.dtype = cases[7].desc.bias.dtype = cases[7].desc.dweight.dtype = CLNORM_DTYPE_NONE;
    cases[7].desc.x.dtype = CLNORM_F32;
    cases[7].desc.y.dtype = CLNORM_F16;
    cases[7].desc.dy.dtype = CLNORM_F16;
    cases[7].desc.y_given = true;
    cases[7].desc.mean_given = false;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(norm_backward_case_passes(*state, &cases[i]));
}

/* The tests below share one case, so that its kernels are built once. */
enum { ROWS = 48, SLOW_ROWS = 3, COLS = 128 };

static struct norm_backward_case gated_case(const struct fixture *fixture) {
    const uint64_t rows = fixture_is_slow(fixture) ? SLOW_ROWS : ROWS;
    struct norm_backward_case c = case_of(CLNORM_LAYER_NORM, rows, COLS, CLNORM_F32, &side_by_side);
    c.desc.gate = CLNORM_GATE_SILU;
    c.desc.dz.dtype = CLNORM_F32;
    return c;
}

/* One kernel, no workspace. */
static void nothing_else_is_launched(void **state) {
    const struct fixture *fixture = *state;
    const struct norm_backward_case c = gated_case(fixture);
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &c.desc, &plan), CLNORM_SUCCESS);
    assert_int_equal(clnorm_plan_kernel_count(plan), 1);
    assert_int_equal(clnorm_plan_workspace_size(plan), 0);
    clnorm_plan_destroy(plan);
}

/* dweight and dbias have the same bits with dx over x or dy, and dz over z. */
static void outputs_may_lie_over_inputs(void **state) {
    const struct fixture *fixture = *state;
    static const enum dx_place places[] = {DX_OVER_X, DX_OVER_DY, DX_APART};
    struct norm_backward_case c = gated_case(fixture);
    struct norm_backward_run apart = norm_backward_run_make(&c);
    assert_int_equal(norm_backward_run_go(fixture, &apart), CLNORM_SUCCESS);
    assert_true(norm_backward_run_receive(fixture, &apart) && norm_backward_run_check(&apart));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        c.dx_place = places[i];
        c.dz_over_z = i > 0;
        struct norm_backward_run run = norm_backward_run_make(&c);
        assert_int_equal(norm_backward_run_go(fixture, &run), CLNORM_SUCCESS);
        assert_true(norm_backward_run_receive(fixture, &run) && norm_backward_run_check(&run));
        assert_true(tensor_equals(&run.dweight, &apart.dweight) && tensor_equals(&run.dbias, &apart.dbias));
        norm_backward_run_free(&run);
    }
    norm_backward_run_free(&apart);
}

/* Two dense tensors, whose surroundings may differ. */
static bool same_elements(const struct tensor *tensor, const struct tensor *other) {
    const size_t bytes = (size_t)(tensor->rows * tensor->cols) * clnorm_dtype_size(tensor->dtype);
    return tensor->stride == tensor->cols && other->stride == other->cols &&
           memcmp(tensor_elements(tensor), tensor_elements(other), bytes) == 0;
}

/* An out-of-order queue may run both parts of a launch at once: those that overwrite x or dy wait for those that read. */
static void order_does_not_change_bits(void **state) {
    enum { TIMES = 100, SLOW_TIMES = 2 };
    const struct fixture *fixture = *state;
    const int times = fixture_is_slow(fixture) ? SLOW_TIMES : TIMES;
    const cl_command_queue queue = fixture_queue(fixture, fixture_out_of_order(fixture));
    static const enum dx_place places[] = {DX_OVER_X, DX_OVER_DY};
    struct norm_backward_case c = gated_case(fixture);
    struct norm_backward_run apart = norm_backward_run_make(&c);
    assert_int_equal(norm_backward_run_go(fixture, &apart), CLNORM_SUCCESS);
    assert_true(norm_backward_run_receive(fixture, &apart) && norm_backward_run_check(&apart));
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &c.desc, &plan), CLNORM_SUCCESS);
    c.dz_over_z = true;
    for (int i = 0; i < times; i++) {
        c.dx_place = places[i % 2];
        struct norm_backward_run run = norm_backward_run_make(&c);
        norm_backward_run_upload(fixture, &run);
        const clnorm_args args = norm_backward_run_args(&run);
        assert_int_equal(clnorm_plan_enqueue(plan, queue, &args, 0, NULL, NULL), CLNORM_SUCCESS);
        assert_int_equal(clFinish(queue), CL_SUCCESS);
        assert_true(norm_backward_run_receive(fixture, &run));
        assert_true(same_elements(&run.dx, &apart.dx) && same_elements(&run.dz, &apart.dz));
        assert_true(same_elements(&run.dweight, &apart.dweight) && same_elements(&run.dbias, &apart.dbias));
        norm_backward_run_free(&run);
    }
    clnorm_plan_destroy(plan);
    norm_backward_run_free(&apart);
    clReleaseCommandQueue(queue);
}

/* A sub-buffer over x is a cl_mem of its own, but the same memory: dx lies over x. */
static void sub_buffers_are_found(void **state) {
    const struct fixture *fixture = *state;
    const struct norm_backward_case c = gated_case(fixture);
    struct norm_backward_run run = norm_backward_run_make(&c);
    assert_int_equal(norm_backward_run_go(fixture, &run), CLNORM_SUCCESS);
    assert_true(norm_backward_run_receive(fixture, &run) && norm_backward_run_check(&run));

    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &c.desc, &plan), CLNORM_SUCCESS);
    clnorm_args args = norm_backward_run_args(&run);
    const cl_buffer_region all = {0, run.x.size};
    cl_int code = CL_SUCCESS;
    args.dx = args.x;
    args.dx.mem = clCreateSubBuffer(args.x.mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &all, &code);
    assert_int_equal(code, CL_SUCCESS);
    float again[COLS];
    assert_int_equal(clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL), CLNORM_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(fixture->queue, args.dweight.mem, CL_TRUE, args.dweight.offset, sizeof again,
                                         again, 0, NULL, NULL),
                     CL_SUCCESS);
    assert_memory_equal(again, tensor_elements(&run.dweight), sizeof again);
    clReleaseMemObject(args.dx.mem);
    clnorm_plan_destroy(plan);
    norm_backward_run_free(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_output_is_right),       cmocka_unit_test(nothing_else_is_launched),
        cmocka_unit_test(outputs_may_lie_over_inputs), cmocka_unit_test(order_does_not_change_bits),
        cmocka_unit_test(sub_buffers_are_found),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
