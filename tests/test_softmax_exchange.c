/* Softmax and its gradient in one launch whose work-groups exchange the totals of chunks: the results are those of the
 * reference, and have the same bits where every message counts as missing, where outputs lie over inputs, and at any
 * address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/context.h"
#include "config/config.h"
#include "knob.h"
#include "made_up_devices.h"
#include "operation/operations.h"
#include "plan/launch_number.h"
#include "refusal.h"
#include "rows_case.h"

struct exchange_case {
    uint64_t rows, cols, gap; /* gap: between rows */
    clnorm_dtype dtype;
    uint32_t vec, lanes, chunks;
};

/* Even pieces; a last chunk that is short and one that is empty, and more chunks than lanes; more rows than work-groups;
 * rows that begin anywhere within a vector, on GPUs; one lane. */
static const struct exchange_case cases[] = {
    {3, 512, 0, CLNORM_F32, 4, 16, 4},  {5, 1000, 24, CLNORM_BF16, 4, 4, 24}, {300, 264, 0, CLNORM_F16, 8, 2, 11},
    {9, 8197, 0, CLNORM_F32, 4, 64, 8}, {7, 200, 8, CLNORM_BF16, 4, 1, 5},
};
enum { CASES = sizeof cases / sizeof *cases };

static struct rows_case case_of(size_t i, enum rows_operation operation, enum cln_row_split row_split) {
    const struct exchange_case *const e = &cases[i];
    struct rows_case c = rows_case_of(operation, e->rows, e->cols);
    c.dtype[ROWS_FIRST] = e->dtype;
    for (int tensor = 0; tensor < ROWS_TENSORS; tensor++)
        c.gap[tensor] = e->gap;
    c.config = (struct cln_config){.vec = e->vec, .lanes = e->lanes, .chunks = e->chunks, .row_split = row_split};
    c.seed = i;
    return c;
}

/* The workspace has 32 bytes for tickets, then a message of 16 bytes for each piece. */
static void check_workspace(const clnorm_plan *plan, const struct rows_case *c) {
    assert_int_equal(clnorm_plan_workspace_size(plan), 32 + 16 * c->rows * c->config.chunks);
}

/* A device may lack a config: vectors that do not divide the rows, or several lanes. */
static bool is_taken(const struct fixture *fixture, const struct rows_case *c) {
    clnorm_plan *plan = NULL;
    const clnorm_status status = rows_case_plan(fixture->context, c, &plan);
    if (!status)
        check_workspace(plan, c);
    clnorm_plan_destroy(plan);
    assert_true(!status || status == CLNORM_INVALID_VALUE);
    return !status;
}

/* The row split of a case that is compared with the one that does not wait. */
static enum cln_row_split compared(const struct fixture *fixture, size_t i, enum rows_operation operation) {
    const struct rows_case c = case_of(i, operation, CLN_ROW_SPLIT_EXCHANGE);
    return is_taken(fixture, &c) ? CLN_ROW_SPLIT_EXCHANGE : CLN_ROW_SPLIT_NO_WAIT;
}

static void compare(const struct fixture *fixture, size_t i, enum rows_operation operation) {
    const struct rows_case alone = case_of(i, operation, CLN_ROW_SPLIT_NO_WAIT);
    struct rows_case exchange = case_of(i, operation, compared(fixture, i, operation));
    struct rows_case in_place = exchange, shifted = exchange, hasty = alone;
    const size_t size = (size_t)(alone.rows * alone.cols) * clnorm_dtype_size(alone.dtype[ROWS_FIRST]);
    char *const expected = malloc(size), *const bytes = malloc(size);
    assert_true(expected && bytes);
    assert_true(rows_case_output(fixture, &alone, expected));
    in_place.in_place = hasty.in_place = true;
    in_place.place = hasty.place = operation == ROWS_SOFTMAX_BACKWARD && i % 2 ? ROWS_DY : ROWS_FIRST;
    for (int tensor = 0; tensor < ROWS_TENSORS; tensor++)
        shifted.shift[tensor] = 1;
    const struct rows_case *const others[] = {&exchange, &in_place, &shifted, &hasty};
    const size_t count = exchange.config.row_split == CLN_ROW_SPLIT_NO_WAIT ? 3 : 4; /* hasty is in_place then */
    for (size_t k = 0; k < count; k++) {
        assert_true(rows_case_output(fixture, others[k], bytes));
        assert_memory_equal(bytes, expected, size);
    }
    free(expected);
    free(bytes);
}

/* Fewer on simulators. */
static size_t count_cases(const struct fixture *fixture) {
    return fixture_is_slow(fixture) ? 2 : CASES;
}

static void bits_are_those_of_any_way(void **state) {
    unsigned taken = 0;
    for (size_t i = 0; i < count_cases(*state); i++)
        for (int j = 0; j < 2; j++) {
            const enum rows_operation operation = j ? ROWS_SOFTMAX_BACKWARD : ROWS_SOFTMAX;
            const struct rows_case c = case_of(i, operation, CLN_ROW_SPLIT_NO_WAIT);
            if (!is_taken(*state, &c))
                continue;
            compare(*state, i, operation);
            taken++;
        }
    /* Half of them: drivers refuse idle lanes, and GPUs narrow vectors at odd strides. */
    assert_true(taken >= count_cases(*state));
}

/* first: x or y, which is written before the launch. contents: of each byte of the workspace; -1: those of before. */
static void launch(const struct fixture *fixture, clnorm_plan *plan, const clnorm_args *args, const float *first,
                   size_t size, int contents, float *output) {
    const clnorm_buffer *const input = args->dx.mem ? &args->y : &args->x, *const out = args->dx.mem ? &args->dx : &args->y;
    cl_int code = clEnqueueWriteBuffer(fixture->queue, input->mem, CL_TRUE, 0, size, first, 0, NULL, NULL);
    const cl_uchar byte = (cl_uchar)contents;
    if (!code && contents >= 0)
        code = clEnqueueFillBuffer(fixture->queue, args->workspace.mem, &byte, 1, 0,
                                   (size_t)clnorm_plan_workspace_size(plan), 0, NULL, NULL);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(clnorm_plan_enqueue(plan, fixture->queue, args, 0, NULL, NULL), CLNORM_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(fixture->queue, out->mem, CL_TRUE, 0, size, output, 0, NULL, NULL), CL_SUCCESS);
}

static clnorm_buffer buffer_of(const struct fixture *fixture, size_t size) {
    cl_int code;
    const clnorm_buffer buffer = {clCreateBuffer(fixture->cl, CL_MEM_READ_WRITE, size, NULL, &code), 0};
    assert_int_equal(code, CL_SUCCESS);
    return buffer;
}

/* Messages of an earlier launch and other contents of the workspace are no messages, and a counter of tickets may begin
 * anywhere. */
static void only_messages_of_the_launch_count(void **state) {
    enum { ROWS = 3, COLS = 512, COUNT = ROWS * COLS };
    static float first[2][COUNT], expected[COUNT], output[COUNT];
    const struct fixture *const fixture = *state;
    for (int i = 0; i < COUNT; i++) {
        first[0][i] = (float)(i % 7) / 8;
        first[1][i] = (float)(i % 11) / 4 - 1;
    }
    for (int backward = 0; backward < 2; backward++) {
        const struct rows_case c = case_of(0, backward ? ROWS_SOFTMAX_BACKWARD : ROWS_SOFTMAX, CLN_ROW_SPLIT_NO_WAIT);
        clnorm_plan *plan = NULL;
        assert_int_equal(rows_case_plan(fixture->context, &c, &plan), CLNORM_SUCCESS);
        clnorm_args args = CLNORM_ARGS_INIT;
        clnorm_buffer *const used[] = {&args.y, backward ? &args.dy : &args.x, backward ? &args.dx : NULL};
        for (int k = 0; k < 2 + backward; k++)
            *used[k] = buffer_of(fixture, sizeof output);
        args.workspace = buffer_of(fixture, (size_t)clnorm_plan_workspace_size(plan));
        assert_int_equal(
            clEnqueueWriteBuffer(fixture->queue, used[1]->mem, CL_TRUE, 0, sizeof first[0], first[0], 0, NULL, NULL),
            CL_SUCCESS);
        launch(fixture, plan, &args, first[1], sizeof output, 0, expected);
        launch(fixture, plan, &args, first[0], sizeof output, 0xff, output);
        assert_memory_not_equal(output, expected, sizeof output);
        launch(fixture, plan, &args, first[1], sizeof output, -1, output);
        assert_memory_equal(output, expected, sizeof output);
        for (int k = 0; k < 2 + backward; k++)
            clReleaseMemObject(used[k]->mem);
        clReleaseMemObject(args.workspace.mem);
        clnorm_plan_destroy(plan);
    }
}

/* A work-group that posts the totals of others, as one is missing, lets those be that have arrived: here a wrong one, which
 * a right result would not show. Not on GPUs, where its own work-group posts the right one over it in time. */
static void totals_that_have_arrived_count(void **state) {
    enum { ROWS = 3, COLS = 512, COUNT = ROWS * COLS, HEADER = 2, MISSING = 2, WRONG = 3 };
    static float x[COUNT], expected[COUNT], output[COUNT];
    const struct fixture *const fixture = *state;
    if (fixture->device.kind != CLNORM_DEVICE_CPU)
        skip();
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i % 7) / 8;
    const struct rows_case c = case_of(0, ROWS_SOFTMAX, CLN_ROW_SPLIT_NO_WAIT);
    clnorm_plan *plan = NULL;
    assert_int_equal(rows_case_plan(fixture->context, &c, &plan), CLNORM_SUCCESS);
    const size_t workspace = (size_t)clnorm_plan_workspace_size(plan);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = buffer_of(fixture, sizeof x);
    args.y = buffer_of(fixture, sizeof x);
    args.workspace = buffer_of(fixture, workspace);
    cl_uint4 *const messages = malloc(workspace);
    assert_non_null(messages);
    const uint64_t number = cln_launch_numbers_from(1000);
    cln_launch_numbers_from(number);
    launch(fixture, plan, &args, x, sizeof x, 0, expected);
    assert_int_equal(
        clEnqueueReadBuffer(fixture->queue, args.workspace.mem, CL_TRUE, 0, workspace, messages, 0, NULL, NULL),
        CL_SUCCESS);
    memset(&messages[HEADER + MISSING], 0, sizeof *messages); /* of the first row, as is the next */
    for (int word = 2; word < 4; word++)
        messages[HEADER + WRONG].s[word] ^= 0x01000000U; /* a total, and its seal */
    assert_int_equal(
        clEnqueueWriteBuffer(fixture->queue, args.workspace.mem, CL_TRUE, 0, workspace, messages, 0, NULL, NULL),
        CL_SUCCESS);
    cln_launch_numbers_from(number);
    launch(fixture, plan, &args, x, sizeof x, -1, output);
    assert_memory_not_equal(output, expected, COLS * sizeof *x);
    assert_memory_equal(output + COLS, expected + COLS, (COUNT - COLS) * sizeof *x);
    free(messages);
    clReleaseMemObject(args.x.mem);
    clReleaseMemObject(args.y.mem);
    clReleaseMemObject(args.workspace.mem);
    clnorm_plan_destroy(plan);
}

/* The library is told that a device is a GPU without memory fences. */
static void gpus_without_fences_are_refused(void **state) {
    const struct fixture *const fixture = *state;
    clnorm_device_info *const device = &fixture->context->device;
    const clnorm_device_info kept = *device;
    device->kind = CLNORM_DEVICE_GPU;
    device->family = CLNORM_PLATFORM_OTHER;
    device->device_fences = false;
    struct rows_case c = case_of(0, ROWS_SOFTMAX, CLN_ROW_SPLIT_EXCHANGE);
    c.config.isa = CLN_ISA_PORTABLE;
    c.config.reduce = CLN_REDUCE_TREE;
    clnorm_plan *plan = NULL;
    const clnorm_status status = rows_case_plan(fixture->context, &c, &plan);
    *device = kept;
    assert_int_equal(status, CLNORM_INVALID_VALUE);
    assert_detail("config.row_split");
    assert_detail("fences");
    assert_null(plan);
}

/* Masked entries and rows, infinities and NaNs. */
static void special_inputs(void **state) {
    unsigned taken = 0;
    for (size_t i = 1; i < count_cases(*state); i += 3)
        for (int j = 0; j < 4; j++) {
            struct rows_case c = case_of(i, ROWS_SOFTMAX, j / 2 ? CLN_ROW_SPLIT_NO_WAIT : CLN_ROW_SPLIT_EXCHANGE);
            c.masked = j % 2;
            c.special = !c.masked;
            if (!is_taken(*state, &c))
                continue;
            assert_true(rows_case_passes(*state, &c));
            taken++;
        }
    assert_true(taken >= 2);
}

static void impossible_configs_are_refused(void **state) {
    static const struct {
        struct cln_config config;
        clnorm_dtype dtype;
        const char *name, *value;
    } impossible[] = {
        {{.chunks = 1}, CLNORM_F32, "config.row_split", "exchange"},
        {{.chunks = 4}, CLNORM_F64, "config.row_split", "exchange"},
        {{.chunks = 4, .keep = CLN_KEEP_REREAD}, CLNORM_F32, "config.keep", "reread"},
        {{.chunks = 4, .iterations = 2}, CLNORM_F32, "config.iterations", "2"},
        {{.chunks = 4, .segments = 2}, CLNORM_F32, "config.chunks", "4"},
        {{.chunks = 257}, CLNORM_F32, "config.chunks", "257"},
    };
    const struct fixture *const fixture = *state;
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++)
        for (int j = 0; j < 2; j++) {
            struct rows_case c = rows_case_of(j ? ROWS_SOFTMAX_BACKWARD : ROWS_SOFTMAX, 4, 1024);
            clnorm_plan *plan = NULL;
            if (impossible[i].dtype == CLNORM_F64 && !fixture->device.fp64)
                continue;
            c.dtype[ROWS_FIRST] = impossible[i].dtype;
            c.config = impossible[i].config;
            c.config.vec = 4;
            c.config.lanes = 8;
            c.config.row_split = CLN_ROW_SPLIT_EXCHANGE;
            assert_int_equal(rows_case_plan(fixture->context, &c, &plan), CLNORM_INVALID_VALUE);
            assert_non_null(strstr(clnorm_error_detail(), impossible[i].name));
            assert_non_null(strstr(clnorm_error_detail(), impossible[i].value));
        }
}

/* Of a row with so many chunks that a work-group has no local memory for all of their totals. */
static void totals_fit_local_memory(void **state) {
    static const struct cln_config forced = {
        .vec = 4, .lanes = 128, .chunks = 40000, .keep = CLN_KEEP_REGISTERS, .row_split = CLN_ROW_SPLIT_NO_WAIT};
    const clnorm_device_info info = made_up_device(MADE_UP_H200);
    clnorm_softmax_backward_desc desc = CLNORM_SOFTMAX_BACKWARD_DESC_INIT;
    struct cln_config config;
    (void)state;
    desc.rows = 4;
    desc.cols = 1 << 20;
    desc.y.dtype = desc.dy.dtype = desc.dx.dtype = CLNORM_F32;
    const struct cln_workload work = cln_softmax_backward.workload(&cln_softmax_backward, &desc);
    assert_int_equal(cln_config_choose(&info, &work, &forced, &config), CLNORM_INVALID_VALUE);
    assert_non_null(strstr(clnorm_error_detail(), "chunks is 40000: expected fewer"));
}

static struct cln_config chosen(size_t device, uint64_t rows, uint64_t cols, clnorm_dtype dtype) {
    const clnorm_device_info info = made_up_device(device);
    clnorm_softmax_backward_desc desc = CLNORM_SOFTMAX_BACKWARD_DESC_INIT;
    static const struct cln_config automatic = {0};
    struct cln_config config;
    desc.rows = rows;
    desc.cols = cols;
    desc.y.dtype = desc.dy.dtype = desc.dx.dtype = dtype;
    desc.y.stride = desc.dy.stride = desc.dx.stride = cols;
    const struct cln_workload work = cln_softmax_backward.workload(&cln_softmax_backward, &desc);
    assert_int_equal(cln_config_choose(&info, &work, &automatic, &config), CLNORM_SUCCESS);
    return config;
}

/* Rows that one work-group cannot hold are exchanged where their inputs are more than the cache holds: on NVIDIA's GPUs
 * from compute capability 8.0 on, and not in f64. */
static void wide_rows_are_exchanged(void **state) {
    (void)state;
    const struct cln_config wide = chosen(MADE_UP_H200, 256, 131072, CLNORM_F32);
    assert_int_equal(wide.row_split, CLN_ROW_SPLIT_EXCHANGE);
    assert_int_equal(wide.keep, CLN_KEEP_REGISTERS);
    assert_int_equal(wide.lanes, 128);
    assert_int_equal(wide.chunks, 32); /* a lane has 8 vectors of y and of dy */
    assert_int_equal(chosen(MADE_UP_H200, 4096, 4096, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES);
    assert_int_equal(chosen(MADE_UP_H200, 8, 131072, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES);
    assert_int_equal(chosen(MADE_UP_H200, 256, 131072, CLNORM_F64).row_split, CLN_ROW_SPLIT_TWO_PASSES);
    assert_int_equal(chosen(MADE_UP_H200, 256, 1 << 20, CLNORM_F32).row_split, CLN_ROW_SPLIT_EXCHANGE);
    assert_int_equal(chosen(MADE_UP_H200, 256, 1 << 21, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES); /* 512 pieces */
    assert_int_equal(chosen(MADE_UP_RTX_4090, 1, 65536, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES);
    assert_int_equal(chosen(MADE_UP_T4, 256, 131072, CLNORM_F32).row_split, CLN_ROW_SPLIT_TWO_PASSES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_any_way),
        cmocka_unit_test(only_messages_of_the_launch_count),
        cmocka_unit_test(totals_that_have_arrived_count),
        cmocka_unit_test(gpus_without_fences_are_refused),
        cmocka_unit_test(special_inputs),
        cmocka_unit_test(impossible_configs_are_refused),
        cmocka_unit_test(totals_fit_local_memory),
        cmocka_unit_test(wide_rows_are_exchanged),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
