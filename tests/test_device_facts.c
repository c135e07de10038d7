/* Listing and describing the devices of an invented machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_opencl.h"
#include "refusal.h"

/* ----------------------------------------------------------------------------------------------------------- listing */

static void the_best_come_first(void **state) {
    (void)state;
    const enum fake_index expected[] = {
        FAKE_H200, FAKE_H200_TWIN, FAKE_IRIS,   FAKE_T4,       FAKE_ACCELERATOR,
        FAKE_POCL, FAKE_LLVMPIPE,  FAKE_CUSTOM, FAKE_OCLGRIND,
    };
    const size_t expected_count = sizeof expected / sizeof expected[0];
    cl_device_id devices[16];
    size_t count = 0;
    assert_int_equal(clnorm_device_list(devices, 16, &count), CLNORM_SUCCESS);
    assert_int_equal(count, expected_count);
    for (size_t i = 0; i < count; i++)
        assert_ptr_equal(devices[i], fake_handle(expected[i]));
    clnorm_device_info second = CLNORM_DEVICE_INFO_INIT;
    assert_int_equal(clnorm_device_describe(devices[1], &second), CLNORM_SUCCESS);
    assert_int_equal(second.platform_index, 1);
    assert_int_equal(second.device_index, 2);
}

static void the_capacity_is_respected(void **state) {
    (void)state;
    cl_device_id devices[3] = {NULL, NULL, fake_handle(FAKE_CUSTOM)};
    size_t count = 0;
    assert_int_equal(clnorm_device_list(devices, 2, &count), CLNORM_SUCCESS);
    assert_int_equal(count, 9);
    assert_ptr_equal(devices[1], fake_handle(FAKE_H200_TWIN));
    assert_ptr_equal(devices[2], fake_handle(FAKE_CUSTOM));
}

static void no_platform_is_no_device(void **state) {
    (void)state;
    const cl_int codes[] = {CL_SUCCESS, -1001 /* CL_PLATFORM_NOT_FOUND_KHR */};
    fake_trouble.no_platforms = true;
    for (size_t i = 0; i < 2; i++) {
        fake_trouble.platforms_code = codes[i];
        size_t count = 7;
        clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
        assert_int_equal(clnorm_device_list(NULL, 0, &count), CLNORM_SUCCESS);
        assert_int_equal(count, 0);
        assert_int_equal(clnorm_device_select(NULL, &info), CLNORM_DEVICE_NOT_FOUND);
        assert_int_equal(clnorm_device_select("cpu", &info), CLNORM_DEVICE_NOT_FOUND);
        assert_detail("no OpenCL device");
    }
}

static void a_failing_loader_is_an_error(void **state) {
    (void)state;
    size_t count = 7;
    fake_trouble.platforms_code = CL_INVALID_VALUE;
    assert_int_equal(clnorm_device_list(NULL, 0, &count), CLNORM_OPENCL_ERROR);
    assert_int_equal(clnorm_error_opencl(), CL_INVALID_VALUE);
    assert_int_equal(count, 7);
}

static void a_device_that_cannot_be_read_is_left_out(void **state) {
    (void)state;
    size_t count = 0;
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    fake_trouble.of = &fake_devices[FAKE_H200];
    fake_trouble.query = CL_DEVICE_MAX_WORK_GROUP_SIZE;
    fake_trouble.code = CL_OUT_OF_RESOURCES;
    assert_int_equal(clnorm_device_list(&info.device, 1, &count), CLNORM_SUCCESS);
    assert_int_equal(count, 8);
    assert_ptr_equal(info.device, fake_handle(FAKE_H200_TWIN));
    assert_int_equal(clnorm_device_describe(fake_handle(FAKE_H200), &info), CLNORM_OUT_OF_DEVICE_MEMORY);
    assert_detail("work-group size");

    fake_trouble.of = NULL;
    assert_int_equal(clnorm_device_list(&info.device, 1, &count), CLNORM_OUT_OF_DEVICE_MEMORY);
    assert_int_equal(count, 8);
}

/* ------------------------------------------------------------------------------------------------------------- facts */

static clnorm_device_info facts_of(enum fake_index index) {
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    assert_int_equal(clnorm_device_describe(fake_handle(index), &info), CLNORM_SUCCESS);
    return info;
}

static void facts_differ_by_platform(void **state) {
    (void)state;
    const clnorm_device_info h200 = facts_of(FAKE_H200);
    assert_int_equal(h200.kind, CLNORM_DEVICE_GPU);
    assert_int_equal(h200.family, CLNORM_PLATFORM_NVIDIA);
    assert_int_equal(h200.compute_capability, 90);
    assert_int_equal(h200.subgroup_size, 32);
    assert_int_equal(h200.local_memory, 226 << 10);
    assert_int_equal(h200.opencl_c_version, 300);
    assert_string_equal(h200.uuid, "b0b1b2b3-b4b5-b6b7-b8b9-babbbcbdbebf");
    assert_true(h200.fp64 && !h200.fp16 && !h200.subgroups && h200.little_endian);

    const clnorm_device_info thing = facts_of(FAKE_ACCELERATOR);
    assert_int_equal(thing.kind, CLNORM_DEVICE_ACCELERATOR);
    assert_int_equal(thing.family, CLNORM_PLATFORM_OTHER);
    assert_string_equal(thing.name, "Tensor Thing");
    assert_string_equal(thing.uuid, "");
    assert_int_equal(thing.compute_capability, 0);
    assert_int_equal(thing.subgroup_size, 0);
    assert_int_equal(thing.local_memory, 32 << 10);
    assert_int_equal(thing.opencl_c_version, 120);
    assert_true(!thing.fp16 && !thing.fp64);

    assert_true(facts_of(FAKE_IRIS).fp16 && facts_of(FAKE_IRIS).subgroups);
    assert_true(facts_of(FAKE_LLVMPIPE).subgroups);
    assert_int_equal(facts_of(FAKE_LLVMPIPE).family, CLNORM_PLATFORM_MESA);
    assert_int_equal(facts_of(FAKE_POCL).family, CLNORM_PLATFORM_POCL);
    assert_int_equal(facts_of(FAKE_POCL).kind, CLNORM_DEVICE_CPU);
    assert_int_equal(facts_of(FAKE_OCLGRIND).family, CLNORM_PLATFORM_OCLGRIND);
    assert_int_equal(facts_of(FAKE_OCLGRIND).kind, CLNORM_DEVICE_OTHER);
}

static void families_have_names(void **state) {
    (void)state;
    assert_string_equal(clnorm_platform_family_name(facts_of(FAKE_H200).family), "nvidia");
    assert_string_equal(clnorm_platform_family_name(facts_of(FAKE_ACCELERATOR).family), "other");
    assert_string_equal(clnorm_platform_family_name(facts_of(FAKE_LLVMPIPE).family), "mesa");
    assert_string_equal(clnorm_platform_family_name(facts_of(FAKE_POCL).family), "pocl");
    assert_string_equal(clnorm_platform_family_name(facts_of(FAKE_OCLGRIND).family), "oclgrind");
    assert_string_equal(clnorm_platform_family_name((clnorm_platform_family)99), "other");
}

static void local_memory_follows_the_compute_capability(void **state) {
    (void)state;
    static const struct {
        cl_uint capability[2];
        cl_ulong local_memory;
    } cases[] = {
        {{6, 1}, 48 << 10},   {{7, 0}, 95 << 10},  {{7, 5}, 63 << 10},  {{8, 0}, 162 << 10},
        {{8, 6}, 98 << 10},   {{8, 7}, 162 << 10}, {{8, 9}, 98 << 10},  {{9, 0}, 226 << 10},
        {{10, 0}, 226 << 10}, {{12, 0}, 98 << 10}, {{13, 0}, 48 << 10},
    };
    const struct fake_device kept = fake_devices[FAKE_T4];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(fake_devices[FAKE_T4].capability, cases[i].capability, sizeof kept.capability);
        assert_int_equal(facts_of(FAKE_T4).local_memory, cases[i].local_memory);
    }
    fake_devices[FAKE_T4].local_memory = 512 << 10;
    assert_int_equal(facts_of(FAKE_T4).local_memory, 512 << 10);
    fake_devices[FAKE_T4] = kept;
}

static clnorm_device_info facts_without(cl_device_info query) {
    fake_trouble.query = query;
    fake_trouble.code = CL_INVALID_VALUE;
    return facts_of(FAKE_H200);
}

static void a_missing_optional_fact_is_zero(void **state) {
    (void)state;
    assert_string_equal(facts_without(CL_DEVICE_VENDOR).vendor, "");
    assert_int_equal(facts_without(CL_DEVICE_MAX_CLOCK_FREQUENCY).clock_mhz, 0);
    assert_int_equal(facts_without(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT).native_vector_float, 0);
    assert_int_equal(facts_without(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE).cache_size, 0);
    assert_int_equal(facts_without(CL_DEVICE_EXTENSIONS).fp64, false);
    assert_int_equal(facts_without(CL_DEVICE_OPENCL_C_VERSION).opencl_c_version, 300);
    assert_int_equal(facts_without(CL_DEVICE_OPENCL_C_ALL_VERSIONS).opencl_c_version, 120);
    assert_int_equal(facts_without(0x4000).compute_capability, 0); /* CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV */
    assert_int_equal(facts_without(0x4000).local_memory, 48 << 10);
    assert_int_equal(facts_without(0x4003).subgroup_size, 0); /* CL_DEVICE_WARP_SIZE_NV */
    assert_string_equal(facts_without(0x106A).uuid, "");      /* CL_DEVICE_UUID_KHR */
}

static void a_missing_required_fact_is_a_failure(void **state) {
    (void)state;
    const cl_device_info queries[] = {CL_DEVICE_TYPE,
                                      CL_DEVICE_NAME,
                                      CL_DEVICE_VERSION,
                                      CL_DRIVER_VERSION,
                                      CL_DEVICE_MAX_COMPUTE_UNITS,
                                      CL_DEVICE_GLOBAL_MEM_SIZE,
                                      CL_DEVICE_MAX_MEM_ALLOC_SIZE,
                                      CL_DEVICE_LOCAL_MEM_SIZE,
                                      CL_DEVICE_ENDIAN_LITTLE,
                                      CL_DEVICE_PLATFORM};
    fake_trouble.code = CL_OUT_OF_RESOURCES;
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        clnorm_device_info info = {.size = sizeof info, .name = "untouched"};
        fake_trouble.query = queries[i];
        assert_int_equal(clnorm_device_describe(fake_handle(FAKE_H200), &info), CLNORM_OUT_OF_DEVICE_MEMORY);
        assert_int_equal(clnorm_error_opencl(), CL_OUT_OF_RESOURCES);
        assert_string_equal(info.name, "untouched");
    }
}

static void long_names_are_cut_between_characters(void **state) {
    (void)state;
    const struct fake_device kept = fake_devices[FAKE_ACCELERATOR];
    char name[1001] = "";
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa9", 3); /* e with an acute, 2 bytes: 255 is in the middle of one */
    fake_devices[FAKE_ACCELERATOR].name = name;
    clnorm_device_info info = facts_of(FAKE_ACCELERATOR);
    assert_int_equal(strlen(info.name), 254);
    assert_memory_equal(info.name, name, 254);
    fake_devices[FAKE_ACCELERATOR].name = " \t ";
    info = facts_of(FAKE_ACCELERATOR);
    assert_string_equal(info.name, "");
    fake_devices[FAKE_ACCELERATOR] = kept;
}

static void a_sub_device_has_the_indices_of_its_parent(void **state) {
    (void)state;
    const clnorm_device_info info = facts_of(FAKE_PART);
    assert_ptr_equal(info.device, fake_handle(FAKE_PART));
    assert_int_equal(info.compute_units, 16);
    assert_int_equal(info.platform_index, 1);
    assert_int_equal(info.device_index, 1);
}

static void a_context_wants_a_device_of_the_cl_context(void **state) {
    (void)state;
    clnorm_context *context = NULL;
    const cl_context cl = fake_context(FAKE_H200);
    assert_int_equal(clnorm_context_create(cl, fake_handle(FAKE_H200_TWIN), NULL, &context), CLNORM_INVALID_ARGUMENT);
    assert_detail("not one of the 1 devices");
    assert_null(context);
    assert_int_equal(clnorm_context_create(cl, fake_handle(FAKE_H200), NULL, &context), CLNORM_SUCCESS);
    clnorm_context_destroy(context);
}

static void a_context_wants_opencl_1_2(void **state) {
    (void)state;
    static const struct {
        const char *version;
        clnorm_status status;
    } cases[] = {
        {"OpenCL 1.2", CLNORM_SUCCESS},          {"OpenCL 1.1 Old", CLNORM_UNSUPPORTED}, {"OpenCL 2.0 x", CLNORM_SUCCESS},
        {"OpenCL 3.0", CLNORM_SUCCESS},          {"OpenCL 1.0 ", CLNORM_UNSUPPORTED},    {"CUDA 13", CLNORM_UNSUPPORTED},
        {"OpenCL 0.9 beta", CLNORM_UNSUPPORTED},
    };
    const struct fake_device kept = fake_devices[FAKE_ACCELERATOR];
    const cl_context cl = fake_context(FAKE_ACCELERATOR);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clnorm_context *context = NULL;
        fake_devices[FAKE_ACCELERATOR].version = cases[i].version;
        assert_int_equal(clnorm_context_create(cl, fake_handle(FAKE_ACCELERATOR), NULL, &context), cases[i].status);
        clnorm_context_destroy(context);
    }
    fake_devices[FAKE_ACCELERATOR] = kept;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_best_come_first, fake_setup),
        cmocka_unit_test_setup(the_capacity_is_respected, fake_setup),
        cmocka_unit_test_setup(no_platform_is_no_device, fake_setup),
        cmocka_unit_test_setup(a_failing_loader_is_an_error, fake_setup),
        cmocka_unit_test_setup(a_device_that_cannot_be_read_is_left_out, fake_setup),
        cmocka_unit_test_setup(facts_differ_by_platform, fake_setup),
        cmocka_unit_test_setup(families_have_names, fake_setup),
        cmocka_unit_test_setup(local_memory_follows_the_compute_capability, fake_setup),
        cmocka_unit_test_setup(a_missing_optional_fact_is_zero, fake_setup),
        cmocka_unit_test_setup(a_missing_required_fact_is_a_failure, fake_setup),
        cmocka_unit_test_setup(long_names_are_cut_between_characters, fake_setup),
        cmocka_unit_test_setup(a_sub_device_has_the_indices_of_its_parent, fake_setup),
        cmocka_unit_test_setup(a_context_wants_a_device_of_the_cl_context, fake_setup),
        cmocka_unit_test_setup(a_context_wants_opencl_1_2, fake_setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
