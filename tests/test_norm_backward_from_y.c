/* The backward that recovers x̂ from y, weight and bias. On every kind of kernel its gradients are those of the reference at
 * y, and close to those at the forward's x. Columns from which x̂ cannot be recovered are reported. */
#include <math.h>
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
#include "reference/reference.h"

static const struct cln_config from_memory = {.vec = 4, .keep = CLN_KEEP_REREAD, .accumulator = CLN_ACCUMULATOR_MEMORY};
static const struct cln_config in_registers = {.vec = 4,
                                               .lanes = 16,
                                               .segments = 2,
                                               .keep = CLN_KEEP_REGISTERS,
                                               .accumulator = CLN_ACCUMULATOR_REGISTERS,
                                               .pipeline = 2,
                                               .weights = CLN_WEIGHTS_EARLY};
static const struct cln_config in_tiles = {
    .vec = 2, .lanes = 4, .tile = 32, .chunks = 2, .keep = CLN_KEEP_REREAD, .accumulator = CLN_ACCUMULATOR_LOCAL};

/* All in the dtype of y. */
static clnorm_norm_backward_desc desc_of(clnorm_norm norm, uint64_t rows, uint64_t cols, clnorm_dtype dtype) {
    clnorm_norm_backward_desc desc = norm_backward_full_desc(norm, rows, cols, dtype);
    desc.x.dtype = CLNORM_DTYPE_NONE; /* there is none */
    desc.y_given = desc.rstd_given = true;
    return desc;
}

/* ------------------------------------------------------------------------------------------------- against the formula */

static void gradients_are_those_of_y(void **state) {
    static const struct {
        clnorm_norm norm;
        uint64_t rows, cols, group_size, gap;
        clnorm_dtype y, dy, weight, bias;
        double weight_offset;
        const struct cln_config *config; /* NULL: the library's choice */
        clnorm_reduction reduction;
        enum dx_place place;
        uint64_t shift;
        bool accumulate;
    } cases[] = {
        {CLNORM_LAYER_NORM, 33, 7, 0, 1, CLNORM_F32, 0, CLNORM_F32, CLNORM_F32, 0, NULL, 0, DX_APART, 1, false},
        {CLNORM_RMS_NORM, 9, 129, 0, 3, CLNORM_BF16, CLNORM_F32, CLNORM_F32, 0, 0, NULL, 0, DX_APART, 3, true},
        {CLNORM_LAYER_NORM, 5, 48, 3, 0, CLNORM_F16, 0, CLNORM_BF16, CLNORM_F16, 1, NULL, 0, DX_OVER_X, 0, false},
        {CLNORM_LAYER_NORM, 17, 96, 0, 32, CLNORM_BF16, 0, 0, CLNORM_F32, 0, NULL, 0, DX_OVER_DY, 0, false},
        {CLNORM_RMS_NORM, 4, 1, 0, 0, CLNORM_F32, 0, 0, 0, 0, NULL, 0, DX_APART, 0, false},
        {CLNORM_LAYER_NORM, 6, 416, 208, 16, CLNORM_F32, 0, CLNORM_F32, CLNORM_F32, 0, &from_memory, 0, DX_APART, 0, false},
        {CLNORM_LAYER_NORM, 13, 416, 208, 16, CLNORM_BF16, 0, CLNORM_BF16, CLNORM_BF16, 0, &in_registers, 0, DX_OVER_X, 0,
         false},
        {CLNORM_RMS_NORM, 13, 416, 208, 16, CLNORM_F32, 0, CLNORM_F32, CLNORM_F32, -1, &in_registers,
         CLNORM_REDUCTION_LOCKED, DX_APART, 1, true},
        {CLNORM_LAYER_NORM, 6, 416, 208, 16, CLNORM_F32, 0, CLNORM_F16, CLNORM_F32, 0, &in_tiles, 0, DX_APART, 0, false},
        {CLNORM_RMS_NORM, 6, 416, 208, 16, CLNORM_BF16, 0, CLNORM_F32, 0, 1, &in_tiles, CLNORM_REDUCTION_LOCKED, DX_OVER_X,
         0, false},
        {CLNORM_LAYER_NORM, 5, 60, 0, 4, CLNORM_F64, 0, CLNORM_F64, CLNORM_F64, 0, NULL, 0, DX_APART, 1, false},
    };
    const struct fixture *fixture = *state;
    const bool locks = norm_backward_locks(fixture);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].y == CLNORM_F64 && !fixture->device.fp64)
            continue;
        struct norm_backward_case backward_case = {
            .desc = desc_of(cases[i].norm, cases[i].rows, cases[i].cols, cases[i].y),
            .shift = {.x = cases[i].shift, .weight = cases[i].shift, .bias = cases[i].shift, .dx = cases[i].shift},
            .dx_place = cases[i].place,
            .seed = 100 + i};
        clnorm_norm_backward_desc *desc = &backward_case.desc;
        desc->group_size = cases[i].group_size;
        desc->y.stride = desc->cols + cases[i].gap;
        desc->dy.stride = desc->cols + 2 * cases[i].gap;
        desc->dy.dtype = cases[i].dy;
        desc->weight.dtype = cases[i].weight;
        desc->bias.dtype = cases[i].bias;
        desc->weight_offset = cases[i].weight_offset;
        desc->accumulate = cases[i].accumulate;
        desc->reduction = locks ? cases[i].reduction : CLNORM_REDUCTION_PARTIAL;
        desc->slots = 2;
        if (cases[i].config)
            desc->config = forced(*cases[i].config);
        assert_true(norm_backward_case_passes(fixture, &backward_case));
    }
}

/* ------------------------------------------------------------------------------------------ against the forward's x */

enum { FROM_X_COLS = 416 };

/* unit: relative rounding error of y. */
struct from_x {
    clnorm_norm norm;
    clnorm_dtype dtype;
    double unit;
};

/* Runs the forward, and the backward from its y and rstd. */
static void run_both(const struct fixture *fixture, const struct from_x *of, struct norm_run *forward,
                     struct norm_backward_run *run) {
    const size_t element = clnorm_dtype_size(of->dtype), rows = (size_t)run->desc.rows, cols = (size_t)run->desc.cols;
    memcpy(tensor_elements(&forward->weight), tensor_elements(&run->weight), cols * element);
    memcpy(tensor_elements(&forward->bias), tensor_elements(&run->bias), cols * element);
    assert_int_equal(norm_run_go(fixture, forward), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, forward));
    memcpy(tensor_elements(&run->x), tensor_elements(&forward->y), rows * cols * element);
    memcpy(tensor_elements(&run->rstd), tensor_elements(&forward->rstd), rows * sizeof(float));
    assert_int_equal(norm_backward_run_go(fixture, run), CLNORM_SUCCESS);
    assert_true(norm_backward_run_receive(fixture, run) && norm_backward_run_check(run));
}

/* Checks a row of dx. Its error is that of the arithmetic and that of x̂, in which the rounding of y makes
 * u · (|x̂| + |bias / w|). */
static void check_dx(const struct norm_backward_run *run, const struct ref_gradients *gradients, uint64_t row,
                     double unit) {
    const uint64_t cols = run->desc.cols;
    double off[FROM_X_COLS];
    double c1_off = 0;
    assert_true(cols <= FROM_X_COLS);
    for (uint64_t k = 0; k < cols; k++) {
        off[k] = unit * (fabs(gradients->xhat[k]) + fabs(gradients->forward.bias[k] / gradients->forward.scale[k]));
        c1_off += off[k] * fabs(gradients->wdn[k]) / (double)cols;
    }
    for (uint64_t k = 0; k < cols; k++) {
        const double arithmetic = 64 * 0x1p-24 * (fabs(gradients->wdn[k]) + fabs(gradients->xhat[k]) + 1);
        const double error = gradients->forward.rstd * (off[k] * fabs(gradients->c1) + fabs(gradients->xhat[k]) * c1_off +
                                                        off[k] * c1_off + arithmetic);
        const double dx = ref_load(CLNORM_F32, tensor_elements(&run->dx), row * cols + k);
        assert_true(ref_within(CLNORM_F32, dx, (struct ref_value){gradients->dx[k], error}));
    }
}

static void check_gradients_of_x(const struct norm_backward_run *run, const struct norm_run *forward, double unit) {
    clnorm_norm_backward_desc at_x = run->desc;
    at_x.y_given = at_x.rstd_given = false;
    at_x.x.dtype = CLNORM_F32;
    struct ref_norm_backward norm = ref_norm_backward_of(&at_x);
    norm.forward.x.elements = tensor_elements(&forward->x);
    norm.forward.weight.elements = tensor_elements(&run->weight);
    norm.forward.bias.elements = tensor_elements(&run->bias);
    norm.dy.elements = tensor_elements(&run->dy);
    struct ref_gradients gradients = ref_gradients_make(run->desc.cols);
    for (uint64_t row = 0; row < run->desc.rows; row++) {
        ref_norm_backward_segment(&norm, row, 0, &gradients);
        check_dx(run, &gradients, row, unit);
    }
    ref_gradients_free(&gradients);
}

/* The forward's y and rstd go backward; the gradients are compared with those at its x. */
static void gradients_are_those_of_x(void **state) {
    static const struct from_x cases[] = {
        {CLNORM_LAYER_NORM, CLNORM_BF16, 0x1p-8},
        {CLNORM_RMS_NORM, CLNORM_F16, 0x1p-11},
        {CLNORM_LAYER_NORM, CLNORM_F32, 0x1p-22}, /* in f32 the forward's four roundings count too */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct from_x *const of = &cases[i];
        struct norm_backward_case backward_case = {.desc = desc_of(of->norm, 5, FROM_X_COLS, of->dtype), .seed = 200 + i};
        backward_case.desc.dx.dtype = CLNORM_F32;
        struct norm_case forward_case = {.desc = norm_desc_of(of->norm, 5, FROM_X_COLS), .seed = 300 + i};
        clnorm_norm_desc *const forward_desc = &forward_case.desc;
        forward_desc->x.dtype = CLNORM_F32;
        forward_desc->y.dtype = forward_desc->weight.dtype = forward_desc->bias.dtype = of->dtype;
        forward_desc->save_rstd = true;
        struct norm_backward_run run = norm_backward_run_make(&backward_case);
        struct norm_run forward = norm_run_make(&forward_case);
        run_both(*state, of, &forward, &run);
        check_gradients_of_x(&run, &forward, of->unit);
        norm_run_free(&forward);
        norm_backward_run_free(&run);
    }
}

/* Σ dy · y as a function of x, in double. */
static double loss(const struct ref_norm *norm, const double *dy, uint64_t cols) {
    struct ref_segment segment = ref_segment_make(cols);
    ref_norm_segment(norm, 0, 0, &segment);
    double sum = 0;
    for (uint64_t i = 0; i < cols; i++)
        sum += dy[i] * segment.y[i];
    ref_segment_free(&segment);
    return sum;
}

/* In f64, which has the digits that a difference quotient needs: it is off by h² of the third derivative and by u / h of
 * the loss. */
static void gradients_are_finite_differences(void **state) {
    enum { COLS = 60 };
    const struct fixture *fixture = *state;
    if (!fixture->device.fp64)
        skip();
    struct norm_backward_case backward_case = {.desc = desc_of(CLNORM_LAYER_NORM, 1, COLS, CLNORM_F64), .seed = 7};
    struct norm_backward_run run = norm_backward_run_make(&backward_case);
    struct random random = {11};
    double x[COLS];
    for (int i = 0; i < COLS; i++)
        x[i] = random_normal(&random);
    clnorm_norm_desc forward_desc = norm_desc_of(CLNORM_LAYER_NORM, 1, COLS);
    forward_desc.x.dtype = forward_desc.weight.dtype = forward_desc.bias.dtype = CLNORM_F64;
    double *const inputs[] = {x, tensor_elements(&run.weight), tensor_elements(&run.bias)};
    struct ref_norm forward = ref_norm_of(&forward_desc);
    forward.x.elements = x;
    forward.weight.elements = inputs[1];
    forward.bias.elements = inputs[2];
    struct ref_segment segment = ref_segment_make(COLS);
    ref_norm_segment(&forward, 0, 0, &segment);
    memcpy(tensor_elements(&run.x), segment.y, sizeof x);
    memcpy(tensor_elements(&run.rstd), &segment.rstd, sizeof segment.rstd);
    ref_segment_free(&segment);
    assert_int_equal(norm_backward_run_go(fixture, &run), CLNORM_SUCCESS);
    assert_true(norm_backward_run_receive(fixture, &run));
    const struct tensor *const outputs[] = {&run.dx, &run.dweight, &run.dbias};
    for (int which = 0; which < 3; which++)
        for (int i = 0; i < COLS; i++) {
            const double h = 1e-5;
            const double at = inputs[which][i];
            inputs[which][i] = at + h;
            const double above = loss(&forward, tensor_elements(&run.dy), COLS);
            inputs[which][i] = at - h;
            const double below = loss(&forward, tensor_elements(&run.dy), COLS);
            inputs[which][i] = at;
            const double difference = (above - below) / (2 * h);
            assert_true(fabs(ref_load(CLNORM_F64, tensor_elements(outputs[which]), (uint64_t)i) - difference) <=
                        1e-8 * (1 + fabs(difference)));
        }
    norm_backward_run_free(&run);
}

/* ------------------------------------------------------------------------------------------------------ bad columns */

static bool all_nan(const struct tensor *tensor) {
    for (uint64_t row = 0; row < tensor->rows; row++)
        for (uint64_t column = 0; column < tensor->cols; column++)
            if (!isnan(ref_load(tensor->dtype, tensor_elements(tensor), row * tensor->stride + column)))
                return false;
    return true;
}

/* Segments of 208 columns in f16, √208 = 14.4. Bounds are exact: some weights and biases are one ulp beyond them. */
static void bad_columns_are_found(void **state) {
    static const struct {
        double weight, bias, weight_bound, bias_bound;
        bool bad;
    } columns[] = {
        {0, 0, 0, 0, true},           {-0.0, 0, 0, 0, true},          {NAN, 0, 0, 0, true},
        {1, NAN, 0, 0, true},         {INFINITY, 0, 0, 0, true},      {1, -INFINITY, 0, 0, true},
        {0x1.ff8p-15, 0, 0, 0, true}, {-0x1p-14, 0, 0, 0, false},     {0x1.ffcp-4, 0, 0.125, 0, true},
        {0.125, 0, 0.125, 0, false},  {0.5, 2.001953125, 0, 0, true}, {-0.5, -2, 0, 0, false},
        {1, 64, 0, 64, false},        {1, 64.0625, 0, 64, true},      {4000, 0, 0, 0, false},
        {5000, 0, 0, 0, true},
    };
    const struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        struct norm_backward_case backward_case = {.desc = desc_of(CLNORM_LAYER_NORM, 3, 416, CLNORM_F16), .seed = i};
        backward_case.desc.group_size = 208;
        backward_case.desc.weight_bound = columns[i].weight_bound;
        backward_case.desc.bias_bound = columns[i].bias_bound;
        struct norm_backward_run run = norm_backward_run_make(&backward_case);
        ref_store(CLNORM_F16, tensor_elements(&run.weight), 415, columns[i].weight);
        ref_store(CLNORM_F16, tensor_elements(&run.bias), 415, columns[i].bias);
        assert_int_equal(norm_backward_run_go(fixture, &run), CLNORM_SUCCESS);
        const clnorm_args args = norm_backward_run_args(&run);
        assert_int_equal(clnorm_norm_backward_check(fixture->queue, &args, 0, NULL),
                         columns[i].bad ? CLNORM_NOT_EXACT : CLNORM_SUCCESS);
        if (columns[i].bad)
            assert_non_null(strstr(clnorm_error_detail(), "args.fault is 1:"));
        assert_true(norm_backward_run_receive(fixture, &run));
        assert_int_equal(norm_backward_run_fault(&run), columns[i].bad);
        if (columns[i].bad)
            assert_true(all_nan(&run.dx) && all_nan(&run.dweight) && all_nan(&run.dbias));
        else
            assert_true(norm_backward_run_check(&run));
        norm_backward_run_free(&run);
    }
}

/* On every kind of kernel. Without rows, weights are checked too, and sums are 0. */
static void bad_columns_make_gradients_nan(void **state) {
    const struct fixture *fixture = *state;
    const struct cln_config *const configs[] = {&from_memory, &in_registers, &in_tiles};
    for (size_t i = 0; i < 2 * sizeof configs / sizeof *configs; i++) {
        const clnorm_dtype y = i % 3 == 1 ? CLNORM_BF16 : CLNORM_F32;
        struct norm_backward_case backward_case = {.desc = desc_of(CLNORM_LAYER_NORM, i < 3 ? 6 : 0, 416, y), .seed = i};
        backward_case.desc.group_size = 208;
        backward_case.desc.config = forced(*configs[i % 3]);
        struct norm_backward_run run = norm_backward_run_make(&backward_case);
        for (uint64_t column = 0; column < 416; column += 7)
            ref_store(y, tensor_elements(&run.weight), column, 0);
        assert_int_equal(norm_backward_run_go(fixture, &run), CLNORM_SUCCESS);
        assert_true(norm_backward_run_receive(fixture, &run));
        assert_int_equal(norm_backward_run_fault(&run), 60);
        assert_true(all_nan(&run.dx));
        for (uint64_t column = 0; column < 416; column++) {
            const double dweight = ref_load(y, tensor_elements(&run.dweight), column);
            const double dbias = ref_load(y, tensor_elements(&run.dbias), column);
            assert_true(i < 3 ? isnan(dweight) && isnan(dbias) : dweight == 0 && dbias == 0);
        }
        norm_backward_run_free(&run);
    }
}

/* A warm-up launches kernels without work: it needs no tensors. */
static void plans_warm_up(void **state) {
    const struct fixture *fixture = *state;
    clnorm_norm_backward_desc desc = desc_of(CLNORM_LAYER_NORM, 3, 416, CLNORM_F16);
    desc.group_size = 208;
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_backward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
    assert_int_equal(clnorm_plan_warm_up(plan, fixture->queue), CLNORM_SUCCESS);
    clnorm_plan_destroy(plan);
}

static void check_waits_for_events(void **state) {
    const struct fixture *fixture = *state;
    const cl_command_queue queue = fixture_queue(fixture, fixture_out_of_order(fixture));
    struct norm_backward_case backward_case = {.desc = desc_of(CLNORM_LAYER_NORM, 3, 416, CLNORM_F16)};
    backward_case.desc.group_size = 208;
    struct norm_backward_run run = norm_backward_run_make(&backward_case);
    ref_store(CLNORM_F16, tensor_elements(&run.weight), 5, 0);
    norm_backward_run_upload(fixture, &run);
    clnorm_args args = norm_backward_run_args(&run);
    cl_event event = NULL;
    assert_int_equal(clnorm_norm_backward(fixture->context, queue, &run.desc, &args, 0, NULL, &event), CLNORM_SUCCESS);
    assert_int_equal(clnorm_norm_backward_check(queue, &args, 1, &event), CLNORM_NOT_EXACT);
    assert_int_equal(clReleaseEvent(event), CL_SUCCESS);
    assert_int_equal(clnorm_norm_backward_check(queue, NULL, 0, NULL), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_norm_backward_check(queue, &args, 1, NULL), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_norm_backward_check(NULL, &args, 0, NULL), CLNORM_INVALID_QUEUE);
    args.fault.mem = NULL;
    assert_int_equal(clnorm_norm_backward_check(queue, &args, 0, NULL), CLNORM_INVALID_BUFFER);
    assert_int_equal(clFinish(queue), CL_SUCCESS);
    assert_int_equal(clReleaseCommandQueue(queue), CL_SUCCESS);
    norm_backward_run_free(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_y),
        cmocka_unit_test(gradients_are_those_of_x),
        cmocka_unit_test(gradients_are_finite_differences),
        cmocka_unit_test(bad_columns_are_found),
        cmocka_unit_test(bad_columns_make_gradients_nan),
        cmocka_unit_test(check_waits_for_events),
        cmocka_unit_test(plans_warm_up),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
