#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local struct cln_failure last_failure;

static const char *const status_texts[] = {
    [CLNORM_SUCCESS] = "success",
    [CLNORM_INVALID_ARGUMENT] = "an argument is missing or cannot be used, or a struct has an unknown size",
    [CLNORM_INVALID_ENUM] = "a value is not one that its enumeration has",
    [CLNORM_INVALID_VALUE] = "a number is outside its range",
    [CLNORM_INVALID_SHAPE] = "shapes, strides and groups do not fit each other",
    [CLNORM_INVALID_BUFFER] = "a buffer is missing, surplus, too small, misaligned, overlapping or not accessible",
    [CLNORM_INVALID_QUEUE] = "the queue belongs to another context or device",
    [CLNORM_INVALID_SELECTOR] = "the device selector cannot be read",
    [CLNORM_OVERFLOW] = "a size is too large to be computed with",
    [CLNORM_UNSUPPORTED] = "this device or this operation cannot do what is requested",
    [CLNORM_DEVICE_NOT_FOUND] = "there is no such OpenCL device",
    [CLNORM_OUT_OF_HOST_MEMORY] = "the host is out of memory",
    [CLNORM_OUT_OF_DEVICE_MEMORY] = "the device is out of memory or resources",
    [CLNORM_BUILD_FAILED] = "the driver could not build a kernel",
    [CLNORM_OPENCL_ERROR] = "an OpenCL call failed",
    [CLNORM_NOT_EXACT] = "the inputs do not allow exact results",
};

const char *clnorm_status_text(clnorm_status status) {
    const size_t count = sizeof status_texts / sizeof status_texts[0];
    /* A negative status becomes a large index. */
    const size_t index = (size_t)status;
    return index < count ? status_texts[index] : "unknown status";
}

const char *clnorm_error_detail(void) {
    return last_failure.detail;
}

cl_int clnorm_error_opencl(void) {
    return last_failure.code;
}

void cln_failure_keep(struct cln_failure *kept) {
    *kept = last_failure;
}

void cln_failure_restore(const struct cln_failure *kept) {
    last_failure = *kept;
}

__attribute__((format(printf, 2, 0))) static void record(cl_int code, const char *format, va_list arguments) {
    if (vsnprintf(last_failure.detail, sizeof last_failure.detail, format, arguments) < 0) {
        last_failure.detail[0] = '\0';
    }
    last_failure.code = code;
}

clnorm_status cln_fail(clnorm_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    record(CL_SUCCESS, format, arguments);
    va_end(arguments);
    return status;
}

clnorm_status cln_fail_code(clnorm_status status, cl_int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    record(code, format, arguments);
    va_end(arguments);
    return status;
}

struct code_name {
    cl_int code;
    const char *name;
};

#define NAMED(code) \
    { code, #code }

static const struct code_name code_names[] = {
    NAMED(CL_SUCCESS),
    NAMED(CL_DEVICE_NOT_FOUND),
    NAMED(CL_DEVICE_NOT_AVAILABLE),
    NAMED(CL_COMPILER_NOT_AVAILABLE),
    NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    NAMED(CL_OUT_OF_RESOURCES),
    NAMED(CL_OUT_OF_HOST_MEMORY),
    NAMED(CL_PROFILING_INFO_NOT_AVAILABLE),
    NAMED(CL_MEM_COPY_OVERLAP),
    NAMED(CL_IMAGE_FORMAT_MISMATCH),
    NAMED(CL_IMAGE_FORMAT_NOT_SUPPORTED),
    NAMED(CL_BUILD_PROGRAM_FAILURE),
    NAMED(CL_MAP_FAILURE),
    NAMED(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    NAMED(CL_COMPILE_PROGRAM_FAILURE),
    NAMED(CL_LINKER_NOT_AVAILABLE),
    NAMED(CL_LINK_PROGRAM_FAILURE),
    NAMED(CL_DEVICE_PARTITION_FAILED),
    NAMED(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
    NAMED(CL_INVALID_VALUE),
    NAMED(CL_INVALID_DEVICE_TYPE),
    NAMED(CL_INVALID_PLATFORM),
    NAMED(CL_INVALID_DEVICE),
    NAMED(CL_INVALID_CONTEXT),
    NAMED(CL_INVALID_QUEUE_PROPERTIES),
    NAMED(CL_INVALID_COMMAND_QUEUE),
    NAMED(CL_INVALID_HOST_PTR),
    NAMED(CL_INVALID_MEM_OBJECT),
    NAMED(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
    NAMED(CL_INVALID_IMAGE_SIZE),
    NAMED(CL_INVALID_SAMPLER),
    NAMED(CL_INVALID_BINARY),
    NAMED(CL_INVALID_BUILD_OPTIONS),
    NAMED(CL_INVALID_PROGRAM),
    NAMED(CL_INVALID_PROGRAM_EXECUTABLE),
    NAMED(CL_INVALID_KERNEL_NAME),
    NAMED(CL_INVALID_KERNEL_DEFINITION),
    NAMED(CL_INVALID_KERNEL),
    NAMED(CL_INVALID_ARG_INDEX),
    NAMED(CL_INVALID_ARG_VALUE),
    NAMED(CL_INVALID_ARG_SIZE),
    NAMED(CL_INVALID_KERNEL_ARGS),
    NAMED(CL_INVALID_WORK_DIMENSION),
    NAMED(CL_INVALID_WORK_GROUP_SIZE),
    NAMED(CL_INVALID_WORK_ITEM_SIZE),
    NAMED(CL_INVALID_GLOBAL_OFFSET),
    NAMED(CL_INVALID_EVENT_WAIT_LIST),
    NAMED(CL_INVALID_EVENT),
    NAMED(CL_INVALID_OPERATION),
    NAMED(CL_INVALID_GL_OBJECT),
    NAMED(CL_INVALID_BUFFER_SIZE),
    NAMED(CL_INVALID_MIP_LEVEL),
    NAMED(CL_INVALID_GLOBAL_WORK_SIZE),
    NAMED(CL_INVALID_PROPERTY),
    NAMED(CL_INVALID_IMAGE_DESCRIPTOR),
    NAMED(CL_INVALID_COMPILER_OPTIONS),
    NAMED(CL_INVALID_LINKER_OPTIONS),
    NAMED(CL_INVALID_DEVICE_PARTITION_COUNT),
    NAMED(CL_INVALID_PIPE_SIZE),
    NAMED(CL_INVALID_DEVICE_QUEUE),
    NAMED(CL_INVALID_SPEC_ID),
    NAMED(CL_MAX_SIZE_RESTRICTION_EXCEEDED),
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

#undef NAMED

const char *cln_opencl_code_name(cl_int code) {
    const size_t count = sizeof code_names / sizeof code_names[0];
    for (size_t i = 0; i < count; i++) {
        if (code_names[i].code == code) {
            return code_names[i].name;
        }
    }
    return "unknown OpenCL code";
}

/* A code that a caller can act upon has a status of its own. */
static clnorm_status status_of(cl_int code) {
    switch (code) {
    case CL_OUT_OF_HOST_MEMORY:
        return CLNORM_OUT_OF_HOST_MEMORY;
    case CL_OUT_OF_RESOURCES:
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_INVALID_BUFFER_SIZE:
        return CLNORM_OUT_OF_DEVICE_MEMORY;
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_INVALID_BUILD_OPTIONS:
        return CLNORM_BUILD_FAILED;
    case CL_COMPILER_NOT_AVAILABLE:
        return CLNORM_UNSUPPORTED;
    case CL_DEVICE_NOT_FOUND:
        return CLNORM_DEVICE_NOT_FOUND;
    case CL_INVALID_MEM_OBJECT:
        return CLNORM_INVALID_BUFFER;
    case CL_INVALID_COMMAND_QUEUE:
        return CLNORM_INVALID_QUEUE;
    case CL_INVALID_EVENT_WAIT_LIST:
        return CLNORM_INVALID_ARGUMENT;
    default:
        return CLNORM_OPENCL_ERROR;
    }
}

clnorm_status cln_fail_opencl(cl_int code, const char *call) {
    return cln_fail_code(status_of(code), code, "%s: %s (%d)", call, cln_opencl_code_name(code), (int)code);
}
