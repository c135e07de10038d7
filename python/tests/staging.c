/* A loader of OpenCL that reports every device as a GPU, so that the package copies arrays to the device and back. */
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <string.h>

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void *value, size_t *full) {
    cl_int (*genuine)(cl_device_id, cl_device_info, size_t, void *, size_t *) = NULL;
    void *const symbol = dlsym(RTLD_NEXT, "clGetDeviceInfo");
    memcpy(&genuine, &symbol, sizeof genuine); /* C has no cast from the one to the other */
    const cl_int code = genuine(device, what, size, value, full);
    if (!code && what == CL_DEVICE_TYPE && value)
        *(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
    return code;
}
