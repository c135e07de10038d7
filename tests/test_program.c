/* Programs: built once, then from memory, and from disk in the next process; whatever is wrong on disk is built again and
 * never shown to the driver. OpenCL's calls on programs pass through here to be counted, or refused. */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/context.h"
#include "program/program.h"
#include "program/program_build.h"
#include "program_calls.h"
#include "scratch.h"

/* ----------------------------------------------------------------------------------------------------------- contexts */

struct fixture {
    char *dir; /* of the cache */
    clnorm_device_info device;
    cl_context cl;
    clnorm_context *context;
    char log[1 << 16]; /* its lines */
};

static void take_line(const char *line, void *user) {
    struct fixture *const fixture = user;
    assert_null(strpbrk(line, "\r\n"));
    const size_t length = strlen(fixture->log);
    snprintf(fixture->log + length, sizeof fixture->log - length, "%s\n", line);
}

static clnorm_context *make_context(struct fixture *fixture, const char *dir) {
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

/* A context that remembers nothing, as in the next process. */
static void start_again(struct fixture *fixture) {
    clnorm_context_destroy(fixture->context);
    fixture->context = make_context(fixture, fixture->dir);
    driver.binaries = 0;
    driver.refusal = REFUSE_NOTHING;
}

static int setup(void **state) {
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

static int teardown(void **state) {
    struct fixture *const fixture = *state;
    clnorm_context_destroy(fixture->context);
    clReleaseContext(fixture->cl);
    scratch_remove(fixture->dir);
    free(fixture);
    const bool all_released = driver.references == 0;
    driver.references = 0;
    return all_released ? 0 : -1;
}

/* ----------------------------------------------------------------------------------------------------------- programs */

static const char text[] = "__kernel void fill(__global int *to) { to[get_global_id(0)] = NUMBER; }\n";
static const struct cln_source source = {"fill.cl", text, sizeof text - 1, 1};
static const char seven[] = "-cl-std=CL1.2 -D NUMBER=7";

static cl_program get(struct fixture *fixture, const struct cln_source *of, const char *options) {
    cl_program program = NULL;
    fixture->log[0] = '\0';
    if (cln_program_get(fixture->context, of, options, &program) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    assert_non_null(program);
    return program;
}

/* Gets the program of seven; whether it came from there. */
static bool comes(struct fixture *fixture, const char *from) {
    clReleaseProgram(get(fixture, &source, seven));
    char expected[64];
    snprintf(expected, sizeof expected, "program fill.cl: %s in ", from);
    return strstr(fixture->log, expected) != NULL;
}

/* What a program gives when it runs. */
static cl_int run(const struct fixture *fixture, cl_program program) {
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

static void a_program_is_built_once(void **state) {
    struct fixture *const fixture = *state;
    const cl_program first = get(fixture, &source, seven);
    assert_non_null(strstr(fixture->log, "program fill.cl: built in "));
    assert_non_null(strstr(fixture->log, seven));
    const cl_program second = get(fixture, &source, seven);
    assert_non_null(strstr(fixture->log, "program fill.cl: from memory in "));
    assert_ptr_equal(first, second);
    const cl_program other = get(fixture, &source, "-cl-std=CL1.2 -D NUMBER=8");
    assert_non_null(strstr(fixture->log, "built in "));
    assert_ptr_not_equal(first, other);
    assert_int_equal(run(fixture, first), 7);
    assert_int_equal(run(fixture, other), 8);
    clReleaseProgram(first);
    clReleaseProgram(second);
    clReleaseProgram(other);
}

/* More of them than a store has room for at first. */
static void many_programs_are_told_apart(void **state) {
    struct fixture *const fixture = *state;
    enum { PROGRAMS = 18 };
    clnorm_context_destroy(fixture->context);
    fixture->context = make_context(fixture, ""); /* asking for binaries takes as long as building */
    cl_program programs[PROGRAMS];
    char options[PROGRAMS][64];
    for (int i = 0; i < PROGRAMS; i++) {
        snprintf(options[i], sizeof options[i], "-cl-std=CL1.2 -D NUMBER=%d", 100 + i);
        programs[i] = get(fixture, &source, options[i]);
    }
    for (int i = 0; i < PROGRAMS; i++) {
        const cl_program again = get(fixture, &source, options[i]);
        assert_non_null(strstr(fixture->log, "from memory"));
        assert_ptr_equal(again, programs[i]);
        clReleaseProgram(again);
        clReleaseProgram(programs[i]);
    }
}

static void the_next_process_takes_it_from_disk(void **state) {
    struct fixture *const fixture = *state;
    assert_true(comes(fixture, "built"));
    start_again(fixture);
    const bool on_disk = cln_program_on_disk(fixture->context);
    const cl_program program = get(fixture, &source, seven);
    assert_non_null(strstr(fixture->log, on_disk ? "from disk" : "built"));
    assert_int_equal(driver.binaries, on_disk ? 1 : 0);
    assert_int_equal(run(fixture, program), 7);
    clReleaseProgram(program);
    assert_true(comes(fixture, "from memory"));
}

static void without_a_folder_nothing_is_kept(void **state) {
    struct fixture *const fixture = *state;
    for (unsigned i = 0; i < 2; i++) {
        clnorm_context_destroy(fixture->context);
        fixture->context = make_context(fixture, "");
        assert_true(comes(fixture, "built"));
    }
    assert_int_equal(scratch_count(fixture->dir), 0);
    assert_int_equal(driver.binaries, 0);
}

/* -------------------------------------------------------------------------------------------------------- wrong entries */

/* The rest is about entries on disk, which some platforms do without. */
static void want_disk(const struct fixture *fixture) {
    if (!cln_program_on_disk(fixture->context))
        skip();
}

static void a_damaged_entry_never_reaches_the_driver(void **state) {
    struct fixture *const fixture = *state;
    want_disk(fixture);
    assert_true(comes(fixture, "built"));
    size_t length = 0;
    unsigned char *const sound = scratch_read(scratch_only_file(fixture->dir), &length);
    const size_t last = length - 1;
    const struct {
        size_t length, flipped; /* the byte that is another one; length: none */
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
    start_again(fixture); /* each build has mended it */
    assert_true(comes(fixture, "from disk"));
    free(sound);
}

static void an_entry_that_the_driver_refuses_is_built_again(void **state) {
    struct fixture *const fixture = *state;
    want_disk(fixture);
    assert_true(comes(fixture, "built"));
    const enum refusal refusals[] = {REFUSE_BINARY, REFUSE_BINARY_STATUS, REFUSE_BUILD};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        start_again(fixture);
        driver.refusal = refusals[i];
        assert_true(comes(fixture, "built"));
        assert_int_equal(driver.binaries, 1);
        assert_string_equal(clnorm_error_detail(), ""); /* nothing failed that the caller would know of */
        assert_int_equal(scratch_count(fixture->dir), 1);
    }
    start_again(fixture);
    assert_true(comes(fixture, "from disk"));

    start_again(fixture);
    driver.refusal = REFUSE_EVERY_BUILD;
    cl_program program = NULL;
    assert_int_equal(cln_program_get(fixture->context, &source, seven, &program), CLNORM_OUT_OF_DEVICE_MEMORY);
    assert_null(program);
    assert_int_equal(scratch_count(fixture->dir), 0);
}

/* The facts that stand in the key. */
static char *key_fact(clnorm_device_info *device, size_t index) {
    char *const facts[] = {device->name, device->version, device->driver, device->platform_name, device->platform_version};
    return index < sizeof facts / sizeof facts[0] ? facts[index] : NULL;
}

static void an_entry_of_something_else_is_not_taken(void **state) {
    struct fixture *const fixture = *state;
    want_disk(fixture);
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
    clReleaseProgram(get(fixture, &other, seven));
    assert_non_null(strstr(fixture->log, "built in"));
    assert_int_equal(scratch_count(fixture->dir), ++entries);
    assert_int_equal(driver.binaries, 0);
    start_again(fixture);
    assert_true(comes(fixture, "from disk"));
}

/* --------------------------------------------------------------------------------------------------------- failed builds
 */

static void a_failed_build_tells_why(void **state) {
    struct fixture *const fixture = *state;
    static const char wrong_text[] = "__kernel void fill(__global int *to) {\n    to[0] = undeclared_thing;\n}\n";
    const struct cln_source wrong = {"wrong.cl", wrong_text, sizeof wrong_text - 1, 3};
    cl_program program = NULL;
    assert_int_equal(cln_program_get(fixture->context, &wrong, seven, &program), CLNORM_BUILD_FAILED);
    assert_null(program);
    assert_int_equal(clnorm_error_opencl(), CL_BUILD_PROGRAM_FAILURE);
    assert_non_null(strstr(clnorm_error_detail(), "wrong.cl"));
    assert_non_null(strstr(clnorm_error_detail(), seven));
    assert_non_null(strstr(clnorm_error_detail(), "undeclared_thing"));
    assert_non_null(strstr(fixture->log, "program wrong.cl: "));
    assert_non_null(strstr(fixture->log, "undeclared_thing"));
    assert_int_equal(scratch_count(fixture->dir), 0);
    assert_int_equal(cln_program_get(fixture->context, &wrong, seven, &program), CLNORM_BUILD_FAILED);
    assert_true(comes(fixture, "built"));
}

/* PoCL before 6.0 loses builds to other processes that build the same program. */
static void a_build_that_another_process_spoilt_is_repeated(void **state) {
    struct fixture *const fixture = *state;
    snprintf(fixture->context->device.driver, sizeof fixture->context->device.driver, "5.0");
    fixture->context->device.family = CLNORM_PLATFORM_POCL;
    driver.losses = 7;
    clReleaseProgram(get(fixture, &source, seven));
    assert_int_equal(driver.losses, 0);
    assert_non_null(strstr(fixture->log, "PoCL before 6.0"));

    cl_program program = NULL;
    static const char eight[] = "-cl-std=CL1.2 -D NUMBER=8";
    driver.losses = 100; /* there is an end to it */
    assert_int_equal(cln_program_get(fixture->context, &source, eight, &program), CLNORM_BUILD_FAILED);
    assert_int_equal(driver.losses, 92);
    snprintf(fixture->context->device.driver, sizeof fixture->context->device.driver, "6.0");
    driver.losses = 100; /* a driver without the defect is asked once */
    assert_int_equal(cln_program_get(fixture->context, &source, eight, &program), CLNORM_BUILD_FAILED);
    assert_int_equal(driver.losses, 99);
    driver.losses = 0;
}

static void wrong_options_are_a_failed_build(void **state) {
    struct fixture *const fixture = *state;
    cl_program program = NULL;
    assert_int_equal(cln_program_get(fixture->context, &source, "-cl-no-such-option", &program), CLNORM_BUILD_FAILED);
    assert_non_null(strstr(clnorm_error_detail(), "-cl-no-such-option"));
    assert_null(program);
}

/* ------------------------------------------------------------------------------------------------- threads and devices */

struct getter {
    pthread_t thread;
    clnorm_context *context;
    clnorm_status status;
    cl_program programs[8];
};

static void *get_programs(void *argument) {
    struct getter *const getter = argument;
    for (unsigned i = 0; i < 8; i++) {
        char options[64];
        snprintf(options, sizeof options, "-cl-std=CL1.2 -D NUMBER=%u", 200 + i % 4);
        const clnorm_status status = cln_program_get(getter->context, &source, options, &getter->programs[i]);
        if (status != CLNORM_SUCCESS)
            getter->status = status;
    }
    return NULL;
}

/* Just where the driver knows the option, just where it is wanted, and programs are the same ones. */
static void a_build_report_is_asked_for(void **state) {
    struct fixture *const fixture = *state;
    for (unsigned i = 0; i < 4; i++) {
        const bool wanted = i & 1, nvidia = i & 2;
        start_again(fixture);
        fixture->context->build_report = wanted;
        fixture->context->device.family = nvidia ? CLNORM_PLATFORM_NVIDIA : CLNORM_PLATFORM_OTHER;
        driver.refusal = nvidia ? REFUSE_EVERY_BUILD : REFUSE_NOTHING;
        cl_program program = NULL;
        const clnorm_status status = cln_program_get(fixture->context, &source, seven, &program);
        assert_int_equal(driver.verbose, wanted && nvidia);
        assert_int_equal(status == CLNORM_SUCCESS, !nvidia);
        if (program)
            clReleaseProgram(program);
        assert_null(strstr(fixture->log, "verbose"));
    }
}

static void threads_share_programs(void **state) {
    struct fixture *const fixture = *state;
    enum { THREADS = 4 };
    if (fixture->device.family == CLNORM_PLATFORM_OCLGRIND)
        skip(); /* two builds at once end the process inside it */
    struct getter getters[THREADS];
    memset(getters, 0, sizeof getters);
    fixture->context->log = NULL; /* the one of these tests is for one thread */
    for (size_t t = 0; t < THREADS; t++) {
        getters[t].context = fixture->context;
        assert_int_equal(pthread_create(&getters[t].thread, NULL, get_programs, &getters[t]), 0);
    }
    for (size_t t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_join(getters[t].thread, NULL), 0);
        assert_int_equal(getters[t].status, CLNORM_SUCCESS);
    }
    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < 8; i++) {
            assert_ptr_equal(getters[t].programs[i], getters[0].programs[i % 4]);
            if (t == 0 && i < 4)
                assert_int_equal(run(fixture, getters[t].programs[i]), 200 + (cl_int)i);
        }
    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < 8; i++)
            clReleaseProgram(getters[t].programs[i]);
}

/* The second device of the platform, in a cl_context of both: its binary is not the first of the program's. */
static void a_device_among_others_has_its_own_binary(void **state) {
    struct fixture *const fixture = *state;
    cl_device_id devices[2] = {NULL, NULL};
    cl_uint count = 0;
    want_disk(fixture);
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
    const cl_program program = get(fixture, &source, seven);
    assert_non_null(strstr(fixture->log, "from disk"));
    assert_int_equal(run(fixture, program), 7);
    clReleaseProgram(program);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void) {
    program_calls_start();
    (void)setenv("POCL_DEVICES", "pthread basic", 0); /* PoCL then has two devices */
    const struct CMUnitTest tests[] = {
        TEST(a_program_is_built_once),
        TEST(many_programs_are_told_apart),
        TEST(the_next_process_takes_it_from_disk),
        TEST(without_a_folder_nothing_is_kept),
        TEST(a_damaged_entry_never_reaches_the_driver),
        TEST(an_entry_that_the_driver_refuses_is_built_again),
        TEST(an_entry_of_something_else_is_not_taken),
        TEST(a_failed_build_tells_why),
        TEST(a_build_that_another_process_spoilt_is_repeated),
        TEST(wrong_options_are_a_failed_build),
        TEST(a_build_report_is_asked_for),
        TEST(threads_share_programs),
        TEST(a_device_among_others_has_its_own_binary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
