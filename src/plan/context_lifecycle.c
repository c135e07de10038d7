#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue, which every version has */
#include "base/context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "base/struct_size.h"
#include "config/tuning.h"
#include "device/device.h"
#include "plan/plan_store.h"
#include "program/cache_folder.h"
#include "program/program.h"

#define STRING_OF(number) #number
#define VERSION_TEXT(major, minor, patch) STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)

const char *clnorm_version(void) {
    return VERSION_TEXT(CLNORM_VERSION_MAJOR, CLNORM_VERSION_MINOR, CLNORM_VERSION_PATCH);
}

uint32_t clnorm_version_number(void) {
    return 10000 * CLNORM_VERSION_MAJOR + 100 * CLNORM_VERSION_MINOR + CLNORM_VERSION_PATCH;
}

static bool find_device(const cl_device_id *devices, size_t count, cl_device_id device) {
    size_t i = 0;
    while (i < count && devices[i] != device)
        i++;
    return i < count;
}

/* Whether the driver makes a queue of the cl_context for the device. */
static bool has_queues(cl_context cl, cl_device_id device) {
    cl_int code = CL_SUCCESS;
    const cl_command_queue queue = clCreateCommandQueue(cl, device, 0, &code);
    if (queue)
        (void)clReleaseCommandQueue(queue);
    return code == CL_SUCCESS;
}

/* Checks that the device is one of the cl_context's. PoCL lists the whole device in the place of a sub-device. */
static clnorm_status check_device(cl_context cl, cl_device_id device) {
    size_t size = 0;
    cl_int code = clGetContextInfo(cl, CL_CONTEXT_DEVICES, 0, NULL, &size);
    if (code != CL_SUCCESS)
        return cln_fail_opencl(code, "clGetContextInfo");
    const size_t count = size / sizeof(cl_device_id);
    cl_device_id *const devices = calloc(count + 1, sizeof *devices);
    if (!devices)
        return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "out of host memory, listing the devices of the cl_context");
    code = clGetContextInfo(cl, CL_CONTEXT_DEVICES, size, devices, NULL);
    const bool listed = find_device(devices, count, device);
    const bool is_part = !listed && find_device(devices, count, cln_device_whole(device));
    free(devices);
    if (code != CL_SUCCESS)
        return cln_fail_opencl(code, "clGetContextInfo");
    if (!listed && !(is_part && has_queues(cl, device)))
        return cln_fail(CLNORM_INVALID_ARGUMENT, "device is not one of the %zu devices of the cl_context", count);
    return CLNORM_SUCCESS;
}

static clnorm_status check_arguments(cl_context cl, cl_device_id device, clnorm_context *const *context) {
    if (!context)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "context is NULL");
    if (!cl)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "cl is NULL");
    if (!device)
        return cln_fail(CLNORM_INVALID_ARGUMENT, "device is NULL");
    return check_device(cl, device);
}

static clnorm_status check_options(const clnorm_context_options *options) {
    if (options->build_report > 1)
        return cln_fail(CLNORM_INVALID_VALUE, "options.build_report is %" PRIu32 ": expected 0 or 1",
                        options->build_report);
    if (options->reserved)
        return cln_fail(CLNORM_INVALID_VALUE, "options.reserved is %" PRIu32 ": expected 0", options->reserved);
    return CLNORM_SUCCESS;
}

static clnorm_status check_version(const clnorm_device_info *device) {
    unsigned major = 0, minor = 0;
    const bool read = sscanf(device->version, "OpenCL %3u.%3u", &major, &minor) == 2;
    if (read && (major > 1 || (major == 1 && minor >= 2)))
        return CLNORM_SUCCESS;
    return cln_fail(CLNORM_UNSUPPORTED, "the device's version is '%s': expected OpenCL 1.2 or later", device->version);
}

/* Fills in an empty context. After a failure the caller destroys what is there. */
static clnorm_status set_up(clnorm_context *context, cl_context cl, cl_device_id device,
                            const clnorm_context_options *options) {
    clnorm_device_info_init(&context->device);
    clnorm_status status = clnorm_device_describe(device, &context->device);
    if (status == CLNORM_SUCCESS)
        status = check_version(&context->device);
    if (status != CLNORM_SUCCESS)
        return status;

    const cl_int code = clRetainContext(cl);
    if (code != CL_SUCCESS)
        return cln_fail_opencl(code, "clRetainContext");
    context->cl = cl;
    context->log = options->log;
    context->log_user = options->log_user;
    context->build_report = options->build_report;
    context->cache_dir = cln_cache_dir(options->cache_dir);
    if (!context->cache_dir)
        return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "out of host memory, making a context");
    context->tuning = cln_tuning_read(&context->device);
    status = cln_program_store_create(&context->programs);
    return status == CLNORM_SUCCESS ? cln_plan_store_create(&context->plans) : status;
}

void clnorm_context_options_init(clnorm_context_options *options) {
    static const clnorm_context_options initial = CLNORM_CONTEXT_OPTIONS_INIT;
    if (options)
        *options = initial;
}

clnorm_status clnorm_context_create(cl_context cl, cl_device_id device, const clnorm_context_options *options,
                                    clnorm_context **context) {
    static const struct cln_struct kind = {"options", "CLNORM_CONTEXT_OPTIONS_INIT", sizeof *options};
    clnorm_context_options taken = CLNORM_CONTEXT_OPTIONS_INIT;
    clnorm_status status = check_arguments(cl, device, context);
    if (!status && options)
        status = cln_struct_take(&kind, options, &taken);
    if (!status)
        status = check_options(&taken);
    if (status != CLNORM_SUCCESS)
        return status;
    clnorm_context *const made = calloc(1, sizeof *made);
    if (!made)
        return cln_fail(CLNORM_OUT_OF_HOST_MEMORY, "out of host memory, making a context");
    status = set_up(made, cl, device, &taken);
    if (status != CLNORM_SUCCESS) {
        clnorm_context_destroy(made);
        return status;
    }
    cln_log(made, "context: %s, %s %s, driver %s, program cache %s", made->device.name, made->device.platform_name,
            made->device.version, made->device.driver, *made->cache_dir ? made->cache_dir : "off");
    *context = made;
    return CLNORM_SUCCESS;
}

void clnorm_context_destroy(clnorm_context *context) {
    if (!context)
        return;
    cln_plan_store_destroy(context->plans);
    cln_program_store_destroy(context->programs);
    cln_tuning_destroy(context->tuning);
    free(context->cache_dir);
    if (context->cl)
        (void)clReleaseContext(context->cl);
    free(context);
}

const clnorm_device_info *clnorm_context_device(const clnorm_context *context) {
    if (!context)
        return NULL;
    return &context->device;
}

const char *clnorm_context_cache_dir(const clnorm_context *context) {
    return context ? context->cache_dir : "";
}
