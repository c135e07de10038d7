/* See fault_layer.h. What the library calls is intercepted; releases are counted, but never fail, since nobody could do
 * anything about it. */
#include "fault_layer.h"

#include <CL/cl_layer.h>
#include <stddef.h>

__attribute__((visibility("default"))) struct fault_layer fault_layer = {0, CL_OUT_OF_RESOURCES, NULL, 0, 0};

static const cl_icd_dispatch *target;
static cl_icd_dispatch layer;

static int fails(const char *call) {
    fault_layer.calls++;
    if (fault_layer.fail_at == 0 || --fault_layer.fail_at > 0)
        return 0;
    fault_layer.failed = call;
    return 1;
}

/* An object or a reference that there is now, if the call was good. */
static cl_int gained(cl_int code) {
    fault_layer.references += code == CL_SUCCESS;
    return code;
}

static cl_int lost(cl_int code) {
    fault_layer.references -= code == CL_SUCCESS;
    return code;
}

/* Calls that return a code. */
#define INTERCEPT_STATUS(name, parameters, arguments)                    \
    static cl_int CL_API_CALL my_##name parameters {                     \
        return fails(#name) ? fault_layer.code : target->name arguments; \
    }

/* Calls that return a code and a new reference or event. */
#define INTERCEPT_GAIN(name, parameters, arguments)                              \
    static cl_int CL_API_CALL my_##name parameters {                             \
        return fails(#name) ? fault_layer.code : gained(target->name arguments); \
    }

#define INTERCEPT_RELEASE(name, type)                  \
    static cl_int CL_API_CALL my_##name(type object) { \
        return lost(target->name(object));             \
    }

/* Calls that return an object, and a code by their last parameter. */
#define INTERCEPT_CREATE(name, type, parameters, arguments) \
    static type CL_API_CALL my_##name parameters {          \
        cl_int unasked = CL_SUCCESS;                        \
        code = code ? code : &unasked;                      \
        if (fails(#name)) {                                 \
            *code = fault_layer.code;                       \
            return NULL;                                    \
        }                                                   \
        const type object = target->name arguments;         \
        gained(*code);                                      \
        return object;                                      \
    }

INTERCEPT_STATUS(clGetPlatformIDs, (cl_uint n, cl_platform_id *ids, cl_uint *count), (n, ids, count))
INTERCEPT_STATUS(clGetPlatformInfo, (cl_platform_id id, cl_platform_info what, size_t n, void *value, size_t *size),
                 (id, what, n, value, size))
INTERCEPT_STATUS(clGetDeviceIDs, (cl_platform_id id, cl_device_type type, cl_uint n, cl_device_id *ids, cl_uint *count),
                 (id, type, n, ids, count))
INTERCEPT_STATUS(clGetDeviceInfo, (cl_device_id id, cl_device_info what, size_t n, void *value, size_t *size),
                 (id, what, n, value, size))
INTERCEPT_STATUS(clGetContextInfo, (cl_context context, cl_context_info what, size_t n, void *value, size_t *size),
                 (context, what, n, value, size))
INTERCEPT_STATUS(clGetCommandQueueInfo,
                 (cl_command_queue queue, cl_command_queue_info what, size_t n, void *value, size_t *size),
                 (queue, what, n, value, size))
INTERCEPT_STATUS(clGetMemObjectInfo, (cl_mem mem, cl_mem_info what, size_t n, void *value, size_t *size),
                 (mem, what, n, value, size))
INTERCEPT_STATUS(clGetProgramInfo, (cl_program program, cl_program_info what, size_t n, void *value, size_t *size),
                 (program, what, n, value, size))
INTERCEPT_STATUS(clGetProgramBuildInfo,
                 (cl_program program, cl_device_id id, cl_program_build_info what, size_t n, void *value, size_t *size),
                 (program, id, what, n, value, size))
INTERCEPT_STATUS(clBuildProgram,
                 (cl_program program, cl_uint n, const cl_device_id *ids, const char *options,
                  void(CL_CALLBACK *notify)(cl_program, void *), void *user),
                 (program, n, ids, options, notify, user))
INTERCEPT_STATUS(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value),
                 (kernel, index, size, value))
INTERCEPT_STATUS(clFinish, (cl_command_queue queue), (queue))

INTERCEPT_CREATE(clCreateProgramWithSource, cl_program,
                 (cl_context context, cl_uint n, const char **texts, const size_t *lengths, cl_int *code),
                 (context, n, texts, lengths, code))
INTERCEPT_CREATE(clCreateProgramWithBinary, cl_program,
                 (cl_context context, cl_uint n, const cl_device_id *ids, const size_t *lengths,
                  const unsigned char **binaries, cl_int *statuses, cl_int *code),
                 (context, n, ids, lengths, binaries, statuses, code))
INTERCEPT_CREATE(clCreateKernel, cl_kernel, (cl_program program, const char *name, cl_int *code), (program, name, code))
INTERCEPT_CREATE(clCreateBuffer, cl_mem, (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code),
                 (context, flags, size, host, code))

INTERCEPT_GAIN(clRetainContext, (cl_context context), (context))
INTERCEPT_GAIN(clRetainProgram, (cl_program program), (program))
INTERCEPT_RELEASE(clReleaseContext, cl_context)
INTERCEPT_RELEASE(clReleaseProgram, cl_program)
INTERCEPT_RELEASE(clReleaseKernel, cl_kernel)
INTERCEPT_RELEASE(clReleaseMemObject, cl_mem)
INTERCEPT_RELEASE(clReleaseEvent, cl_event)

static cl_int CL_API_CALL my_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                                    const size_t *offset, const size_t *global, const size_t *local,
                                                    cl_uint num_wait, const cl_event *wait_list, cl_event *event) {
    if (fails("clEnqueueNDRangeKernel"))
        return fault_layer.code;
    const cl_int code =
        target->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, num_wait, wait_list, event);
    return event ? gained(code) : code;
}

static cl_int CL_API_CALL my_clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint num_wait,
                                                         const cl_event *wait_list, cl_event *event) {
    if (fails("clEnqueueMarkerWithWaitList"))
        return fault_layer.code;
    const cl_int code = target->clEnqueueMarkerWithWaitList(queue, num_wait, wait_list, event);
    return event ? gained(code) : code;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t n, void *value,
                                                                         size_t *size) {
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (what != CL_LAYER_API_VERSION || (value && n < sizeof version))
        return CL_INVALID_VALUE;
    if (value)
        *(cl_layer_api_version *)value = version;
    if (size)
        *size = sizeof version;
    return CL_SUCCESS;
}

__attribute__((visibility("default"))) cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *below,
                                                                      cl_uint *entries_here, const cl_icd_dispatch **here) {
    if (!below || !entries_here || !here || entries < sizeof layer / sizeof layer.clGetPlatformIDs)
        return CL_INVALID_VALUE;
    target = below;
    layer = *below;
    layer.clGetPlatformIDs = my_clGetPlatformIDs;
    layer.clGetPlatformInfo = my_clGetPlatformInfo;
    layer.clGetDeviceIDs = my_clGetDeviceIDs;
    layer.clGetDeviceInfo = my_clGetDeviceInfo;
    layer.clGetContextInfo = my_clGetContextInfo;
    layer.clGetCommandQueueInfo = my_clGetCommandQueueInfo;
    layer.clGetMemObjectInfo = my_clGetMemObjectInfo;
    layer.clGetProgramInfo = my_clGetProgramInfo;
    layer.clGetProgramBuildInfo = my_clGetProgramBuildInfo;
    layer.clBuildProgram = my_clBuildProgram;
    layer.clSetKernelArg = my_clSetKernelArg;
    layer.clFinish = my_clFinish;
    layer.clCreateProgramWithSource = my_clCreateProgramWithSource;
    layer.clCreateProgramWithBinary = my_clCreateProgramWithBinary;
    layer.clCreateKernel = my_clCreateKernel;
    layer.clCreateBuffer = my_clCreateBuffer;
    layer.clRetainContext = my_clRetainContext;
    layer.clRetainProgram = my_clRetainProgram;
    layer.clReleaseContext = my_clReleaseContext;
    layer.clReleaseProgram = my_clReleaseProgram;
    layer.clReleaseKernel = my_clReleaseKernel;
    layer.clReleaseMemObject = my_clReleaseMemObject;
    layer.clReleaseEvent = my_clReleaseEvent;
    layer.clEnqueueNDRangeKernel = my_clEnqueueNDRangeKernel;
    layer.clEnqueueMarkerWithWaitList = my_clEnqueueMarkerWithWaitList;
    *entries_here = sizeof layer / sizeof layer.clGetPlatformIDs;
    *here = &layer;
    return CL_SUCCESS;
}
