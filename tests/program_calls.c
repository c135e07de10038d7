#include "program_calls.h"

#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct driver_calls driver;

static void *opencl; /* the OpenCL library */

void program_calls_start(void) {
    opencl = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
}

/* The library's function of a name that this file defines too. */
static void (*genuine(const char *name))(void) {
    void (*function)(void) = NULL;
    void *const symbol = opencl ? dlsym(opencl, name) : NULL;
    memcpy(&function, &symbol, sizeof function); /* C has no cast from the one to the other */
    if (!function)
        abort();
    return function;
}

typedef cl_program (*create_with_source)(cl_context, cl_uint, const char **, const size_t *, cl_int *);
typedef cl_program (*create_with_binary)(cl_context, cl_uint, const cl_device_id *, const size_t *, const unsigned char **,
                                         cl_int *, cl_int *);
typedef cl_int (*build_program)(cl_program, cl_uint, const cl_device_id *, const char *,
                                void(CL_CALLBACK *)(cl_program, void *), void *);

typedef cl_int (*count_reference)(cl_program);

static cl_program count_created(cl_program program) {
    driver.references += program != NULL;
    return program;
}

cl_program clCreateProgramWithSource(cl_context cl, cl_uint count, const char **texts, const size_t *lengths,
                                     cl_int *code) {
    return count_created(((create_with_source)genuine("clCreateProgramWithSource"))(cl, count, texts, lengths, code));
}

cl_int clRetainProgram(cl_program program) {
    driver.references++;
    return ((count_reference)genuine("clRetainProgram"))(program);
}

cl_int clReleaseProgram(cl_program program) {
    driver.references--;
    return ((count_reference)genuine("clReleaseProgram"))(program);
}

cl_program clCreateProgramWithBinary(cl_context cl, cl_uint count, const cl_device_id *devices, const size_t *lengths,
                                     const unsigned char **binaries, cl_int *status, cl_int *code) {
    driver.binaries++;
    if (driver.refusal == REFUSE_BINARY) {
        *code = CL_INVALID_BINARY;
        return NULL;
    }
    const create_with_binary next = (create_with_binary)genuine("clCreateProgramWithBinary");
    const cl_program program = count_created(next(cl, count, devices, lengths, binaries, status, code));
    if (driver.refusal == REFUSE_BINARY_STATUS)
        *status = CL_INVALID_BINARY;
    return program;
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                      void(CL_CALLBACK *notify)(cl_program, void *), void *user) {
    driver.verbose = strstr(options, "-cl-nv-verbose") != NULL;
    if (driver.refusal == REFUSE_EVERY_BUILD)
        return CL_OUT_OF_RESOURCES;
    if (driver.refusal == REFUSE_BUILD) {
        driver.refusal = REFUSE_NOTHING; /* the next one, from source, goes well */
        return CL_OUT_OF_RESOURCES;
    }
    if (driver.losses > 0) {
        driver.losses--;
        return CL_BUILD_PROGRAM_FAILURE;
    }
    return ((build_program)genuine("clBuildProgram"))(program, count, devices, options, notify, user);
}
