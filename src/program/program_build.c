#include "program/program_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/log.h"
#include "base/status.h"
#include "device/driver_defects.h"
#include "program/cache.h"
#include "program/spec.h"

/* ------------------------------------------------------------------------------------------------------- from source */

/* The driver's build log in a new allocation; NULL when the driver returns none. */
static char *read_build_log(cl_program program, cl_device_id device) {
    size_t size = 0;
    if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) != CL_SUCCESS)
        return NULL;
    char *const text = calloc(size + 1, 1);
    if (text && clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, text, NULL) == CL_SUCCESS)
        return text;
    free(text);
    return NULL;
}

/* Logs a text line by line, and very long lines in parts. */
static void log_lines(const clnorm_context *context, const char *name, const char *text) {
    while (*text) {
        const size_t line = strcspn(text, "\r\n");
        const size_t length = line < 1024 ? line : 1024;
        if (length > 0)
            cln_log(context, "program %s: %.*s", name, (int)length, text);
        text += length;
        text += strspn(text, "\r\n");
    }
}

static clnorm_status fail_build(cl_int code, const struct cln_source *source, const char *options, const char *build_log) {
    if (code != CL_BUILD_PROGRAM_FAILURE && code != CL_INVALID_BUILD_OPTIONS)
        return cln_fail_opencl(code, "clBuildProgram");
    return cln_fail_code(CLNORM_BUILD_FAILED, code, "%s does not build: %s (%d)\noptions: %s\n%s", source->name,
                         cln_opencl_code_name(code), (int)code, options,
                         build_log ? build_log : "the build log cannot be read");
}

/* Builds a program. A build report adds an option that is not part of the program's key, as it does not change the
 * code. */
static cl_int build(const clnorm_context *context, cl_program program, const char *options) {
    char all[CLN_OPTIONS_CAPACITY + 32];
    const bool report = context->build_report && context->device.family == CLNORM_PLATFORM_NVIDIA;
    snprintf(all, sizeof all, "%s%s", options, report ? " -cl-nv-verbose" : "");
    return clBuildProgram(program, 1, &context->device.device, all, NULL, NULL);
}

/* Builds once. *build_log: a new allocation, or NULL. */
static clnorm_status build_once(const clnorm_context *context, const struct cln_source *source, const char *options,
                                cl_program *program, char **build_log) {
    cl_int code = CL_SUCCESS;
    const cl_program made =
        clCreateProgramWithSource(context->cl, 1, &(const char *){source->text}, &source->length, &code);
    if (code != CL_SUCCESS)
        return cln_fail_opencl(code, "clCreateProgramWithSource");
    code = build(context, made, options);
    if (context->log || code != CL_SUCCESS)
        *build_log = read_build_log(made, context->device.device);
    if (*build_log)
        log_lines(context, source->name, *build_log);
    if (code == CL_SUCCESS) {
        *program = made;
        return CLNORM_SUCCESS;
    }
    (void)clReleaseProgram(made);
    return fail_build(code, source, options, *build_log);
}

/* The reason why a second build may succeed; NULL where it would fail too, as after an error in the source. */
static const char *passing_defect(const clnorm_context *context, clnorm_status status, const char *build_log) {
    const bool refused = status == CLNORM_BUILD_FAILED && clnorm_error_opencl() == CL_BUILD_PROGRAM_FAILURE;
    const bool has_error = build_log && strstr(build_log, "error:");
    return refused && !has_error ? cln_driver_defect(&context->device, CLN_DEFECT_SHARED_CACHE) : NULL;
}

clnorm_status cln_program_build(const clnorm_context *context, const struct cln_source *source, const char *options,
                                cl_program *program) {
    enum { TRIES = 8 };
    for (int try = 1;; try++) {
        char *build_log = NULL;
        const clnorm_status status = build_once(context, source, options, program, &build_log);
        const char *const defect = try < TRIES ? passing_defect(context, status, build_log) : NULL;
        free(build_log);
        if (!defect)
            return status;
        cln_log(context, "program %s: %s; it is built again", source->name, defect);
    }
}

/* ----------------------------------------------------------------------------------------------- from and to the disk */

/* The library's cache is used on every platform but Oclgrind. It is faster than the caches of PoCL, NVIDIA and rusticl,
 * and some drivers have no cache. Oclgrind, a checker, shows the source in its reports only after a build from source. */
bool cln_program_on_disk(const clnorm_context *context) {
    return *context->cache_dir && context->device.family != CLNORM_PLATFORM_OCLGRIND;
}

/* The key has everything on which the binary depends. */
static struct cln_cache_key make_key(const clnorm_context *context, const struct cln_source *source, const char *options) {
    const clnorm_device_info *const device = &context->device;
    const uint64_t pointer_size = sizeof(void *);
    struct cln_cache_key key = {NULL, 0};
    cln_cache_key_add_text(&key, source->name);
    cln_cache_key_add_text(&key, device->name);
    cln_cache_key_add_text(&key, options);
    cln_cache_key_add(&key, source->text, source->length);
    cln_cache_key_add_text(&key, device->version);
    cln_cache_key_add_text(&key, device->driver);
    cln_cache_key_add_text(&key, device->platform_name);
    cln_cache_key_add_text(&key, device->platform_version);
    cln_cache_key_add(&key, &pointer_size, sizeof pointer_size);
    return key;
}

/* Makes a program from a binary; NULL when the driver refuses the binary. */
static cl_program build_binary(const clnorm_context *context, const unsigned char *binary, size_t length,
                               const char *options) {
    const cl_device_id device = context->device.device;
    cl_int code = CL_SUCCESS, accepted = CL_SUCCESS;
    const cl_program program = clCreateProgramWithBinary(context->cl, 1, &device, &length, &binary, &accepted, &code);
    if (code == CL_SUCCESS && accepted == CL_SUCCESS &&
        clBuildProgram(program, 1, &device, options, NULL, NULL) == CL_SUCCESS)
        return program;
    if (program)
        (void)clReleaseProgram(program);
    return NULL;
}

cl_program cln_program_load(const clnorm_context *context, const struct cln_source *source, const char *options) {
    struct cln_cache_key key = make_key(context, source, options);
    unsigned char *binary = NULL;
    size_t length = 0;
    cl_program program = NULL;
    if (cln_cache_load(context->cache_dir, &key, &binary, &length)) {
        program = build_binary(context, binary, length, options);
        if (!program)
            cln_cache_remove(context->cache_dir, &key);
    }
    free(binary);
    cln_cache_key_free(&key);
    return program;
}

/* The index of the device's binary among a program's count binaries; count when there is none. Binaries are in the order
 * of the program's devices, but PoCL lists only devices for which it was built, here one. */
static size_t find_binary(cl_program program, cl_device_id device, size_t count) {
    if (count == 1)
        return 0;
    cl_device_id *const devices = calloc(count, sizeof(cl_device_id));
    const bool read =
        devices && clGetProgramInfo(program, CL_PROGRAM_DEVICES, count * sizeof *devices, devices, NULL) == CL_SUCCESS;
    size_t i = read ? 0 : count;
    while (i < count && devices[i] != device)
        i++;
    free(devices);
    return i;
}

/* Fetches one of count binaries into a new allocation; NULL when the driver returns none. */
static unsigned char *fetch_binary(cl_program program, size_t index, size_t count, size_t *length) {
    size_t *const sizes = calloc(count, sizeof *sizes);
    unsigned char **const binaries = calloc(count, sizeof *binaries); /* the driver skips those that are NULL */
    unsigned char *binary = NULL;
    if (sizes && binaries &&
        clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, count * sizeof *sizes, sizes, NULL) == CL_SUCCESS &&
        sizes[index] > 0)
        binary = malloc(sizes[index]);
    if (binary) {
        binaries[index] = binary;
        *length = sizes[index];
        if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof *binaries, binaries, NULL) != CL_SUCCESS) {
            free(binary);
            binary = NULL;
        }
    }
    free(sizes);
    free(binaries);
    return binary;
}

static unsigned char *read_binary(cl_program program, cl_device_id device, size_t *length) {
    size_t size = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, 0, NULL, &size) != CL_SUCCESS)
        return NULL;
    const size_t count = size / sizeof(size_t);
    const size_t index = find_binary(program, device, count);
    return index < count ? fetch_binary(program, index, count, length) : NULL;
}

void cln_program_keep(const clnorm_context *context, const struct cln_source *source, const char *options,
                      cl_program program) {
    size_t length = 0;
    unsigned char *const binary = read_binary(program, context->device.device, &length);
    if (!binary)
        return;
    struct cln_cache_key key = make_key(context, source, options);
    cln_cache_store(context->cache_dir, &key, binary, length);
    cln_cache_key_free(&key);
    free(binary);
}
