/* OpenCL's functions, each forwarded to a loader that is opened at the first call. The wheel is linked with these instead
 * of libOpenCL, so that it can be imported on a machine without OpenCL and report that. */
#include "opencl_loader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *loader;
static char failure[512];

static void open_loader(void) {
    const char *const named = getenv("CLNORM_OPENCL");
    const char *const path = named && *named ? named : "libOpenCL.so.1";
    loader = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!loader)
        (void)snprintf(failure, sizeof failure, "%s", dlerror());
}

const char *cln_loader_failure(void) {
    (void)pthread_once(&once, open_loader);
    return failure;
}

/* NULL where there is no loader, or one that lacks the function. */
static void *function_named(const char *name) {
    (void)pthread_once(&once, open_loader);
    return loader ? dlsym(loader, name) : NULL;
}

/* The code that every function returns without a loader; for clGetPlatformIDs it means that there are no platforms. */
enum { NO_LOADER = -1001 /* CL_PLATFORM_NOT_FOUND_KHR */ };

/* Two threads may look up a function at the same time: both find the same address. */
#define FORWARD_TO(name, arguments, otherwise)                        \
    static __typeof__(name) *volatile found;                          \
    __typeof__(name) *function = found;                               \
    if (!function)                                                    \
        found = function = (__typeof__(name) *)function_named(#name); \
    if (function)                                                     \
        return function arguments;                                    \
    otherwise

#define FORWARD(name, parameters, arguments)           \
    cl_int CL_API_CALL name parameters {               \
        FORWARD_TO(name, arguments, return NO_LOADER); \
    }

#define FORWARD_MADE(type, name, parameters, arguments)                        \
    type CL_API_CALL name parameters {                                         \
        FORWARD_TO(name, arguments, if (code) *code = NO_LOADER; return NULL); \
    }

/* clang-format off */
FORWARD(clGetPlatformIDs, (cl_uint n, cl_platform_id *platforms, cl_uint *count), (n, platforms, count))
FORWARD(clGetPlatformInfo, (cl_platform_id platform, cl_platform_info what, size_t size, void *value, size_t *full),
        (platform, what, size, value, full))
FORWARD(clGetDeviceIDs, (cl_platform_id platform, cl_device_type type, cl_uint n, cl_device_id *devices, cl_uint *count),
        (platform, type, n, devices, count))
FORWARD(clGetDeviceInfo, (cl_device_id device, cl_device_info what, size_t size, void *value, size_t *full),
        (device, what, size, value, full))
FORWARD_MADE(cl_context, clCreateContext, (const cl_context_properties *properties, cl_uint n, const cl_device_id *devices,
             void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code),
             (properties, n, devices, notify, user, code))
FORWARD(clRetainContext, (cl_context context), (context))
FORWARD(clReleaseContext, (cl_context context), (context))
FORWARD(clGetContextInfo, (cl_context context, cl_context_info what, size_t size, void *value, size_t *full),
        (context, what, size, value, full))
FORWARD_MADE(cl_command_queue, clCreateCommandQueue, (cl_context context, cl_device_id device,
             cl_command_queue_properties properties, cl_int *code), (context, device, properties, code))
FORWARD(clReleaseCommandQueue, (cl_command_queue queue), (queue))
FORWARD(clGetCommandQueueInfo, (cl_command_queue queue, cl_command_queue_info what, size_t size, void *value, size_t *full),
        (queue, what, size, value, full))
FORWARD_MADE(cl_mem, clCreateBuffer, (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code),
             (context, flags, size, host, code))
FORWARD(clRetainMemObject, (cl_mem memory), (memory))
FORWARD(clReleaseMemObject, (cl_mem memory), (memory))
FORWARD(clGetEventInfo, (cl_event event, cl_event_info what, size_t size, void *value, size_t *full),
        (event, what, size, value, full))
FORWARD(clGetMemObjectInfo, (cl_mem memory, cl_mem_info what, size_t size, void *value, size_t *full),
        (memory, what, size, value, full))
FORWARD_MADE(cl_program, clCreateProgramWithSource, (cl_context context, cl_uint n, const char **texts,
             const size_t *lengths, cl_int *code), (context, n, texts, lengths, code))
FORWARD_MADE(cl_program, clCreateProgramWithBinary, (cl_context context, cl_uint n, const cl_device_id *devices,
             const size_t *lengths, const unsigned char **binaries, cl_int *status, cl_int *code),
             (context, n, devices, lengths, binaries, status, code))
FORWARD(clRetainProgram, (cl_program program), (program))
FORWARD(clReleaseProgram, (cl_program program), (program))
FORWARD(clBuildProgram, (cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
        void(CL_CALLBACK *notify)(cl_program, void *), void *user), (program, n, devices, options, notify, user))
FORWARD(clGetProgramInfo, (cl_program program, cl_program_info what, size_t size, void *value, size_t *full),
        (program, what, size, value, full))
FORWARD(clGetProgramBuildInfo, (cl_program program, cl_device_id device, cl_program_build_info what, size_t size,
        void *value, size_t *full), (program, device, what, size, value, full))
FORWARD_MADE(cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *code), (program, name, code))
FORWARD(clReleaseKernel, (cl_kernel kernel), (kernel))
FORWARD(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value), (kernel, index, size, value))
FORWARD(clGetKernelWorkGroupInfo, (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t size,
        void *value, size_t *full), (kernel, device, what, size, value, full))
FORWARD(clReleaseEvent, (cl_event event), (event))
FORWARD(clWaitForEvents, (cl_uint n, const cl_event *events), (n, events))
FORWARD(clGetEventProfilingInfo, (cl_event event, cl_profiling_info what, size_t size, void *value, size_t *full),
        (event, what, size, value, full))
FORWARD(clFlush, (cl_command_queue queue), (queue))
FORWARD(clFinish, (cl_command_queue queue), (queue))
FORWARD(clEnqueueNDRangeKernel, (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *first,
        const size_t *global, const size_t *local, cl_uint n, const cl_event *wait, cl_event *event),
        (queue, kernel, dimensions, first, global, local, n, wait, event))
FORWARD(clEnqueueReadBuffer, (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t size,
        void *to, cl_uint n, const cl_event *wait, cl_event *event),
        (queue, memory, blocking, offset, size, to, n, wait, event))
FORWARD(clEnqueueWriteBuffer, (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t size,
        const void *from, cl_uint n, const cl_event *wait, cl_event *event),
        (queue, memory, blocking, offset, size, from, n, wait, event))
FORWARD(clEnqueueFillBuffer, (cl_command_queue queue, cl_mem memory, const void *pattern, size_t pattern_size,
        size_t offset, size_t size, cl_uint n, const cl_event *wait, cl_event *event),
        (queue, memory, pattern, pattern_size, offset, size, n, wait, event))
FORWARD(clEnqueueCopyBuffer, (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
        size_t size, cl_uint n, const cl_event *wait, cl_event *event),
        (queue, from, to, from_offset, to_offset, size, n, wait, event))
FORWARD_MADE(void *, clEnqueueMapBuffer, (cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_map_flags flags,
             size_t offset, size_t size, cl_uint n, const cl_event *wait, cl_event *event, cl_int *code),
             (queue, memory, blocking, flags, offset, size, n, wait, event, code))
FORWARD(clEnqueueUnmapMemObject, (cl_command_queue queue, cl_mem memory, void *mapped, cl_uint n, const cl_event *wait,
        cl_event *event), (queue, memory, mapped, n, wait, event))
FORWARD(clEnqueueMarkerWithWaitList, (cl_command_queue queue, cl_uint n, const cl_event *wait, cl_event *event),
        (queue, n, wait, event))
