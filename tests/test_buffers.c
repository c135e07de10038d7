/* Buffers of an enqueue: their flags, and overlaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/driver_defects.h"
#include "fixture.h"
#include "refusal.h"

enum { ROWS = 6, COLS = 40, SIZE = 1 << 14 }; /* SIZE: bytes of every buffer, more than any tensor here */

static cl_mem buffer_of(const struct fixture *fixture, cl_mem_flags flags) {
    return fixture_buffer(fixture, flags, SIZE);
}

static clnorm_plan *forward_of(const struct fixture *fixture, clnorm_dtype y_dtype, uint64_t x_stride, uint64_t y_stride) {
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    clnorm_plan *plan = NULL;
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.x.stride = x_stride;
    desc.y.dtype = y_dtype;
    desc.y.stride = y_stride;
    if (clnorm_norm_forward_plan_create(fixture->context, &desc, &plan) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    return plan;
}

/* ----------------------------------------------------------------------------------------------------------- flags */

static void try_flags(const struct fixture *fixture, clnorm_plan *plan, cl_mem_flags x, cl_mem_flags y, const char *says) {
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = buffer_of(fixture, x);
    args.y.mem = buffer_of(fixture, y);
    const clnorm_status status = clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL);
    assert_int_equal(status, says ? CLNORM_INVALID_BUFFER : CLNORM_SUCCESS);
    if (says)
        assert_detail(says);
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    clReleaseMemObject(args.x.mem);
    clReleaseMemObject(args.y.mem);
}

static void flags_must_allow_the_kernels_accesses(void **state) {
    const struct fixture *fixture = *state;
    clnorm_plan *plan = forward_of(fixture, CLNORM_DTYPE_NONE, 0, 0);
    try_flags(fixture, plan, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, NULL);
    try_flags(fixture, plan, CL_MEM_READ_WRITE, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, NULL);
    try_flags(fixture, plan, CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE, "args.x.mem has CL_MEM_WRITE_ONLY");
    try_flags(fixture, plan, CL_MEM_READ_ONLY, CL_MEM_READ_ONLY, "args.y.mem has CL_MEM_READ_ONLY");
    clnorm_plan_destroy(plan);
}

/* An accumulated output is read too, so that CL_MEM_WRITE_ONLY is refused. */
static void outputs_that_are_read_are_readable(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.dweight.dtype = CLNORM_F32;
    for (desc.accumulate = 0; desc.accumulate < 2; desc.accumulate++) {
        clnorm_plan *plan = NULL;
        assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x.mem = args.dy.mem = buffer_of(fixture, CL_MEM_READ_ONLY);
        args.dweight.mem = buffer_of(fixture, CL_MEM_WRITE_ONLY);
        args.workspace.mem = buffer_of(fixture, CL_MEM_READ_WRITE);
        const clnorm_status status = clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL);
        assert_int_equal(status, desc.accumulate ? CLNORM_INVALID_BUFFER : CLNORM_SUCCESS);
        if (desc.accumulate)
            assert_detail("args.dweight.mem has CL_MEM_WRITE_ONLY");
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
        clReleaseMemObject(args.x.mem);
        clReleaseMemObject(args.dweight.mem);
        clReleaseMemObject(args.workspace.mem);
        clnorm_plan_destroy(plan);
    }
}

/* Whether a tensor of requirements is read and written. */
static bool is_read_and_written(const clnorm_requirements *needs, const char *name) {
    for (uint32_t i = 0; i < needs->tensor_count; i++)
        if (strcmp(needs->tensors[i].name, name) == 0)
            return needs->tensors[i].is_input && needs->tensors[i].is_output;
    return false;
}

/* Whatever the config, kernels may read measured scales, and statistics of group norm and of norms in tiles. */
static void scales_and_statistics_are_read(void **state) {
    const struct fixture *fixture = *state;
    const clnorm_tensor measured = {.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_TENSOR};
    clnorm_requirements needs = CLNORM_REQUIREMENTS_INIT;
    clnorm_quantize_desc quantize = CLNORM_QUANTIZE_DESC_INIT;
    quantize.rows = ROWS;
    quantize.cols = COLS;
    quantize.q = measured;
    if (!cln_driver_defect(&fixture->device, CLN_DEFECT_QUANTIZE)) {
        assert_int_equal(clnorm_quantize_validate(fixture->context, &quantize, &needs), CLNORM_SUCCESS);
        assert_true(is_read_and_written(&needs, "scale"));
    }
    clnorm_norm_desc norm = CLNORM_NORM_DESC_INIT;
    norm.norm = CLNORM_RMS_NORM;
    norm.rows = ROWS;
    norm.cols = 64;
    norm.y = measured;
    norm.save_rstd = 1;
    assert_int_equal(clnorm_norm_forward_validate(fixture->context, &norm, &needs), CLNORM_SUCCESS);
    assert_true(is_read_and_written(&needs, "y_scale"));
    assert_false(is_read_and_written(&needs, "rstd"));
    norm.x = (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .scaling = CLNORM_SCALING_GROUP, .scale_group = 16};
    assert_int_equal(clnorm_norm_forward_validate(fixture->context, &norm, &needs), CLNORM_SUCCESS);
    assert_true(is_read_and_written(&needs, "rstd"));
    clnorm_group_norm_desc group = CLNORM_GROUP_NORM_DESC_INIT;
    group.rows = ROWS;
    group.cols = COLS;
    group.groups = 4;
    group.spatial = 5;
    group.save_mean = group.save_rstd = 1;
    assert_int_equal(clnorm_group_norm_validate(fixture->context, &group, &needs), CLNORM_SUCCESS);
    assert_true(is_read_and_written(&needs, "mean") && is_read_and_written(&needs, "rstd"));
}

/* --------------------------------------------------------------------------------------------------------- overlaps */

static void offsets_that_overlap_are_refused(void **state) {
    const struct fixture *fixture = *state;
    static const struct {
        clnorm_dtype y_dtype;
        uint64_t x_stride, y_stride; /* elements */
        int x, y;                    /* bytes */
        bool refused;
    } cases[] = {
        {CLNORM_F32, 0, 0, 0, 0, false},
        {CLNORM_F32, 0, 0, 0, 4, true},
        {CLNORM_F32, 0, 0, 4, 0, true},
        {CLNORM_F32, 0, 0, 0, 4 * ROWS * COLS - 4, true},
        {CLNORM_F32, 0, 0, 0, 4 * ROWS * COLS, false},
        {CLNORM_F32, 0, 0, 4 * ROWS * COLS, 0, false},
        {CLNORM_F32, 0, 0, 4 * ROWS * COLS - 4, 0, true},
        {CLNORM_F32, 100, 100, 0, 4 * COLS, false}, /* y is beside x in the same rows */
        {CLNORM_F32, 100, 100, 0, 4 * COLS - 4, true},
        {CLNORM_F32, 100, 100, 0, 4 * 60, false},
        {CLNORM_F32, 100, 100, 0, 4 * 61, true}, /* y ends in x's next row */
        {CLNORM_F32, 100, 100, 4 * 60, 0, false},
        {CLNORM_F32, 100, 100, 4 * 61, 0, true},
        {CLNORM_F32, 100, 100, 0, 4 * (500 + 39), true}, /* the last row */
        {CLNORM_F32, 100, 100, 0, 4 * (500 + 40), false},
        {CLNORM_F32, 100, 100, 0, 4 * (500 + 61), false}, /* past it there is no next row */
        {CLNORM_F32, 100, 0, 0, 4 * (500 + 39), true},
        {CLNORM_F32, 100, 0, 0, 4 * (500 + 40), false},
        {CLNORM_F32, 0, 300, 4 * 40, 0, false},
        {CLNORM_F32, 0, 300, 4 * 300, 0, true},
        {CLNORM_F32, 0, 300, 4 * 361, 0, true},        /* x's last element is the first of y's third row */
        {CLNORM_F32, 0, 300, 4 * 340, 4 * 300, false}, /* x is between rows of y */
        {CLNORM_F32, 0, 300, 4 * 40, 4 * 20, true},
        {CLNORM_F32, 0, 300, 4 * 60, 4 * 20, false},
        {CLNORM_F32, 0, 300, 4 * 81, 4 * 20, true},
        {CLNORM_F16, 0, 0, 0, 4 * ROWS * COLS - 2, true},
        {CLNORM_F16, 0, 0, 0, 4 * ROWS * COLS, false},
    };
    const cl_mem mem = buffer_of(fixture, CL_MEM_READ_WRITE);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clnorm_plan *plan = forward_of(fixture, cases[i].y_dtype, cases[i].x_stride, cases[i].y_stride);
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x = (clnorm_buffer){mem, (uint64_t)cases[i].x};
        args.y = (clnorm_buffer){mem, (uint64_t)cases[i].y};
        const clnorm_status status = clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL);
        if (status != (cases[i].refused ? CLNORM_INVALID_BUFFER : CLNORM_SUCCESS))
            fail_msg("case %zu: %s, '%s'", i, clnorm_status_text(status), clnorm_error_detail());
        if (status)
            assert_detail("overlaps args.x");
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
        clnorm_plan_destroy(plan);
    }
    clReleaseMemObject(mem);
}

/* Tensors of 8 bits can have a single byte in common. */
static void one_common_byte_is_refused(void **state) {
    const struct fixture *fixture = *state;
    enum { X = 1024, BYTES = ROWS * COLS };
    static const struct {
        uint64_t stride, y;
        bool refused;
    } cases[] = {{0, X - BYTES, false}, {0, X - BYTES + 1, true}, {0, X + BYTES - 1, true}, {0, X + BYTES, false},
                 {100, X + 39, true},   {100, X + 40, false},     {100, X + 60, false},     {100, X + 61, true},
                 {100, X + 539, true},  {100, X + 540, false},    {100, X - 39, true},      {100, X - 40, false},
                 {100, X - 539, true},  {100, X - 540, false}};
    const cl_mem mem = buffer_of(fixture, CL_MEM_READ_WRITE), scale = buffer_of(fixture, CL_MEM_READ_WRITE);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
        clnorm_plan *plan = NULL;
        desc.rows = ROWS;
        desc.cols = COLS;
        desc.x = desc.y =
            (clnorm_tensor){.dtype = CLNORM_F8_E4M3, .stride = cases[i].stride, .scaling = CLNORM_SCALING_TENSOR};
        desc.y.scale = 0.5;
        assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x = (clnorm_buffer){mem, X};
        args.x_scale.mem = scale;
        args.y = (clnorm_buffer){mem, cases[i].y};
        const clnorm_status status = clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL);
        if (status != (cases[i].refused ? CLNORM_INVALID_BUFFER : CLNORM_SUCCESS))
            fail_msg("case %zu: %s, '%s'", i, clnorm_status_text(status), clnorm_error_detail());
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
        clnorm_plan_destroy(plan);
    }
    clReleaseMemObject(mem);
    clReleaseMemObject(scale);
}

/* A backward that computes y again writes y and dx, neither of which may replace the other or x's y. */
static void y_of_a_backward_has_its_own_place(void **state) {
    const struct fixture *fixture = *state;
    const cl_mem mem[] = {buffer_of(fixture, CL_MEM_READ_WRITE), buffer_of(fixture, CL_MEM_READ_WRITE),
                          buffer_of(fixture, CL_MEM_READ_WRITE), buffer_of(fixture, CL_MEM_READ_WRITE)};
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    clnorm_plan *plan = NULL;
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.dx.dtype = desc.y.dtype = CLNORM_F32;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
    static const struct {
        int dx, y; /* indices into mem; 0: x, 1: dy */
        const char *says;
    } cases[] = {{0, 2, NULL}, {1, 2, NULL}, {2, 2, "overlaps args."}, {2, 0, "overlaps args.x"}, {0, 0, "overlaps args."}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x.mem = mem[0];
        args.dy.mem = mem[1];
        args.dx.mem = mem[cases[i].dx];
        args.y.mem = mem[cases[i].y];
        args.workspace.mem = clnorm_plan_workspace_size(plan) ? mem[3] : NULL;
        assert_int_equal(clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL),
                         cases[i].says ? CLNORM_INVALID_BUFFER : CLNORM_SUCCESS);
        if (cases[i].says)
            assert_detail(cases[i].says);
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    }
    clnorm_plan_destroy(plan);
    for (size_t i = 0; i < sizeof mem / sizeof *mem; i++)
        clReleaseMemObject(mem[i]);
}

/* Sub-buffers of one buffer are compared by their place in it. */
static void parts_of_a_buffer_overlap(void **state) {
    const struct fixture *fixture = *state;
    enum { PART = 4096, OF_X = 4096 }; /* bytes: multiples of any device's alignment */
    const cl_mem mem = buffer_of(fixture, CL_MEM_READ_WRITE);
    clnorm_plan *plan = forward_of(fixture, CLNORM_DTYPE_NONE, 0, 0);
    static const struct {
        size_t y;
        uint64_t offset;
        bool refused;
    } cases[] = {{OF_X, 0, false},
                 {OF_X, 4, true},
                 {OF_X + PART, 0, false},
                 {0, PART - 4 * ROWS * COLS, false},
                 {0, PART - 4 * ROWS * COLS + 4, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cl_int code;
        const cl_buffer_region of_x = {OF_X, PART}, of_y = {cases[i].y, 2 * (size_t)PART};
        clnorm_args args = CLNORM_ARGS_INIT;
        args.x.mem = clCreateSubBuffer(mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &of_x, &code);
        assert_int_equal(code, CL_SUCCESS);
        args.y.mem = clCreateSubBuffer(mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &of_y, &code);
        assert_int_equal(code, CL_SUCCESS);
        args.y.offset = cases[i].offset;
        const clnorm_status status = clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL);
        if (status != (cases[i].refused ? CLNORM_INVALID_BUFFER : CLNORM_SUCCESS))
            fail_msg("case %zu: %s, '%s'", i, clnorm_status_text(status), clnorm_error_detail());
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
        clReleaseMemObject(args.x.mem);
        clReleaseMemObject(args.y.mem);
    }
    clnorm_plan_destroy(plan);
    clReleaseMemObject(mem);
}

/* A workspace in the caller's memory begins at a multiple of its alignment. */
static void workspaces_are_aligned(void **state) {
    const struct fixture *fixture = *state;
    enum { ALIGNMENT = 64 };
    char *const memory = aligned_alloc(4096, SIZE + 4096);
    assert_non_null(memory);
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    clnorm_plan *plan = NULL;
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.dweight.dtype = CLNORM_F32;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
    assert_in_range(clnorm_plan_workspace_size(plan), 1, SIZE);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = args.dy.mem = buffer_of(fixture, CL_MEM_READ_WRITE);
    args.dweight.mem = buffer_of(fixture, CL_MEM_READ_WRITE);
    for (size_t at = 0; at <= ALIGNMENT; at += 8) {
        cl_int code;
        args.workspace.mem = clCreateBuffer(fixture->cl, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, SIZE, memory + at, &code);
        assert_int_equal(code, CL_SUCCESS);
        assert_int_equal(clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL),
                         at % ALIGNMENT ? CLNORM_INVALID_BUFFER : CLNORM_SUCCESS);
        if (at % ALIGNMENT)
            assert_detail("args.workspace begins at the address");
        assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
        clReleaseMemObject(args.workspace.mem);
    }
    clReleaseMemObject(args.x.mem);
    clReleaseMemObject(args.dweight.mem);
    clnorm_plan_destroy(plan);
    free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_must_allow_the_kernels_accesses),
        cmocka_unit_test(outputs_that_are_read_are_readable),
        cmocka_unit_test(scales_and_statistics_are_read),
        cmocka_unit_test(offsets_that_overlap_are_refused),
        cmocka_unit_test(one_common_byte_is_refused),
        cmocka_unit_test(y_of_a_backward_has_its_own_place),
        cmocka_unit_test(parts_of_a_buffer_overlap),
        cmocka_unit_test(workspaces_are_aligned),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
