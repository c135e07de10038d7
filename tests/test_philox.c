/* cl/common/philox.h and the reference's Philox agree with the vectors that Philox's authors published, and with each
 * other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "program/source.h"
#include "reference/reference.h"

extern const struct cln_source cln_source_philox; /* the build makes it of cl/common/philox.h */

/* The vectors of philox4x32-10 in kat_vectors of Random123, the authors' implementation. */
static const struct vector {
    uint32_t counter[4], key[2], words[4];
} vectors[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};
enum { VECTORS = sizeof vectors / sizeof *vectors, DRAWS = 256 };

static const char *const text =
    "kernel void draw(const global uint4 *counters, const global uint2 *keys, global uint4 *out) {\n"
    "    const size_t i = get_global_id(0);\n"
    "    out[i] = philox4x32(counters[i], keys[i]);\n"
    "}\n";

static cl_mem buffer_of(const struct fixture *fixture, cl_kernel kernel, cl_uint argument, const void *bytes, size_t size) {
    cl_int code = CL_SUCCESS;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    const cl_mem mem = clCreateBuffer(fixture->cl, flags, size, (void *)(uintptr_t)bytes, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(clSetKernelArg(kernel, argument, sizeof mem, &mem), CL_SUCCESS);
    return mem;
}

/* Draws on the device. */
static void draw(const struct fixture *fixture, const uint32_t counters[][4], const uint32_t keys[][2], size_t count,
                 uint32_t words[][4]) {
    cl_int code = CL_SUCCESS;
    const char *sources[] = {cln_source_philox.text, text};
    const cl_program program = clCreateProgramWithSource(fixture->cl, 2, sources, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(clBuildProgram(program, 1, &fixture->device.device, "-cl-std=CL1.2", NULL, NULL), CL_SUCCESS);
    const cl_kernel kernel = clCreateKernel(program, "draw", &code);
    assert_int_equal(code, CL_SUCCESS);
    memset(words, 0xff, count * sizeof *words);
    const cl_mem mems[] = {
        buffer_of(fixture, kernel, 0, counters, count * sizeof *counters),
        buffer_of(fixture, kernel, 1, keys, count * sizeof *keys),
        buffer_of(fixture, kernel, 2, words, count * sizeof *words),
    };
    assert_int_equal(clEnqueueNDRangeKernel(fixture->queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL), CL_SUCCESS);
    code = clEnqueueReadBuffer(fixture->queue, mems[2], CL_TRUE, 0, count * sizeof *words, words, 0, NULL, NULL);
    assert_int_equal(code, CL_SUCCESS);
    for (size_t i = 0; i < sizeof mems / sizeof *mems; i++)
        clReleaseMemObject(mems[i]);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
}

static void published_vectors(void **state) {
    const struct fixture *fixture = *state;
    uint32_t counters[VECTORS][4];
    uint32_t keys[VECTORS][2];
    uint32_t words[VECTORS][4];
    for (size_t i = 0; i < VECTORS; i++) {
        memcpy(counters[i], vectors[i].counter, sizeof counters[i]);
        memcpy(keys[i], vectors[i].key, sizeof keys[i]);
    }
    draw(fixture, (const uint32_t(*)[4])counters, (const uint32_t(*)[2])keys, VECTORS, words);
    for (size_t i = 0; i < VECTORS; i++) {
        assert_memory_equal(words[i], vectors[i].words, sizeof words[i]);
        ref_philox(vectors[i].counter, vectors[i].key, words[i]);
        assert_memory_equal(words[i], vectors[i].words, sizeof words[i]);
    }
}

static void random_counters(void **state) {
    struct random random = {1};
    uint32_t counters[DRAWS][4];
    uint32_t keys[DRAWS][2];
    uint32_t words[DRAWS][4];
    for (size_t i = 0; i < DRAWS; i++) {
        for (int k = 0; k < 4; k++)
            counters[i][k] = (uint32_t)random_next(&random);
        for (int k = 0; k < 2; k++)
            keys[i][k] = (uint32_t)random_next(&random);
    }
    draw(*state, (const uint32_t(*)[4])counters, (const uint32_t(*)[2])keys, DRAWS, words);
    for (size_t i = 0; i < DRAWS; i++) {
        uint32_t expected[4];
        ref_philox(counters[i], keys[i], expected);
        assert_memory_equal(words[i], expected, sizeof expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(random_counters),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
