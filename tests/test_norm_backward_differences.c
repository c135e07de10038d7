/* Gradients are differences of the library's own forward, and its saved statistics fit the backward. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "norm_backward_case.h"
#include "norm_case.h"
#include "reference/reference.h"

static double load(const struct tensor *tensor, uint64_t index) {
    return ref_load(tensor->dtype, tensor_elements(tensor), index);
}

static void store(struct tensor *tensor, uint64_t index, double value) {
    ref_store(tensor->dtype, tensor_elements(tensor), index, value);
}

/* Runs with the inputs in host memory, and fetches the outputs. */
static void go(const struct fixture *fixture, struct norm_backward_run *run) {
    if (norm_backward_run_go(fixture, run) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    assert_true(norm_backward_run_receive(fixture, run));
}

static void go_and_check(const struct fixture *fixture, struct norm_backward_run *run) {
    go(fixture, run);
    assert_true(norm_backward_run_check(run));
}

/* The backward takes the statistics that the forward saves, also with groups. */
static void saved_statistics_fit_the_backward(void **state) {
    const struct fixture *fixture = *state;
    const struct norm_case forward_case = {.desc = {.size = sizeof(clnorm_norm_desc),
                                                    .norm = CLNORM_LAYER_NORM,
                                                    .rows = 11,
                                                    .cols = 120,
                                                    .group_size = 40,
                                                    .x.dtype = CLNORM_F32,
                                                    .save_mean = true,
                                                    .save_rstd = true,
                                                    .eps = 1e-5},
                                           .seed = 13};
    struct norm_run forward = norm_run_make(&forward_case);
    assert_int_equal(norm_run_go(fixture, &forward), CLNORM_SUCCESS);
    assert_true(norm_run_verify(fixture, &forward));
    struct norm_backward_case backward_case = {.desc = norm_backward_desc_of(CLNORM_LAYER_NORM, 11, 120), .seed = 13};
    backward_case.desc.group_size = 40;
    struct norm_backward_run computed = norm_backward_run_make(&backward_case);
    go_and_check(fixture, &computed);
    backward_case.desc.mean_given = backward_case.desc.rstd_given = true;
    struct norm_backward_run given = norm_backward_run_make(&backward_case);
    for (uint64_t i = 0; i < given.rstd.rows * given.rstd.cols; i++) {
        store(&given.mean, i, load(&forward.mean, i));
        store(&given.rstd, i, load(&forward.rstd, i));
    }
    go_and_check(fixture, &given);
    for (uint64_t i = 0; i < given.desc.rows * given.desc.cols; i++)
        assert_true(fabs(load(&given.dx, i) - load(&computed.dx, i)) <= 0x1p-18);
    norm_run_free(&forward);
    norm_backward_run_free(&computed);
    norm_backward_run_free(&given);
}

/* The loss Σ dy · y of each row, by the library's forward. */
static void losses(const struct fixture *fixture, struct norm_run *forward, const double *dy, double *loss) {
    const uint64_t cols = forward->desc.cols;
    if (norm_run_go(fixture, forward) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    assert_true(tensor_receive(fixture, &forward->y, "y"));
    for (uint64_t row = 0; row < forward->desc.rows; row++) {
        loss[row] = 0;
        for (uint64_t i = 0; i < cols; i++)
            loss[row] += dy[i] * load(&forward->y, row * cols + i);
    }
}

enum { DIFFERENCE_COLS = 24, DIFFERENCE_ROWS = 2 * DIFFERENCE_COLS };

/* Differences of the loss in the elements of a row. Element i is larger in row 2i, and smaller in row 2i + 1. matrix: the
 * forward's x or z. */
static void matrix_differences(const struct fixture *fixture, struct norm_run *forward, struct tensor *matrix,
                               const double *dy, double step, double *difference) {
    double loss[DIFFERENCE_ROWS] = {0};
    for (uint64_t row = 0; row < DIFFERENCE_ROWS; row++) {
        const uint64_t at = row * DIFFERENCE_COLS + row / 2;
        store(matrix, at, load(matrix, at) + (row % 2 ? -step : step));
    }
    losses(fixture, forward, dy, loss);
    for (uint64_t row = 0; row < DIFFERENCE_ROWS; row++) {
        const uint64_t at = row * DIFFERENCE_COLS + row / 2;
        store(matrix, at, load(matrix, (row + 2) % DIFFERENCE_ROWS * DIFFERENCE_COLS + row / 2));
    }
    for (uint64_t i = 0; i < DIFFERENCE_COLS; i++)
        difference[i] = (loss[2 * i] - loss[2 * i + 1]) / (2 * step);
}

static void vector_differences(const struct fixture *fixture, struct norm_run *forward, struct tensor *vector,
                               const double *dy, double step, double *difference) {
    double above[DIFFERENCE_ROWS] = {0};
    double below[DIFFERENCE_ROWS] = {0};
    for (uint64_t i = 0; i < DIFFERENCE_COLS; i++) {
        const double kept = load(vector, i);
        store(vector, i, kept + step);
        losses(fixture, forward, dy, above);
        store(vector, i, kept - step);
        losses(fixture, forward, dy, below);
        store(vector, i, kept);
        difference[i] = (above[0] - below[0]) / (2 * step);
    }
}

static void compare(const char *name, const struct tensor *gradient, const double *difference, double tolerance) {
    for (uint64_t i = 0; i < DIFFERENCE_COLS; i++)
        if (!(fabs(load(gradient, i) - difference[i]) <= tolerance * (1 + fabs(difference[i]))))
            fail_msg("%s[%d] is %.9g, the forward's difference %.9g", name, (int)i, load(gradient, i), difference[i]);
}

/* Copies the only row of a tensor to every row of another one. */
static void repeat_row(struct tensor *to, const struct tensor *from) {
    const size_t row = from->cols * clnorm_dtype_size(from->dtype);
    for (uint64_t i = 0; i < to->rows; i++)
        memcpy((char *)tensor_elements(to) + i * row, tensor_elements(from), row);
}

/* The backward of one row, and forwards of copies of that row. */
static void check_differences(const struct fixture *fixture, const clnorm_norm_backward_desc *desc, double step,
                              double tolerance) {
    const struct norm_backward_case backward_case = {.desc = *desc, .seed = 14};
    struct norm_backward_run backward = norm_backward_run_make(&backward_case);
    go(fixture, &backward);
    struct norm_case forward_case = {.desc = ref_norm_forward_of(&backward.desc), .seed = 14};
    forward_case.desc.rows = DIFFERENCE_ROWS;
    forward_case.desc.y.dtype = desc->x.dtype;
    struct norm_run forward = norm_run_make(&forward_case);
    repeat_row(&forward.x, &backward.x);
    repeat_row(&forward.z, &backward.z);
    repeat_row(&forward.weight, &backward.weight);
    repeat_row(&forward.bias, &backward.bias);
    double dy[DIFFERENCE_COLS];
    double difference[DIFFERENCE_COLS];
    for (uint64_t i = 0; i < DIFFERENCE_COLS; i++)
        dy[i] = load(&backward.dy, i);
    matrix_differences(fixture, &forward, &forward.x, dy, step, difference);
    compare("dx", &backward.dx, difference, tolerance);
    if (desc->gate) {
        matrix_differences(fixture, &forward, &forward.z, dy, step, difference);
        compare("dz", &backward.dz, difference, tolerance);
    }
    vector_differences(fixture, &forward, &forward.weight, dy, step, difference);
    compare("dweight", &backward.dweight, difference, tolerance);
    vector_differences(fixture, &forward, &forward.bias, dy, step, difference);
    compare("dbias", &backward.dbias, difference, tolerance);
    norm_run_free(&forward);
    norm_backward_run_free(&backward);
}

/* Central differences are off by step² and by roundings over step. */
static void gradients_are_differences_of_the_forward(void **state) {
    const struct fixture *fixture = *state;
    const bool wide = fixture->device.fp64;
    for (int i = 0; i < 4; i++) {
        clnorm_norm_backward_desc desc = norm_backward_full_desc(i % 2 ? CLNORM_RMS_NORM : CLNORM_LAYER_NORM, 1,
                                                                 DIFFERENCE_COLS, wide ? CLNORM_F64 : CLNORM_F32);
        desc.group_size = i < 2 ? 0 : DIFFERENCE_COLS / 2;
        desc.weight_offset = i % 2;
        desc.gate = i < 2 ? CLNORM_GATE_SILU : CLNORM_GATE_SIGMOID;
        desc.gate_first = i == 1 || i == 2;
        desc.dz.dtype = desc.x.dtype;
        check_differences(fixture, &desc, wide ? 1e-5 : 0x1p-7, wide ? 1e-8 : 1e-2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_statistics_fit_the_backward),
        cmocka_unit_test(gradients_are_differences_of_the_forward),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
