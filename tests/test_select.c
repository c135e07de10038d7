/* Selectors, on the machine of fake_opencl.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_opencl.h"

static void selectors_match_devices(void **state) {
    (void)state;
    static const struct {
        const char *selector;
        int device; /* a fake_index; -1: none */
    } cases[] = {
        {"gpu", FAKE_H200},
        {"cpu", FAKE_POCL},
        {"accelerator", FAKE_ACCELERATOR},
        {" GPU , Vendor=INTEL ", FAKE_IRIS},
        {"1:0", FAKE_T4},
        {"6:0", FAKE_OCLGRIND},
        {"4294967295:0", -1},
        {"3:0", -1},
        {"uuid:c0c1c2c3-c4c5-c6c7-c8c9-cacbcccdcecf", FAKE_H200_TWIN},
        {"uuid:C0C1C2C3-C4C5-C6C7-C8C9-CACBCCCDCECF", FAKE_H200_TWIN},
        {"uuid:00000000-0000-0000-0000-000000000000", -1},
        {"name=t4", FAKE_T4},
        {"name=nvidia h2", FAKE_H200},
        {"name=h2, 1:2", FAKE_H200_TWIN},
        {"name=nothing", -1},
        {"platform=rust", FAKE_LLVMPIPE},
        {"platform=computing language", FAKE_POCL},
        {"vendor=bristol", FAKE_OCLGRIND},
        {"fp16", FAKE_IRIS},
        {"fp64,cpu", FAKE_POCL},
        {"subgroups,cpu", FAKE_LLVMPIPE},
        {"gpu,memory>=15G,name=T4", FAKE_T4},
        {"gpu,memory>=16G,name=T4", -1},
        {"cpu,memory>=64g", FAKE_POCL},
        {"cpu,memory>=68719476737", -1},
        {"cpu,memory>=67108865K", -1},
        {"cpu,memory>=65536M", FAKE_POCL},
        {"memory>=1T", -1},
        {"memory>=0", FAKE_H200},
        {"gpu,vendor=amd;cpu", FAKE_POCL},
        {"cpu;gpu", FAKE_POCL},
        {"name=none;vendor=neither;platform=unheard,gpu", FAKE_IRIS},
        {"gpu,cpu", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
        const clnorm_status status = clnorm_device_select(cases[i].selector, &info);
        if (status != (cases[i].device >= 0 ? CLNORM_SUCCESS : CLNORM_DEVICE_NOT_FOUND))
            fail_msg("'%s': %s (%s)", cases[i].selector, clnorm_status_text(status), clnorm_error_detail());
        if (cases[i].device >= 0 && info.device != fake_handle((enum fake_index)cases[i].device))
            fail_msg("'%s' matches %s", cases[i].selector, info.name);
        if (cases[i].device < 0)
            assert_non_null(strstr(clnorm_error_detail(), cases[i].selector));
    }
}

static void wrong_selectors_are_quoted(void **state) {
    (void)state;
    static const struct {
        const char *selector, *quoted;
    } cases[] = {
        {"gpuu", "'gpuu'"},
        {"gpu,fast", "'fast'"},
        {"cpu;tpu", "'tpu'"}, /* although cpu matches a device */
        {"gpu;;cpu", "'gpu;;cpu'"},
        {"gpu;", "'gpu;'"},
        {";", "';'"},
        {" ", "' '"},
        {"gpu,", "'gpu,'"},
        {",gpu", "',gpu'"},
        {"name=", "'name='"},
        {"vendor= ", "'vendor='"},
        {"platform", "'platform'"},
        {"1:", "'1:'"},
        {":1", "':1'"},
        {"1:2:3", "'1:2:3'"},
        {"-1:0", "'-1:0'"},
        {"1:0x", "'1:0x'"},
        {"4294967296:0", "the term '4294967296:0': expected indices P:D, each from 0 to 4294967295"},
        {"0:4294967296", "the term '0:4294967296': expected indices P:D, each from 0 to 4294967295"},
        {"99999999999999999999999:0", "'99999999999999999999999:0': expected indices P:D, each from 0 to 4294967295"},
        {"memory>=", "'memory>='"},
        {"memory>=G", "'memory>=G'"},
        {"memory>=8GB", "'memory>=8GB'"},
        {"memory>=8P", "'memory>=8P'"},
        {"memory>=-8G", "'memory>=-8G'"},
        {"memory>=1.5G", "'memory>=1.5G'"},
        {"memory>=18446744073709551616", "'memory>=18446744073709551616'"},
        {"memory>=17179869184G", "'memory>=17179869184G'"},
        {"memory>8G", "'memory>8G'"},
        {"uuid:", "'uuid:'"},
        {"uuid:c0c1c2c3", "'uuid:c0c1c2c3'"},
        {"uuid:c0c1c2c3-c4c5-c6c7-c8c9-cacbcccdcecg", "'uuid:c0c1c2c3-c4c5-c6c7-c8c9-cacbcccdcecg'"},
        {"uuid:c0c1c2c3xc4c5-c6c7-c8c9-cacbcccdcecf", "'uuid:c0c1c2c3xc4c5-c6c7-c8c9-cacbcccdcecf'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clnorm_device_info info = {.size = sizeof info, .name = "untouched"};
        const clnorm_status status = clnorm_device_select(cases[i].selector, &info);
        if (status != CLNORM_INVALID_SELECTOR || !strstr(clnorm_error_detail(), cases[i].quoted))
            fail_msg("'%s': %s (%s)", cases[i].selector, clnorm_status_text(status), clnorm_error_detail());
        assert_string_equal(info.name, "untouched");
    }
}

static void the_largest_numbers_are_valid(void **state) {
    (void)state;
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    assert_int_equal(clnorm_device_select("memory>=18446744073709551615", &info), CLNORM_DEVICE_NOT_FOUND);
    assert_int_equal(clnorm_device_select("memory>=17179869183G", &info), CLNORM_DEVICE_NOT_FOUND);
}

static void a_long_selector_is_quoted_in_part(void **state) {
    (void)state;
    char selector[10000];
    memset(selector, 'z', sizeof selector - 1);
    selector[sizeof selector - 1] = '\0';
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    assert_int_equal(clnorm_device_select(selector, &info), CLNORM_INVALID_SELECTOR);
    assert_non_null(strstr(clnorm_error_detail(), "expected gpu"));
    memcpy(selector, "name=", 5);
    assert_int_equal(clnorm_device_select(selector, &info), CLNORM_DEVICE_NOT_FOUND);
}

static void a_platform_that_failed_is_named(void **state) {
    (void)state;
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    assert_int_equal(clnorm_device_select("name=Radeon", &info), CLNORM_DEVICE_NOT_FOUND);
    assert_non_null(strstr(clnorm_error_detail(), "no OpenCL device matches 'name=Radeon'"));
    assert_non_null(strstr(clnorm_error_detail(), "reading the devices of a platform failed with CL_OUT_OF_HOST_MEMORY"));
    assert_int_equal(clnorm_error_opencl(), CL_OUT_OF_HOST_MEMORY);
}

static void an_index_out_of_range_is_named(void **state) {
    (void)state;
    static const struct {
        const char *selector, *reason; /* NULL: none, as there are other terms */
    } cases[] = {
        {"7:0", ": the platform's index is 7, expected at most 6"},
        {" 4294967295:4294967295 ", ": the platform's index is 4294967295, expected at most 6"},
        {"1:3", ": the device's index is 3, expected at most 2 in platform 1"},
        {"0:1", ": the device's index is 1, expected at most 0 in platform 0"},
        {"2:0", ": platform 2 has no device that can be read"},
        {"3:0", ": platform 3 has no device that can be read"},
        {"7:0,gpu", NULL},
        {"7:0;8:0", NULL},
        {"name=nothing", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
        assert_int_equal(clnorm_device_select(cases[i].selector, &info), CLNORM_DEVICE_NOT_FOUND);
        const char *const end = strchr(clnorm_error_detail(), ')');
        assert_non_null(end);
        assert_string_equal(end + 1, cases[i].reason ? cases[i].reason : "");
    }
}

static void a_device_that_cannot_be_read_is_named(void **state) {
    (void)state;
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    fake_trouble.of = &fake_devices[FAKE_H200];
    fake_trouble.query = CL_DEVICE_MAX_WORK_GROUP_SIZE;
    fake_trouble.code = CL_OUT_OF_RESOURCES;
    assert_int_equal(clnorm_device_select("1:1", &info), CLNORM_DEVICE_NOT_FOUND);
    assert_non_null(strstr(clnorm_error_detail(), "): device 1 of platform 1 cannot be read"));
}

static void without_a_selector_the_environment_decides(void **state) {
    (void)state;
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    assert_int_equal(clnorm_device_select(NULL, &info), CLNORM_SUCCESS);
    assert_ptr_equal(info.device, fake_handle(FAKE_H200));
    assert_int_equal(setenv("CLNORM_DEVICE", "cpu,platform=rusticl", 1), 0);
    assert_int_equal(clnorm_device_select(NULL, &info), CLNORM_SUCCESS);
    assert_ptr_equal(info.device, fake_handle(FAKE_LLVMPIPE));
    assert_int_equal(clnorm_device_select("", &info), CLNORM_SUCCESS);
    assert_ptr_equal(info.device, fake_handle(FAKE_LLVMPIPE));
    assert_int_equal(clnorm_device_select("gpu", &info), CLNORM_SUCCESS);
    assert_ptr_equal(info.device, fake_handle(FAKE_H200));
    assert_int_equal(setenv("CLNORM_DEVICE", "mistake", 1), 0);
    assert_int_equal(clnorm_device_select("", &info), CLNORM_INVALID_SELECTOR);
    assert_non_null(strstr(clnorm_error_detail(), "CLNORM_DEVICE"));
    assert_int_equal(setenv("CLNORM_DEVICE", "", 1), 0);
    assert_int_equal(clnorm_device_select("", &info), CLNORM_SUCCESS);
    assert_ptr_equal(info.device, fake_handle(FAKE_H200));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(selectors_match_devices, fake_setup),
        cmocka_unit_test_setup(wrong_selectors_are_quoted, fake_setup),
        cmocka_unit_test_setup(the_largest_numbers_are_valid, fake_setup),
        cmocka_unit_test_setup(a_long_selector_is_quoted_in_part, fake_setup),
        cmocka_unit_test_setup(a_platform_that_failed_is_named, fake_setup),
        cmocka_unit_test_setup(an_index_out_of_range_is_named, fake_setup),
        cmocka_unit_test_setup(a_device_that_cannot_be_read_is_named, fake_setup),
        cmocka_unit_test_setup(without_a_selector_the_environment_decides, fake_setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
