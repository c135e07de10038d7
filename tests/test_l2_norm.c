/* L2 norm, forward and backward, against the reference in double: widths, groups, strides, dtypes, knobs, both modes of
 * eps; results in the place of inputs; and the detection of wrong results. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/driver_defects.h"
#include "fixture.h"
#include "plan_run.h"
#include "reference/format.h"
#include "reference/l2_norm.h"

enum { F32 = CLNORM_F32, F16 = CLNORM_F16, BF16 = CLNORM_BF16, F64 = CLNORM_F64, NONE = CLNORM_DTYPE_NONE };
enum { ADD = CLNORM_EPS_ADD, FLOOR = CLNORM_EPS_FLOOR };

struct l2_case {
    uint64_t rows, cols, group_size; /* group_size 0: cols */
    uint64_t gap;                    /* elements between rows */
    int x, weight, out;              /* dtypes; out: of y, dy, dx and dweight */
    int mode;
    double eps;
    bool zeros; /* the first row is all 0 */
    const char *config;
    uint64_t weight_rows, weight_repeat; /* 0: one row */
};

/* 130 rows divide dweight's sum among work-groups, and 1001 columns leave a partial last vector on CPUs. */
static const struct l2_case cases[] = {
    {5, 64, 0, 0, F32, F32, F32, ADD, 1e-12, false, "", 0, 0},
    {130, 1001, 0, 0, F32, NONE, F32, ADD, 1e-6, true, "", 0, 0},
    {7, 96, 32, 32, F16, F32, F32, FLOOR, 1e-5, true, "", 0, 0},
    {9, 128, 128, 0, BF16, BF16, BF16, ADD, 1e-6, false, "", 0, 0},
    {300, 48, 16, 16, BF16, F32, F16, FLOOR, 3.5, false, "", 0, 0}, /* some lengths are below the floor */
    {3, 4096, 0, 0, F32, F32, F32, FLOOR, 1e-12, false, "vec=4,lanes=16", 0, 0},
    {4, 513, 0, 3, F32, F32, F32, ADD, 1e-12, false, "vec=1,lanes=64", 0, 0},
    {6, 320, 64, 0, F64, F64, F64, ADD, 1e-12, false, "", 0, 0},
    {3, 1, 0, 0, F32, F32, F32, ADD, 1, false, "", 0, 0},
    {1, 65536, 0, 0, BF16, NONE, BF16, FLOOR, 1e-12, false, "", 0, 0},
    {0, 8, 0, 0, F32, F32, F32, ADD, 1e-12, false, "", 0, 0},
    {12, 96, 32, 0, F32, F32, F32, ADD, 1e-12, false, "", 3, 2},
    {300, 65, 0, 3, BF16, F32, BF16, FLOOR, 1e-5, false, "", 4, 1},
    {600, 24, 0, 0, F16, NONE, F32, ADD, 1e-6, false, "", 2, 300},
    {8, 64, 0, 0, F64, F64, F64, ADD, 1e-12, false, "", 8, 1},
    {40, 600, 300, 0, F32, F32, F32, ADD, 1e-12, false, "", 0, 0}, /* two spans of a segment's columns on CPUs */
    {40, 640, 320, 0, F32, F32, F32, ADD, 1e-12, false, "stores=streaming", 0, 0},
    {0, 8, 0, 0, F32, F32, F32, ADD, 1e-12, false, "", 5, 2},
};

struct l2_run {
    const struct l2_case *c;
    const char *config;
    uint64_t group_size;
    bool given; /* the backward takes the forward's lengths */
    struct tensor x, dy, weight, y, norm, dx, dweight, workspace, forward_workspace;
};

static uint64_t weight_rows_of(const struct l2_case *c) {
    return c->weight_rows ? c->weight_rows : 1;
}

static struct l2_run run_make(const struct l2_case *c) {
    const uint64_t stride = c->cols + c->gap, group_size = c->group_size ? c->group_size : c->cols;
    const clnorm_dtype statistics = c->x == F64 ? CLNORM_F64 : CLNORM_F32, out = (clnorm_dtype)c->out;
    struct l2_run run = {.c = c, .config = c->config, .group_size = group_size};
    run.x = tensor_make((clnorm_dtype)c->x, c->rows, c->cols, stride, 1, TENSOR_NAN);
    run.dy = tensor_make(out, c->rows, c->cols, stride, 0, TENSOR_NAN);
    const uint64_t weights = weight_rows_of(c), weight_stride = c->cols + (weights > 1 ? 4 : 0);
    run.weight = tensor_make((clnorm_dtype)c->weight, weights, c->cols, weight_stride, 0, TENSOR_NAN);
    run.y = tensor_make(out, c->rows, c->cols, stride, 1, TENSOR_CANARY);
    run.norm = tensor_make(statistics, c->cols / group_size, c->rows, c->rows, 0, TENSOR_CANARY);
    run.dx = tensor_make(out, c->rows, c->cols, stride, 0, TENSOR_CANARY);
    run.dweight = tensor_make(out, weights, c->cols, weight_stride, 3, TENSOR_CANARY);
    tensor_fill(&run.x, INPUT_NORMAL, group_size, 1);
    tensor_fill(&run.dy, INPUT_NORMAL, group_size, 2);
    tensor_fill(&run.weight, INPUT_UNIFORM, group_size, 3);
    for (uint64_t column = 0; c->zeros && column < c->cols; column++)
        ref_store(run.x.dtype, tensor_elements(&run.x), column, 0);
    return run;
}

enum { TENSORS = 9 };

static void list_tensors(struct l2_run *run, struct tensor *all[TENSORS]) {
    struct tensor *const own[TENSORS] = {&run->x,       &run->dy,        &run->weight,
                                         &run->y,       &run->norm,      &run->dx,
                                         &run->dweight, &run->workspace, &run->forward_workspace};
    memcpy(all, own, sizeof own);
}

static void run_free(struct l2_run *run) {
    struct tensor *all[TENSORS];
    list_tensors(run, all);
    for (size_t i = 0; i < TENSORS; i++)
        tensor_free(all[i]);
}

static void run_upload(const struct fixture *fixture, struct l2_run *run) {
    struct tensor *all[TENSORS];
    list_tensors(run, all);
    for (size_t i = 0; i < TENSORS; i++)
        tensor_upload(fixture, all[i]);
}

static clnorm_l2_norm_desc forward_desc(const struct l2_run *run) {
    clnorm_l2_norm_desc desc = CLNORM_L2_NORM_DESC_INIT;
    desc.rows = run->c->rows;
    desc.cols = run->c->cols;
    desc.group_size = run->c->group_size;
    desc.x.dtype = run->x.dtype;
    desc.x.stride = run->x.stride;
    desc.y.dtype = run->y.dtype;
    desc.y.stride = run->y.stride;
    desc.weight.dtype = run->weight.dtype;
    desc.weight.stride = run->c->weight_rows && run->weight.dtype ? run->weight.stride : 0;
    desc.weight_rows = run->weight.dtype ? run->c->weight_rows : 0;
    desc.weight_repeat = run->weight.dtype ? run->c->weight_repeat : 0;
    desc.eps = run->c->eps;
    desc.eps_mode = (clnorm_eps_mode)run->c->mode;
    desc.save_norm = true;
    desc.config = config_of(run->config);
    return desc;
}

static clnorm_l2_norm_backward_desc backward_desc(const struct l2_run *run) {
    clnorm_l2_norm_backward_desc desc = CLNORM_L2_NORM_BACKWARD_DESC_INIT;
    desc.rows = run->c->rows;
    desc.cols = run->c->cols;
    desc.group_size = run->c->group_size;
    desc.x.dtype = run->x.dtype;
    desc.x.stride = run->x.stride;
    desc.dy.dtype = run->dy.dtype;
    desc.dy.stride = run->dy.stride;
    desc.dx.dtype = run->dx.dtype;
    desc.dx.stride = run->dx.stride;
    desc.weight.dtype = run->weight.dtype;
    desc.weight.stride = run->c->weight_rows && run->weight.dtype ? run->weight.stride : 0;
    desc.dweight.dtype = run->dweight.dtype;
    desc.dweight.stride = run->c->weight_rows ? run->dweight.stride : 0;
    desc.weight_rows = run->c->weight_rows;
    desc.weight_repeat = run->c->weight_repeat;
    desc.eps = run->c->eps + (run->given && run->c->mode == ADD ? 1 : 0); /* which lengths that are given include */
    desc.eps_mode = (clnorm_eps_mode)run->c->mode;
    desc.norm_given = run->given;
    desc.config = config_of(run->config);
    return desc;
}

static clnorm_args gradient_args(const struct l2_run *run) {
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&run->x);
    args.weight = tensor_buffer(&run->weight);
    args.dy = tensor_buffer(&run->dy);
    args.dx = tensor_buffer(&run->dx);
    args.dweight = tensor_buffer(&run->dweight);
    args.norm = run->given ? tensor_buffer(&run->norm) : args.norm;
    args.workspace = tensor_buffer(&run->workspace);
    return args;
}

/* Runs forward and backward. Returns whether nothing but the results was written. */
static bool run_execute(const struct fixture *fixture, struct l2_run *run) {
    const clnorm_l2_norm_desc forward = forward_desc(run);
    const clnorm_l2_norm_backward_desc backward = backward_desc(run);
    clnorm_plan *plan = NULL, *backward_plan = NULL;
    assert_int_equal(clnorm_l2_norm_plan_create(fixture->context, &forward, &plan), CLNORM_SUCCESS);
    assert_int_equal(clnorm_l2_norm_backward_plan_create(fixture->context, &backward, &backward_plan), CLNORM_SUCCESS);
    run->workspace = plan_workspace(backward_plan);
    run->forward_workspace = plan_workspace(plan);
    run_upload(fixture, run);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = tensor_buffer(&run->x);
    args.weight = tensor_buffer(&run->weight);
    args.y = tensor_buffer(&run->y);
    args.norm = tensor_buffer(&run->norm);
    args.workspace = tensor_buffer(&run->forward_workspace);
    const clnorm_args gradients = gradient_args(run);
    assert_int_equal(plan_run(fixture, plan, &args), CLNORM_SUCCESS);
    assert_int_equal(plan_run(fixture, backward_plan, &gradients), CLNORM_SUCCESS);
    return tensor_unchanged(fixture, &run->x, "x") && tensor_unchanged(fixture, &run->dy, "dy") &&
           tensor_unchanged(fixture, &run->weight, "weight") && tensor_receive(fixture, &run->y, "y") &&
           tensor_receive(fixture, &run->norm, "norm") && tensor_receive(fixture, &run->dx, "dx") &&
           tensor_receive(fixture, &run->dweight, "dweight") && tensor_receive(fixture, &run->workspace, "workspace") &&
           tensor_receive(fixture, &run->forward_workspace, "the forward's workspace");
}

/* ------------------------------------------------------------------------------------------------------ comparison */

/* Half the step between neighbours at 1, and between denormals below. */
static double unit_of(clnorm_dtype dtype) {
    return dtype == CLNORM_F64 ? 0x1p-53 : dtype == CLNORM_F32 ? 0x1p-24 : dtype == CLNORM_F16 ? 0x1p-11 : 0x1p-8;
}

static double tiny_of(clnorm_dtype dtype) {
    return dtype == CLNORM_F64 ? 0x1p-1074 : dtype == CLNORM_F16 ? 0x1p-25 : 0x1p-126; /* some devices flush denormals */
}

/* Relative error of a sum over a segment: of chains in 16 blocks, of the blocks' sums, and of lanes. A root halves it. */
static double sum_error(const struct l2_run *run) {
    return (32 + (double)run->group_size / 16) * (run->c->x == F64 ? 0x1p-53 : 0x1p-24);
}

static bool is_near(const struct tensor *tensor, const char *name, uint64_t row, uint64_t column, double expected,
                    double error) {
    const double found = ref_load(tensor->dtype, tensor_elements(tensor), row * tensor->stride + column);
    const double tolerance = error + (fabs(expected) + error) * unit_of(tensor->dtype) + tiny_of(tensor->dtype);
    if (fabs(found - expected) <= tolerance || (isnan(found) && isnan(expected)))
        return true;
    print_error("%s[%" PRIu64 ", %" PRIu64 "] is %.9g: expected %.9g +- %.3g\n", name, row, column, found, expected,
                tolerance);
    return false;
}

/* Checks a segment. Adds its terms to a row of dweight, and their magnitudes to a row of magnitude. */
static bool segment_is_right(const struct l2_run *run, uint64_t row, uint64_t group, const struct ref_l2_segment *expected,
                             double *dweight, double *magnitude) {
    const double relative = sum_error(run);
    double products = 0;
    for (uint64_t i = 0; i < run->group_size; i++)
        products += fabs(expected->xhat[i] * expected->wdy[i]);
    bool right = is_near(&run->norm, "norm", group, row, expected->length, relative * expected->length);
    for (uint64_t i = 0; i < run->group_size && right; i++) {
        const uint64_t column = group * run->group_size + i;
        const double terms = (fabs(expected->wdy[i]) + fabs(expected->xhat[i]) * products) / expected->length;
        right = is_near(&run->y, "y", row, column, expected->y[i], relative * fabs(expected->y[i])) &&
                is_near(&run->dx, "dx", row, column, expected->dx[i], 3 * relative * terms);
        dweight[column] += expected->dweight[i];
        magnitude[column] += fabs(expected->dweight[i]);
    }
    return right;
}

static bool run_is_right(const struct l2_run *run) {
    const struct l2_case *c = run->c;
    const struct ref_l2_norm norm = {.rows = c->rows,
                                     .cols = c->cols,
                                     .group_size = run->group_size,
                                     .x = tensor_operand(&run->x),
                                     .dy = tensor_operand(&run->dy),
                                     .weight = tensor_operand(&run->weight),
                                     .weight_rows = c->weight_rows,
                                     .weight_repeat = c->weight_repeat,
                                     .eps = c->x == F64 ? c->eps : (double)(float)c->eps,
                                     .eps_is_floor = c->mode == FLOOR};
    struct ref_l2_segment expected = ref_l2_segment_make(run->group_size);
    const uint64_t sums = weight_rows_of(c) * c->cols;
    double *const dweight = calloc(2 * sums, sizeof *dweight);
    assert_non_null(expected.xhat);
    assert_non_null(dweight);
    bool right = true;
    for (uint64_t row = 0; row < c->rows && right; row++)
        for (uint64_t group = 0; group < c->cols / run->group_size && right; group++) {
            ref_l2_norm_segment(&norm, row, group, &expected);
            double *const own = dweight + ref_l2_weight_row(&norm, row) * c->cols;
            right = segment_is_right(run, row, group, &expected, own, own + sums);
        }
    for (uint64_t i = 0; i < sums && right; i++)
        right =
            is_near(&run->dweight, "dweight", i / c->cols, i % c->cols, dweight[i], 2 * sum_error(run) * dweight[sums + i]);
    free(dweight);
    ref_l2_segment_free(&expected);
    return right;
}

/* ----------------------------------------------------------------------------------------------------------- tests */

static bool runs_here(const struct fixture *fixture, const struct l2_case *c) {
    const bool cpu = fixture->device.kind == CLNORM_DEVICE_CPU;
    return (c->x != F64 || fixture->device.fp64) && (cpu || c->cols % 2 == 0 || !*c->config) &&
           (c->rows < 2 || c->rows * c->cols <= fixture_element_limit(fixture));
}

/* A case's knobs. The library refuses forced lanes that share a segment where the driver cannot build them. */
static const char *config_here(const struct fixture *fixture, const struct l2_case *c) {
    const bool shares = strstr(c->config, "lanes=") && cln_driver_defect(&fixture->device, CLN_DEFECT_SHARED_SEGMENTS);
    return shares ? "" : c->config;
}

static void results_are_right(void **state) {
    const struct fixture *fixture = *state;
    enum { CASES = sizeof cases / sizeof *cases };
    unsigned taken = 0, ran = 0;
    for (size_t i = 0; i < CASES; i++) {
        taken += fixture_takes(i);
        if (!fixture_takes(i) || !runs_here(fixture, &cases[i]))
            continue;
        for (int given = 0; given < 2; given++) {
            struct l2_run run = run_make(&cases[i]);
            run.config = config_here(fixture, &cases[i]);
            run.given = given;
            if (!run_execute(fixture, &run) || !run_is_right(&run))
                fail_msg("case %zu: %" PRIu64 " x %" PRIu64 ", lengths %s, on %s", i, cases[i].rows, cases[i].cols,
                         given ? "given" : "computed", fixture->device.name);
            run_free(&run);
        }
        ran++;
    }
    const bool all = fixture->device.kind == CLNORM_DEVICE_CPU && fixture->device.fp64 && !fixture_is_slow(fixture);
    assert_in_range(ran, all ? taken : 6 * taken / CASES, CASES);
}

/* An error of little more than the tolerance is detected in each output. */
static void damage_is_seen(void **state) {
    const struct fixture *fixture = *state;
    struct l2_run run = run_make(&cases[0]);
    assert_true(run_execute(fixture, &run) && run_is_right(&run));
    struct tensor *const outputs[] = {&run.y, &run.norm, &run.dx, &run.dweight};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        float *const element = tensor_elements(outputs[i]);
        const float kept = element[3];
        element[3] = kept + fabsf(kept) * 0x1p-12F + 0x1p-14F;
        assert_false(run_is_right(&run));
        element[3] = kept;
    }
    assert_true(run_is_right(&run));
    run_free(&run);
}

/* y over x. */
static void in_place(void **state) {
    const struct fixture *fixture = *state;
    struct l2_run run = run_make(&cases[0]);
    const clnorm_l2_norm_desc desc = forward_desc(&run);
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_l2_norm_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
    run_upload(fixture, &run);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = args.y = tensor_buffer(&run.x);
    args.weight = tensor_buffer(&run.weight);
    args.norm = tensor_buffer(&run.norm);
    assert_int_equal(plan_run(fixture, plan, &args), CLNORM_SUCCESS);
    struct l2_run apart = run_make(&cases[0]);
    assert_true(run_execute(fixture, &apart) && tensor_receive(fixture, &run.x, "x"));
    assert_memory_equal(tensor_elements(&run.x), tensor_elements(&apart.y), (size_t)5 * 64 * sizeof(float));
    run_free(&apart);
    run_free(&run);
}

/* dx over x, and over dy, with a dweight. */
static void gradients_in_place(void **state) {
    const struct fixture *fixture = *state;
    struct l2_run apart = run_make(&cases[0]);
    assert_true(run_execute(fixture, &apart));
    for (int over_dy = 0; over_dy < 2; over_dy++) {
        struct l2_run run = run_make(&cases[0]);
        struct tensor *const place = over_dy ? &run.dy : &run.x;
        const clnorm_l2_norm_backward_desc desc = backward_desc(&run);
        clnorm_plan *plan = NULL;
        assert_int_equal(clnorm_l2_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
        run.workspace = plan_workspace(plan);
        run_upload(fixture, &run);
        clnorm_args args = gradient_args(&run);
        args.dx = tensor_buffer(place);
        assert_int_equal(plan_run(fixture, plan, &args), CLNORM_SUCCESS);
        assert_true(tensor_receive(fixture, place, "dx") && tensor_receive(fixture, &run.dweight, "dweight"));
        assert_memory_equal(tensor_elements(place), tensor_elements(&apart.dx), (size_t)5 * 64 * sizeof(float));
        assert_memory_equal(tensor_elements(&run.dweight), tensor_elements(&apart.dweight), 64 * sizeof(float));
        run_free(&run);
    }
    run_free(&apart);
}

/* In both modes, a NaN makes every result of its segment NaN, and of no other segment. */
static void a_nan_takes_its_segment(void **state) {
    const struct fixture *fixture = *state;
    for (int mode = ADD; mode <= FLOOR; mode++) {
        const struct l2_case c = {3, 96, 32, 0, F32, F32, F32, mode, 1e-12, false, "", 0, 0};
        struct l2_run run = run_make(&c);
        ref_store(run.x.dtype, tensor_elements(&run.x), 40, NAN);
        assert_true(run_execute(fixture, &run) && run_is_right(&run));
        assert_true(isnan(ref_load(run.y.dtype, tensor_elements(&run.y), 63)));
        assert_true(isnan(ref_load(run.dx.dtype, tensor_elements(&run.dx), 32)));
        assert_true(!isnan(ref_load(run.dx.dtype, tensor_elements(&run.dx), 64)));
        run_free(&run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_right),  cmocka_unit_test(damage_is_seen),          cmocka_unit_test(in_place),
        cmocka_unit_test(gradients_in_place), cmocka_unit_test(a_nan_takes_its_segment),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
