/* README's program, compiled from its text, computes the RMS norm of its input. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

enum { ROWS = 4096, COLS = 1024 }; /* README's */

static void readme_program(cl_context cl, cl_device_id device, cl_command_queue queue, cl_mem x, cl_mem weight, cl_mem y) {
#include "readme.h"
}

static float from_bf16(uint16_t code) {
    const uint32_t bits = (uint32_t)code << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static cl_mem make_buffer(cl_context cl, cl_mem_flags flags, size_t size, void *data) {
    cl_int error;
    cl_mem mem = clCreateBuffer(cl, flags, size, data, &error);
    assert_int_equal(error, CL_SUCCESS);
    return mem;
}

static void program_is_right(void **state) {
    const struct fixture *const fixture = *state;
    uint16_t *const x = malloc(sizeof(uint16_t) * ROWS * COLS);
    uint16_t *const y = malloc(sizeof(uint16_t) * ROWS * COLS);
    float weight[COLS];
    assert_non_null(x);
    assert_non_null(y);
    struct random random = {1};
    for (size_t i = 0; i < (size_t)ROWS * COLS; i++)
        x[i] = (uint16_t)(0x3f00 | (random_next(&random) & 0x80ff)); /* ±[0.5, 2) */
    for (int col = 0; col < COLS; col++)
        weight[col] = 1 + (float)col / COLS;

    const cl_mem_flags input = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
    cl_mem x_mem = make_buffer(fixture->cl, input, sizeof(uint16_t) * ROWS * COLS, x);
    cl_mem weight_mem = make_buffer(fixture->cl, input, sizeof weight, weight);
    cl_mem y_mem = make_buffer(fixture->cl, CL_MEM_WRITE_ONLY, sizeof(uint16_t) * ROWS * COLS, NULL);
    readme_program(fixture->cl, fixture->device.device, fixture->queue, x_mem, weight_mem, y_mem);
    assert_int_equal(
        clEnqueueReadBuffer(fixture->queue, y_mem, CL_TRUE, 0, sizeof(uint16_t) * ROWS * COLS, y, 0, NULL, NULL),
        CL_SUCCESS);

    for (size_t row = 0; row < ROWS; row++) {
        double squares = 0;
        for (size_t col = 0; col < COLS; col++)
            squares += pow((double)from_bf16(x[row * COLS + col]), 2);
        for (size_t col = 0; col < COLS; col++) {
            const double want = from_bf16(x[row * COLS + col]) / sqrt(squares / COLS + 1e-5) * weight[col];
            const double error = fabs(from_bf16(y[row * COLS + col]) - want);
            if (!(error <= fabs(want) * 0x1.01p-8)) /* half a step of bf16, and f32's roundings */
                fail_msg("y[%zu][%zu]: %g instead of %g", row, col, (double)from_bf16(y[row * COLS + col]), want);
        }
    }
    clReleaseMemObject(x_mem);
    clReleaseMemObject(weight_mem);
    clReleaseMemObject(y_mem);
    free(x);
    free(y);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(program_is_right)};
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
