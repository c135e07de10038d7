/* Programs on disk: the next process takes them from there. A wrong entry is built again and never reaches the driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program/program_build.h"
#include "program_case.h"
#include "scratch.h"

/* Skips a test where the platform's programs are not kept on disk. */
static void needs_disk(const struct fixture *fixture) {
    if (!cln_program_on_disk(fixture->context))
        skip();
}

static void the_next_process_takes_it_from_disk(void **state) {
    struct fixture *const fixture = *state;
    assert_true(comes(fixture, "built"));
    start_again(fixture);
    const bool on_disk = cln_program_on_disk(fixture->context);
    const cl_program program = get(fixture, &program_source, program_seven);
    assert_non_null(strstr(fixture->log, on_disk ? "from disk" : "built"));
    assert_int_equal(driver.binaries, on_disk ? 1 : 0);
    assert_int_equal(run(fixture, program), 7);
    clReleaseProgram(program);
    assert_true(comes(fixture, "from memory"));
}

static void a_damaged_entry_never_reaches_the_driver(void **state) {
    struct fixture *const fixture = *state;
    needs_disk(fixture);
    assert_true(comes(fixture, "built"));
    size_t length = 0;
    unsigned char *const sound = scratch_read(scratch_only_file(fixture->dir), &length);
    const size_t last = length - 1;
    const struct {
        size_t length, flipped; /* the changed byte; length: none */
    } damages[] = {{0, length},  {39, length},   {length / 2, length}, {last, length},
                   {length, 0},  {length, 8},    {length, 16},         {length, 24},
                   {length, 41}, {length, last}, {length, last / 2},   {length, last - 1000}};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        unsigned char *const bytes = malloc(length);
        assert_non_null(bytes);
        memcpy(bytes, sound, length);
        if (damages[i].flipped < length)
            bytes[damages[i].flipped] ^= 0x10;
        scratch_write(scratch_only_file(fixture->dir), bytes, damages[i].length);
        free(bytes);
        start_again(fixture);
        assert_true(comes(fixture, "built"));
        assert_int_equal(driver.binaries, 0);
    }
    start_again(fixture); /* each build has replaced it */
    assert_true(comes(fixture, "from disk"));
    free(sound);
}

static void an_entry_that_the_driver_refuses_is_built_again(void **state) {
    struct fixture *const fixture = *state;
    needs_disk(fixture);
    assert_true(comes(fixture, "built"));
    const enum refusal refusals[] = {REFUSE_BINARY, REFUSE_BINARY_STATUS, REFUSE_BUILD};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        start_again(fixture);
        driver.refusal = refusals[i];
        assert_true(comes(fixture, "built"));
        assert_int_equal(driver.binaries, 1);
        assert_string_equal(clnorm_error_detail(), ""); /* the caller sees no failure */
        assert_int_equal(scratch_count(fixture->dir), 1);
    }
    start_again(fixture);
    assert_true(comes(fixture, "from disk"));

    start_again(fixture);
    driver.refusal = REFUSE_EVERY_BUILD;
    cl_program program = NULL;
    assert_int_equal(cln_program_get(fixture->context, &program_source, program_seven, &program),
                     CLNORM_OUT_OF_DEVICE_MEMORY);
    assert_null(program);
    assert_int_equal(scratch_count(fixture->dir), 0);
}

/* The facts of a device in the key. */
static char *key_fact(clnorm_device_info *device, size_t index) {
    char *const facts[] = {device->name, device->version, device->driver, device->platform_name, device->platform_version};
    return index < sizeof facts / sizeof facts[0] ? facts[index] : NULL;
}

static void an_entry_of_another_key_is_not_used(void **state) {
    struct fixture *const fixture = *state;
    needs_disk(fixture);
    assert_true(comes(fixture, "built"));
    size_t entries = 1;
    for (size_t i = 0; key_fact(&fixture->context->device, i); i++) {
        start_again(fixture);
        strcat(key_fact(&fixture->context->device, i), "x");
        assert_true(comes(fixture, "built"));
        assert_int_equal(scratch_count(fixture->dir), ++entries);
    }
    static const char other_text[] = "__kernel void fill(__global int *to) { to[get_global_id(0)] = NUMBER; }\n\n";
    const struct cln_source other = {"fill.cl", other_text, sizeof other_text - 1, 2};
    start_again(fixture);
    clReleaseProgram(get(fixture, &other, program_seven));
    assert_non_null(strstr(fixture->log, "built in"));
    assert_int_equal(scratch_count(fixture->dir), ++entries);
    assert_int_equal(driver.binaries, 0);
    start_again(fixture);
    assert_true(comes(fixture, "from disk"));
}

/* The second device of a cl_context of two: its binary is the second one of the program. */
static void a_device_among_others_has_its_own_binary(void **state) {
    struct fixture *const fixture = *state;
    cl_device_id devices[2] = {NULL, NULL};
    cl_uint count = 0;
    needs_disk(fixture);
    assert_int_equal(clGetDeviceIDs(fixture->device.platform, CL_DEVICE_TYPE_ALL, 2, devices, &count), CL_SUCCESS);
    if (count < 2)
        skip();
    cl_int code = CL_SUCCESS;
    clReleaseContext(fixture->cl);
    fixture->cl = clCreateContext(NULL, 2, devices, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(clnorm_device_describe(devices[1], &fixture->device), CLNORM_SUCCESS);
    start_again(fixture);
    assert_true(comes(fixture, "built"));
    start_again(fixture);
    const cl_program program = get(fixture, &program_source, program_seven);
    assert_non_null(strstr(fixture->log, "from disk"));
    assert_int_equal(run(fixture, program), 7);
    clReleaseProgram(program);
}

int main(void) {
    program_calls_start();
    (void)setenv("POCL_DEVICES", "pthread basic", 0); /* PoCL then has two devices */
    const struct CMUnitTest tests[] = {
        program_test(the_next_process_takes_it_from_disk),
        program_test(a_damaged_entry_never_reaches_the_driver),
        program_test(an_entry_that_the_driver_refuses_is_built_again),
        program_test(an_entry_of_another_key_is_not_used),
        program_test(a_device_among_others_has_its_own_binary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
