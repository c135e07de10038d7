/* Releases are counted but never fail: no caller could react to such a failure. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "fault_calls.h"

#include <dlfcn.h>

struct fault_calls fault_calls = {.code = CL_OUT_OF_RESOURCES};

/* The loader's function of a name that this program defines too. */
#define GENUINE(name) ((__typeof__(&(name)))genuine(#name))

static void (*genuine(const char *name))(void) {
    union {
        void *object;
        void (*function)(void);
    } symbol = {dlsym(RTLD_NEXT, name)};
    return symbol.function;
}

static int fails(const char *call) {
    if (fault_calls.fail_at == 0 || --fault_calls.fail_at > 0)
        return 0;
    fault_calls.failed = call;
    return 1;
}

/* Counts a new object or reference where the call succeeded. */
static cl_int gained(cl_int code) {
    fault_calls.references += code == CL_SUCCESS;
    return code;
}

static cl_int lost(cl_int code) {
    fault_calls.references -= code == CL_SUCCESS;
    return code;
}

/* Calls that return a code. */
#define INTERCEPT_STATUS(name, parameters, ...)                              \
    cl_int CL_API_CALL name parameters {                                     \
        return fails(#name) ? fault_calls.code : GENUINE(name)(__VA_ARGS__); \
    }

/* Calls that return a code and a new reference or event. */
#define INTERCEPT_GAIN(name, parameters, ...)                                        \
    cl_int CL_API_CALL name parameters {                                             \
        return fails(#name) ? fault_calls.code : gained(GENUINE(name)(__VA_ARGS__)); \
    }

#define INTERCEPT_RELEASE(name, type)       \
    cl_int CL_API_CALL name(type object) {  \
        return lost(GENUINE(name)(object)); \
    }

/* Calls that return an object, and a code by their last parameter. */
#define INTERCEPT_CREATE(name, type, parameters, ...)   \
    type CL_API_CALL name parameters {                  \
        cl_int ignored = CL_SUCCESS;                    \
        code = code ? code : &ignored;                  \
        if (fails(#name)) {                             \
            *code = fault_calls.code;                   \
            return NULL;                                \
        }                                               \
        const type object = GENUINE(name)(__VA_ARGS__); \
        gained(*code);                                  \
        return object;                                  \
    }

INTERCEPT_STATUS(clGetEventInfo, (cl_event event, cl_event_info what, size_t n, void *value, size_t *size), event, what, n,
                 value, size)
INTERCEPT_STATUS(clEnqueueReadBuffer,
                 (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, void *to, cl_uint n,
                  const cl_event *wait_list, cl_event *event),
                 queue, buffer, blocking, offset, size, to, n, wait_list, event)
INTERCEPT_STATUS(clGetPlatformIDs, (cl_uint n, cl_platform_id *ids, cl_uint *count), n, ids, count)
INTERCEPT_STATUS(clGetPlatformInfo, (cl_platform_id id, cl_platform_info what, size_t n, void *value, size_t *size), id,
                 what, n, value, size)
INTERCEPT_STATUS(clGetDeviceIDs, (cl_platform_id id, cl_device_type type, cl_uint n, cl_device_id *ids, cl_uint *count), id,
                 type, n, ids, count)
INTERCEPT_STATUS(clGetDeviceInfo, (cl_device_id id, cl_device_info what, size_t n, void *value, size_t *size), id, what, n,
                 value, size)
INTERCEPT_STATUS(clGetContextInfo, (cl_context context, cl_context_info what, size_t n, void *value, size_t *size), context,
                 what, n, value, size)
INTERCEPT_STATUS(clGetCommandQueueInfo,
                 (cl_command_queue queue, cl_command_queue_info what, size_t n, void *value, size_t *size), queue, what, n,
                 value, size)
INTERCEPT_STATUS(clGetMemObjectInfo, (cl_mem mem, cl_mem_info what, size_t n, void *value, size_t *size), mem, what, n,
                 value, size)
INTERCEPT_STATUS(clGetProgramInfo, (cl_program program, cl_program_info what, size_t n, void *value, size_t *size), program,
                 what, n, value, size)
INTERCEPT_STATUS(clGetProgramBuildInfo,
                 (cl_program program, cl_device_id id, cl_program_build_info what, size_t n, void *value, size_t *size),
                 program, id, what, n, value, size)
INTERCEPT_STATUS(clBuildProgram,
                 (cl_program program, cl_uint n, const cl_device_id *ids, const char *options,
                  void(CL_CALLBACK *notify)(cl_program, void *), void *user),
                 program, n, ids, options, notify, user)
INTERCEPT_STATUS(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value), kernel, index, size,
                 value)
INTERCEPT_STATUS(clFinish, (cl_command_queue queue), queue)

INTERCEPT_CREATE(clCreateProgramWithSource, cl_program,
                 (cl_context context, cl_uint n, const char **texts, const size_t *lengths, cl_int *code), context, n,
                 texts, lengths, code)
INTERCEPT_CREATE(clCreateProgramWithBinary, cl_program,
                 (cl_context context, cl_uint n, const cl_device_id *ids, const size_t *lengths,
                  const unsigned char **binaries, cl_int *statuses, cl_int *code),
                 context, n, ids, lengths, binaries, statuses, code)
INTERCEPT_CREATE(clCreateKernel, cl_kernel, (cl_program program, const char *name, cl_int *code), program, name, code)
INTERCEPT_CREATE(clCreateBuffer, cl_mem, (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code),
                 context, flags, size, host, code)

INTERCEPT_GAIN(clRetainContext, (cl_context context), context)
INTERCEPT_GAIN(clRetainProgram, (cl_program program), program)
INTERCEPT_RELEASE(clReleaseContext, cl_context)
INTERCEPT_RELEASE(clReleaseProgram, cl_program)
INTERCEPT_RELEASE(clReleaseKernel, cl_kernel)
INTERCEPT_RELEASE(clReleaseMemObject, cl_mem)
INTERCEPT_RELEASE(clReleaseEvent, cl_event)

/* Past the last place, launches are counted alone. */
static void note_launch(const size_t *offset, cl_uint num_wait, const cl_event *wait_list, const cl_event *event) {
    const unsigned at = fault_calls.launches++;
    if (at >= FAULT_LAUNCHES)
        return;
    struct fault_launch *const launch = &fault_calls.launch[at];
    *launch = (struct fault_launch){offset ? *offset : 0, num_wait, {NULL}, event ? *event : NULL};
    for (cl_uint i = 0; i < num_wait && i < FAULT_AWAITED; i++)
        launch->awaited[i] = wait_list[i];
}

cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                          const size_t *offset, const size_t *global, const size_t *local, cl_uint num_wait,
                                          const cl_event *wait_list, cl_event *event) {
    if (fails("clEnqueueNDRangeKernel"))
        return fault_calls.code;
    const cl_int code =
        GENUINE(clEnqueueNDRangeKernel)(queue, kernel, dimensions, offset, global, local, num_wait, wait_list, event);
    if (code == CL_SUCCESS)
        note_launch(offset, num_wait, wait_list, event);
    return event ? gained(code) : code;
}

cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint num_wait, const cl_event *wait_list,
                                               cl_event *event) {
    if (fails("clEnqueueMarkerWithWaitList"))
        return fault_calls.code;
    const cl_int code = GENUINE(clEnqueueMarkerWithWaitList)(queue, num_wait, wait_list, event);
    return event ? gained(code) : code;
}
