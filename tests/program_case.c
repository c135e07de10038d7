#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue */
#include "program_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"

static void take_line(const char *line, void *user) {
    struct fixture *const fixture = user;
    assert_null(strpbrk(line, "\r\n"));
    const size_t length = strlen(fixture->log);
    snprintf(fixture->log + length, sizeof fixture->log - length, "%s\n", line);
}

clnorm_context *make_context(struct fixture *fixture, const char *dir) {
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    clnorm_context *context = NULL;
    options.log = take_line;
    options.log_user = fixture;
    options.cache_dir = dir;
    if (clnorm_context_create(fixture->cl, fixture->device.device, &options, &context) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    fixture->log[0] = '\0';
    return context;
}

void start_again(struct fixture *fixture) {
    clnorm_context_destroy(fixture->context);
    fixture->context = make_context(fixture, fixture->dir);
    driver.binaries = 0;
    driver.refusal = REFUSE_NOTHING;
}

int program_setup(void **state) {
    struct fixture *const fixture = calloc(1, sizeof *fixture);
    *state = fixture;
    fixture->dir = scratch_make();
    assert_int_equal(unsetenv("CLNORM_CACHE"), 0);
    clnorm_device_info_init(&fixture->device);
    if (clnorm_device_select(NULL, &fixture->device) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    cl_int code = CL_SUCCESS;
    fixture->cl = clCreateContext(NULL, 1, &fixture->device.device, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    start_again(fixture);
    return 0;
}

int program_teardown(void **state) {
    struct fixture *const fixture = *state;
    clnorm_context_destroy(fixture->context);
    clReleaseContext(fixture->cl);
    scratch_remove(fixture->dir);
    free(fixture);
    const bool all_released = driver.references == 0;
    driver.references = 0;
    return all_released ? 0 : -1;
}

static const char text[] = "__kernel void fill(__global int *to) { to[get_global_id(0)] = NUMBER; }\n";
const struct cln_source program_source = {"fill.cl", text, sizeof text - 1, 1};
const char program_seven[] = "-cl-std=CL1.2 -D NUMBER=7";

cl_program get(struct fixture *fixture, const struct cln_source *of, const char *options) {
    cl_program program = NULL;
    fixture->log[0] = '\0';
    if (cln_program_get(fixture->context, of, options, &program) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    assert_non_null(program);
    return program;
}

bool comes(struct fixture *fixture, const char *from) {
    clReleaseProgram(get(fixture, &program_source, program_seven));
    char expected[64];
    snprintf(expected, sizeof expected, "program fill.cl: %s in ", from);
    return strstr(fixture->log, expected) != NULL;
}

cl_int run(const struct fixture *fixture, cl_program program) {
    cl_int code = CL_SUCCESS, result = 0;
    const size_t one = 1;
    const cl_command_queue queue = clCreateCommandQueue(fixture->cl, fixture->device.device, 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    const cl_mem to = clCreateBuffer(fixture->cl, CL_MEM_READ_WRITE, sizeof result, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    const cl_kernel kernel = clCreateKernel(program, "fill", &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(clSetKernelArg(kernel, 0, sizeof to, &to), CL_SUCCESS);
    assert_int_equal(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof result, &result, 0, NULL, NULL), CL_SUCCESS);
    clReleaseKernel(kernel);
    clReleaseMemObject(to);
    clReleaseCommandQueue(queue);
    return result;
}
