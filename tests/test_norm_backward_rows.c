/* dweight and dbias over many rows: a chain of f32 additions is never so long that it loses a term of ordinary size. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_backward_case.h"
#include "plan_run.h"

/* The longest chain of rows, as in src/operation/norm_backward_layout.c and cl/norm/norm_backward_columns.h. */
enum { MOST_ADDED = 4096 };

static const uint16_t one = 0x3f80, two_to_the_24 = 0x4b80; /* in bf16 */

/* RMS norm of rows of one column, each a 1 with an rstd of 1: dweight and dbias are both the sum of dy. */
static clnorm_norm_backward_desc ones_desc(uint64_t rows) {
    clnorm_norm_backward_desc desc = norm_backward_desc_of(CLNORM_RMS_NORM, rows, 1);
    desc.x.dtype = CLNORM_BF16;
    desc.dx.dtype = CLNORM_DTYPE_NONE;
    desc.dweight.dtype = desc.dbias.dtype = CLNORM_F32;
    desc.rstd_given = true;
    return desc;
}

/* A buffer of count equal numbers of size bytes each. */
static cl_mem filled(const struct fixture *fixture, uint64_t count, const void *number, size_t size) {
    const cl_mem mem = fixture_buffer(fixture, CL_MEM_READ_WRITE, count * size);
    assert_int_equal(clEnqueueFillBuffer(fixture->queue, mem, number, size, 0, count * size, 0, NULL, NULL), CL_SUCCESS);
    return mem;
}

struct sums {
    double dweight, dbias;
};

/* The sums where every dy but the first is 1. */
static struct sums sums_of(const struct fixture *fixture, const clnorm_norm_backward_desc *desc, uint16_t first_dy) {
    const float rstd = 1;
    float sums[2] = {NAN, NAN};
    clnorm_plan *plan = NULL;
    if (clnorm_norm_backward_plan_create(fixture->context, desc, &plan) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    struct tensor workspace = plan_workspace(plan);
    tensor_upload(fixture, &workspace);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = filled(fixture, desc->rows, &one, sizeof one);
    args.dy.mem = filled(fixture, desc->rows, &one, sizeof one);
    args.rstd.mem = filled(fixture, desc->rows, &rstd, sizeof rstd);
    args.dweight.mem = args.dbias.mem = filled(fixture, 2, &sums[0], sizeof *sums);
    args.dbias.offset = sizeof *sums;
    args.workspace = tensor_buffer(&workspace);
    assert_int_equal(
        clEnqueueWriteBuffer(fixture->queue, args.dy.mem, CL_TRUE, 0, sizeof first_dy, &first_dy, 0, NULL, NULL),
        CL_SUCCESS);
    assert_int_equal(plan_run(fixture, plan, &args), CLNORM_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(fixture->queue, args.dweight.mem, CL_TRUE, 0, sizeof sums, sums, 0, NULL, NULL),
                     CL_SUCCESS);
    clReleaseMemObject(args.x.mem);
    clReleaseMemObject(args.dy.mem);
    clReleaseMemObject(args.rstd.mem);
    clReleaseMemObject(args.dweight.mem);
    tensor_free(&workspace);
    return (struct sums){(double)sums[0], (double)sums[1]};
}

/* The first dy is 2^24, to which an f32 cannot add 1: the rows of its chain are lost, and no others. */
static void a_large_row_costs_one_chain(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t rows = (uint64_t)(fixture_is_slow(fixture) ? 3 : 16) * MOST_ADDED * fixture->device.compute_units;
    const double exact = 0x1p24 + (double)rows - 1;
    for (uint32_t where = CLN_ACCUMULATOR_REGISTERS; where <= CLN_ACCUMULATOR_COLUMNS; where++)
        for (int locked = 0; locked < 2; locked++) {
            clnorm_norm_backward_desc desc = ones_desc(rows);
            const bool slots_are_shared = where != CLN_ACCUMULATOR_MEMORY && where != CLN_ACCUMULATOR_COLUMNS;
            if (locked && !(slots_are_shared && norm_backward_locks(fixture)))
                continue;
            desc.reduction = locked ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
            desc.slots = 1;
            desc.config =
                forced((struct cln_config){.accumulator = where, .vec = 1, .lanes = 1, .segments = 1, .groups_per_cu = 1});
            const struct sums sums = sums_of(fixture, &desc, two_to_the_24);
            if (fabs(sums.dweight - exact) > MOST_ADDED + 2 || fabs(sums.dbias - exact) > MOST_ADDED + 2)
                fail_msg("accumulator %u, locked %d: dweight %.0f, dbias %.0f, expected %.0f less %d at most", where,
                         locked, sums.dweight, sums.dbias, exact, MOST_ADDED);
        }
}

/* 2^28 rows of ones, or as many as the device has memory for. A single f32 sum stops growing at 2^24. */
static void ones_add_up(void **state) {
    const struct fixture *fixture = *state;
    if (fixture_is_slow(fixture))
        skip();
    uint64_t rows = UINT64_C(1) << 28;
    while (rows * sizeof(float) > fixture->device.max_allocation || rows * 16 > fixture->device.global_memory)
        rows /= 2;
    print_message("%g rows\n", (double)rows);
    for (int locked = 0; locked < 2; locked++) {
        clnorm_norm_backward_desc desc = ones_desc(rows);
        desc.reduction = locked ? CLNORM_REDUCTION_LOCKED : CLNORM_REDUCTION_PARTIAL;
        if (locked && !norm_backward_locks(fixture))
            continue;
        const struct sums sums = sums_of(fixture, &desc, one);
        if (sums.dweight != (double)rows || sums.dbias != (double)rows)
            fail_msg("locked %d: dweight %.0f, dbias %.0f, expected %.0f", locked, sums.dweight, sums.dbias, (double)rows);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_row_costs_one_chain),
        cmocka_unit_test(ones_add_up),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
