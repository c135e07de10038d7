/* Statuses and their details, dtypes, the version. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "base/status.h"

static void every_status_has_its_text(void **state) {
    (void)state;
    for (int a = CLNORM_SUCCESS; a <= CLNORM_NOT_EXACT; a++) {
        const char *const text = clnorm_status_text((clnorm_status)a);
        assert_non_null(text);
        assert_true(strlen(text) >= strlen("success"));
        assert_string_not_equal(text, "unknown status");
        for (int b = CLNORM_SUCCESS; b < a; b++)
            assert_string_not_equal(text, clnorm_status_text((clnorm_status)b));
    }
}

static void other_numbers_are_unknown(void **state) {
    (void)state;
    const int numbers[] = {CLNORM_NOT_EXACT + 1, 1000, -1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_string_equal(clnorm_status_text((clnorm_status)numbers[i]), "unknown status");
}

static void a_failure_leaves_its_detail(void **state) {
    (void)state;
    assert_int_equal(cln_fail(CLNORM_INVALID_SHAPE, "cols is %d: expected %s", 7, "an even number"), CLNORM_INVALID_SHAPE);
    assert_string_equal(clnorm_error_detail(), "cols is 7: expected an even number");
    assert_int_equal(clnorm_error_opencl(), CL_SUCCESS);
}

static void an_opencl_failure_names_call_and_code(void **state) {
    (void)state;
    assert_int_equal(cln_fail_opencl(CL_INVALID_KERNEL_ARGS, "clEnqueueNDRangeKernel"), CLNORM_OPENCL_ERROR);
    assert_string_equal(clnorm_error_detail(), "clEnqueueNDRangeKernel: CL_INVALID_KERNEL_ARGS (-52)");
    assert_int_equal(clnorm_error_opencl(), CL_INVALID_KERNEL_ARGS);
    assert_int_equal(cln_fail_opencl(-9999, "clFinish"), CLNORM_OPENCL_ERROR);
    assert_string_equal(clnorm_error_detail(), "clFinish: unknown OpenCL code (-9999)");
    assert_int_equal(cln_fail_code(CLNORM_BUILD_FAILED, CL_BUILD_PROGRAM_FAILURE, "line %d", 3), CLNORM_BUILD_FAILED);
    assert_string_equal(clnorm_error_detail(), "line 3");
    assert_int_equal(clnorm_error_opencl(), CL_BUILD_PROGRAM_FAILURE);
    cln_fail(CLNORM_INVALID_VALUE, "eps");
    assert_int_equal(clnorm_error_opencl(), CL_SUCCESS);
}

static void opencl_codes_become_statuses(void **state) {
    (void)state;
    static const struct {
        cl_int code;
        clnorm_status status;
    } cases[] = {
        {CL_OUT_OF_HOST_MEMORY, CLNORM_OUT_OF_HOST_MEMORY},
        {CL_OUT_OF_RESOURCES, CLNORM_OUT_OF_DEVICE_MEMORY},
        {CL_MEM_OBJECT_ALLOCATION_FAILURE, CLNORM_OUT_OF_DEVICE_MEMORY},
        {CL_BUILD_PROGRAM_FAILURE, CLNORM_BUILD_FAILED},
        {CL_COMPILER_NOT_AVAILABLE, CLNORM_UNSUPPORTED},
        {CL_DEVICE_NOT_FOUND, CLNORM_DEVICE_NOT_FOUND},
        {CL_INVALID_COMMAND_QUEUE, CLNORM_INVALID_QUEUE},
        {CL_INVALID_MEM_OBJECT, CLNORM_INVALID_BUFFER},
        {CL_INVALID_EVENT_WAIT_LIST, CLNORM_INVALID_ARGUMENT},
        {CL_INVALID_VALUE, CLNORM_OPENCL_ERROR},
        {CL_SUCCESS, CLNORM_OPENCL_ERROR}, /* a failed call without a code */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(cln_fail_opencl(cases[i].code, "call"), cases[i].status);
}

static void codes_have_their_names(void **state) {
    (void)state;
    assert_string_equal(cln_opencl_code_name(CL_SUCCESS), "CL_SUCCESS");
    assert_string_equal(cln_opencl_code_name(-1), "CL_DEVICE_NOT_FOUND");
    assert_string_equal(cln_opencl_code_name(-30), "CL_INVALID_VALUE");
    assert_string_equal(cln_opencl_code_name(-72), "CL_MAX_SIZE_RESTRICTION_EXCEEDED");
    assert_string_equal(cln_opencl_code_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR");
    assert_string_equal(cln_opencl_code_name(-20), "unknown OpenCL code");
    assert_string_equal(cln_opencl_code_name(1), "unknown OpenCL code");
}

static void a_long_detail_is_cut(void **state) {
    (void)state;
    char text[20000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    cln_fail(CLNORM_BUILD_FAILED, "log: %s", text);
    const size_t length = strlen(clnorm_error_detail());
    assert_in_range(length, 2048, sizeof text - 2);
    assert_memory_equal(clnorm_error_detail(), "log: xxx", 8);
}

static void *fail_elsewhere(void *unused) {
    (void)unused;
    const bool clean = *clnorm_error_detail() == '\0' && clnorm_error_opencl() == CL_SUCCESS;
    cln_fail_opencl(CL_INVALID_EVENT, "clWaitForEvents");
    return clean ? "clean" : "dirty";
}

static void details_belong_to_their_thread(void **state) {
    (void)state;
    pthread_t thread;
    void *result = NULL;
    cln_fail(CLNORM_INVALID_ENUM, "mine");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_string_equal(result, "clean");
    assert_string_equal(clnorm_error_detail(), "mine");
    assert_int_equal(clnorm_error_opencl(), CL_SUCCESS);
}

static void dtypes_have_size_and_name(void **state) {
    (void)state;
    static const struct {
        clnorm_dtype dtype;
        size_t size;
        const char *name;
    } cases[] = {
        {CLNORM_DTYPE_NONE, 0, "none"}, {CLNORM_F32, 4, "f32"},
        {CLNORM_F16, 2, "f16"},         {CLNORM_BF16, 2, "bf16"},
        {CLNORM_F64, 8, "f64"},         {CLNORM_F8_E4M3, 1, "f8e4m3"},
        {CLNORM_F8_E5M2, 1, "f8e5m2"},  {(clnorm_dtype)(CLNORM_F8_E5M2 + 1), 0, "none"},
        {(clnorm_dtype)-1, 0, "none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(clnorm_dtype_size(cases[i].dtype), cases[i].size);
        assert_string_equal(clnorm_dtype_name(cases[i].dtype), cases[i].name);
        assert_int_equal(cln_dtype_real(cases[i].dtype), cases[i].size > 1);
        assert_int_equal(cln_dtype_fp8(cases[i].dtype), cases[i].size == 1);
    }
}

static void the_version_is_the_headers(void **state) {
    (void)state;
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", CLNORM_VERSION_MAJOR, CLNORM_VERSION_MINOR, CLNORM_VERSION_PATCH);
    assert_string_equal(clnorm_version(), expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_text),    cmocka_unit_test(other_numbers_are_unknown),
        cmocka_unit_test(a_failure_leaves_its_detail),  cmocka_unit_test(an_opencl_failure_names_call_and_code),
        cmocka_unit_test(opencl_codes_become_statuses), cmocka_unit_test(codes_have_their_names),
        cmocka_unit_test(a_long_detail_is_cut),         cmocka_unit_test(details_belong_to_their_thread),
        cmocka_unit_test(dtypes_have_size_and_name),    cmocka_unit_test(the_version_is_the_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
