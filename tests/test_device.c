/* Devices as the installed OpenCL implementation has them, and contexts on them. */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue, which every version has */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "clnorm/clnorm.h"
#include "refusal.h"

static clnorm_device_info best_device(void) {
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    assert_int_equal(clnorm_device_select(NULL, &info), CLNORM_SUCCESS);
    return info;
}

/* Compares every fact, but not the padding after the last one. */
static void assert_same_facts(const clnorm_device_info *a, const clnorm_device_info *b) {
    assert_memory_equal(a, b, offsetof(clnorm_device_info, subgroups) + sizeof a->subgroups);
}

static cl_context make_cl_context(cl_device_id device) {
    cl_int code = CL_SUCCESS;
    const cl_context cl = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    return cl;
}

/* ------------------------------------------------------------------------------------------------------------- facts */

static cl_ulong query_number(cl_device_id device, cl_device_info what, size_t size) {
    cl_ulong value = 0; /* assumes a little-endian host */
    assert_int_equal(clGetDeviceInfo(device, what, size, &value, NULL), CL_SUCCESS);
    return value;
}

/* Drivers pad: blanks at the ends do not count. */
static void assert_same_text(cl_device_id device, cl_device_info what, const char *text) {
    char raw[4096] = "";
    assert_int_equal(clGetDeviceInfo(device, what, sizeof raw, raw, NULL), CL_SUCCESS);
    const char *const start = raw + strspn(raw, " ");
    assert_int_equal(strncmp(text, start, strlen(text)), 0);
    assert_int_equal(strspn(start + strlen(text), " "), strlen(start + strlen(text)));
}

static void facts_are_what_the_driver_says(void **state) {
    (void)state;
    const clnorm_device_info info = best_device();
    const cl_device_id device = info.device;
    assert_same_text(device, CL_DEVICE_NAME, info.name);
    assert_same_text(device, CL_DEVICE_VENDOR, info.vendor);
    assert_same_text(device, CL_DEVICE_VERSION, info.version);
    assert_same_text(device, CL_DRIVER_VERSION, info.driver);
    assert_true(strlen(info.name) > 0 && strlen(info.platform_name) > 0 && strlen(info.platform_version) > 0);
    assert_int_equal(info.compute_units, query_number(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint)));
    assert_int_equal(info.clock_mhz, query_number(device, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(cl_uint)));
    assert_int_equal(info.native_vector_float, query_number(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof(cl_uint)));
    assert_int_equal(info.global_memory, query_number(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong)));
    assert_int_equal(info.max_allocation, query_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong)));
    assert_int_equal(info.max_work_group_size, query_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t)));
    assert_true(info.local_memory >= query_number(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong)));
    assert_int_equal(info.little_endian, query_number(device, CL_DEVICE_ENDIAN_LITTLE, sizeof(cl_bool)));
    assert_int_equal(info.fp64, query_number(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof(cl_ulong)) != 0);
    unsigned major = 0, minor = 0;
    char text[256] = "";
    assert_int_equal(clGetDeviceInfo(device, CL_DEVICE_OPENCL_C_VERSION, sizeof text, text, NULL), CL_SUCCESS);
    assert_int_equal(sscanf(text, "OpenCL C %2u.%2u", &major, &minor), 2);
    assert_true(info.opencl_c_version >= 120 && info.opencl_c_version >= 100 * major + 10 * minor);
}

static void describe_agrees_with_select(void **state) {
    (void)state;
    size_t count = 0;
    assert_int_equal(clnorm_device_list(NULL, 0, &count), CLNORM_SUCCESS);
    assert_true(count > 0);
    cl_device_id *const devices = calloc(count, sizeof *devices);
    assert_non_null(devices);
    size_t again = 0;
    assert_int_equal(clnorm_device_list(devices, count, &again), CLNORM_SUCCESS);
    assert_int_equal(again, count);
    for (size_t i = 0; i < count; i++) {
        clnorm_device_info one = CLNORM_DEVICE_INFO_INIT, selected = CLNORM_DEVICE_INFO_INIT;
        char selector[32];
        assert_int_equal(clnorm_device_describe(devices[i], &one), CLNORM_SUCCESS);
        assert_ptr_equal(one.device, devices[i]);
        (void)snprintf(selector, sizeof selector, "%u:%u", one.platform_index, one.device_index);
        assert_int_equal(clnorm_device_select(selector, &selected), CLNORM_SUCCESS);
        assert_same_facts(&one, &selected);
    }
    free(devices);
}

/* An info of an older, smaller size is filled up to that size. */
static void infos_of_other_sizes(void **state) {
    (void)state;
    clnorm_device_info older = CLNORM_DEVICE_INFO_INIT;
    older.size = offsetof(clnorm_device_info, vendor);
    assert_int_equal(clnorm_device_select(NULL, &older), CLNORM_SUCCESS);
    assert_string_equal(older.name, best_device().name);
    assert_string_equal(older.vendor, "");
    assert_int_equal(older.size, offsetof(clnorm_device_info, vendor));
    older.size = 7;
    assert_int_equal(clnorm_device_select(NULL, &older), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_device_describe(older.device, &older), CLNORM_INVALID_ARGUMENT);
    assert_detail("info.size is 7");
}

static void missing_arguments_are_refused(void **state) {
    (void)state;
    clnorm_device_info info = best_device();
    size_t count = 77;
    assert_int_equal(clnorm_device_list(&info.device, 1, NULL), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_device_list(NULL, 1, &count), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(count, 77);
    assert_int_equal(clnorm_device_describe(NULL, &info), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_device_describe(info.device, NULL), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_device_select("gpu", NULL), CLNORM_INVALID_ARGUMENT);
}

/* ----------------------------------------------------------------------------------------------------------- contexts */

static void a_context_knows_its_device_and_folder(void **state) {
    (void)state;
    assert_int_equal(unsetenv("CLNORM_CACHE"), 0);
    const clnorm_device_info info = best_device();
    const cl_context cl = make_cl_context(info.device);
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.cache_dir = "/nowhere/at all";
    clnorm_context *context = NULL;
    assert_int_equal(clnorm_context_create(cl, info.device, &options, &context), CLNORM_SUCCESS);
    clReleaseContext(cl); /* it has its own reference */
    assert_same_facts(clnorm_context_device(context), &info);
    assert_string_equal(clnorm_context_cache_dir(context), "/nowhere/at all");
    clnorm_context_destroy(context);
    clnorm_context_destroy(NULL);
    assert_null(clnorm_context_device(NULL));
    assert_string_equal(clnorm_context_cache_dir(NULL), "");
}

static void a_context_refuses_what_does_not_fit(void **state) {
    (void)state;
    const clnorm_device_info info = best_device();
    const cl_context cl = make_cl_context(info.device);
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    clnorm_context *const untouched = (clnorm_context *)&options, *context = untouched;
    assert_int_equal(clnorm_context_create(NULL, info.device, NULL, &context), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_context_create(cl, NULL, NULL, &context), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_context_create(cl, info.device, NULL, NULL), CLNORM_INVALID_ARGUMENT);
    options.size--;
    assert_int_equal(clnorm_context_create(cl, info.device, &options, &context), CLNORM_INVALID_ARGUMENT);
    assert_detail("options.size");
    assert_ptr_equal(context, untouched);
    clReleaseContext(cl);
}

/* PoCL lists the whole device among the devices of a cl_context of a sub-device. */
static void a_context_of_a_sub_device_runs(void **state) {
    (void)state;
    const clnorm_device_info info = best_device();
    const cl_device_partition_property each_unit[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_device_id parts[64];
    cl_uint count = 0;
    if (clCreateSubDevices(info.device, each_unit, 64, parts, &count) != CL_SUCCESS || count == 0)
        skip();
    const cl_context cl = make_cl_context(parts[0]);
    cl_int code = CL_SUCCESS;
    const cl_command_queue queue = clCreateCommandQueue(cl, parts[0], 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    float row[4] = {3, -3, 3, 3};
    const cl_mem mem = clCreateBuffer(cl, CL_MEM_COPY_HOST_PTR, sizeof row, row, &code);
    assert_int_equal(code, CL_SUCCESS);
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.cache_dir = "";
    clnorm_context *context = NULL;
    assert_int_equal(clnorm_context_create(cl, parts[0], &options, &context), CLNORM_SUCCESS);
    assert_int_equal(clnorm_context_device(context)->compute_units, 1);
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.norm = CLNORM_RMS_NORM;
    desc.rows = 1;
    desc.cols = 4;
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = args.y.mem = mem;
    assert_int_equal(clnorm_norm_forward(context, queue, &desc, &args, 0, NULL, NULL), CLNORM_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, sizeof row, row, 0, NULL, NULL), CL_SUCCESS);
    for (int i = 0; i < 4; i++)
        assert_float_equal(row[i], i == 1 ? -1 : 1, 1e-6);
    clnorm_context_destroy(context);
    clReleaseMemObject(mem);
    clReleaseCommandQueue(queue);
    clReleaseContext(cl);
    for (cl_uint i = 0; i < count; i++)
        clReleaseDevice(parts[i]);
}

static void take_line(const char *line, void *user) {
    char *const text = user;
    assert_null(strchr(line, '\n'));
    strncat(text, line, 2000);
    strncat(text, "\n", 2);
}

static void a_context_logs_what_it_found(void **state) {
    (void)state;
    const clnorm_device_info info = best_device();
    const cl_context cl = make_cl_context(info.device);
    char text[8192] = "";
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.log = take_line;
    options.log_user = text;
    options.cache_dir = "";
    clnorm_context *context = NULL;
    assert_int_equal(clnorm_context_create(cl, info.device, &options, &context), CLNORM_SUCCESS);
    assert_non_null(strstr(text, info.name));
    assert_non_null(strstr(text, "program cache off"));
    clnorm_context_destroy(context);
    clReleaseContext(cl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_what_the_driver_says),
        cmocka_unit_test(describe_agrees_with_select),
        cmocka_unit_test(infos_of_other_sizes),
        cmocka_unit_test(missing_arguments_are_refused),
        cmocka_unit_test(a_context_knows_its_device_and_folder),
        cmocka_unit_test(a_context_refuses_what_does_not_fit),
        cmocka_unit_test(a_context_of_a_sub_device_runs),
        cmocka_unit_test(a_context_logs_what_it_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
